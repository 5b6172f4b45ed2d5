"""BM25: the weight of every (term, record) pair, computed once at build time, so that a query is a sum of weights.

BM25 in Lucene's form, without the constant factor k1 + 1, as surveyed by Kamphuis, de Vries, Boytsov and Lin, "Which
BM25 Do You Mean?" (ECIR 2020), table 1:

    weight(t, d) = ln(1 + (N - df + 0.5) / (df + 0.5)) * tf / (tf + k1 * (1 - b + b * |d| / mean |d|))

Computing the weights beforehand is the idea of bm25s. A test holds scores equal to bm25s' `method="lucene"`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kb.arrays import Array

__all__ = ["K1", "B", "Bag", "Postings", "find", "postings_of"]

K1 = 1.5
B = 0.75

Bag = dict[str, int]
"""term -> how often it occurs in one record"""


def find(terms: Sequence[str], term: str) -> int:
    """Where `term` stands in the sorted `terms`, or -1."""
    at = bisect_left(terms, term)
    return at if at < len(terms) and terms[at] == term else -1


@dataclass(frozen=True)
class Postings:
    """An inverted index: term i stands in records `rows[starts[i]:starts[i + 1]]`, ascending.

    `terms` is sorted by code point, so that bisection finds a term without a dictionary.
    """

    terms: list[str]
    starts: Array
    """(terms + 1,) int64"""
    rows: Array
    """(postings,) int32"""
    counts: Array
    """(postings,) int32: term frequencies, from which a later build starts"""
    weights: Array
    """(postings,) float32"""
    size: int
    """how many records there are"""

    def find(self, term: str) -> int:
        """The term's number, or -1."""
        return find(self.terms, term)

    def scores(self, terms: Sequence[str]) -> Array:
        """(size,) float32: the sum of the weights of `terms` in every record; a repeated term counts again."""
        total = np.zeros(self.size, np.float32)
        for number in map(self.find, terms):
            if number >= 0:
                span = slice(self.starts[number], self.starts[number + 1])
                total[self.rows[span]] += self.weights[span]  # rows within a term are distinct
        return total

    def bags(self) -> list[Bag]:
        """The terms of each record and how often each occurs: the inverse of `postings_of`."""
        bags: list[Bag] = [{} for _ in range(self.size)]
        starts, rows, counts = self.starts.tolist(), self.rows.tolist(), self.counts.tolist()
        for term, first, last in zip(self.terms, starts, starts[1:], strict=False):
            for at in range(first, last):
                bags[rows[at]][term] = counts[at]
        return bags


def postings_of(bags: Sequence[Bag]) -> Postings:
    """The postings of `bags`, one bag a record, in row order."""
    terms = sorted({term for one in bags for term in one})
    number = {term: i for i, term in enumerate(terms)}
    sizes = np.fromiter((len(one) for one in bags), np.int64, len(bags))
    total = int(sizes.sum())
    columns = np.fromiter((number[term] for one in bags for term in one), np.int64, total)
    counts = np.fromiter((n for one in bags for n in one.values()), np.int32, total)
    rows = np.repeat(np.arange(len(bags), dtype=np.int32), sizes)
    order = np.lexsort((rows, columns))
    columns, counts, rows = columns[order], counts[order], rows[order]
    df = np.bincount(columns, minlength=len(terms))
    starts = np.concatenate([[0], np.cumsum(df)]).astype(np.int64)
    idf = np.log1p((len(bags) - df + 0.5) / (df + 0.5))
    lengths = np.bincount(rows, weights=counts, minlength=len(bags))
    mean = lengths.mean() if total else 1.0
    weights = idf[columns] * counts / (counts + K1 * (1 - B + B * lengths[rows] / mean))
    return Postings(terms, starts, rows, counts, weights.astype(np.float32), len(bags))
