"""Makes the postings of a segment from chunks of records.

Each chunk becomes a run of postings that are sorted by term, with higher rows than the run before, so that nothing is
ever sorted as a whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kb.arrays import Array
from kb.index.chunk import Chunk
from kb.index.maxscore import ranges
from kb.index.postings import Postings, blocks
from kb.index.terms import Terms

__all__ = ["PostingsBuilder"]

_LESS = 1 - 1e-6  # so that a number is no higher after rounding to float32


class _Run(NamedTuple):
    """Postings sorted by term and row, in the order of which each term comes only once."""

    numbers: Array
    sizes: Array
    """how many postings each of `numbers` has"""
    rows: Array
    counts: Array


class PostingsBuilder:
    """Inverts the terms of records, a chunk at a time. What is kept until the end is six bytes a posting."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}  # in the order of arrival
        self._facts: list[tuple[Array, Array]] = []  # surprisal and log_p of the terms, in this order
        self._runs: deque[_Run] = deque()
        self._lengths: list[Array] = []
        self._size = 0

    def add(self, chunk: Chunk) -> None:
        """The next records."""
        known = len(self._numbers)
        places = np.array([self._numbers.setdefault(term, len(self._numbers)) for term in chunk.terms], np.int32)
        if (new := np.flatnonzero(places >= known)).size:
            self._facts.append((chunk.surprisal[new], chunk.log_p[new]))
        numbers, size = places[chunk.bag_terms], len(chunk.bag_counts)
        ends = np.concatenate([[0], np.cumsum(chunk.counts, dtype=np.int64)])
        ends = ends[np.concatenate([[0], np.cumsum(chunk.bag_counts)])]
        self._lengths.append(np.diff(ends).astype(np.int32))
        rows = np.repeat(np.arange(self._size, self._size + size, dtype=np.int32), chunk.bag_counts)
        order = np.argsort(numbers, kind="stable")
        distinct, times = np.unique(numbers, return_counts=True)
        self._runs.append(_Run(distinct, times, rows[order], chunk.counts[order]))
        self._size += size

    def finish(self) -> dict[str, Array]:
        """The arrays of the lexical half of a segment (`kb.index.lexicon`). The builder is empty afterwards."""
        names = sorted(self._numbers)
        arrival = np.fromiter(map(self._numbers.__getitem__, names), np.int64, len(names))
        place = np.empty(len(names), np.int64)
        place[arrival] = np.arange(len(names))
        self._numbers = {}
        df = np.zeros(len(names), np.int64)
        for run in self._runs:
            df[place[run.numbers]] += run.sizes

        def runs() -> Iterator[_Run]:
            while self._runs:  # what was laid out is freed
                run = self._runs.popleft()
                yield run._replace(numbers=place[run.numbers])

        postings = _laid_out(runs(), df, _joined(self._lengths, np.int32))
        surprisal, log_p = (_joined([one[n] for one in self._facts], np.float32) for n in (0, 1))
        return {
            **Terms.of(names).arrays("terms"),
            **postings.arrays(),
            "surprisal": surprisal[arrival],
            "log_p": log_p[arrival],
        }


def _laid_out(runs: Iterable[_Run], df: Array, lengths: Array) -> Postings:
    """The postings of `runs`, of which each later one has higher rows of a term."""
    starts = np.concatenate([[0], np.cumsum(df)]).astype(np.int64)
    rows, counts = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.uint16)
    free = starts[:-1].copy()  # where the next posting of each term goes
    for run in runs:
        at = ranges(free[run.numbers], run.sizes)
        rows[at], counts[at] = run.rows, run.counts
        free[run.numbers] += run.sizes
    most, least = np.zeros(len(df), np.uint16), np.zeros(len(df), np.float32)
    for first, last in blocks(starts):
        span, begin = slice(starts[first], starts[last]), starts[first:last] - starts[first]
        most[first:last] = np.maximum.reduceat(counts[span], begin)
        ratio = lengths[rows[span]] / counts[span].astype(np.float64)
        least[first:last] = np.minimum.reduceat(ratio, begin) * _LESS
    return Postings(starts, rows, counts, lengths, most, least)


def _joined(arrays: Sequence[Array], kind: type[np.generic]) -> Array:
    return np.concatenate(arrays).astype(kind) if arrays else np.zeros(0, kind)
