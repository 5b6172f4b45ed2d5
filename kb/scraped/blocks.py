"""Lines of a page -> its blocks: the pieces that have one role each.

A block is a heading, a sentence of a paragraph or of a list item, a fence, or a cell of a table. Sentences are the
unit because one paragraph often tells what happens, why, and what to do; hard-wrapped lines are joined before they are
split. Every character of the page except blank lines and table rules is in exactly one block.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

from kb.articles.lines import Line
from kb.scraped.labels import read_label

__all__ = ["ASKED", "Block", "blocks_of"]

Kind = Literal["heading", "text", "code", "cell", "rule"]


class Block(NamedTuple):
    kind: Kind
    text: str
    """without marks of headings, lists, quotes and bold; wrapped lines joined by a space; of code: its lines"""
    first: int
    """index of its first line among the page's lines"""
    start: int
    """column in that line"""
    last: int
    """index of its last line, inclusive"""
    stop: int
    """column in that line, exclusive"""
    level: int = 0
    """of a heading: 1 to 6"""
    depth: int = 0
    """of a list item: 1 and deeper; 0 outside of lists"""
    marker: str = ""
    """of a list item, in its first sentence: "-" or its number; of a fence: its language"""
    bold: bool = False
    """all of it is bold, or it is the bold beginning of a paragraph"""
    quoted: bool = False
    opens: bool = True
    """the first of its paragraph, list item or table row"""
    ends: bool = True
    """the last of it"""
    row: int = -1
    """of a cell: 0 is the head of the table"""
    column: int = -1


ASKED = re.compile(r"\W{0,6}(?:(?:Q|Question|问题?|提问)\s?[#＃]?\d{0,3}\s?[:：.、)】]|Q\d)", re.IGNORECASE)
"""how a page marks a question"""

_SHORT_QUESTION = 160  # characters; a longer one tells what happened before it asks
_FULL_LINES = 3  # of one width on a page make a wrapped page
_ITEM = re.compile(r"^(\s*)(?:([-*+•·])\s+|(\d{1,3})\s?[.)、）]\s*(?!\d)|[（(](\d{1,2})[)）]\s*|([①-⑳❶-❿])\s*)(?=\S)")
_HEADING_MARK = re.compile(r"^[\s>]{0,20}(?:(?:[-*+]|\d{1,2}[.)])\s{1,4}(?=#))?#{0,6}\s{0,9}")
_HEADING_END = re.compile(r"\s{0,9}(?:\{#[^{}\s]{1,80}\})?\s{0,9}(?:(?<=\s)#{1,9})?\s{0,9}$")
_QUOTE = re.compile(r"^\s{0,3}(?:>\s?)+")
_RULE_ROW = re.compile(r"[\s|:+-]{3,4000}")
_ENDS = re.compile(r"[。！？!?.：:；;]['\"”’）)*`]{0,3}\s*$")
_HARD_BREAK = re.compile(r"(?: {2}|\\)$")
# A sentence ends here, outside of code and brackets; an abbreviation does not end one.
_SENTENCE = re.compile(
    r"(?<=[。！？])[”’」』）)*]{0,3}\s*|(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)(?<!vs\.)(?<!\d\.)[\"'”’)*]{0,3}\s+(?=[\W_]{0,3}[A-Z0-9`\"'“])"
)
_SHIELDED = re.compile(
    r"`[^`\n]{1,300}`|\([^()\n]{1,300}\)|（[^（）\n]{1,300}）|\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|https?://\S{1,300}"
)
_BOLD_LEAD = re.compile(
    r"(\*\*|__)(?![\s*_])(.{2,200}?)(?<=\S)\1(?:\s?[:：.。—–-]\s?|(?<=[:：.。?？!！]\1)\s?|\s*$)\s*"
)
_CODE_LEAD = re.compile(r"(`{1,2})[^`\n]{3,200}\1\s?(?:[:：]|\s[—–-])\s*(?=\S)")
_MARKS = re.compile(
    r"\*\*|__|(?<!\w)\*(?=\S)|(?<=\S)\*(?!\w)|\[(?=[^\]\n]{1,300}\]\()|(?<=\])\([^)\s]{1,500}\)|(?<!\[)\](?=\()"
)
_WIDE = re.compile(r"[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60]")


