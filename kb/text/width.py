"""How wide a text is at a terminal, and where a line of prose may end.

A Chinese character takes two columns. A line may end at a space or beside a Chinese character, never in front of a
closing mark, and never inside `inline code`: a command that is broken over two lines cannot be pasted.
"""

from __future__ import annotations

import re
import shutil
import unicodedata
from collections.abc import Sequence

__all__ = ["CODE_SPAN", "MAX_COLUMNS", "MIN_COLUMNS", "cells", "columns", "cut", "rows", "wrap"]

MIN_COLUMNS, MAX_COLUMNS = 60, 200  # of a line of prose

CODE_SPAN = re.compile(r"(`{1,3})(?!`)[^`]{1,1000}\1(?!`)")
"""inline code of markdown, with its marks"""

_WIDE = "\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6"
_WIDE += "\U0001f300-\U0001f64f\U0001f900-\U0001f9ff\U00020000-\U0003fffd"
_WIDE_CHAR = re.compile(f"[{_WIDE}]")
_OPENING, _CLOSING = "（《「『【〈“‘(\\[", "，。、；：！？）》」』】〉”’…),.;:!?\\]"
_PIECE = re.compile(
    rf"[{_OPENING}]{{0,8}}(?:{CODE_SPAN.pattern}|[{_WIDE}]|[^\s`{_WIDE}]{{1,1000}}|`)[{_CLOSING}]{{0,8}}|\s+"
)


def columns() -> int:
    """The width of the terminal (COLUMNS, else what the terminal says, else 80), from 60 to 200."""
    return min(max(shutil.get_terminal_size((80, 24)).columns, MIN_COLUMNS), MAX_COLUMNS)


def cells(text: str) -> int:
    """The columns that a text takes in one line."""
    if text.isascii():
        return len(text)
    return len(text) + len(_WIDE_CHAR.findall(text)) - sum(unicodedata.combining(char) > 0 for char in text)


def rows(lines: Sequence[str], width: int) -> int:
    """The rows of a screen that these lines take."""
    return sum(max(1, -(-cells(line) // width)) for line in lines)


def wrap(text: str, width: int, *, first: str = "", indent: str = "") -> list[str]:
    """The words of `text` in lines of at most `width` columns, the first one behind `first`, the others behind
    `indent`. What cannot be broken and is wider has a line of its own, which is too long."""
    lines: list[str] = []
    line, used, gap = first, cells(first), ""
    empty = True
    for piece in (found[0] for found in _PIECE.finditer(text)):
        if piece.isspace():
            gap = " " if "\n" in piece else piece
            continue
        size = cells(piece)
        if not empty and used + len(gap) + size > width:
            lines.append(line)
            line, used, gap = indent, cells(indent), ""
        line += ("" if empty else gap) + piece
        used += (0 if empty else len(gap)) + size
        gap, empty = "", False
    return [*lines, line] if not empty else lines


def cut(text: str, most: int) -> str:
    """The text, or its beginning in at most `most` columns with a mark that more follows. Inline code stays whole: what
    does not fit is left out with the words that lead to it."""
    if cells(text) <= most:
        return text
    kept, used = "", 1
    for piece in (found[0] for found in _PIECE.finditer(text)):
        size = cells(piece)
        if used + size + 1 > most:
            break
        kept, used = kept + piece, used + size
    return kept.rstrip(" \t,;:，；：、（(") + " …"
