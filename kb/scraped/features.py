"""Blocks of a page -> what can be seen of each by itself, and which block stands above which.

A feature is a short string such as `H role=cause` or `w=because`; a capital stands for the kind of the block: H
heading, B bold beginning or bold line, S short line that could be a heading, I list item, T sentence, C code, D cell,
R rule. Nothing here decides; `tagger` weighs the features and lets the blocks hear each other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kb.arrays import Array
from kb.logs.classify import is_command, is_error_line
from kb.scraped.blocks import ASKED, Block
from kb.scraped.labels import read_label, role_of

__all__ = ["View", "look"]

_WORD = re.compile(r"[a-z]+(?:['’][a-z]+)?|[\u3400-\u9fff]|\d+|[?？!！:：。%$#@|/…]")
_ASKS = re.compile(r"[?？]\W{0,3}$")
_CLOSED = re.compile(r"[。.;；!！…,，、]['\"”’）)`*]{0,3}$")
_A = re.compile(r"\W{0,6}(?:A|Answer|答|回答|解答|答案)\s?\d{0,3}\s?[:：】]", re.IGNORECASE)
_NUMBERED = re.compile(
    r"\W{0,3}(?:\d{1,2}(?:\.\d{1,2}){0,3}[.、)）\s:：]|[一二三四五六七八九十]{1,3}[、.]|[（(]\d{1,2}[)）]|第[一二三四五六七八九十\d]{1,3})"
)
_SIGNS = (
    ("link", re.compile(r"\]\(|https?://").search), ("span", re.compile(r"`[^`\n]+`").search), ("asks", _ASKS.search),
    ("numbered", _NUMBERED.match), ("date", re.compile(r"20\d\d[-/年.]\s?\d{1,2}").search),
    ("lower", re.compile(r"[a-z]").match), ("note", re.compile(r"!!!|:::|\[!").match),
    ("macro", re.compile(r"\{[{%]|import |export |@").match),
)  # fmt: skip
_MOST_WORDS = 36


@dataclass(slots=True)
class View:
    """What is seen of a page. Arrays have one row for each block."""

    names: list[list[str]]
    """features of each block, each once"""
    head: Array
    """index of the block that heads it, -1 for none"""
    family: Array
    """the same number for all heads of one rank below one head, -1 for other blocks"""
    step: Array
    """how it follows the block before it: 0 in the same paragraph, 1 in a new one, 2 as a heading"""


@dataclass(slots=True)
class _Seen:
    kind: str
    role: str
    """of a heading or a line of its own; of a short beginning before a colon"""
    says: str
    """q, a, error, command, or nothing"""
    rank: int
    """how deep a head is: 1 to 6 for headings, 7 bold, 8 a line; 9 for others"""


def look(blocks: Sequence[Block]) -> View:
    marked = any(block.kind == "heading" for block in blocks)
    names: list[list[str]] = []
    head, family = [-1] * len(blocks), [-1] * len(blocks)
    families: dict[tuple[int, int], int] = {}
    stack: list[tuple[int, _Seen]] = []
    columns: list[str] = []
    since = ""
    for n, block in enumerate(blocks):
        seen = _see(block, blocks[n + 1] if n + 1 < len(blocks) else None, marked=marked)
        while stack and seen.rank < 9 and seen.rank <= stack[-1][1].rank:
            stack.pop()
        head[n] = stack[-1][0] if stack else -1
        under = next((one.role for _, one in reversed(stack) if one.role), "")
        since = seen.role or ("" if seen.rank < 9 else since)
        if block.kind == "cell":
            if block.row == 0:
                del columns[block.column :]
                columns.append(seen.role)
            under = columns[block.column] if block.row > 0 and block.column < len(columns) else under
        found = _features(block, seen)
        found += [f"under={under}", f"since={since}", f"rank={len(stack)}", f"at={min(n, 3)}"]
        found.append(f"after={min(n - stack[-1][0], 6)}" if stack else "after=none")
        names.append([*[f"{seen.kind} {name}" for name in found], f"role={seen.role}", *_words(block)])
        if seen.rank < 9:
            family[n] = families.setdefault((head[n], seen.rank), len(families))
            stack.append((n, seen))
    step = [0 if not block.opens else 2 if block.kind == "heading" else 1 for block in blocks]
    return View(names, np.array(head), np.array(family), np.array(step))


def _see(block: Block, after: Block | None, *, marked: bool) -> _Seen:
    text = block.text
    lone = block.opens and block.ends
    rank, role, says = 9, "", ""
    if block.kind == "heading":
        kind, rank, role = "H", block.level, role_of(text)
    elif block.kind == "code":
        kind = "C"
        lines = text.split("\n", 40)
        says = "error" if any(is_error_line(line) for line in lines[:40]) else "command" if is_command(lines[0]) else ""
    elif block.kind == "cell":
        kind, role = "D", role_of(text) if block.row == 0 else ""
    elif block.kind == "rule":
        kind = "R"
    else:
        kind = "B" if block.bold else "I" if block.marker else "T"
        if block.opens:
            label = read_label(text[:120])
            role = label.role if label else role_of(text) if lone else ""
        short = len(text) <= (36 if not text.isascii() else 80) and not _CLOSED.search(text)
        if lone and not block.depth and (block.bold or (role and short)):
            kind, rank = ("B", 7) if block.bold else ("S", 8)
        elif lone and not block.marker and not marked and short and after is not None and not is_command(text):
            kind, rank = "S", 8
        elif block.bold and block.opens and not block.depth:
            rank = 7
    if kind not in "CR":
        if block.opens and _A.match(text):
            says = "a"
        elif block.opens and ASKED.match(text):
            says = "q"
        elif (lone or rank < 9) and is_error_line(text[:300]):
            says = "error"
        elif lone and len(text) < 200 and is_command(text):
            says = "command"
    return _Seen(kind, role, says, rank)


def _features(block: Block, seen: _Seen) -> list[str]:
    text = block.text
    end = text[-1:]
    found = [
        "bias", f"role={seen.role}", f"says={seen.says}", f"long={min(len(text).bit_length(), 9)}",
        f"opens={block.opens}{block.ends}", f"depth={block.depth}", f"level={block.level}",
        f"marker={'1' if block.marker.isdigit() else block.marker}", f"end={'word' if end.isalnum() else end}",
    ]  # fmt: skip
    if block.kind == "cell":
        found.append(f"column={min(block.column, 4)} {block.row == 0}")
    if block.quoted:
        found.append("quoted")
    found.append("last=" + " ".join(_WORD.findall(text[-24:].lower())[-2:]))
    found += [name for name, shows in _SIGNS if shows(text)]
    return found


def _words(block: Block) -> list[str]:
    """The first words, each once; numbers are all alike. How a sentence begins tells most: `because`, `set the`."""
    found = _WORD.findall(block.text[:200].lower())
    words = list(dict.fromkeys("0" if word.isdigit() else word for word in found[:_MOST_WORDS]))
    begins = [f"first={' '.join(words[:n])}" for n in (1, 2) if n <= len(words)]
    return [f"w={word}" for word in words] + begins
