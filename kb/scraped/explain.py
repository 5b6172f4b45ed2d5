"""Tells how a page was read: every line of it, what it was taken for, how surely, and which features decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kb.arrays import Array
from kb.articles.lines import Line
from kb.scraped.features import View, look
from kb.scraped.reader import Reading
from kb.scraped.tagger import EARS, STATES, Tagger, Tagging, encoded, hashed, heard, open_tagger, tag_of

__all__ = ["Passage", "passages"]

_MOST_REASONS = 4
_AROUND = 4  # blocks on either side that two convolutions of width 5 can hear
_EAR = {"head": "heading above", "beside": "headings beside", "below": "what is below", "first": "first heading"}


@dataclass(frozen=True, slots=True)
class Passage:
    """Some lines of a page that were read as one thing."""

    first: int
    """number of its first line, from 1"""
    last: int
    text: str
    tag: str
    """title, symptom, cause, fix, label, question, answer, other or boilerplate; "" for lines that hold no text"""
    chance: float
    """probability of the tag, 0 to 1"""
    record: int | None = None
    """number of the record that holds it, from 1"""
    field: str = ""
    """of that record: title, symptom, cause or fix"""
    because: tuple[str, ...] = ()
    """the features that spoke most for the tag against the next best one, the strongest first"""


def passages(reading: Reading, count: int) -> list[Passage]:
    """Every line of a page of `count` lines is in at least one passage; a line with two sentences may be in two."""
    told = list(_told(reading, open_tagger()))
    seen = {no for one in told for no in range(one.first, one.last + 1)}
    blank = [no for no in range(1, count + 1) if no not in seen]
    runs = np.split(np.array(blank, int), np.flatnonzero(np.diff(blank) > 1) + 1) if blank else []
    empty = [Passage(int(run[0]), int(run[-1]), "", "", 1.0) for run in runs]
    return sorted([*told, *empty], key=lambda one: (one.first, one.last))


def _told(reading: Reading, tagger: Tagger) -> Iterator[Passage]:
    blocks, lines, places = reading.blocks, reading.lines, reading.places()
    if not blocks:
        return
    view, meaning = look(blocks), encoded(blocks)
    chances = Tagging(tagger, tagger.scores(view, meaning), view.step).chances
    seen = _Seen(tagger, view, meaning)
    tags = np.array([tag_of(state) for state in range(len(STATES))])
    for n, (block, tag) in enumerate(zip(blocks, reading.tags, strict=True)):
        mine = tags == tag
        state = int(np.where(mine, chances[n], -1).argmax())
        rival = int(np.where(mine, -1, chances[n]).argmax())
        number, name = places.get(n, (None, ""))
        first, last = _numbers(lines, block.first, block.last)
        yield Passage(
            first, last, " ".join(block.text.split()), tag, float(chances[n][mine].sum()),
            number, name, tuple(seen.reasons(n, state, rival)),
        )  # fmt: skip


class _Seen:
    """What a page's blocks are made of: each part of a block can be taken away, to see what it decided."""

    def __init__(self, tagger: Tagger, view: View, meaning: Array) -> None:
        a = tagger.arrays
        self.tagger, self.view = tagger, view
        self.meaning = meaning @ a["meaning"]
        own = np.array([tagger.table[hashed(names)].sum(axis=0) for names in view.names])
        self.heard = [near @ a[ear] for ear, near in heard(own + self.meaning, view)]
        self.before = tagger.begin(view, meaning)
        self.hidden = np.tanh(self.before)
        self.page = self.hidden.mean(axis=0)

    def reasons(self, n: int, state: int, rival: int) -> Iterator[str]:
        """The parts of block `n` without which the margin of `state` over `rival` would shrink most."""
        names = list(dict.fromkeys(self.view.names[n]))
        parts = [*self.tagger.table[hashed(names)], self.meaning[n], *(near[n] for near in self.heard)]
        names += ["meaning of the text", *(_EAR[ear] for ear in EARS)]
        low, high = max(0, n - _AROUND), min(len(self.hidden), n + _AROUND + 1)
        windows = np.repeat(self.hidden[None, low:high], len(parts) + 1, axis=0)
        windows[1:, n - low] = np.tanh(self.before[n] - np.array(parts))
        scores = self.tagger.finish(windows, page=self.page)[:, n - low]
        margins = scores[:, state] - scores[:, rival]
        effects = margins[0] - margins[1:]
        for k in np.argsort(-effects)[:_MOST_REASONS]:
            if effects[k] > 0.05:
                yield f"{names[k]} {effects[k]:+.1f}"


def _numbers(lines: Sequence[Line], first: int, last: int) -> tuple[int, int]:
    """The numbers of a block's lines; a fence has its marks with it."""
    while first > 0 and lines[first - 1].kind == "fence" and lines[first].kind == "code":
        first -= 1
    while last + 1 < len(lines) and lines[last + 1].kind == "fence" and lines[last].kind == "code":
        last += 1
    return lines[first].no, lines[last].no
