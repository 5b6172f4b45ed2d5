"""Splits a fix into its steps, and reads what stands behind each: `1. Pass --shm-size=16g. *(reported)*`.

In comes the markdown of a fix, out come its steps in order. A step that only says how to see that it worked claims
nothing and needs no basis.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from kb.text.fences import prose_lines

__all__ = ["BASES", "Basis", "Step", "steps"]

Basis = Literal["reproduced", "maintainer", "reported", "reasoned"]

BASES: dict[str, Basis] = {
    "reproduced": "reproduced",
    "已复现": "reproduced",
    "maintainer": "maintainer",
    "维护者": "maintainer",
    "reported": "reported",
    "有人验证": "reported",
    "reasoned": "reasoned",
    "推断": "reasoned",
}
"""mark -> what stands behind a step: somebody made the error and then the cure; the project's maintainers or its
documentation say so; people who met the failure report that it helped; it follows from the cause"""

_ITEM = re.compile(r"^ {0,1}(?:(?:\d{1,2}[.)]|[-*+]) |\d{1,2}、 ?)")
_MARK = re.compile(rf"\*[(（]({'|'.join(BASES)})[)）]\*")
_CHECK = re.compile(r"(?:\*\*)?(?:(?:Check|Look|Verify)\b|检查(?!点)|确认|验证|核对)")


class Step(NamedTuple):
    text: str
    """markdown, without its number"""
    basis: Basis | None
    """None: it does not say"""
    claims: bool
    """it says what helps, not only how to see that it did"""


def steps(fix: str) -> list[Step]:
    """The top-level items of the lists in a fix; empty for a fix without a list."""
    lines, outside = fix.split("\n"), prose_lines(fix)  # of which fenced ones come back empty
    starts = [n for n, line in enumerate(outside) if _ITEM.match(line)]
    found = []
    for start, stop in zip(starts, [*starts, len(lines)][1:], strict=True):
        text = "\n".join([_ITEM.sub("", lines[start], count=1), *lines[start + 1 : stop]]).strip()
        mark = _MARK.search("\n".join(outside[start:stop]))
        found.append(Step(text, BASES[mark[1]] if mark else None, not _CHECK.match(text)))
    return found
