"""Did a person tell this line in own words, or did a program print it?

"The more GPUs I use the more memory it takes, until the host runs out of memory" holds words of failure as a printed
line does, and is a description. Asked only of lines that say a failure by such words alone, without an exception's
name, a code or a level: programs seldom write sentences, and people seldom write brackets. A logistic curve over a few
counts decides; its weights are data, in `told.json` (`scripts/fit_told.py`).
"""

from __future__ import annotations

import json
import math
import re
from functools import cache
from pathlib import Path

from kb.text import clean

__all__ = ["FEATURES", "WEIGHTS", "features", "is_told"]

WEIGHTS = Path(__file__).with_name("told.json")

TOLD_AT = 0.7
"""the probability from which a line is taken for told, chosen by hand: a printed line that is read as a description
loses more than a description that is read as a printed line"""

FEATURES = (
    "telling",
    "telling_share",
    "person",
    "reader",
    "han",
    "words",
    "symbols",
    "clauses",
    "colon",
    "number",
    "opens",
)

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_SYMBOL = re.compile(r"[=(){}\[\]<>_/\\\"'`|#@*~^&%$;]")
_CLAUSE = re.compile(r",(?!\d)|。|\. |\?")
_COLON = re.compile(r"\w: ")
_NUMBER = re.compile(r"\d{4,}|0x")
_OPENS = re.compile(r"[\[('\"{]")
_PERSON = frozenset("i i'm i've i'd i'll my me we we're our us anyone somebody someone".split())
_READER = re.compile(r"\b(?:you|your|please|run|try|use|check|see)\b|请", re.IGNORECASE)  # whom programs speak to
_TELLING = frozenset(
    "a an the and or but so because since although though while when which who what why how if after before until then "
    "once still again also only just even same other some every both few more most than like with without from into on "
    "this that these it they there now never always".split()
)


def features(line: str) -> list[float]:
    """In the order of `FEATURES`, each from 0 to 1. The text is that of `kb.text.clean`, as a question is read."""
    line = clean(line)
    words = _WORD.findall(line.lower())
    telling = sum(word in _TELLING for word in words)
    han = len(_HAN.findall(line))
    return [
        min(telling, 8) / 8,
        telling / max(len(words), 1),
        min(sum(word in _PERSON for word in words), 2) / 2,
        float(bool(_READER.search(line))),
        min(han, 20) / 20,
        min(math.log2(1 + len(words) + han / 1.5), 6) / 6,
        min(10 * len(_SYMBOL.findall(line)) / max(len(line), 1), 1),
        min(len(_CLAUSE.findall(line)), 4) / 4,
        float(bool(_COLON.search(line))),
        float(bool(_NUMBER.search(line))),
        float(bool(_OPENS.match(line))),
    ]


def is_told(line: str) -> bool:
    """Asked of a line that says a failure by a saying alone (`kb.logs.classify.says_it_in_passing`)."""
    weights, bias = _weights()
    odds = bias + sum(weight * value for weight, value in zip(weights, features(line), strict=True))
    return 1 / (1 + math.exp(-odds)) >= TOLD_AT


@cache
def _weights() -> tuple[tuple[float, ...], float]:
    found = json.loads(WEIGHTS.read_bytes())
    return tuple(found["weights"][name] for name in FEATURES), found["bias"]
