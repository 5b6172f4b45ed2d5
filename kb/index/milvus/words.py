"""The terms of all segments as one list: each has one number, by which the engine knows it.

A folder keeps terms segment by segment. In the engine a term is a dimension of the sparse vectors, so that it must have
the same number in every record.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import numpy as np

from kb.arrays import Array
from kb.index.lexicon import Lexicon
from kb.index.postings import Postings
from kb.index.terms import Terms

__all__ = ["Words", "merged"]


class Words(Lexicon):
    """The lexicon of a whole base, without postings: those are in the engine."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        """As `merged` made them. Raises KeyError or ValueError when they do not fit together."""
        self.terms: Terms = Terms.among(arrays, "terms")
        self.surprisal: Array = arrays["surprisal"]
        self.log_p: Array = arrays["log_p"]
        # Nothing else of postings is asked of a vocabulary.
        self.postings: Postings = cast(Postings, _Counts(arrays["dfs"]))
        if not len(self.surprisal) == len(self.log_p) == len(arrays["dfs"]) == len(self.terms):
            raise ValueError("the arrays of the terms do not fit together")


class _Counts:
    def __init__(self, dfs: Array) -> None:
        self._dfs = dfs

    def df(self, numbers: Array) -> Array:
        """In how many records each term stands, dead ones included; 0 for the term -1."""
        found = np.zeros(len(numbers), np.int64)
        found[numbers >= 0] = self._dfs[numbers[numbers >= 0]]
        return found


def merged(parts: Sequence[Lexicon]) -> tuple[dict[str, Array], list[Array]]:
    """The arrays of `Words`; and of each part (terms,) int32, the numbers that its terms have in them. What several
    parts say of a term's probability is the same."""
    numbers = [np.zeros(len(part.terms), np.int32) for part in parts]
    terms: list[str] = []
    for term, at, own in heapq.merge(*(_numbered(part, at) for at, part in enumerate(parts))):
        if not terms or terms[-1] != term:
            terms.append(term)
        numbers[at][own] = len(terms) - 1
    arrays = Terms.of(terms).arrays("terms")
    arrays |= {name: np.zeros(len(terms), np.float32) for name in ("surprisal", "log_p")}
    arrays["dfs"] = np.zeros(len(terms), np.int32)
    for part, places in zip(parts, numbers, strict=True):
        arrays["surprisal"][places] = part.surprisal
        arrays["log_p"][places] = part.log_p
        arrays["dfs"][places] += np.diff(part.postings.starts).astype(np.int32)  # a part has each term once
    return arrays, numbers


def _numbered(part: Lexicon, at: int) -> Iterator[tuple[str, int, int]]:
    return ((term, at, own) for own, term in enumerate(part.terms))
