"""Conditions of an article on what was pasted: `unallocated >= 0.5 GiB`, `seqnum < 100 or numel == 1`,
`prints "vendor err 129"`.

    condition  = alternative { " or " alternative }
    alternative = comparison | prints
    comparison = name  ( < | <= | > | >= | == | != )  number [ unit ]
    prints     = "prints" quoted text

A name is one of `kb.logs.quantities.UNITS`. Sizes want a unit (B, KiB, MiB, GiB, TiB), times too (ms, s, min, h); other
quantities have none. A quoted text is looked for without regard to case and to the width of spaces; that it is absent
says nothing, since people paste parts.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from kb.logs.quantities import UNITS, Quantities

__all__ = ["Comparison", "Prints", "evaluate", "holds", "parse"]

_MAX_CHARS = 200
_COMPARISON = re.compile(r"([a-z_]{1,40}) ?(<=|>=|==|!=|<|>) ?(-?\d{1,12}(?:\.\d{1,12})?)(?: ?([A-Za-z]{1,4}))?")
_PRINTS = re.compile(r'prints "([^"]{3,120})"')
_OR = re.compile(r' or (?=[^"]*(?:"[^"]*"[^"]*)*$)')  # not inside quotes
_OPERATORS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_FACTORS: dict[str, dict[str, float]] = {
    "": {"": 1.0},
    "GiB": {"B": 2**-30, "KiB": 2**-20, "MiB": 2**-10, "GiB": 1.0, "TiB": 2.0**10},
    "s": {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0},
}


class Comparison(NamedTuple):
    name: str
    operator: str
    bound: float
    """in the unit of `UNITS`"""


class Prints(NamedTuple):
    text: str
    """in lower case, one space between words"""


@lru_cache(maxsize=1024)
def parse(condition: str) -> tuple[Comparison | Prints, ...]:
    """The alternatives of a condition. Raises ValueError with a sentence for the writer when it cannot be read."""
    if len(condition) > _MAX_CHARS:
        raise ValueError(f"a condition has at most {_MAX_CHARS} characters")
    return tuple(_alternative(part.strip()) for part in _OR.split(condition))


def holds(condition: str, quantities: Quantities, text: str = "") -> bool | None:
    """Whether a text that prints these quantities meets the condition; None when it prints too little to tell.

    Of a quantity with several values (a log of several processes) one that meets it is enough. Raises ValueError as
    `parse` does."""
    answers = [_meets(one, quantities, text) for one in parse(condition)]
    return True if True in answers else None if None in answers else False


def _meets(one: Comparison | Prints, quantities: Quantities, text: str) -> bool | None:
    if isinstance(one, Prints):
        return True if one.text in _flat(text) else None
    if one.name not in quantities:
        return None
    return any(_OPERATORS[one.operator](value, one.bound) for value in quantities[one.name])


@lru_cache(maxsize=8)
def _flat(text: str) -> str:
    """In lower case, one space between words. The same text is asked for many conditions."""
    return " ".join(text.casefold().split())


def evaluate(conditions: Iterable[str], quantities: Quantities, text: str = "") -> bool | None:
    """Whether all conditions hold: False when one does not, True when all do, None when neither can be told.

    A condition that cannot be read says nothing; `kb check` reports it."""
    answers = []
    for condition in conditions:
        try:
            answers.append(holds(condition, quantities, text))
        except ValueError:
            answers.append(None)
    return False if False in answers else True if answers and None not in answers else None


def _alternative(text: str) -> Comparison | Prints:
    if text.startswith("prints"):
        found = _PRINTS.fullmatch(text)
        if found is None or not found[1].strip():
            raise ValueError(f'{text!r} quotes no text of 3 to 120 characters; as in: prints "vendor err 129"')
        return Prints(" ".join(found[1].casefold().split()))
    return _comparison(text)


def _comparison(text: str) -> Comparison:
    match = _COMPARISON.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no comparison; as in: unallocated >= 0.5 GiB")
    name, sign, number, unit = match[1], match[2], match[3], match[4] or ""
    if name not in UNITS:
        raise ValueError(f"{name!r} is no quantity; known are {', '.join(UNITS)}")
    factors = _FACTORS[UNITS[name]]
    if unit not in factors:
        wanted = f"wants one of the units {', '.join(factors)}" if UNITS[name] else "has no unit"
        raise ValueError(f"{name!r} {wanted}; found {unit!r}")
    return Comparison(name, sign, float(number) * factors[unit])
