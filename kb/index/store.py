"""Here is what a place that keeps an index must be able to do. `store_faiss` keeps it in a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kb.arrays import Array
from kb.index.bm25 import Bag
from kb.records import IssueRecord, Lang, Ranking

__all__ = ["Batch", "Store", "rank"]


@dataclass(frozen=True)
class Batch:
    """A whole index in memory: what a build made and a store publishes. Row i is `records[i]`."""

    records: Sequence[IssueRecord]
    bags: Sequence[Bag]
    """the terms of each record"""
    views: Array
    """(views, dim) float32, rows of norm 1 or 0: several vectors a record"""
    view_rows: Array
    """(views,) int32: the record each view belongs to, ascending"""
    view_kinds: Array
    """(views,) int32: what each view is, by its number in `kb.index.passages.VIEW_KINDS`"""
    han: dict[str, float]
    """Chinese terms -> log probability, by which questions are segmented as the records were"""
    surprisal: Callable[[Sequence[str]], Sequence[float]]
    """how rare words are in text of this kind, -ln p"""
    articles: Sequence[tuple[str, str, int]]
    """path, sha256 of the article's bytes, number of records; sorted by path"""
    manifest: dict[str, Any]
    """what else a reader has to know: encoder, versions"""


class Store(Protocol):
    @property
    def manifest(self) -> dict[str, Any]:
        """What stands in manifest.json."""

    @property
    def snapshot(self) -> str:
        """Which state of the index this is."""

    @property
    def size(self) -> int:
        """How many records there are."""

    def rows(self, *, lang: Lang | None = None, project: str | None = None) -> Array | None:
        """The rows in this language whose project or one of whose tags is `project` (any letter case), ascending; None
        for all."""

    def dense(self, vectors: Array, k: int, rows: Array | None = None) -> Ranking:
        """The k records of `rows` nearest to any of `vectors` (n, dim), by the cosine of their best view.

        Vectors of zeros and cosines of 0 or less match nothing.
        """

    def lexical(self, terms: Sequence[str], k: int, rows: Array | None = None) -> Ranking:
        """The k records of `rows` with the highest BM25 sum over `terms`, those with none left out."""

    def cosines(self, vectors: Array, rows: Sequence[int]) -> Array:
        """(len(rows), len(VIEW_KINDS)) float32: for each row, the cosine of its best view of each kind, 0 where it has
        none. The highest of a row is what `dense` would rank it by."""

    def tokenise(self, text: str) -> list[str]:
        """The terms of a question, segmented as the records were."""

    def shares(self, text: str) -> dict[str, float]:
        """The distinct terms of a question, each with the share of a word that it is."""

    def information(self, terms: Sequence[str]) -> Array:
        """(len(terms),) float32: what a term tells about which issue is meant: its idf in this base, lowered where it
        is common in technical text anyway. A term that no record has tells most."""

    def weights(self, terms: Sequence[str], rows: Sequence[int]) -> Array:
        """(len(rows), len(terms)) float32: the BM25 weight of each term in each row, lowered like `information`."""

    def issues(self, rows: Sequence[int] | Array) -> Array:
        """For each row a number that the tellings of one issue share."""

    def tellings(self, rows: Sequence[int], within: Array | None = None) -> tuple[Array, Array]:
        """All rows (of `within`) that tell the issues of `rows`, and for each a number that the tellings of one issue
        share, ascending."""

    def telling(self, row: int, lang: Lang) -> int:
        """The row that tells the same issue in `lang`, or `row` itself."""

    def records(self, rows: Sequence[int]) -> list[IssueRecord]: ...


def rank(scores: Array, k: int, rows: Array | None = None) -> Ranking:
    """The k best of `scores` above zero: score descending, then row ascending. `rows[i]` is the row of `scores[i]`."""
    if k <= 0 or scores.size == 0:
        return Ranking((), ())
    numbers = np.arange(scores.size) if rows is None else rows
    if scores.size > 4 * k:
        floor = np.partition(scores, scores.size - k)[scores.size - k]
        keep = np.flatnonzero((scores >= floor) & (scores > 0))
    else:
        keep = np.flatnonzero(scores > 0)
    order = keep[np.lexsort((numbers[keep], -scores[keep]))][:k]
    return Ranking(tuple(numbers[order].tolist()), tuple(scores[order].tolist()))
