"""Splits markdown into prose and fenced code, as CommonMark (https://spec.commonmark.org/0.31.2/) reads it.

markdown-it-py finds the fences, so those in list items and quotes, with tildes, and without an end are read rightly.
A text with simple fences only, as most are, is split without it, which spares the import (25 ms) and is faster. A test
compares the two ways.

Two choices differ from a web page: a fence directly below a line of HTML such as `<details>` counts as a fence, because
its writer meant one; and lists and quotes nested deeper than 30 levels are prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

__all__ = ["Code", "Prose", "prose_lines", "split"]

_FENCE = re.compile(r"^([ \t>*+\d.)-]*)(`{3,}|~{3,})(.*)$", re.MULTILINE)
_SPACES = ("", " ", "  ", "   ")  # four are indented code
_NESTING = 60  # a list and its item count apart


class Prose(NamedTuple):
    """Lines outside of every fence."""

    first: int
    """index of its first line, from 0"""
    lines: list[str]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


class Code(NamedTuple):
    """One fenced block."""

    first: int
    """index of its first line, from 0"""
    lines: list[str]
    """as they stand in the text, with the lines of the fence"""
    text: str
    """what is inside the fence, without the fence's own indentation and the marks of a quote around it"""
    language: str
    """first word of the info string; may be empty"""
    closing: str
    """the line that closes the block, or would close it"""
    closed: bool
    """False: the block ends with the text, or with the list item or quote around it"""

    @property
    def inside(self) -> list[str]:
        """The lines between those of the fence, as they stand in the text."""
        return self.lines[1:-1] if self.closed else self.lines[1:]

    @property
    def lead(self) -> str:
        """What stands before the fence on its first line: indentation, marks of a quote, a list marker."""
        return self.lines[0].partition(self.closing.strip(" \t>"))[0]


def split(markdown: str) -> list[Prose | Code]:
    """The blocks in order. Every line of the text is in exactly one of them; line ends become line feeds."""
    if "\r" in markdown:
        markdown = markdown.replace("\r\n", "\n").replace("\r", "\n")
    lines = markdown.split("\n")
    if "```" not in markdown and "~~~" not in markdown:
        return [Prose(0, lines)]
    codes = _plain(markdown, lines)
    blocks: list[Prose | Code] = []
    at = 0
    for code in _nested(markdown, lines) if codes is None else codes:
        if code.first > at:
            blocks.append(Prose(at, lines[at : code.first]))
        blocks.append(code)
        at = code.first + len(code.lines)
    if at < len(lines):
        blocks.append(Prose(at, lines[at:]))
    return blocks


def prose_lines(markdown: str) -> list[str]:
    """The lines of the text; those of fenced code are empty."""
    return [line if isinstance(block, Prose) else "" for block in split(markdown) for line in block.lines]


def _plain(text: str, lines: list[str]) -> list[Code] | None:
    """The blocks, when no list or quote around them matters. None: the context decides, so ask markdown-it.

    A fence behind at most three spaces opens a block in any context. When every line of the block is indented as much
    as its fence, the block cannot end early with a list item.
    """
    codes: list[Code] = []
    indent, mark, info, first, number, at = "", "", "", 0, 0, 0
    for found in _FENCE.finditer(text):
        number, at = number + text.count("\n", at, found.start()), found.start()
        if not mark:
            if found[1] not in _SPACES:
                return None
            if found[2][0] == "~" or "`" not in found[3]:
                indent, mark, info, first = found[1], found[2], found[3], number
        elif found[2].startswith(mark) and not found[3].strip(" \t"):
            inside = lines[first + 1 : number]
            if indent and (found[1] != indent or not all(line.startswith(indent) or not line for line in inside)):
                return None
            if found[1] in _SPACES:
                content = "\n".join(line[len(indent) :] for line in inside)
                codes.append(Code(first, lines[first : number + 1], content, _language(info), indent + mark, True))
                mark = ""
    if mark and indent:
        return None
    if mark:
        codes.append(Code(first, lines[first:], "\n".join(lines[first + 1 :]), _language(info), mark, False))
    return codes


def _nested(text: str, lines: list[str]) -> Iterator[Code]:
    for token in _parser().parse(text + "\n"):
        if token.type == "fence" and token.map:
            first, stop = token.map
            lead = lines[first].partition(token.markup)[0]
            closing = re.sub(r"[^ \t>]", " ", lead) + token.markup
            closed = stop - first == token.content.count("\n") + 2
            yield Code(
                first, lines[first:stop], token.content.removesuffix("\n"), _language(token.info), closing, closed
            )


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": _NESTING}).disable("html_block")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _language(info: str) -> str:
    return info.split(maxsplit=1)[0] if info.strip() else ""
