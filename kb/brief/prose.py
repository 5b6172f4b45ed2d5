"""Markdown of an article as plain lines: pieces of prose and code, sentences, list items.

Everything keeps inline code whole, with its marks: whatever stands between back ticks can be copied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kb.text.width import CODE_SPAN, cut

__all__ = ["MAX_COLUMNS_OF_PROSE", "first_sentence", "items", "joined", "paragraphs", "pieces_of", "plain", "sentences"]

MAX_COLUMNS_OF_PROSE = 240  # of a sentence that is shown by itself; code is never cut

ITEM = re.compile(r"[ \t]{0,12}(?:\d{1,9}[.)]|[-*+])[ \t]")
_BLANK = re.compile(r"\n[ \t]{0,80}\n")
_END = re.compile(
    rf"{CODE_SPAN.pattern}|[.!?](?:\*\*|[)\"”’]){{0,2}}(?=\s+[^\sa-z]|\s*$)|[。！？](?:\*\*|[）”’」]){{0,2}}"
)
_LINK = re.compile(r"!?\[([^][]{1,300})\]\(<?([^\s()<>]{1,500})>?(?: \"[^\"]{0,200}\")?\)")
_STRONG = re.compile(r"\*\*(?=\S)([^*\n]{1,300}?)(?<=\S)\*\*")
_EMPHASIS = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]{1,300}?)(?<=[^\s*])\*(?![\w*])")
_ASIDE = "\ue000"  # around the number of a piece of code that is out of the way for a moment
_SET_ASIDE = re.compile(f"{_ASIDE}([0-9]{{1,6}}){_ASIDE}")


def pieces_of(markdown: str) -> Iterator[tuple[str | None, str]]:
    """Prose (None, text) and fenced code (language, code) in turn; blank prose is left out."""
    from kb.text import fences

    after_code = False
    for block in fences.split(markdown):
        if isinstance(block, fences.Code):
            if block.lead.strip(" \t>"):  # a list item that begins with a fence
                yield None, block.lead
            yield block.language, block.text
            after_code = True
        elif block.text.strip():
            lines = list(block.lines)
            first_item = next((n for n, line in enumerate(lines) if ITEM.match(line)), None)
            if after_code and first_item is not None:  # only a blank line lets a list go on that a fence interrupted
                lines.insert(first_item, "")
            yield None, "\n".join(lines)


def items(markdown: str) -> list[str]:
    """The items of a list, each in one line without its mark."""
    found: list[str] = []
    for line in markdown.splitlines():
        if ITEM.match(line):
            found.append(ITEM.sub("", line, count=1).strip())
        elif found and line.strip():
            found[-1] += " " + line.strip()
    return found


def paragraphs(prose: str) -> list[str]:
    """Each in one line, and each item of a list by itself, with its mark."""
    found: list[str] = []
    for part in _BLANK.split(prose):
        fresh = True
        for line in part.splitlines():
            if fresh or ITEM.match(line):
                found.append(line.strip())
            else:
                found[-1] += " " + line.strip()
            fresh = False
    return [text for text in found if text]


def sentences(line: str) -> list[str]:
    """The sentences of a paragraph, each with the mark that ends it. A full stop inside inline code, or in front of a
    word in lower case (`e.g. so`), ends nothing."""
    found, start = [], 0
    for end in _END.finditer(line):
        if not end[0].startswith("`"):
            stop = end.end()
            if end[0].endswith("**") and line.count("**", 0, stop) % 2:  # they open what comes next
                stop -= 2
            found.append(line[start:stop].strip())
            start = stop
    return [text for text in (*found, line[start:].strip()) if text]


def first_sentence(markdown: str) -> str:
    """Of the prose, with the mark that ends it, and shortened when it is long."""
    prose = next((text for fence, text in pieces_of(markdown) if fence is None), "")
    first = next(iter(_BLANK.split(prose.strip())), "")
    said = sentences(" ".join(first.split()))
    return cut(said[0], MAX_COLUMNS_OF_PROSE) if said else ""


def joined(said: Iterable[str]) -> str:
    """Sentences in one line; behind a Chinese mark there is no space."""
    line = ""
    for one in said:
        close = not line or not one or (ord(line[-1]) > 0x2E80 and not ITEM.match(one))
        line += one if close else f" {one}"
    return line


def plain(text: str) -> str:
    """Without the marks of bold, emphasis and links; inline code keeps its back ticks. Of a link to a page elsewhere
    its address is shown, too; a link to an article is its text, which is the name that `kb show` knows."""
    codes: list[str] = []

    def put_aside(code: re.Match[str]) -> str:
        codes.append(code[0])
        return f"{_ASIDE}{len(codes) - 1}{_ASIDE}"

    text = CODE_SPAN.sub(put_aside, text.replace(_ASIDE, ""))
    text = _LINK.sub(lambda link: f"{link[1]} ({link[2]})" if "://" in link[2] else link[1], text)
    text = _EMPHASIS.sub(r"\1", _STRONG.sub(r"\1", text))
    return _SET_ASIDE.sub(lambda place: codes[int(place[1])], text)
