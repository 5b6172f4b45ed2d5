"""How wide a text is at a terminal, and where a line of prose may end.

A Chinese character takes two columns. A line may end at a space or beside a Chinese character, never in front of a
closing mark, and never inside `inline code`: a command that is broken over two lines cannot be pasted.
"""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress

__all__ = ["CODE_SPAN", "MAX_COLUMNS", "MIN_COLUMNS", "cells", "columns", "cut", "rows", "wrap"]

MIN_COLUMNS, MAX_COLUMNS = 60, 200  # of a line of prose

CODE_SPAN = re.compile(r"(`{1,3})(?!`)[^`]{1,1000}\1(?!`)")
"""inline code of markdown, with its marks"""

_ATOM = re.compile(rf"{CODE_SPAN.pattern}|[^\s`]+|`|\s+")
_OPENING, _CLOSING = frozenset("（《「『【〈“‘(["), frozenset("，。、；：！？）》」』】〉”’…),.;:!?]")


def columns() -> int:
    """The width of the terminal (COLUMNS, else what the terminal says, else 80), from 60 to 200."""
    return min(max(_terminal(), MIN_COLUMNS), MAX_COLUMNS)


def cells(text: str) -> int:
    """The columns that a text takes in one line."""
    return len(text) if text.isascii() else sum(map(_cells_of, text))


def _cells_of(char: str) -> int:
    if char < "\u0300":
        return 1
    return 0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1


def rows(lines: Sequence[str], width: int) -> int:
    """The rows of a screen that these lines take."""
    return sum(max(1, -(-cells(line) // width)) for line in lines)


def wrap(text: str, width: int, *, first: str = "", indent: str = "") -> list[str]:
    """The words of `text` in lines of at most `width` columns, the first one behind `first`, the others behind
    `indent`. What cannot be broken and is wider has a line of its own, which is too long."""
    lines: list[str] = []
    line, used, gap = first, cells(first), ""
    empty = True
    for piece in _pieces(text):
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
    for piece in _pieces(text):
        size = cells(piece)
        if used + size + 1 > most:
            break
        kept, used = kept + piece, used + size
    return kept.rstrip(" \t,;:，；：、（(") + " …"


def _pieces(text: str) -> list[str]:
    """What cannot be broken, and the space between: words, inline code, single Chinese characters, each with the marks
    that close it behind and those that open it in front."""
    pieces: list[str] = []
    for atom in _atoms(text):
        space = atom.isspace() or not pieces or pieces[-1].isspace()
        if not space and (atom[0] in _CLOSING or pieces[-1][-1] in _OPENING):
            pieces[-1] += atom
        else:
            pieces.append(atom)
    return pieces


def _atoms(text: str) -> Iterator[str]:
    for found in _ATOM.finditer(text):
        run = found[0]
        if run.isascii() or run[0] == "`" or run.isspace():
            yield run
            continue
        narrow = ""
        for char in run:
            if _cells_of(char) < 2:
                narrow += char
                continue
            if narrow:
                yield narrow
            narrow = ""
            yield char
        if narrow:
            yield narrow


def _terminal() -> int:
    """As `shutil.get_terminal_size`, whose module takes as long to import as all of this."""
    with suppress(ValueError):
        if (named := int(os.environ.get("COLUMNS", ""))) > 0:
            return named
    for stream in (sys.__stdout__, sys.__stderr__):
        with suppress(AttributeError, ValueError, OSError):
            if (found := os.get_terminal_size(stream.fileno()).columns) > 0:  # type: ignore[union-attr]
                return found
    return 80
