"""Which records of a segment hold a term, and how much that counts: BM25 over an inverted index on the disk.

How rare a term is and how long records are on average is known only of the whole base, which may have several segments.
So a segment keeps what does not depend on that: in which records each term stands, how often, and how long each record
is. `kb.index.bm25` has the formula. What a term can add at most is bounded by its highest count and its shortest record
for one occurrence, whatever the mean length is; so common terms are evaluated only for the records that rare ones have
named (MaxScore: Turtle and Flood, "Query Evaluation: Strategies and Optimizations", 1995).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kb.arrays import Array
from kb.index.bm25 import saturation
from kb.index.terms import Terms, pack

if TYPE_CHECKING:
    from kb.index.chunk import Chunk

__all__ = ["Postings", "PostingsBuilder"]

_CHEAP = 4096  # postings: so many are added up sooner than it is found out whether they can be left out
_ROUNDING = 1.0001  # of a bound: sums of float32


class Postings:
    """Term i stands in the records `rows[starts[i]:starts[i + 1]]`, ascending. All arrays may be mapped from a file."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        """As `PostingsBuilder.finish` made them. Raises KeyError or ValueError when they do not fit together."""
        self.terms: Terms = Terms.of(arrays, "terms")
        self.surprisal: Array = arrays["surprisal"]
        """(terms,) float32: -ln p in technical text"""
        self.log_p: Array = arrays["log_p"]
        """(terms,) float32: log probability of a Chinese word, by which questions are segmented; 0 for other terms"""
        self.lengths: Array = arrays["lengths"]
        """(records,) int32: how many terms each has, with repetitions"""
        self._starts, self._rows, self._counts = arrays["starts"], arrays["rows"], arrays["counts"]
        self._most, self._least = arrays["most"], arrays["least"]
        n, p = len(self.terms), len(self._rows)
        dtypes = [(one.dtype.str, one.ndim) for one in (self._starts, self._rows, self._counts, self.lengths)]
        if not (
            dtypes == [("<i8", 1), ("<i4", 1), ("<u2", 1), ("<i4", 1)]
            and len(self._starts) == n + 1
            and len(self.surprisal) == len(self.log_p) == len(self._most) == len(self._least) == n
            and len(self._counts) == p == self._starts[-1]
            and self._starts[0] == 0
        ):
            raise ValueError("the arrays of the postings do not fit together")

    def is_sound(self) -> bool:
        """Looks at every number."""
        n = self.size
        return bool(
            (np.diff(self._starts) >= 0).all()
            and (not len(self._rows) or 0 <= self._rows.min() <= self._rows.max() < n)
            and np.isfinite(self.surprisal).all()
            and np.isfinite(self.log_p).all()
            and np.isfinite(self._least).all()
            and (self._counts > 0).all()
        )

    @property
    def total(self) -> int:
        """How many terms all records have together."""
        return int(self.lengths.sum(dtype=np.int64))

    @property
    def size(self) -> int:
        """How many records there are."""
        return len(self.lengths)

    def find(self, term: str) -> int:
        """The term's number, or -1."""
        return self.terms.find(term)

    def df(self, number: int) -> int:
        """In how many records the term stands."""
        return int(self._starts[number + 1] - self._starts[number])

    def best(
        self, asked: Sequence[tuple[int, float]], mean: float, k: int, allowed: Array | None = None
    ) -> tuple[Array, Array]:
        """The rows of at least the k records of the highest BM25 sum, and the sums; exactly as if every record were
        looked at. `asked`: number and idf of each term; `mean` length of a record; `allowed`: (records,) bool."""
        terms = sorted(((idf * self._bound(n, mean), n, idf) for n, idf in asked), key=lambda one: (-one[0], one[1]))
        bounds = np.cumsum([bound for bound, _, _ in reversed(terms)])[::-1]
        left = np.cumsum([self.df(n) for _, n, _ in reversed(terms)])[::-1]
        scores = np.zeros(self.size, np.float32)
        for i, (_, number, idf) in enumerate(terms):
            if i and left[i] > _CHEAP:
                rows = np.flatnonzero(scores if allowed is None else (scores > 0) & allowed)
                least = _kth(scores[rows], k)
                if bounds[i] * _ROUNDING < least:
                    rows = rows[scores[rows] + bounds[i] * _ROUNDING >= least]
                    found = scores[rows]
                    for weights in self.weights([(n, idf) for _, n, idf in terms[i:]], mean, rows).T:
                        found += weights
                    return rows, found
            there, weights = self._list(number, idf, mean)
            scores[there] += weights  # rows within a term are distinct
        rows = np.flatnonzero(scores if allowed is None else (scores > 0) & allowed)
        return rows, scores[rows]

    def weights(self, asked: Sequence[tuple[int, float]], mean: float, rows: Array) -> Array:
        """(len(rows), len(asked)) float32: the BM25 weight of each term in each of a few rows; 0 where it does not
        stand."""
        column = np.arange(len(rows))
        places: list[Array] = []
        cells: list[Array] = []
        for i, (number, _) in enumerate(asked):
            if number >= 0:
                first, last = int(self._starts[number]), int(self._starts[number + 1])
                there = self._rows[first:last]
                at = there.searchsorted(rows)
                at[at == last - first] = 0  # behind the last one: compared with another, and found to be none
                found = column[there[at] == rows]
                places.append(first + at[found])
                cells.append(found * len(asked) + i)
        weights = np.zeros((len(rows), len(asked)), np.float32)
        if places:
            place, cell = np.concatenate(places), np.concatenate(cells)
            idfs = np.array([idf for _, idf in asked])[cell % len(asked)]
            lengths = self.lengths[rows[cell // len(asked)]]
            weights.ravel()[cell] = _weights(self._counts[place], lengths, idfs, mean)
        return weights

    def by_record(self) -> tuple[Array, Array, Array]:
        """The other way round, which a later build starts from: (records + 1,) int64 where each record begins; then,
        record by record, the numbers of its terms (ascending) and their counts."""
        order = np.argsort(self._rows, kind="stable")
        numbers = np.repeat(np.arange(len(self.terms), dtype=np.int32), np.diff(self._starts))[order]
        starts = np.zeros(self.size + 1, np.int64)
        np.cumsum(np.bincount(self._rows, minlength=self.size), out=starts[1:])
        return starts, numbers, self._counts[order]

    def _bound(self, number: int, mean: float) -> float:
        """What the term part of the formula is at most."""
        most = float(self._most[number])
        return float(saturation(most, float(self._least[number]) * most, mean))

    def _list(self, number: int, idf: float, mean: float) -> tuple[Array, Array]:
        span = slice(self._starts[number], self._starts[number + 1])
        rows = self._rows[span]
        return rows, _weights(self._counts[span], self.lengths[rows], idf, mean)


def _weights(counts: Array, lengths: Array, idf: float | Array, mean: float) -> Array:
    return (idf * saturation(counts.astype(np.float32), lengths, mean)).astype(np.float32)


def _kth(scores: Array, k: int) -> float:
    """The k-th best; below all where there are fewer."""
    return float(np.partition(scores, len(scores) - k)[len(scores) - k]) if 0 < k <= len(scores) else -np.inf


class PostingsBuilder:
    """Takes the terms of records a chunk at a time. A pair of a record and a term takes 6 bytes until the end."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self._facts: list[tuple[Array, Array]] = []  # surprisal and log_p of the terms, as they came
        self._bags: list[tuple[Array, Array, Array]] = []

    def add(self, chunk: Chunk) -> None:
        known = len(self._number)
        numbers = [self._number.setdefault(term, len(self._number)) for term in chunk.terms]
        places = np.array(numbers, np.int32)
        if (new := np.flatnonzero(places >= known)).size:
            self._facts.append((chunk.surprisal[new], chunk.log_p[new]))
        self._bags.append((chunk.bag_counts, places[chunk.bag_terms], chunk.counts))

    def finish(self, size: int) -> dict[str, Array]:
        """The arrays of `Postings` for `size` records."""
        terms = sorted(self._number)
        order = np.fromiter((self._number[term] for term in terms), np.int64, len(terms))
        place = np.empty(len(terms), np.int32)
        place[order] = np.arange(len(terms), dtype=np.int32)
        bags = [*self._bags, (np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint16))]
        sizes, numbers, counts = (np.concatenate(column) for column in zip(*bags, strict=True))
        self._bags = []
        rows = np.repeat(np.arange(size, dtype=np.int32), sizes)
        numbers = place[numbers]
        lengths = np.bincount(rows, weights=counts, minlength=size).astype(np.int32)
        by_term = np.argsort(numbers, kind="stable")
        starts = np.zeros(len(terms) + 1, np.int64)
        np.cumsum(np.bincount(numbers, minlength=len(terms)), out=starts[1:])
        rows, counts = rows[by_term], counts[by_term]
        first = starts[:-1]
        shortest = lengths[rows].astype(np.float32) / counts
        facts = [*self._facts, (np.zeros(0, np.float32), np.zeros(0, np.float32))]
        surprisal, log_p = (np.concatenate(column)[order] for column in zip(*facts, strict=True))
        return {
            **pack("terms", terms),
            "surprisal": surprisal.astype(np.float32),
            "log_p": log_p.astype(np.float32),
            "starts": starts,
            "rows": rows,
            "counts": counts,
            "most": np.maximum.reduceat(counts, first) if len(terms) else counts,
            "least": np.minimum.reduceat(shortest, first) if len(terms) else shortest,
            "lengths": lengths,
        }
