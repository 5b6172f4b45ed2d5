"""Classifies the lines of an article: heading, code, table, html, rule or text.

Most articles are simple enough for `kb.articles.simple`. For the others markdown-it-py (CommonMark) is imported; its
block tokens (`token.map`) say which lines belong to what, and inline parsing is off because nothing here needs it.
markdown-it would drop some text silently: a list nested past its limit, a fence that is never closed, a heading inside
a block of HTML. Such lines are read again by the few rules below, and a remark says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from kb.articles.simple import simple_kinds
from kb.records import Remark

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

__all__ = ["Line", "classify"]

_NESTING = 60  # a list and its item count as two: thirty lists deep; `_recover` reads what is deeper
_UNDERLINE = re.compile(r"^[ >\t*+.)\d-]{0,40}(?:={1,200}|-{1,200})[ \t]{0,20}$", re.MULTILINE)

_ATX = re.compile(r"^[ >]{0,200}(#{1,6})(?:[ \t]|$)")
_ATX_CLOSE = re.compile(r"[ \t]#{1,9}[ \t]*$")
_FENCE = re.compile(r"^([ >\t]{0,200}(?:(?:[-*+]|\d{1,9}[.)])[ \t]{1,4}){0,3})(`{3,}|~{3,})([^\n]*)")
_SELF_ENDING_HTML = (
    ("<pre", "</pre>"),
    ("<script", "</script>"),
    ("<style", "</style>"),
    ("<textarea", "</textarea>"),
    ("<!--", "-->"),
)
_SENTENCE_END = ("。", "；", ";", "，", ",", ".")


@dataclass(slots=True)
class Line:
    no: int
    """1-based"""
    text: str
    kind: str
    """blank, heading, code, fence (the marks around code), table, html, rule, text"""
    level: int = 0
    """of a heading, 1 to 6"""
    block: int = 0
    """lines of one table, fence or block of HTML share a number"""

    @property
    def heading_text(self) -> str:
        text = self.text.strip().lstrip("> ")
        if text.startswith("#"):
            text = _ATX_CLOSE.sub("", text.lstrip("#").strip())
        return text.strip()


def classify(raw: Sequence[str], first: int) -> tuple[list[Line], list[Remark]]:
    """The lines from index `first` (0-based) on, each with its kind, and remarks on what had to be recovered."""
    texts = list(raw[first:])
    lines = [Line(first + n + 1, text, "text" if text.strip() else "blank") for n, text in enumerate(texts)]
    remarks: list[Remark] = []
    closers = _unclosed_fences(texts, lines, remarks)
    for n, mark in closers:
        texts[n] = mark
    simple = None if closers else simple_kinds(texts)
    if simple is not None:
        for line, (kind, level, block) in zip(lines, simple, strict=True):
            if kind:
                line.kind, line.level, line.block = kind, level, block
        return lines, remarks
    return _read_markdown(texts, lines, remarks)


@cache
def _markdown(*, setext: bool) -> MarkdownIt:
    """A parser of blocks. Without `setext` (underlined) headings it is quicker, and few articles have any."""
    from markdown_it import MarkdownIt

    rules = ["reference"] if setext else ["reference", "lheading"]
    parser = MarkdownIt("commonmark", {"maxNesting": _NESTING}).enable("table").disable(rules)
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _read_markdown(texts: list[str], lines: list[Line], remarks: list[Remark]) -> tuple[list[Line], list[Remark]]:
    seen = bytearray(len(lines))
    block = 0
    text = "\n".join(texts)
    for token in _markdown(setext=_UNDERLINE.search(text) is not None).parse(text):
        span = token.map
        if span is None:
            continue
        kind = token.type
        start, stop = span
        if kind == "inline":
            seen[start:stop] = b"\1" * (stop - start)
        elif kind == "heading_open":
            _mark_heading(lines, start, stop, int(token.tag[1]), token.markup)
        elif kind in ("fence", "code_block", "html_block", "table_open", "hr"):
            block += 1
            seen[start:stop] = b"\1" * (stop - start)
            _mark_block(lines, start, stop, kind, block)
            if kind == "html_block" and _never_ends(texts, start, stop):
                gap = next((n for n in range(start, stop) if not texts[n].strip()), stop)
                seen[gap:stop] = bytes(stop - gap)
    _recover(lines, seen, remarks)
    return lines, remarks


def _mark_heading(lines: list[Line], start: int, stop: int, level: int, markup: str) -> None:
    line = lines[start]
    if markup.startswith("#"):
        line.kind, line.level = "heading", level
        return
    underline = lines[stop - 1].text.strip(" >\t")
    text = line.text.strip()
    # A lone "-" is a bullet that scraping tore from its text; a rule under a paragraph is a rule.
    if stop - start == 2 and len(underline) >= 3 and len(text) <= 120 and not text.endswith(_SENTENCE_END):
        line.kind, line.level = "heading", level
    if len(underline) >= 3:
        lines[stop - 1].kind = "rule"


def _mark_block(lines: list[Line], start: int, stop: int, kind: str, block: int) -> None:
    name = {"fence": "code", "code_block": "code", "html_block": "html", "table_open": "table", "hr": "rule"}[kind]
    for line in lines[start:stop]:
        if line.kind == "blank" and name != "code":
            continue
        line.kind, line.block = name, block
        if name == "table" and "|" not in line.text:
            line.kind = "text"  # scraping left no gap after the table
        if name == "html" and (heading := _ATX.match(line.text)):  # markdown-it reads no markdown inside HTML
            line.kind, line.level = "heading", len(heading[1])
    if kind == "fence":
        lines[start].kind = "fence"
        last = lines[stop - 1]
        if stop - 1 > start and _FENCE.match(last.text):
            last.kind = "fence"


def _never_ends(texts: list[str], start: int, stop: int) -> bool:
    opening = texts[start].lstrip(" >").lower()
    for head, tail in _SELF_ENDING_HTML:
        if opening.startswith(head):
            return all(tail not in text.lower() for text in texts[start:stop])
    return False


def _recover(lines: list[Line], seen: bytearray, remarks: list[Remark]) -> None:
    """Lines that no token covers: headings and fences in them are read regardless of nesting."""
    fence = ""
    remarked = False
    for n, line in enumerate(lines):
        if seen[n] or line.kind in ("blank", "heading", "rule"):
            fence = "" if seen[n] else fence
            continue
        if not remarked:
            remarked = True
            remarks.append(Remark(line.no, "recovered", "nested too deep or never closed: read line by line from here"))
        mark = _FENCE.match(line.text)
        heading = _ATX.match(line.text.lstrip("-*+ >\t"))
        if fence:
            line.kind = "code"
            if mark and mark[2].startswith(fence) and not mark[3].strip():
                line.kind, fence = "fence", ""
        elif mark and (mark[2][0] == "~" or "`" not in mark[3]):
            line.kind, fence = "fence", mark[2]
        elif heading:
            line.kind, line.level = "heading", len(heading[1])
        else:
            line.kind = "text"


def _unclosed_fences(texts: list[str], lines: list[Line], remarks: list[Remark]) -> list[tuple[int, str]]:
    """Blank lines that must become a closing fence, so that a fence left open ends before the next heading.

    A heading inside a fence counts only at level two or deeper and after a blank line: `# like this` is a comment.
    """
    closers: list[tuple[int, str]] = []
    opened, indent, mark, gap = -1, "", "", -1
    for n, text in enumerate(texts):
        if "`" not in text and "~" not in text and "#" not in text:
            continue
        if opened < 0:
            found = _FENCE.match(text)
            if found and (found[2][0] == "~" or "`" not in found[3]):
                opened, indent, mark, gap = n, found[1], found[2], -1
            continue
        found = _FENCE.match(text)
        if found and found[2].startswith(mark):
            if not found[3].strip():
                opened = -1
            elif gap >= 0:
                closers.append((gap, indent.replace("-", " ") + mark))
                remarks.append(Remark(lines[opened].no, "recovered", "a fence that is never closed"))
                opened, indent, mark, gap = n, found[1], found[2], -1
        elif text.startswith("##") and _ATX.match(text) and n > opened + 1:
            if indent:  # inside a list item: the heading ends the item and the fence with it
                opened = -1
            elif gap < 0 and not texts[n - 1].strip():
                gap = n - 1
    if opened >= 0:
        remarks.append(Remark(lines[opened].no, "recovered", "a fence that is never closed"))
        if gap >= 0:
            closers.append((gap, mark))
    return closers