def blocks_of(lines: Sequence[Line]) -> list[Block]:
    """The blocks in the order of the page."""
    blocks: list[Block] = []
    indents: list[int] = []
    widths = sorted(_width(line.text) for line in lines if line.kind == "text")
    n = 0
    while n < len(lines):
        line = lines[n]
        if not _shows(line):
            n += 1
        elif line.kind == "heading":
            text = _HEADING_END.sub("", _HEADING_MARK.sub("", line.text))
            blocks.append(Block("heading", _plain(text), n, 0, n, len(line.text), level=line.level))
            indents = []
            n += 1
        elif line.kind in ("code", "fence"):
            stop = _code_end(lines, n)
            blocks.append(_code(lines, n, stop, depth=len(indents)))
            n = stop
        elif line.kind == "rule":
            blocks.append(Block("rule", line.text.strip(), n, 0, n, len(line.text)))
            n += 1
        elif _is_table(lines, n):
            stop = n + 1
            while stop < len(lines) and lines[stop].kind in ("table", "text") and "|" in lines[stop].text:
                stop += 1
            blocks += _cells(lines, n, stop)
            n = stop
        else:
            stop = n + 1
            while (
                stop < len(lines) and lines[stop].kind == "text" and _shows(lines[stop]) and not _is_table(lines, stop)
            ):
                stop += 1
            blocks += _paragraphs(lines, n, stop, indents, widths)
            n = stop
    return blocks


def _shows(line: Line) -> bool:
    return line.kind != "blank" and bool(line.text.strip(" \t>") or line.kind in ("code", "fence"))


def _plain(text: str) -> str:
    marked = "*" in text or "]" in text or "__" in text
    return (_MARKS.sub("", text) if marked else text).strip()


def _content(text: str) -> tuple[int, bool]:
    """Where the text of a line begins, behind quote marks; whether it is quoted."""
    quote = _QUOTE.match(text)
    start = quote.end() if quote else 0
    return start + len(text[start:]) - len(text[start:].lstrip()), quote is not None


# --- code and tables ------------------------------------------------------------------------------------------------


def _code_end(lines: Sequence[Line], n: int) -> int:
    number, stop = lines[n].block, n + 1
    while stop < len(lines) and lines[stop].kind in ("code", "fence") and lines[stop].block == number:
        stop += 1
        if lines[stop - 1].kind == "fence" and stop - 1 > n and number == 0:
            break
    return stop


def _code(lines: Sequence[Line], first: int, stop: int, depth: int) -> Block:
    inside = [line.text for line in lines[first:stop] if line.kind == "code"]
    opening = lines[first].text.strip(" >\t-*`~") if lines[first].kind == "fence" else ""
    language = re.match(r"[A-Za-z+]{0,12}", opening)
    return Block(
        "code", "\n".join(inside).strip("\n"), first, 0, stop - 1, len(lines[stop - 1].text), depth=depth,
        marker=language[0].lower() if language else "",
    )  # fmt: skip


def _is_table(lines: Sequence[Line], n: int) -> bool:
    line = lines[n]
    if line.kind == "table":
        return True
    after = lines[n + 1] if n + 1 < len(lines) else None
    return (
        line.kind == "text" and "|" in line.text and after is not None and "|" in after.text
        and _RULE_ROW.fullmatch(after.text.strip()) is not None
    )  # fmt: skip


def _cells(lines: Sequence[Line], first: int, stop: int) -> Iterator[Block]:
    row = 0
    for n in range(first, stop):
        text = lines[n].text
        if _RULE_ROW.fullmatch(text.strip()):
            continue
        edge = text.lstrip().startswith("|")
        spans = [(n - edge, *span) for n, span in enumerate(_cell_spans(text)) if text[slice(*span)].strip()]
        for column, start, end in spans:
            yield Block(
                "cell", _plain(text[start:end]), n, start, n, end, row=row, column=column, opens=start == spans[0][1],
                ends=end == spans[-1][2],
            )  # fmt: skip
        row += 1


def _cell_spans(text: str) -> Iterator[tuple[int, int]]:
    """The cells between bars; a bar behind a backslash or between backticks belongs to its cell."""
    start, ticks = 0, False
    for n, char in enumerate(text):
        if char == "`":
            ticks = not ticks and text.find("`", n + 1) > 0
        elif char == "|" and not ticks and text[n - 1 : n] != "\\":
            yield start, n
            start = n + 1
    yield start, len(text)


# --- paragraphs and lists -------------------------------------------------------------------------------------------


def _paragraphs(
    lines: Sequence[Line], first: int, stop: int, indents: list[int], widths: Sequence[int]
) -> Iterator[Block]:
    """Runs of text lines without a blank between them, cut at list items, labels and lines that are not wrapped.
    `widths`: of all lines of text on the page, sorted."""
    width = max(_width(lines[n].text) for n in range(first, stop))
    full = bisect_right(widths, width) - bisect_left(widths, 0.8 * width) >= _FULL_LINES
    cut = first
    for n in range(first, stop):
        if n > cut and not _continues(lines[n - 1].text, lines[n].text, width, full=full):
            yield from _paragraph(lines, cut, n, indents)
            cut = n
    yield from _paragraph(lines, cut, stop, indents)


