"""Here are the records of a base; give me what a line of a log names one of their failures by.

Two runs of one failure print the same words around other numbers, paths and names. So an error line becomes fingerprints:
runs of words that stand unbroken and in order, with anything between them where the line has something of its own
machine. A line makes a few, each freer than the one before. How far a fingerprint can be trusted alone is counted, not listed
by hand: which issues print a line with it, and how rare its words are in this base and in technical text. What the
interpreter or the operating system says around every failure tells next to nothing.
"""

from __future__ import annotations

import builtins
import errno
import math
import os
import re
import signal
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kb.encoders import surprisal
from kb.logs.prefix import strip_prefix
from kb.logs.variables import GAP, forms
from kb.records import IssueRecord
from kb.text import HAN, STOP_WORDS, clean

__all__ = ["Fingerprint", "Fingerprints", "words_of"]

MAX_LINE_CHARS = 1000  # of an error line; what is longer is a listing
MAX_GAP_CHARS = 600  # a variable part, as words: a path, a list of names
LEAST_TOLD = 0.5  # below this a fingerprint is met everywhere, and is not kept
LEAST_OF_A_WORD = 0.15  # what the most common word tells by standing in its place
LITTLE = 0.05
COMMON, RARE = 5.0, 11.0  # nats, as in `store_faiss`: "object" and "deque"
_TRIES = 8  # the first run of a fingerprint may stand in a line more than once

_WORD = re.compile(r"[a-z]+|[0-9]+|[^\W\d_]")


@dataclass(frozen=True, slots=True)
class Fingerprint:
    runs: tuple[str, ...]
    """words between spaces, a space at either end"""
    words: frozenset[str]
    anchor: str
    """the word of it that tells most: in Latin letters, if it has such"""
    weight: float
    """how much it tells: the sum of its words' weights, each 0 (met everywhere) to 1 (met in one issue only)"""
    issues: frozenset[str]
    """every issue that prints a line with this fingerprint"""

    def stands_in(self, words: str) -> bool:
        """`words`: a line, as `words_of` gives it."""
        first, start = self.runs[0], -1
        for _ in range(_TRIES):
            start = words.find(first, start + 1)
            if start < 0:
                return False
            if self._goes_on(words, start + len(first) - 1):
                return True
        return False

    def place_in(self, text: str) -> int:
        """Where in a text it begins in whose words it stands."""
        run = r"(?:\\[nt]|[\W_]){0,20}".join(map(re.escape, self.runs[0].split()))
        found = re.search(run, text, re.IGNORECASE)
        return found.start() if found else max(0, text.lower().find(self.anchor))

    def _goes_on(self, words: str, at: int) -> bool:
        for run in self.runs[1:]:
            at = words.find(run, at, at + MAX_GAP_CHARS + len(run))
            if at < 0:
                return False
            at += len(run) - 1
        return True


def words_of(text: str) -> str:
    """The words of cleaned text in lower case with a space around each: letters, digits, each Chinese character. A line
    end that a JSON log wrote as `\\n` parts words."""
    text = text.replace("\\n", "  ").replace("\\t", "  ") if "\\" in text else text
    return f" {' '.join(_WORD.findall(text.lower()))} "


