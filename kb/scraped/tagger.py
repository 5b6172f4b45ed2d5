"""Blocks of a page -> the tag of each: what it is for the problem it belongs to.

Every block becomes a vector of 48 numbers: the sum of the rows of its features (`kb.scraped.features`, by hash) and of
the meaning of its text (`kb.encoders`). Two convolutions over five blocks each let neighbours speak, the mean over all
blocks lets the page speak, and a linear chain (a CRF without features on its edges) picks the best sequence of tags
with Viterbi's algorithm. Fitted by `scripts/reader/train.py`; numpy only.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from kb.arrays import Array, open_arrays
from kb.encoders import open_encoder
from kb.scraped.blocks import Block
from kb.scraped.features import features_of

__all__ = ["STATES", "TAGS", "Tagger", "encoded", "hashed", "open_tagger", "relations", "tag_of"]

TAGS = ("title", "symptom", "cause", "fix", "question", "answer", "other", "boilerplate", "label")
STATES = (*TAGS[:-1], "label:symptom", "label:cause", "label:fix", "label:other")
"""the tags; a label by what it announces, so that the chain can carry that over it"""
ROWS = 1 << 15
_MODEL = Path(__file__).parent / "tagger.safetensors"
_CHARS = 160  # of a block whose meaning is looked at


def tag_of(state: int) -> str:
    return STATES[state].partition(":")[0]


def hashed(features: Sequence[str]) -> Array:
    """Rows of the features in the table, each once."""
    return np.fromiter({zlib.crc32(name.encode()) % ROWS for name in features}, np.int64)


def encoded(blocks: Sequence[Block]) -> Array:
    """(n, 2 dim) float32: the meaning of each block, of headings and bold beginnings in the first half."""
    vectors = 3 * open_encoder().encode([block.text[:_CHARS] for block in blocks], kind="passage")
    heads = np.array([block.kind == "heading" or block.bold for block in blocks])[:, None]
    return np.concatenate([vectors * heads, vectors * ~heads], axis=1)


def relations(blocks: Sequence[Block]) -> Array:
    """(n,): how a block follows the one before it: 0 in the same paragraph, 1 in a new one, 2 as a heading."""
    return np.array([0 if not block.opens else 2 if block.kind == "heading" else 1 for block in blocks])


@cache
def open_tagger() -> Tagger:
    """The shipped tagger."""
    return Tagger(open_arrays(_MODEL))


@dataclass
class Tagger:
    arrays: dict[str, Array]
    """table (ROWS, h) · meaning (2 dim, h) · bias (h,) · page, page_bias · conv{n} (5, h, h), conv{n}_bias · out (h, s),
    out_bias · steps (3, s, s) · start (s,)"""

    def tag(self, blocks: Sequence[Block], title: str = "") -> list[str]:
        if not blocks:
            return []
        scores = self.scores(features_of(blocks, title), encoded(blocks))
        return [tag_of(state) for state in self.best(scores, relations(blocks))]

    def scores(self, features: Sequence[Sequence[str]], meaning: Array) -> Array:
        """(n, s): how well each state fits each block, its neighbours seen."""
        a = self.arrays
        table = a["table"]
        sums = np.stack([table[hashed(names)].sum(axis=0, dtype=np.float32) for names in features])
        hidden = np.tanh(sums + meaning @ a["meaning"] + a["bias"])
        hidden = hidden + np.tanh(hidden.mean(axis=0) @ a["page"] + a["page_bias"])
        n = 0
        while f"conv{n}" in a:
            hidden = hidden + np.maximum(_convolved(hidden, a[f"conv{n}"]) + a[f"conv{n}_bias"], 0)
            n += 1
        return np.asarray(hidden @ a["out"] + a["out_bias"])

    def best(self, scores: Array, steps: Array) -> list[int]:
        """The states of the sequence with the highest sum of scores and steps (Viterbi)."""
        a = self.arrays
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


def _convolved(hidden: Array, kernel: Array) -> Array:
    """(n, h): each row and its two neighbours on either side, through a (5, h, h) kernel."""
    width = len(kernel) // 2
    padded = np.pad(hidden, ((width, width), (0, 0)))
    return sum(padded[k : k + len(hidden)] @ kernel[k] for k in range(len(kernel)))  # type: ignore[return-value]
