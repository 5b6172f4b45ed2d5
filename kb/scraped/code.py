"""Finds code on a page that has lost its fences, and puts it into fences again.

Each line gets a score from what it is made of (words, signs, how it begins and ends), and neighbours pull each other:
the best sequence of text and code is taken. The weights are fitted by `scripts/reader/train.py` on the lines inside
and outside of fences. A message that a program printed is no code here: it may be the title of a problem.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby
from pathlib import Path

import numpy as np

from kb.arrays import Array, open_arrays
from kb.articles.lines import Line
from kb.logs.classify import is_command, is_error_line

__all__ = ["MODEL", "ROWS", "could_be_code", "fence_again", "is_code", "rows_of"]

MODEL = Path(__file__).parent / "code.safetensors"
ROWS = 1 << 13
_PIECE = re.compile(r"[A-Za-z]+|\d+|[\u3400-\u9fff]+|[^\sA-Za-z0-9\u3400-\u9fff]")
_MOST_PIECES = 40
_SAYS = re.compile(r"[A-Za-z0-9#(){}\[\]]")
_MARK = re.compile(r"\s{0,20}(?:[-*+•·●]\s|\d{1,2}[.、)]\s?|[（(]?[一二三四五六七八九十\d]{1,3}[)）、])")


def fence_again(lines: Sequence[Line]) -> list[Line]:
    """The lines with a fence around each run of code. A page that has fences keeps them, and gets no others."""
    if any(line.kind == "fence" for line in lines):
        return list(lines)
    marked = any(line.kind == "heading" and line.level > 1 for line in lines)
    found = {id(line) for run in _runs(lines, marked=marked) for line in run}
    if not found:
        return list(lines)
    done: list[Line] = []
    number = max((line.block for line in lines), default=0)
    held: list[Line] = []  # blank lines: inside of code they belong to it
    for code, run in groupby(lines, lambda line: None if line.kind == "blank" else id(line) in found):
        part = list(run)
        if code is None:
            held = part
            continue
        inside = bool(done) and done[-1].kind == "fence"
        if code and inside:
            closing = done.pop()
            done += [replace(line, kind="code", level=0, block=number) for line in [*held, *part]]
            done.append(replace(closing, no=part[-1].no))
        elif code:
            number += 1
            done += [*held, Line(part[0].no, "```", "fence", block=number)]
            done += [replace(line, kind="code", level=0, block=number) for line in part]
            done.append(Line(part[-1].no, "```", "fence", block=number))
        else:
            done += [*held, *part]
        held = []
    return [*done, *held]


def _runs(lines: Sequence[Line], *, marked: bool) -> list[list[Line]]:
    """The runs of code. `# why` is a comment where code stands beside it, or elsewhere on a page with such comments;
    on a page that has `marked` its headings it is a heading."""
    asked = [line for line in lines if line.kind not in ("blank", "rule")]
    asked = asked[1:] if asked and asked[0].kind == "heading" else asked  # the title of the page
    codes = [code and not (marked and line.kind == "heading") for line, code in zip(asked, is_code(asked), strict=True)]
    runs = [
        [line for line, _ in run] for code, run in groupby(zip(asked, codes, strict=True), lambda one: one[1]) if code
    ]
    kinds = [{line.kind == "heading" for line in run} for run in runs]
    commented = {True, False} in kinds
    return [run for run, kind in zip(runs, kinds, strict=True) if commented or kind != {True}]


def could_be_code(line: Line) -> bool:
    if line.kind == "heading":
        return line.level == 1 and line.text.startswith("# ")
    return (
        line.kind in ("text", "code", "html") and _SAYS.search(line.text) is not None and not is_error_line(line.text)
    )


def is_code(lines: Sequence[Line]) -> list[bool]:
    """Of each line, none of them blank, whether it is code."""
    if not lines:
        return []
    arrays = _arrays()
    weights = arrays["line"].astype(np.float32)
    scores = [float(weights[rows_of(line.text)].sum()) if could_be_code(line) else -20.0 for line in lines]
    return _best_run(scores, float(arrays["switch"][0]))


def _best_run(scores: Sequence[float], switch: float) -> list[bool]:
    """The sequence of text (0) and code (its score) with the highest sum; each change costs `switch`."""
    text, code = 0.0, scores[0]
    back: list[tuple[bool, bool]] = []
    for score in scores[1:]:
        back.append((code - switch > text, code > text - switch))
        text, code = max(text, code - switch), max(code, text - switch) + score
    path = [code > text]
    for came_from in reversed(back):
        path.append(came_from[path[-1]])
    return path[::-1]


def rows_of(text: str) -> list[int]:
    """Rows of a line's features in the table of weights."""
    return [zlib.crc32(name.encode()) % ROWS for name in dict.fromkeys(_features(text))]


def _features(text: str) -> Iterator[str]:
    bare = text.strip()[:300]
    pieces = _PIECE.findall(bare)[:_MOST_PIECES]
    kinds = ["字" if piece[0] > "\u33ff" else "0" if piece.isdigit() else piece for piece in pieces]
    shape = "".join("a" if kind[0].isalpha() and kind.isascii() else kind for kind in kinds)
    yield from ("bias", f"long={len(bare).bit_length()}", f"pieces={min(len(pieces), 12)}")
    yield from (f"begins={shape[:3]}", f"ends={shape[-2:]}", f"first={''.join(kinds[:1])}", f"last={bare[-1:]}")
    yield from (f"shape={shape[n : n + 3]}" for n in range(min(len(shape), 24) - 2))
    yield from (f"w={kind}" for kind in kinds)
    yield from (f"glued={kind}" for n, kind in enumerate(kinds) if n and _glued(bare, pieces, n))
    yield f"words={min(sum(piece.islower() and len(piece) > 3 for piece in pieces), 6)}"
    signs = sum(not char.isalnum() and not char.isspace() for char in bare)
    yield f"signs={min(10 * signs // max(1, len(bare)), 6)}"
    if text[:2].isspace():
        yield "indented"
    if _MARK.match(text):
        yield "item"
    if is_command(bare):
        yield "command"


def _glued(text: str, pieces: Sequence[str], n: int) -> bool:
    """Whether the sign stands directly behind a word, as in `f(x)`."""
    return not pieces[n][0].isalnum() and pieces[n - 1][0].isalnum() and pieces[n - 1] + pieces[n] in text


@cache
def _arrays() -> dict[str, Array]:
    return open_arrays(MODEL)