class Fingerprints:
    """The fingerprints of a base. Which of them stand in a line is asked only of those whose anchor does."""

    def __init__(self, records: Sequence[IssueRecord]) -> None:
        printed: dict[str, set[str]] = defaultdict(set)
        for record in records:
            for line in record.errors:
                printed[strip_prefix(clean(line)[:MAX_LINE_CHARS]).strip()].add(record.issue)
        found = {runs: None for line in printed for runs in _runs_of(line)}
        worth = _worth({word for runs in found for run in runs for word in run.split()}, records)
        drafts: dict[str, list[Fingerprint]] = defaultdict(list)
        for runs in found:
            words = frozenset(word for run in runs for word in run.split())
            told = sum(map(worth.__getitem__, _without_system(runs)))
            if told >= LEAST_TOLD:
                anchor = max(sorted(words), key=lambda word: (not word.isdigit(), word.isascii(), worth[word]))
                drafts[anchor].append(Fingerprint(runs, words, anchor, told, frozenset()))
        issues: dict[tuple[str, ...], set[str]] = defaultdict(set)
        for line, of in printed.items():
            for fingerprint in _standing(drafts, words_of(line)):
                issues[fingerprint.runs] |= of
        self._by_anchor = {
            anchor: [replace(m, issues=frozenset(issues[m.runs])) for m in fingerprints]
            for anchor, fingerprints in drafts.items()
        }

    def __iter__(self) -> Iterator[Fingerprint]:
        for fingerprints in self._by_anchor.values():
            yield from fingerprints

    def standing_in(self, words: str) -> list[Fingerprint]:
        """Those that tell most first."""
        return sorted(
            _standing(self._by_anchor, words), key=lambda fingerprint: (-fingerprint.weight, fingerprint.runs)
        )


def _standing(by_anchor: Mapping[str, list[Fingerprint]], words: str) -> Iterator[Fingerprint]:
    present = set(words.split())
    for anchor in present & by_anchor.keys():
        for fingerprint in by_anchor[anchor]:
            if fingerprint.words <= present and fingerprint.stands_in(words):
                yield fingerprint


def _runs_of(line: str) -> Iterator[tuple[str, ...]]:
    """The runs of words of each fingerprint of the line, the strictest fingerprint first."""
    for form in forms(line):
        yield tuple(run for part in form.split(GAP) if (run := words_of(part)).strip())


def _worth(words: Iterable[str], records: Sequence[IssueRecord]) -> dict[str, float]:
    """What each word tells, 0 to 1: its idf over the issues of this base, as a share of the highest, lowered where it
    is common in technical text anyway."""
    texts: dict[str, set[str]] = defaultdict(set)
    for record in records:
        text = "\n".join((record.title, record.symptom, record.cause, record.fix))
        texts[record.issue].update(words_of(clean(text)).split())
    spread = Counter(word for text in texts.values() for word in text)
    most = math.log((len(texts) + 1) / 1.5)
    ordered = sorted(words)
    worth = {}
    for word, nats in zip(ordered, surprisal(ordered), strict=True):
        rarity = min(1.0, max(0.0, (nats - COMMON) / (RARE - COMMON)))
        idf = math.log((len(texts) + 1) / (spread[word] + 0.5)) / most
        told = LEAST_OF_A_WORD if word in _PYTHON_SAYS else max(LEAST_OF_A_WORD, rarity * min(1.0, idf))
        worth[word] = LITTLE if _is_little(word) else told
    return worth


_EXCEPTIONS = {name.lower() for name, value in vars(builtins).items() if isinstance(value, type)}
# The words Python describes itself with are those of its error messages.
_PYTHON_SAYS = {type(None).__name__.lower()}.union(
    *(words_of(getattr(value, "__doc__", None) or "").split() for value in vars(builtins).values() if callable(value))
)
_SYSTEM_SAYS = re.compile(
    "(?<= )(?:"
    + "|".join(
        re.escape(words)
        for words in sorted(
            {words_of(os.strerror(number)).strip() for number in errno.errorcode}
            | {words_of(signal.strsignal(number) or "").strip() for number in signal.valid_signals() if number < 32}
            | {"errno", "core dumped", "broken pipe"},
            key=len,
            reverse=True,
        )
        if words
    )
    + ")(?= )"
)


def _without_system(runs: tuple[str, ...]) -> set[str]:
    return {word for run in runs for word in _SYSTEM_SAYS.sub("", run).split()}


def _is_little(word: str) -> bool:
    single = len(word) == 1 and not HAN[0] <= word <= HAN[2]
    return single or word.isdigit() or word in STOP_WORDS or word in _EXCEPTIONS
