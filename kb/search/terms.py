"""How much each term of a question says about which issue is meant.

A term that few records have says much (idf). Two corrections: a term that is common in technical text says less, even
where few records of this base have it; and a base of three articles is treated as part of a larger one, because every
word of it stands in a third of its records.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kb.arrays import Array
from kb.encoders import rarity
from kb.index.bm25 import idf
from kb.index.header import Vocabulary

__all__ = ["TermInformation"]

LEAST = 0.15
"""the share of its idf that the most common term keeps"""

LEAST_RECORDS = 400
"""a smaller base is treated as one of so many records, the rest about something else; about the size of the base that
the ranking was fitted on"""


class TermInformation:
    """The information of the terms of one index."""

    def __init__(self, vocabulary: Vocabulary, size: int) -> None:
        """`size`: how many records there are."""
        self._vocabulary, self._size, self._most = vocabulary, size, max(size, LEAST_RECORDS)
        self.unseen: float = float(np.log1p((self._most + 0.5) / 0.5))
        """of a term that no record has: the highest"""

    def of(self, terms: Sequence[str]) -> Array:
        """(len(terms),) float32: the information of each."""
        df, information = self._known(terms)
        return np.where(df > 0, information, np.float32(self.unseen))

    def scale(self, terms: Sequence[str]) -> Array:
        """(len(terms),) float32: what a BM25 weight of each is multiplied by, so that it counts information in the
        place of idf."""
        df, information = self._known(terms)
        return np.where(df > 0, information / idf(df, self._size).clip(1e-6).astype(np.float32), np.float32(0))

    def _known(self, terms: Sequence[str]) -> tuple[Array, Array]:
        """In how many records each term stands, and the information of those that stand in one."""
        facts = self._vocabulary.facts(terms)
        df = np.array([fact.df for fact in facts], np.int64)
        surprisal = np.array([fact.surprisal for fact in facts], np.float32)
        return df, (np.maximum(rarity(surprisal), LEAST) * idf(df, self._most)).astype(np.float32)