def _continues(before: str, text: str, width: int, *, full: bool) -> bool:
    """Whether the line was wrapped: the one before it is full, so that the first word had no room there. `full`:
    several lines of the page are about that wide, which is what wrapping does."""
    start, quoted = _content(text)
    if _ITEM.match(text[start:]) or read_label(text[start : start + 80]) or _HARD_BREAK.search(before):
        return False
    if quoted != _content(before)[1] or text[start : start + 2] == "**" or before.rstrip().endswith((":", "：")):
        return False
    word = re.match(r"[\x21-\x7e]{1,40}|.", text[start:])
    room = _width(before) + 1 + (_width(word[0]) if word else 0)
    wrapped = full and _width(before) >= 40 and room > width - 3 and width <= 140
    return wrapped or (text[start : start + 1].islower() and _width(before) >= 30 and not _ENDS.search(before))


def _width(text: str) -> int:
    """Columns on a terminal: a Chinese character takes two."""
    text = text.rstrip()
    return len(text) if text.isascii() else len(text) + len(_WIDE.findall(text))


def _paragraph(lines: Sequence[Line], first: int, stop: int, indents: list[int]) -> Iterator[Block]:
    """The sentences of one paragraph or list item; a bold or quoted-code beginning counts as one."""
    start, quoted = _content(lines[first].text)
    item = _ITEM.match(_QUOTE.sub("", lines[first].text, count=1) if quoted else lines[first].text)
    marker = ""
    indent = len(lines[first].text) - len(lines[first].text.lstrip())
    if item:
        while indents and indents[-1] > indent - 1 and indents[-1] != indent:
            indents.pop()
        if not indents or indents[-1] < indent - 1:
            indents.append(indent)
        marker = "-" if item[2] else next(group for group in item.groups()[2:] if group)
        start = (len(lines[first].text) - len(lines[first].text.lstrip(" >\t"))) + len(item.group().lstrip())
    while not item and indents and indents[-1] >= indent:
        indents.pop()
    joined, places = _join(lines, first, stop, start)
    cuts = list(_cuts(joined))
    for n, (a, b, bold) in enumerate(cuts):
        (line_a, column_a), (line_b, column_b) = places(a), places(b - 1)
        yield Block(
            "text", _plain(joined[a:b]), line_a, 0 if n == 0 else column_a, line_b,
            len(lines[line_b].text) if n == len(cuts) - 1 else min(column_b + 1, len(lines[line_b].text)),
            depth=len(indents),
            marker=marker if n == 0 else "", bold=bold, quoted=quoted, opens=n == 0, ends=n == len(cuts) - 1,
        )  # fmt: skip


def _join(lines: Sequence[Line], first: int, stop: int, start: int) -> tuple[str, Callable[[int], tuple[int, int]]]:
    """The text of wrapped lines in one, and a function from an offset in it to (line, column)."""
    pieces: list[str] = []
    offsets: list[tuple[int, int, int]] = []
    at = 0
    for n in range(first, stop):
        begin = start if n == first else _content(lines[n].text)[0]
        piece = lines[n].text[begin:].rstrip()
        glue = " " if n > first and (piece[:1].isascii() or pieces[-1][-1:].isascii()) else ""
        at += len(glue)
        offsets.append((at, n, begin))
        pieces.append(glue + piece)
        at += len(piece)

    def place(offset: int) -> tuple[int, int]:
        base, line, begin = offsets[max(0, bisect_right(offsets, (offset, len(lines), 0)) - 1)]
        return line, begin + max(0, offset - base)

    return "".join(pieces), place


def _cuts(text: str) -> Iterator[tuple[int, int, bool]]:
    """(start, stop, is bold) of each sentence."""
    if ASKED.match(text) and len(text) <= _SHORT_QUESTION and text.rstrip().endswith(("?", "？")):
        yield 0, len(text), False
        return
    start = 0
    lead = _BOLD_LEAD.match(text) or _CODE_LEAD.match(text)
    if lead and not (lead.end() < len(text) and read_label(text)):
        yield 0, lead.end(), True
        start = lead.end()
    shielded = _SHIELDED.sub(lambda found: "x" * len(found[0]), text)
    for end in _SENTENCE.finditer(shielded, start):
        if end.end() - start >= 6 and end.end() < len(text):
            yield start, end.end(), False
            start = end.end()
    if start < len(text):
        yield start, len(text), False
