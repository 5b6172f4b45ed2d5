"""The seam between the index and what keeps it: what a store must be able to answer.

`FaissStore` (kb.index.faiss) keeps an index in a folder. Another engine implements `Store`: candidates by vector and by
terms, vectors and term weights of named rows, records, and a header. Everything about ranking lives above, in
`kb.search`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kb.arrays import Array
from kb.index.header import Filter, Header
from kb.index.profile import Profile
from kb.records import IssueRecord, Ranking

if TYPE_CHECKING:
    from kb.index.prints import Prints

__all__ = ["Store", "Views"]


@dataclass(eq=False, repr=False)
class Views:
    """Vectors of records; a record has several, one for each text by which it can be found (`kb.index.passages`)."""

    vectors: Array
    """(n, dim) float32, rows of norm 1 or 0"""
    rows: Array
    """(n,) int32: the record that each belongs to, ascending"""
    kinds: Array
    """(n,) int32: a `kb.index.passages.View`"""


class Store(Protocol):
    """An opened index. It never changes: a later build is another store. Safe to share between threads."""

    @property
    def header(self) -> Header: ...

    def near(
        self, vector: Array, terms: Sequence[str], k: int, within: Filter | None = None
    ) -> tuple[Ranking, Ranking]:
        """What `dense` and `lexical` say; at once where the store can."""

    def dense(self, vector: Array, k: int, within: Filter | None = None) -> Ranking:
        """The k records within the filter (None: of all) nearest to `vector` (dim,), by the cosine of their best view.

        A vector of zeros and cosines of 0 or less match nothing.
        """

    def lexical(self, terms: Sequence[str], k: int, within: Filter | None = None) -> Ranking:
        """The k records within the filter with the highest BM25 sum over `terms`; records with none of them are left
        out."""

    def views(self, rows: Array) -> Views:
        """All vectors of `rows` (ascending)."""

    def weights(self, terms: Sequence[str], rows: Array) -> Array:
        """(len(rows), len(terms)) float32: the BM25 weight of each term in each row; 0 where it does not stand."""

    def profiles(self, rows: Sequence[int]) -> list[Profile]:
        """In the order of `rows`. Raises IndexCorrupt when a profile is not what was written."""

    def records(self, rows: Sequence[int]) -> list[IssueRecord]:
        """In the order of `rows`. Raises IndexCorrupt when a record is not what was written."""

    def prints(self) -> list[tuple[int, Prints]]:
        """What lines of logs are recognised by, of each segment with its first row. Read when it is asked for. Raises
        IndexCorrupt."""
