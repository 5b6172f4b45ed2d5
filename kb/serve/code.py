"""Light highlighting of a block of code, as nodes: what a reader looks for first, and what can be passed over.

    strong   the line that names the error
    em       comments and prompts
    span     quoted text

It goes line by line with patterns that cannot go back far, so that its time grows with the length of the text only.
Copied text is the same as without it.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["lit"]

_MAX_LINE = 500  # characters; a longer line is shown as it is
_MAX_LINES = 500
_ERROR = re.compile(
    r"(?:\[[^\]]{1,40}\]:? ?|\d{1,4}: )?"
    r"(?:[\w.]{0,80}(?:Error|Exception|Interrupt|Warning)\b(?=:|$)|(?:fatal|FATAL|ERROR|error|E\d{4})\b[ :\[])"
)
_PROMPT = re.compile(r"\s{0,8}(?:\$ |>>> |\.\.\. |PS> |C:\\> )")
_HASH = frozenset("bash sh shell zsh console python py yaml yml toml ini dockerfile powershell make conf cfg".split())
_SLASHES = frozenset("c cpp c++ cuda js javascript ts go rust java jsonc".split())
_QUOTED = frozenset({"json", *_HASH, *_SLASHES})
_BATCH = frozenset("bat cmd".split())
_STRING = r"""\"(?:[^"\\]|\\.){0,200}\"|'(?:[^'\\]|\\.){0,200}'"""
_PIECE = {
    "#": re.compile(rf"{_STRING}|(?:(?<=\s)|^)#.*"),
    "//": re.compile(rf"{_STRING}|//.*"),
    "": re.compile(_STRING),
}

Node = Any  # as in kb.serve.nodes


def lit(text: str, language: str) -> list[Node]:
    """The text as nodes; `language` is what the fence names, or empty for what a program printed."""
    language = language.casefold()
    lines = text.split("\n")
    if len(lines) > _MAX_LINES:
        return [text]
    pieces: list[Node] = []
    for number, line in enumerate(lines):
        pieces += [*_line(line, language), "\n" if number < len(lines) - 1 else ""]
    return _joined(pieces)


def _line(line: str, language: str) -> list[Node]:
    if len(line) > _MAX_LINE:
        return [line]
    if language in _QUOTED:
        prompt = _PROMPT.match(line)
        start = prompt.end() if prompt else 0
        return [_node("em", line[:start]), *_pieces(line[start:], language)]
    if language in _BATCH and line.lstrip().lower().startswith(("rem ", "::")):
        return [_node("em", line)]
    return [_node("strong", line)] if _ERROR.match(line) else [line]


def _pieces(line: str, language: str) -> list[Node]:
    """Quoted texts and the comment at the end of a line."""
    mark = "#" if language in _HASH else "//" if language in _SLASHES else ""
    pieces: list[Node] = []
    start = 0
    for found in _PIECE[mark].finditer(line):
        comment = mark and found[0].startswith(mark)
        pieces += [line[start : found.start()], _node("em" if comment else "span", found[0])]
        start = found.end()
    return [*pieces, line[start:]]


def _node(tag: str, text: str) -> Node:
    return {"tag": tag, "children": [text]} if text else ""


def _joined(pieces: list[Node]) -> list[Node]:
    """The same with neighbouring texts in one, and without empty ones."""
    made: list[Node] = []
    for piece in pieces:
        if piece and isinstance(piece, str) and made and isinstance(made[-1], str):
            made[-1] += piece
        elif piece:
            made.append(piece)
    return made
