"""The folded part of a draft: what the importer read and the reviewer sees, in a comment that is not of the article.

    <!-- kb:thread
    {"comment": 1, "by": "...", ...}
    > a line of the comment
    -->

Every line of another's text stands behind `> `, so that no text can end the part or begin another. The parser of
articles does not see it; `kb review` reads it, and takes it out of an article that is accepted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["OPENING", "fold", "has_fold", "unfold", "without_fold"]

OPENING = "<!-- kb:thread"
_CLOSING = "-->"
_END = re.compile(r"--(!?)>")
_ESCAPED = re.compile(r"--(!?)&gt;")


def fold(lines: Sequence[str]) -> str:
    """The folded part: lines of the importer's own, and quoted ones (`> `)."""
    return "\n".join([OPENING, *(_END.sub(r"--\1&gt;", line) for line in lines), _CLOSING])


def has_fold(text: str) -> bool:
    return OPENING in text and _span(text.split("\n")) is not None


def unfold(text: str) -> list[str]:
    """The lines inside the folded part; empty when there is none."""
    lines = text.split("\n")
    found = _span(lines)
    return [_ESCAPED.sub(r"--\1>", line) for line in lines[found[0] + 1 : found[1]]] if found else []


def without_fold(lines: Sequence[str]) -> list[str]:
    """The lines of the article alone. The folded lines become empty, so that the others keep their numbers; at the end
    of the article they go."""
    found = _span(lines)
    if found is None:
        return list(lines)
    start, stop = found
    after = lines[stop + 1 :]
    if not any(line.strip() for line in after):
        return list(lines[:start])
    return [*lines[:start], *[""] * (stop + 1 - start), *after]


def _span(lines: Sequence[str]) -> tuple[int, int] | None:
    """The first line and the last; of a part that never ends, the end of the text."""
    start = next((n for n, line in enumerate(lines) if line.startswith(OPENING) and line.rstrip() == OPENING), None)
    if start is None:
        return None
    ends = (n for n in range(start, len(lines)) if lines[n].rstrip() == _CLOSING)
    return start, next(ends, len(lines))
