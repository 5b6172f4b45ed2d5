"""The postings of a segment: which records a term stands in, and how often.

A segment is a set of files that never changes; an index has several. How many records have a term, and how long they
are on average, is known only of all segments together: what is kept here does not depend on it, and BM25 (`bm25`) is
computed when a question is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np

from kb.arrays import Array
from kb.index.bm25 import K1, B
from kb.index.maxscore import Race, ranges
from kb.records import Ranking

__all__ = ["Postings", "blocks"]

_BLOCK = 1 << 21  # postings that are worked on at once
_SHORT = 1 << 11  # a list that is read whole in the time of looking something up in it


@dataclass(eq=False, repr=False)
class Postings:
    """An inverted index: term i stands in records `rows[starts[i]:starts[i + 1]]`.

    All arrays may be mapped files. Wrong contents give wrong answers or a ValueError or IndexError, and nothing worse.
    """

    starts: Array
    """(terms + 1,) int64"""
    rows: Array
    """(postings,) int32, ascending within a term"""
    counts: Array
    """(postings,) uint16: how often the term occurs in the record; 65535 and more are one"""
    lengths: Array
    """(records,) int32: how many terms each record has, repeated ones too"""
    most: Array
    """(terms,) uint16: the highest count of each term"""
    least: Array
    """(terms,) float32: the lowest length / count of each term, or a little less"""
    _kept_norms: tuple[float, Array] = field(default=(0.0, np.zeros(0)), init=False)
    columns: dict[int, Array] = field(default_factory=dict, init=False)
    """of some very common terms: (records,) counts, which take less room than their postings"""

    def __post_init__(self) -> None:
        """Raises ValueError when the arrays do not belong together; looks at no more than two numbers."""
        arrays = self.starts, self.rows, self.counts, self.lengths, self.most, self.least
        kinds = np.int64, np.int32, np.uint16, np.int32, np.uint16, np.float32
        if (
            any(array.ndim != 1 or array.dtype != kind for array, kind in zip(arrays, kinds, strict=True))
            or not len(self.starts) - 1 == len(self.most) == len(self.least)
            or len(self.rows) != len(self.counts)
            or (self.starts[0], self.starts[-1]) != (0, len(self.rows))
        ):
            raise ValueError("the arrays of the postings do not belong together")

    @classmethod
    def among(cls, arrays: Mapping[str, Array]) -> Postings:
        """Those that `arrays` has put there. Raises KeyError or ValueError."""
        return cls(**{one.name: arrays[one.name] for one in fields(cls) if one.init})

    def arrays(self) -> dict[str, Array]:
        """What goes into a file, by name."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.init}

    @cached_property
    def total(self) -> int:
        """How many terms all records have together."""
        return int(self.lengths.sum(dtype=np.int64))

    @property
    def size(self) -> int:
        """How many records there are."""
        return len(self.lengths)

    def df(self, numbers: Array) -> Array:
        """(len(numbers),) int64: in how many records each term stands; 0 for the term -1."""
        first, last = self.spans(numbers)
        return last - first

    def best(
        self,
        terms: Sequence[tuple[int, float]],
        mean_length: float,
        k: int,
        allowed: Array | None = None,
        floor: float = 0.0,
    ) -> Ranking:
        """The k records with the highest BM25 sum, exactly as if all were computed; records with no term are left out.

        `terms`: the number of each, and its idf times how often it is asked for; -1 is no term. `allowed`: (records,)
        bool. Records below `floor` may be left out: it is the k-th best of the segments that were asked before.
        A score depends on the record and the question only, not on the segment: sums are float64, in descending order
        of the terms' weights, and rounded to float32 at the end.
        """
        race = Race(self, terms, mean_length, allowed)
        return race.run(k, floor) if k > 0 else Ranking((), ())

    def weights(self, terms: Sequence[tuple[int, float]], mean_length: float, rows: Array) -> Array:
        """(len(rows), len(terms)) float32: the BM25 weight of each term (as in `best`) in each of a few different rows;
        0 where it does not stand."""
        numbers = np.fromiter((number for number, _ in terms), np.int64, len(terms))
        first, last = self.spans(numbers)
        order = np.argsort(rows, kind="stable")  # not np.unique, which imports numpy.ma: 8 ms of a start
        wanted = np.asarray(rows)[order].astype(np.int32)  # as `self.rows` is: else numpy copies that
        saturated = np.zeros((len(wanted), len(terms)))
        sizes = last - first
        short = np.flatnonzero(sizes <= _SHORT)
        is_wanted = np.zeros(self.size, bool)
        is_wanted[wanted] = True
        for some in np.array_split(short, 1 + int(sizes[short].sum()) // _BLOCK):
            at = ranges(first[some], sizes[some])
            hits = np.flatnonzero(is_wanted[self.rows[at]])
            columns = np.repeat(some, sizes[some])[hits]
            there, counts = self.rows[at[hits]], self.counts[at[hits]]
            saturated[np.searchsorted(wanted, there), columns] = self.saturation(there, counts, mean_length)
        for column in np.flatnonzero(sizes > _SHORT).tolist():
            here, counts = self.look_up(int(numbers[column]), int(first[column]), int(last[column]), wanted)
            saturated[here, column] = self.saturation(wanted[here], counts, mean_length)
        found = np.empty(saturated.shape, np.float32)
        found[order] = saturated * np.fromiter((weight for _, weight in terms), np.float64, len(terms))
        return found

    def by_record(self) -> tuple[Array, Array, Array]:
        """The other way round, which a later build starts from: (records + 1,) int64 where each record begins; then,
        record by record, the numbers of its terms (ascending) and their counts. Raises ValueError when a term stands in
        a record that is not there."""
        for _ in self.parts():
            pass
        order = np.argsort(self.rows, kind="stable")
        numbers = np.repeat(np.arange(len(self.most), dtype=np.int32), np.diff(self.starts))[order]
        starts = np.zeros(self.size + 1, np.int64)
        np.cumsum(np.bincount(self.rows, minlength=self.size), out=starts[1:])
        return starts, numbers, self.counts[order]

    def parts(self) -> Iterator[tuple[int, int, slice]]:
        """All postings, some at a time: first and last term (exclusive), and where their postings are. Raises
        ValueError when one is of no record."""
        for first, last in blocks(self.starts):
            span = slice(self.starts[first], self.starts[last])
            rows, bounds = self.rows[span], self.starts[first : last + 1]
            if rows.min(initial=0) < 0 or rows.max(initial=-1) >= self.size or (np.diff(bounds) < 0).any():
                raise ValueError("a term stands in a record that is not there")
            yield first, last, span

    def spans(self, numbers: Array) -> tuple[Array, Array]:
        """Where the postings of each term begin and end; both 0 for the term -1. Raises ValueError when that is outside
        the postings, or their rows outside the records."""
        is_term = numbers >= 0
        first, last = np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.int64)
        first[is_term], last[is_term] = self.starts[numbers[is_term]], self.starts[numbers[is_term] + 1]
        if ((first < 0) | (last < first) | (last > len(self.rows))).any():
            raise ValueError("a term has postings outside the file")
        some = last > first
        if (self.rows[first[some]] < 0).any() or (self.rows[last[some] - 1] >= self.size).any():
            raise ValueError("a term stands in a record that is not there")
        return first, last

    def saturation(self, rows: Array, counts: Array, mean_length: float) -> Array:
        """float64: tf / (tf + k1 * (1 - b + b * length / mean)) of postings. `rows`: int64."""
        below = self._norms(mean_length).take(rows)
        below += counts
        np.divide(counts, below, out=below)
        return below

    def _norms(self, mean_length: float) -> Array:
        """(records,) float64: k1 * (1 - b + b * length / mean). The last is kept: a base has one mean."""
        mean, norms = self._kept_norms
        if mean != mean_length:
            norms = np.maximum(self.lengths, 0) * (K1 * B / mean_length) + K1 * (1 - B)
            self._kept_norms = mean_length, norms
        return norms

    def look_up(self, number: int, first: int, last: int, rows: Array) -> tuple[Array, Array]:
        """Which of `rows` (ascending, int32) have this term, as positions in `rows`, and how often each has it. The
        term's postings are [first, last)."""
        column = self.columns.get(number)
        if column is not None:
            counts = column.take(rows)
            here = np.flatnonzero(counts)
            return here, counts[here]
        there = self.rows[first:last]
        at = np.searchsorted(there, rows)
        at[at == len(there)] = 0
        here = np.flatnonzero(there[at] == rows)
        return here, self.counts[first:last][at[here]]

    def keep_column(self, number: int, first: int, last: int) -> None:
        """Of a very common term how often it stands in each record, so that it is looked up in one step."""
        column = np.zeros(self.size, np.min_scalar_type(int(self.most[number])))
        column[self.rows[first:last]] = self.counts[first:last]
        self.columns[number] = column


def blocks(starts: Array) -> Iterator[tuple[int, int]]:
    """Ranges of terms with some `_BLOCK` postings each."""
    first = 0
    while first < len(starts) - 1:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + _BLOCK, side="right")) - 1)
        yield first, last
        first = last
