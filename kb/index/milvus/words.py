"""The terms of all segments as one list: each has one number, by which the engine knows it.

A folder keeps terms segment by segment. In the engine a term is a dimension of the sparse vectors, so that it must have
the same number in every record.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from kb.arrays import Array
from kb.index.postings import Postings
from kb.index.terms import Terms, pack

__all__ = ["Words", "merged"]


class Words:
    """A `kb.index.header.Lexicon` of a whole base."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        """Raises KeyError or ValueError when the arrays do not fit together."""
        self.terms: Terms = Terms.of(arrays, "terms")
        self.surprisal: Array = arrays["surprisal"]
        """(terms,) float32: -ln p in technical text"""
        self.log_p: Array = arrays["log_p"]
        """(terms,) float32: log probability of a Chinese word, 0 for other terms"""
        self.dfs: Array = arrays["dfs"]
        """(terms,) int32: in how many records each stands, dead ones included"""
        if not len(self.surprisal) == len(self.log_p) == len(self.dfs) == len(self.terms):
            raise ValueError("the arrays of the terms do not fit together")

    def find(self, term: str) -> int:
        """The term's number, or -1."""
        return self.terms.find(term)

    def df(self, number: int) -> int:
        return int(self.dfs[number])


def merged(parts: Sequence[Postings]) -> tuple[dict[str, Array], list[Array]]:
    """The arrays of `Words`; and of each part (terms,) int32, the numbers that its terms have in them. What several
    parts say of a term's probability is the same."""
    numbers = [np.zeros(len(part.terms), np.int32) for part in parts]
    first: list[tuple[int, int]] = []  # of each term, the first part that has it, and its number there
    dfs: list[int] = []

    def distinct() -> Iterator[str]:
        before: str | None = None
        for term, at, own in heapq.merge(*(_numbered(part, at) for at, part in enumerate(parts))):
            if term != before:
                first.append((at, own))
                dfs.append(0)
                yield term
            before = term
            numbers[at][own] = len(first) - 1
            dfs[-1] += parts[at].df(own)

    arrays = pack("terms", distinct())
    arrays["surprisal"] = np.array([parts[at].surprisal[own] for at, own in first], np.float32)
    arrays["log_p"] = np.array([parts[at].log_p[own] for at, own in first], np.float32)
    arrays["dfs"] = np.array(dfs, np.int32)
    return arrays, numbers


def _numbered(part: Postings, at: int) -> Iterator[tuple[str, int, int]]:
    return ((term, at, own) for own, term in enumerate(part.terms))
