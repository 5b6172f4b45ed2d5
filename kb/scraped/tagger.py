"""Blocks of a page -> the tag of each: what it is for the problem it belongs to.

A block begins as the sum of a row for each of its features (`features`, by hash) and of the meaning of its text
(`kb.encoders`). Then the blocks hear each other: each the one that heads it, the heads beside it, what stands below it
and the first head of the page; all the mean over the page; and twice its two neighbours on either side. A linear chain
(a CRF without features on its edges) picks the best sequence of tags with Viterbi's algorithm. Fitted by
`scripts/reader/train.py`; numpy only.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from pathlib import Path

import numpy as np

from kb.arrays import Array, open_arrays
from kb.encoders import open_encoder
from kb.scraped.blocks import Block
from kb.scraped.features import View, look

__all__ = ["EARS", "ROWS", "STATES", "Tagger", "Tagging", "encoded", "hashed", "heard", "open_tagger", "tag_of"]

_TAGS = ("title", "symptom", "cause", "fix", "question", "answer", "other", "boilerplate")
STATES = (*_TAGS, "label:symptom", "label:cause", "label:fix", "label:other")
"""the tags; a label by what it announces, so that the chain can carry that over it"""
ROWS = 1 << 14
_MODEL = Path(__file__).parent / "tagger.safetensors"
_DOUBT = 0.5  # off the score of "other": what is unsure belongs to the problem. Set by hand on real pages, not fitted
_MOST_BLOCKS = 2000
_CHARS = 160  # of a block whose meaning is looked at


def tag_of(state: int) -> str:
    return STATES[state].partition(":")[0]


def hashed(features: Sequence[str]) -> list[int]:
    """Rows of the features in the table."""
    return [zlib.crc32(name.encode()) % ROWS for name in features]


def encoded(blocks: Sequence[Block]) -> Array:
    """(n, 2 dim) float32: the meaning of each block, of headings and bold beginnings in the first half."""
    vectors = 3 * open_encoder().encode([block.text[:_CHARS] for block in blocks], kind="passage")
    heads = np.array([block.kind == "heading" or block.bold for block in blocks])[:, None]
    return np.concatenate([vectors * heads, vectors * ~heads], axis=1)


@cache
def open_tagger() -> Tagger:
    """The shipped tagger."""
    return Tagger(open_arrays(_MODEL))


@dataclass
class Tagger:
    arrays: dict[str, Array]
    """table (ROWS, h) · meaning (2 dim, h) · head, beside, below, first (h, h) · bias (h,) · page (h, h), page_bias ·
    conv{n} (5, h, h), conv{n}_bias · out (h, s + 1), out_bias · steps (3, s, s) · start (s,)"""

    @cached_property
    def table(self) -> Array:
        """In float32: its file has half the bytes, and to widen them for each page takes longer than to look it up."""
        return self.arrays["table"].astype(np.float32)

    def tag(self, blocks: Sequence[Block]) -> Tagging:
        if not blocks:
            return Tagging(self, np.zeros((0, len(STATES) + 1), np.float32), np.zeros(0, int))
        views, scores = [], []
        for start in range(0, len(blocks), _MOST_BLOCKS):  # a long page in parts, so that memory has a bound
            part = blocks[start : start + _MOST_BLOCKS]
            views.append(look(part))
            scores.append(self.scores(views[-1], encoded(part)))
        return Tagging(self, np.concatenate(scores), np.concatenate([view.step for view in views]))

    def scores(self, view: View, meaning: Array) -> Array:
        """(n, s + 1): how well each state fits each block, once the blocks have heard each other; in the last column,
        above 0, that the block is a printed message."""
        return self.finish(np.tanh(self.begin(view, meaning)))

    def begin(self, view: View, meaning: Array) -> Array:
        """(n, h): each block with what it hears from those above, beside and below it."""
        a = self.arrays
        rows = [hashed(names) for names in view.names]
        starts = np.cumsum([0, *map(len, rows[:-1])])
        own = np.add.reduceat(self.table[[*chain.from_iterable(rows)]], starts) + meaning @ a["meaning"]
        return np.asarray(own + a["bias"] + sum(near @ a[name] for name, near in heard(own, view)))

    def finish(self, hidden: Array, *, page: Array | None = None) -> Array:
        """(..., n, h) -> (..., n, s + 1). `page`: (h,), the mean over the page where `hidden` is a part of it."""
        a = self.arrays
        mean = hidden.mean(axis=-2, keepdims=True) if page is None else page
        hidden = hidden + np.tanh(mean @ a["page"] + a["page_bias"])
        n = 0
        while f"conv{n}" in a:
            hidden = hidden + np.maximum(_convolved(hidden, a[f"conv{n}"]) + a[f"conv{n}_bias"], 0)
            n += 1
        return np.asarray(hidden @ a["out"] + a["out_bias"])

    def best(self, scores: Array, steps: Array) -> list[int]:
        """The states of the sequence with the highest sum of scores and steps (Viterbi)."""
        a = self.arrays
        if not len(scores):
            return []
        total = a["start"] + scores[0]
        back: list[Array] = []
        for score, step in zip(scores[1:], steps[1:], strict=True):
            ways = total[:, None] + a["steps"][step]
            back.append(ways.argmax(axis=0))
            total = ways.max(axis=0) + score
        path = [int(total.argmax())]
        for came_from in reversed(back):
            path.append(int(came_from[path[-1]]))
        return path[::-1]

    def chances(self, scores: Array, steps: Array) -> Array:
        """(n, s): the probability of each state, over all sequences (the forward-backward algorithm)."""
        a = self.arrays
        ahead, behind = np.zeros_like(scores), np.zeros_like(scores)
        ahead[0] = a["start"] + scores[0]
        for t in range(1, len(scores)):
            ahead[t] = scores[t] + np.logaddexp.reduce(ahead[t - 1][:, None] + a["steps"][steps[t]], axis=0)
        for t in range(len(scores) - 2, -1, -1):
            behind[t] = np.logaddexp.reduce(a["steps"][steps[t + 1]] + scores[t + 1] + behind[t + 1], axis=1)
        total = ahead + behind
        return np.asarray(np.exp(total - np.logaddexp.reduce(total, axis=1, keepdims=True)))


class Tagging:
    """What the blocks of a page were taken for."""

    def __init__(self, tagger: Tagger, scores: Array, steps: Array) -> None:
        self._tagger: Tagger = tagger
        self._steps: Array = steps
        self._scores: Array = scores[:, :-1].copy()
        self._scores[:, STATES.index("other")] -= _DOUBT
        self.tags: list[str] = [tag_of(state) for state in tagger.best(self._scores, steps)]
        self.printed: list[bool] = (scores[:, -1] > 0).tolist()
        """whether a block is as a whole a message that a program printed"""

    @cached_property
    def chances(self) -> Array:
        """(n, s): the probability of each state of each block."""
        return self._tagger.chances(self._scores, self._steps)


EARS = ("head", "beside", "below", "first")


def heard(own: Array, view: View) -> Iterator[tuple[str, Array]]:
    """(n, h) each: the head of a block, the mean of the heads beside it and of what is below it, the first head."""
    n = len(own)
    padded = np.concatenate([own, np.zeros_like(own[:1])])
    yield "head", padded[view.head]
    yield "beside", _mean(own, view.family, view.family, but_own=True)
    yield "below", _mean(own, view.head, np.arange(n))
    heads = np.flatnonzero(view.family >= 0)
    yield "first", np.broadcast_to(padded[heads[0] if len(heads) else n], own.shape)


def _mean(own: Array, groups: Array, asked: Array, *, but_own: bool = False) -> Array:
    """(n, h): for each block the mean over the blocks whose group it asks for; zeros where there are none."""
    sums = np.zeros((len(own) + 1, own.shape[1]), np.float32)  # the last row is of group -1
    np.add.at(sums, groups, own)
    counts = np.bincount(groups % len(sums), minlength=len(sums)).astype(np.float32)
    sums[-1], counts[-1] = 0, 0
    total, count = sums[asked], counts[asked][:, None]
    if but_own:
        inside = (groups >= 0)[:, None]
        total, count = total - own * inside, count - inside
    return np.asarray(total / np.maximum(count, 1))


def _convolved(hidden: Array, kernel: Array) -> Array:
    """(..., n, h): each row and its two neighbours on either side, through a (5, h, h) kernel."""
    width, n = len(kernel) // 2, hidden.shape[-2]
    edge = np.zeros_like(hidden[..., :1, :]).repeat(width, axis=-2)
    padded = np.concatenate([edge, hidden, edge], axis=-2)
    return np.asarray(sum(padded[..., k : k + n, :] @ kernel[k] for k in range(len(kernel))))
