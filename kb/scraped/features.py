"""Blocks of a page -> what can be seen of each: names of features, which the tagger weighs.

A feature is a short string such as `H role=cause` or `T w=because`; before the space stands the kind of the block: H
heading, B bold beginning or bold line, S short line that could be a heading, I list item, T sentence, C code, D cell,
R rule. Nothing here decides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from kb.logs.classify import is_command, is_error_line
from kb.scraped.blocks import Block
from kb.scraped.labels import read_label, role_of

__all__ = ["Seen", "features_of"]

_WORD = re.compile(r"[a-z]+(?:['’][a-z]+)?|[\u3400-\u9fff]|\d+|[?？!！:：。%$#@|/…]")
_HAN = re.compile(r"[\u3400-\u9fff]+")
_ASKS = re.compile(r"[?？]\W{0,3}$")
_CLOSED = re.compile(r"[。.;；!！…,，、]['\"”’）)`*]{0,3}$")
_Q = re.compile(r"\W{0,6}(?:(?:Q|Question|问题?|提问)\s?[#＃]?\d{0,3}\s?[:：.、)】]|Q\d)", re.IGNORECASE)
_A = re.compile(r"\W{0,6}(?:A|Answer|答|回答|解答|答案)\s?\d{0,3}\s?[:：】]", re.IGNORECASE)
_NUMBERED = re.compile(r"\W{0,3}(?:\d{1,2}(?:\.\d{1,2}){0,3}[.、)）\s:：]|[一二三四五六七八九十]{1,3}[、.]|[（(]\d{1,2}[)）]|第[一二三四五六七八九十\d]{1,3})")
_LINK = re.compile(r"\]\(|https?://")
_CODE_SPAN = re.compile(r"`[^`\n]+`")
_DATE = re.compile(r"20\d\d[-/年.]\s?\d{1,2}")
_SHAPES = (("!!!", "note"), (":::", "note"), ("[!", "note"), ("{{", "macro"), ("{%", "macro"), ("import ", "import"),
           ("export ", "import"), ("@", "at"), ("- [", "task"), ("![", "image"), ("<", "tag"), ("|", "bar"))  # fmt: skip
_MOST_WORDS = 36
_FIELDS = ("symptom", "cause", "fix")


@dataclass(slots=True)
class Seen:
    """What is known of one block before its neighbours are asked."""

    kind: str
    role: str
    """of a heading or a line of its own; of a short beginning before a colon"""
    says: str
    """q, a, error, command, or nothing"""
    words: list[str]
    head: int
    """index of the block that heads it, -1 for none"""
    rank: int
    """how deep a head is: 1 to 6 for headings, 7 bold, 8 a line; 9 for others"""
    heads: list[int] = field(default_factory=list)
    """of a head: the heads right below it"""
    body: list[int] = field(default_factory=list)
    """of a head: the other blocks right below it"""


def features_of(blocks: Sequence[Block], title: str = "") -> list[list[str]]:
    """For each block its features, each once. `title`: of the page."""
    seen = _look(blocks)
    page = _page(blocks, seen, title)
    return [_features(blocks, seen, n, page) for n in range(len(blocks))]


# --- each block by itself -------------------------------------------------------------------------------------------


def _look(blocks: Sequence[Block]) -> list[Seen]:
    marked = any(block.kind == "heading" for block in blocks)
    seen: list[Seen] = []
    stack: list[int] = []
    for n, block in enumerate(blocks):
        one = _one(block, blocks[n + 1] if n + 1 < len(blocks) else None, marked=marked)
        while stack and one.rank <= seen[stack[-1]].rank and one.rank < 9:
            stack.pop()
        one.head = stack[-1] if stack else -1
        if one.head >= 0:
            (seen[one.head].heads if one.rank < 9 else seen[one.head].body).append(n)
        seen.append(one)
        if one.rank < 9:
            stack.append(n)
    return seen


def _one(block: Block, after: Block | None, *, marked: bool) -> Seen:
    text = block.text
    lone = block.opens and block.ends
    rank, role, says = 9, "", ""
    if block.kind == "heading":
        kind, rank, role = "H", block.level, role_of(text)
    elif block.kind == "code":
        kind = "C"
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
    if kind == "C":
        lines = text.split("\n")
        says = "error" if any(is_error_line(line) for line in lines[:40]) else "command" if is_command(lines[0]) else ""
    elif kind != "R":
        if block.opens and _A.match(text):
            says = "a"
        elif block.opens and _Q.match(text):
            says = "q"
        elif is_error_line(text[:300]):
            says = "error"
        elif len(text) < 200 and is_command(text):
            says = "command"
    return Seen(kind, role, says, _words(text[:400] if kind != "C" else text[:160]), -1, rank)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())[: _MOST_WORDS * 2]


def _grams(words: Sequence[str]) -> set[str]:
    """Words and pairs of neighbours; numbers are all alike."""
    plain = ["0" if word.isdigit() else word for word in words]
    return {*plain, *(f"{a} {b}" for a, b in zip(plain, plain[1:], strict=False))}


# --- the page -------------------------------------------------------------------------------------------------------


def _page(blocks: Sequence[Block], seen: Sequence[Seen], title: str) -> list[str]:
    """Features that all headings of the page share."""
    heads = [one for one in seen if one.rank < 9]
    first = next((block.text for block, one in zip(blocks, seen, strict=True) if one.kind == "H"), "")
    names = sorted(_grams(_words((title or first)[:120])))[:30]
    roles = {one.role for one in seen if one.role}
    page = [f"title={name}" for name in names]
    page += [f"has={role}" for role in ("symptom", "cause", "fix", "answer") if role in roles]
    page.append(f"heads={min(len(heads), 12) // 3}")
    page += ["errors"] if any(one.says == "error" for one in seen) else []
    page += ["asks"] if sum(bool(_ASKS.search(block.text)) for block in blocks if block.kind == "heading") >= 3 else []
    page += ["qa"] if any(one.says == "a" for one in seen) else []
    return page


def _share(part: int, whole: int) -> str:
    return "none" if not part else "all" if part == whole else "most" if 2 * part > whole else "some"


# --- a block among its neighbours -----------------------------------------------------------------------------------


def _features(blocks: Sequence[Block], seen: Sequence[Seen], n: int, page: Sequence[str]) -> list[str]:
    block, one = blocks[n], seen[n]
    text = block.text
    found = {
        "bias",
        f"role={one.role}",
        f"says={one.says}",
        f"long={min(len(text).bit_length(), 9)}",
        f"place={8 * n // len(blocks)}" if n > 2 else f"at={n}",
        f"opens={block.opens}{block.ends}",
        f"depth={block.depth}",
        f"marker={'1' if block.marker.isdigit() else block.marker}",
        f"end={text[-1:] if not text[-1:].isalnum() else 'word'}",
    }
    found |= {name for mark, name in _SHAPES if text.startswith(mark)}
    for name, pattern in (("link", _LINK), ("span", _CODE_SPAN), ("date", _DATE), ("asks", _ASKS)):
        if pattern.search(text):
            found.add(name)
    if block.quoted:
        found.add("quoted")
    if text[:1].islower():
        found.add("lower")
    if _NUMBERED.match(text):
        found.add("numbered")
    words = one.words
    grams = _grams(words[:_MOST_WORDS])
    found |= {f"w={gram}" for gram in grams}
    found.add("f=" + " ".join(words[:1]))
    found.add("f=" + " ".join(words[:2]))
    found.add("l=" + " ".join(words[-2:]))
    _heading(blocks, seen, n, found)
    _neighbours(blocks, seen, n, found)
    if one.rank < 9 or n == 0 or one.says == "q" or (block.kind == "cell" and block.column == 0):
        found |= {f"page {name}" for name in page}
        _family(blocks, seen, n, found)
    else:
        found |= {f"page {name}" for name in page if not name.startswith("title")}
    return [f"{one.kind} {name}" for name in found] + [name for name in found if name.startswith(("w=", "f=", "role", "head"))]


def _heading(blocks: Sequence[Block], seen: Sequence[Seen], n: int, found: set[str]) -> None:
    """What stands above: the nearest head and its role, and the nearest role of all."""
    above = seen[n].head
    if above < 0:
        found.add("head none")
        return
    found.add(f"head {seen[above].kind} {seen[above].role}")
    found.add(f"head after={min(n - above, 6)}")
    found |= {f"head w={gram}" for gram in _grams(seen[above].words[:14])}
    if seen[above].says:
        found.add(f"head says={seen[above].says}")
    if _ASKS.search(blocks[above].text):
        found.add("head asks")
    role, up = seen[above].role, seen[above].head
    while not role and up >= 0:
        role, up = seen[up].role, seen[up].head
    found.add(f"under={role}")
    found.add(f"rank={sum(1 for _ in _up(seen, n))}")
    label = next((seen[k].role for k in range(n, above, -1) if seen[k].role), "")
    found.add(f"since={label}")
    if blocks[n].kind == "cell" and blocks[n].row > 0:
        column = next((k for k in range(n - 1, -1, -1) if blocks[k].kind != "cell" or (blocks[k].row == 0 and blocks[k].column == blocks[n].column)), -1)
        if column >= 0 and blocks[column].kind == "cell":
            found.add(f"column={seen[column].role}")
            found |= {f"column w={gram}" for gram in _grams(seen[column].words[:6])}
        found.add(f"column {min(blocks[n].column, 4)}")


def _up(seen: Sequence[Seen], n: int):  # type: ignore[no-untyped-def]
    while (n := seen[n].head) >= 0:
        yield n


def _neighbours(blocks: Sequence[Block], seen: Sequence[Seen], n: int, found: set[str]) -> None:
    for name, k in (("-1", n - 1), ("+1", n + 1), ("-2", n - 2), ("+2", n + 2)):
        if not 0 <= k < len(seen):
            found.add(f"{name} none")
            continue
        other = seen[k]
        found.add(f"{name} {other.kind}")
        if other.role:
            found.add(f"{name} role={other.role}")
        if other.says:
            found.add(f"{name} says={other.says}")
        if abs(k - n) == 1:
            found |= {f"{name} w={word}" for word in other.words[:3]}
            if blocks[k].text.endswith((":", "：")):
                found.add(f"{name} colon")


def _family(blocks: Sequence[Block], seen: Sequence[Seen], n: int, found: set[str]) -> None:
    """A head's children and siblings: what they have in common is what the page is made of."""
    one = seen[n]
    below = [seen[k] for k in one.heads]
    found.add(f"heads below={min(len(below), 3)}")
    found.add(f"body={min(len(one.body).bit_length(), 4)}")
    found |= {f"below role={other.role}" for other in below if other.role}
    found |= {f"body role={seen[k].role}" for k in one.body if seen[k].role}
    found |= {f"body says={seen[k].says}" for k in one.body if seen[k].says}
    found |= {f"body {seen[k].kind}" for k in one.body}
    siblings = seen[one.head].heads if one.head >= 0 else [k for k in range(len(seen)) if seen[k].head < 0 and seen[k].rank < 9]
    others = [k for k in siblings if seen[k].rank == one.rank]
    if len(others) > 1:
        found.add(f"siblings={min(len(others), 9) // 3}")
        for name, count in (
            ("role", sum(bool(seen[k].role) for k in others)),
            ("asks", sum(bool(_ASKS.search(blocks[k].text)) for k in others)),
            ("error", sum(seen[k].says == "error" for k in others)),
            ("numbered", sum(bool(_NUMBERED.match(blocks[k].text)) for k in others)),
            ("q", sum(seen[k].says == "q" for k in others)),
            ("heads", sum(bool(seen[k].heads) for k in others)),
            ("code", sum(any(seen[m].kind == "C" for m in seen[k].body) for k in others)),
        ):
            found.add(f"siblings {name}={_share(count, len(others))}")
        words = [gram for k in others if k != n for gram in _grams(seen[k].words[:12])]
        found |= {f"sibling w={gram}" for gram in words[:60]}
    else:
        found.add("siblings=alone")
