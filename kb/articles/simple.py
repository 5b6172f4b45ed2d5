"""A fast reader for simple Markdown: which lines are headings, and which are code.

Most articles hold only headings, paragraphs, flat lists and closed fences. There a line's kind does not depend on its
neighbours. Everything else (quotes, HTML, tables, rules, deep indents, fences that end oddly) is left to markdown-it.
Wherever this reader answers, it agrees with markdown-it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["simple_kinds"]

_MARKER = r"(?:[-*+]|\d{1,9}[.)])"
_UNUSUAL = re.compile(
    rf"^(?: {{4}}|[^\t]{{0,2000}}\t| {{0,3}}(?:[<>]|~{{3}}|[-*_=+:|][-*_=+:| ]*$|"
    rf"{_MARKER}(?: {{5}}| *$| +(?:{_MARKER}(?: |$)|#{{1,6}}(?: |$)|`{{3}}|~{{3}}|[<>]))))"
)
_HEADING = re.compile(r" {0,3}(#{1,6})(?: |$)")
_FENCE = re.compile(r"( {0,3})(`{3,})([^`]*)$")
_MAX_LINE = 2000


def simple_kinds(texts: Sequence[str]) -> list[tuple[str, int, int]] | None:
    """(kind, level of a heading, number of the block) for each line; "" is text or blank. None: not simple enough."""
    kinds: list[tuple[str, int, int]] = []
    plain = ("", 0, 0)
    indent, mark, block = "", "", 0
    for text in texts:
        stripped = text.lstrip(" ")
        if mark:
            if not stripped:
                kinds.append(("code", 0, block))
            elif not text.startswith(indent) or "\t" in text:
                return None
            elif not stripped.startswith(mark):
                kinds.append(("code", 0, block))
            elif text != indent + mark:
                return None
            else:
                kinds.append(("fence", 0, block))
                mark = ""
        elif not stripped or (stripped[0].isalpha() and text[0] != " " and len(text) < _MAX_LINE and "\t" not in text):
            kinds.append(plain)
        elif len(text) > _MAX_LINE or _UNUSUAL.match(text):
            return None
        elif found := _HEADING.match(text):
            kinds.append(("heading", len(found[1]), 0))
        elif stripped.startswith("```"):
            opened = _FENCE.match(text)
            if opened is None:
                return None
            indent, mark = opened[1], opened[2]
            block += 1
            kinds.append(("fence", 0, block))
        else:
            kinds.append(plain)
    return None if mark else kinds
