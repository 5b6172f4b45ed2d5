"""Tagged pages: a page of which every passage says what it is.

A tag stands inside the page as `⟦title⟧`, `⟦fix⟧` or `⟦fix #2⟧` (of the page's second record) and holds until the next
one. `⟦project: NAME | OTHER NAME⟧`, `⟦lang: zh⟧` and `⟦error: TEXT⟧` state what the page and its records must give.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from kb.articles.frontmatter import read_front_matter
from kb.articles.lines import Line, classify
from kb.articles.underlined import without_tildes
from kb.scraped.blocks import Block
from kb.scraped.reader import prepare

TAGS = ("title", "symptom", "cause", "fix", "label", "question", "answer", "other", "boilerplate")
_MARK = re.compile(r"⟦([^⟧]*)⟧")


@dataclass
class Page:
    name: str
    text: str
    marks: list[tuple[int, str, int | None]]
    """(offset, tag, number of the record from 1 or None for the newest)"""
    projects: list[str] = field(default_factory=list)
    lang: str = ""
    errors: list[tuple[int, str]] = field(default_factory=list)
    """(offset, text)"""

    def tag_at(self, offset: int) -> tuple[str, int | None]:
        best: tuple[str, int | None] = ("other", None)
        for at, tag, record in self.marks:
            if at > offset:
                break
            best = (tag, record)
        return best


def read_tagged(path: Path) -> Page:
    """Reads `NAME.tagged.md`."""
    return parse_tagged(path.name, path.read_text(encoding="utf-8"))


def parse_tagged(name: str, text: str) -> Page:
    page = Page(name, "", [])
    pieces: list[str] = []
    length = at = 0
    for mark in _MARK.finditer(text):
        piece = text[at : mark.start()]
        pieces.append(piece)
        length += len(piece)
        at = mark.end()
        key, colon, value = (part.strip() for part in mark[1].partition(":"))
        if colon and key == "error":
            page.errors.append((length, value))
        elif colon:
            if key == "project":
                page.projects = [part.strip() for part in value.split("|") if part.strip() not in ("", "-")]
            elif key == "lang":
                page.lang = value
            if text[at : at + 1] == "\n":
                at += 1
        else:
            tag, _, number = key.partition(" #")
            if tag not in TAGS:
                raise ValueError(f"{name}: unknown tag {tag!r}")
            page.marks.append((length, tag, int(number) if number else None))
    page.text = "".join([*pieces, text[at:]])
    return page


def page_blocks(text: str) -> tuple[list[Line], list[Block], str]:
    """The lines, blocks and title (of the front matter) of a page, as the reader sees them."""
    raw = without_tildes(text.splitlines())
    front = read_front_matter(raw)
    title = front.first("title")
    return *prepare(classify(raw, front.body)[0], front_title=title), title


def tagged_blocks(page: Page) -> tuple[list[Block], list[str], list[int | None]]:
    """Blocks with the tag of most of their characters, and the record that is named."""
    lines, blocks, title = page_blocks(page.text)
    starts, at = [], 0
    for raw in page.text.splitlines(keepends=True):
        starts.append(at)
        at += len(raw)
    raws = page.text.splitlines()
    tags: list[str] = []
    records: list[int | None] = []
    before = ""
    for block in blocks:
        first, last = lines[block.first], lines[block.last]
        begin = starts[first.no - 1] + _column(raws[first.no - 1], first.text, block.start)
        end = starts[last.no - 1] + _column(raws[last.no - 1], last.text, block.stop)
        if title and block.first == 0 and first.no == 1:  # the title of the front matter
            begin = next((starts[n] for n, raw in enumerate(raws[:40]) if title in raw), 0)
            end = begin + len(title)
        middle = [
            offset for offset in range(begin, max(end, begin + 1)) if not page.text[offset : offset + 1].isspace()
        ]
        votes: dict[tuple[str, int | None], int] = {}
        for offset in middle[:: max(1, len(middle) // 24)]:
            key = page.tag_at(offset)
            votes[key] = votes.get(key, 0) + 1
        tag, record = max(votes, key=lambda key: votes[key]) if votes else page.tag_at(begin)
        mark = next((at for at, t, _ in reversed(page.marks) if at <= begin), -1)
        if tag == "title" and before == f"title{mark}":
            tag = "symptom"
        else:
            before = f"{tag}{mark}"
        tags.append(tag)
        records.append(record)
    return blocks, tags, records


def _column(raw: str, text: str, column: int) -> int:
    if raw == text:
        return column
    found = raw.find(text[column : column + 12]) if column < len(text) else len(raw)
    return found if found >= 0 else min(column, len(raw))
