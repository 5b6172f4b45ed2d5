"""The k best records of a segment for a question, without computing the sums of all.

MaxScore (Turtle and Flood, "Query Evaluation: Strategies and Optimizations", 1995), a list at a time: the terms that
weigh most come first. Once the rest together cannot lift a record that has few of the first ones among the k best,
they are looked up only for the records that are still in the race. Rare terms weigh most and have short lists, so that
most postings of common ones are never read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kb.arrays import Array
from kb.index.bm25 import K1, B
from kb.index.rank import rank
from kb.records import Ranking

if TYPE_CHECKING:
    from kb.index.postings import Postings

__all__ = ["Race", "ranges"]

# Measured in postings that are added in the same time. They decide how long a question takes, never what it finds.
_GROUP = 1 << 13  # postings of rare terms that are added in one step
_LOOK_UP = 10  # to look up a record in a list takes as long as to add so many postings
_COMMON = 6  # of a term in so many-th of the records a count for every record is no larger than its postings
_ONE_TERM = 2500  # to look a few records up in one term takes as long as to add so many postings
_FEW = 8  # a race begins when so many-th of the records are left in it
_SAMPLE = 1 << 14  # sums from which it is guessed which are high
_SLACK = 1 - 1e-6  # more than what rounding can do to a sum


class Race:
    """One question to one segment: sums of weights, and who may still be among the k best."""

    postings: Postings
    mean: float
    numbers: Array
    """(terms,) int64, the heaviest term first; in the same order their `weights`, and where their postings begin
    (`first`), end (`last`) and how many there are (`sizes`)"""
    weights: Array
    first: Array
    last: Array
    sizes: Array
    rest: Array
    """(terms + 1,): what the terms from the i-th on can add to a record at most"""
    sums: Array
    """(records,) float64: of the terms added so far"""

    def __init__(
        self, postings: Postings, terms: Sequence[tuple[int, float]], mean_length: float, allowed: Array | None
    ) -> None:
        self.postings, self.mean = postings, mean_length
        merged: dict[int, float] = {}
        for number, weight in terms:
            merged[number] = merged.get(number, 0.0) + weight
        numbers = np.fromiter(merged, np.int64, len(merged))
        weights = np.fromiter(merged.values(), np.float64, len(merged))
        order = np.argsort(-weights, kind="stable")
        first, last = postings.spans(numbers[order])
        keep = (last > first) & (weights[order] > 0)
        order, self.first, self.last = order[keep], first[keep], last[keep]
        self.numbers, self.weights, self.sizes = numbers[order], weights[order], self.last - self.first
        self.rest = self._rest()
        # What is not allowed can never be lifted above anything.
        self.sums = np.zeros(postings.size) if allowed is None else np.where(allowed, 0.0, -np.inf)

    def _rest(self) -> Array:
        """(terms + 1,): what the terms from the i-th on can add to a record at most."""
        p, mean = self.postings, self.mean
        most, least = np.maximum(p.most[self.numbers], 1), p.least[self.numbers].astype(np.float64)
        highest = self.weights / (1 + K1 * ((1 - B) / most + B * least / mean))
        sums = np.cumsum(highest[::-1])[::-1]
        # They share the record's length: sum w_i tf_i / (tf_i + norm) is highest, as tf / (tf + norm) is concave in tf,
        # when the terms of a record that consists of them alone are divided evenly (Jensen), and grows with its length.
        total = np.cumsum(self.weights[::-1])[::-1]
        shared = total / (1 + K1 * B / mean * total / self.weights)
        return np.append(np.minimum(sums, shared), 0.0)

    def run(self, k: int, floor: float) -> Ranking:
        sums, rest, left = self.sums, self.rest, int(self.sizes.sum())
        threshold, unchecked, added, again = floor, 0, 0, 0
        racing: Array | None = None  # all
        for first, last in self._groups():
            size = int(self.sizes[first:last].sum())
            if racing is None:
                cost = len(sums) // 2 + _ONE_TERM * (len(rest) - first)  # of a check, in postings
                if left > cost and unchecked + size > max(cost, added) and first:
                    threshold, unchecked = self._threshold(first, k, threshold), 0
                if rest[first] < threshold * _SLACK and added >= again:
                    again = added + len(sums) // 4
                    in_race = sums >= threshold * _SLACK - rest[first]
                    if np.count_nonzero(in_race) <= len(sums) // _FEW:
                        racing = np.flatnonzero(in_race).astype(np.int32)
            left -= size
            if racing is None:
                self._add(first, last)
                unchecked += size
                added += size
                continue
            for term in range(first, last):
                self._add_to(racing, term)
            racing = racing[sums.take(racing) >= threshold * _SLACK - rest[last]]
        if racing is None:
            racing = self._leading(k) if len(sums) else np.zeros(0, np.int64)
        return rank(sums[racing].astype(np.float32), k, racing)

    def _threshold(self, first: int, k: int, least: float) -> float:
        """What the k-th best record has at least, when the terms before `first` are added: of some that are best so
        far the rest is looked up."""
        sums = self.sums
        found = self._leading(k)
        if len(found) < k:
            return least
        wanted = min(2 * k, len(found))
        ahead = found[np.sort(np.argpartition(sums[found], -wanted)[-wanted:])].astype(np.int32)
        reached = sums[ahead]
        for term in range(first, len(self.numbers)):
            here, added = self._weights_of(ahead, term)
            reached[here] += added
        return max(least, float(np.partition(reached, -k)[-k]))

    def _leading(self, k: int) -> Array:
        """Ascending: at least the k best records so far, as float32 shows them; as a rule not many more."""
        sums = self.sums
        sample = sums[:: 1 + len(sums) // _SAMPLE]
        nth = 1 + 4 * k * len(sample) // len(sums)
        sample = sample[sample > 0]  # to partition thousands of equal numbers takes long
        cut = float(np.partition(sample, -nth)[-nth]) if len(sample) >= nth else 0.0
        found = np.flatnonzero(sums > cut * _SLACK)
        return found if np.count_nonzero(sums[found] > cut) >= k else np.flatnonzero(sums > 0)

    def _groups(self) -> Iterator[tuple[int, int]]:
        """The terms in order, as ranges: one with a long list by itself, some with short ones together."""
        ends = np.cumsum(self.sizes)
        first = 0
        while first < len(ends):
            room = ends[first] - self.sizes[first] + _GROUP
            last = max(first + 1, int(np.searchsorted(ends, room, side="right")))
            yield first, last
            first = last

    def _add(self, first: int, last: int) -> None:
        """The weights of these terms, to all records."""
        p = self.postings
        if last == first + 1:
            span = slice(self.first[first], self.last[first])
            rows = p.rows[span].astype(np.int64)  # once: it is what numpy takes
            added = p.saturation(rows, p.counts[span], self.mean)
            added *= self.weights[first]
            added += self.sums.take(rows)
            self.sums[rows] = added  # rows within a term are distinct
        else:
            sizes = self.sizes[first:last]
            at = ranges(self.first[first:last], sizes)
            rows = p.rows[at].astype(np.int64)
            added = p.saturation(rows, p.counts[at], self.mean)
            added *= np.repeat(self.weights[first:last], sizes)
            np.add.at(self.sums, rows, added)

    def _add_to(self, racing: Array, term: int) -> None:
        """The weight of this term, to these records at least."""
        number, size, p = int(self.numbers[term]), int(self.sizes[term]), self.postings
        if number not in p.columns and size < _LOOK_UP * len(racing):
            if size * _COMMON < p.size:
                self._add(term, term + 1)
                return
            p.keep_column(number, int(self.first[term]), int(self.last[term]))
        here, added = self._weights_of(racing, term)
        self.sums[racing[here]] += added

    def _weights_of(self, rows: Array, term: int) -> tuple[Array, Array]:
        """Which of `rows` (ascending, int32) have this term, as positions in `rows`, and its weight in each."""
        p = self.postings
        here, counts = p.look_up(int(self.numbers[term]), int(self.first[term]), int(self.last[term]), rows)
        return here, p.saturation(rows[here], counts, self.mean) * self.weights[term]


def ranges(first: Array, sizes: Array) -> Array:
    """first[0], first[0] + 1, ... (sizes[0] numbers), first[1], ..."""
    before = np.cumsum(sizes) - sizes
    return np.asarray(np.arange(sizes.sum()) + np.repeat(first - before, sizes))
