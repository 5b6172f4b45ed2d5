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
        self._vocabulary = vocabulary
        df, most = vocabulary.df, max(size, LEAST_RECORDS)
        known = np.maximum(rarity(vocabulary.surprisal), LEAST)
        self._information = (known * np.log1p((most - df + 0.5) / (df + 0.5))).astype(np.float32)
        self._scale = self._information / np.log1p((size - df + 0.5) / (df + 0.5)).clip(1e-6).astype(np.float32)
        self.unseen: float = float(np.log1p((most + 0.5) / 0.5))
        """of a term that no record has: the highest"""

    def of(self, terms: Sequence[str]) -> Array:
        """(len(terms),) float32: the information of each."""
        return self._each(terms, self._information, self.unseen)

    def scale(self, terms: Sequence[str]) -> Array:
        """(len(terms),) float32: what a BM25 weight of each is multiplied by, so that it counts information in the
        place of idf."""
        return self._each(terms, self._scale, 0.0)

    def _each(self, terms: Sequence[str], values: Array, unseen: float) -> Array:
        numbers = self._vocabulary.numbers(terms)
        if not len(values):
            return np.full(len(terms), unseen, np.float32)
        return np.where(numbers >= 0, values[numbers], unseen).astype(np.float32)
