"""Splits the lines of a section into the items of its list, if it holds one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kb.articles.lines import Line

__all__ = ["list_items"]

_NUMBER = re.compile(r"^(\s{0,8})(?:\*\*)?(?:\d{1,2}\s?[.、)）]|[（(]\d{1,2}[)）]|[①-⑳])\s{0,4}(?=\S)")
_BULLET = re.compile(r"^(\s{0,8})[-*+•]\s{1,4}(?=\S)")


def list_items(lines: Sequence[Line]) -> tuple[list[Line], list[list[Line]], bool]:
    """The lines before the list, the lines of each top-level item, and whether the items are numbered.

    A single item is no list: then all lines come back as the first value, and the second is empty.
    """
    for mark, numbered in ((_NUMBER, True), (_BULLET, False)):
        hits = [(n, found) for n, line in enumerate(lines) if line.kind == "text" and (found := mark.match(line.text))]
        if len(hits) < 2:
            continue
        indent = min(len(found[1]) for _, found in hits)
        places = [n for n, found in hits if len(found[1]) <= indent + 1]
        if len(places) >= 2:
            stops = [*places[1:], len(lines)]
            return list(lines[: places[0]]), [list(lines[a:b]) for a, b in zip(places, stops, strict=True)], numbered
    return list(lines), [], False
