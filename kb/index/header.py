"""What of an index is read whole when it is opened: what each row is, and which terms there are.

The classes here never change after they were made; they are plain dataclasses because a frozen one costs every start
half a millisecond more.

A row is one record: an issue in one language. Everything larger (vectors, term weights, records) is asked of the store
by row numbers; see `kb.index.store`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kb.arrays import Array
from kb.index.bm25 import find
from kb.records import Lang
from kb.text import Segmenter, clean, term_weights, tokenise

__all__ = ["LANGS", "Columns", "Header", "Vocabulary"]

LANGS: tuple[Lang, ...] = ("en", "zh")
"""a language's position here is its number in `Columns.lang`"""


_MOST_NUMBERS, _LONGEST_KEPT = 1 << 14, 64  # terms, and characters of one, that are kept with their numbers


@dataclass(eq=False, repr=False)
class Columns:
    """What each row is."""

    issue: Array
    """(n,) int32: a number that the translations of one issue share; it grows with the version in the issue's name"""
    fault: Array
    """(n,) int32: a number that the issues of one fault share (`kb.index.faults`)"""
    lang: Array
    """(n,) int32: position in `LANGS`"""
    about: Array
    """(pairs, 2) int32: row, and the number of a project or tag of its record in `subjects`"""
    subjects: Sequence[str]
    """projects and tags in lower case, sorted"""

    @property
    def size(self) -> int:
        return len(self.issue)

    def rows(self, *, lang: Lang | None = None, project: str | None = None) -> Array | None:
        """The rows in this language whose project or one of whose tags is `project` (any letter case), ascending; None
        for all."""
        if lang is None and project is None:
            return None
        keep = np.ones(self.size, bool)
        if lang is not None:
            keep &= self.lang == LANGS.index(lang)
        if project is not None:
            keep &= np.isin(np.arange(self.size), self.about[self.about[:, 1] == self._subject(project), 0])
        return np.flatnonzero(keep)

    def _subject(self, name: str) -> int:
        """The number of a project or tag, in any letter case; -1 when no record is about it."""
        return find(self.subjects, name.casefold())

    def subjects_of(self, row: int) -> list[str]:
        """The projects and tags of a record, in lower case."""
        return [self.subjects[number] for number in self.about[self.about[:, 0] == row, 1].tolist()]

    def tellings(self, rows: Sequence[int] | Array) -> tuple[Array, Array]:
        """All rows of the faults that `rows` belong to, and the fault number of each; ordered by fault, then row."""
        found = np.flatnonzero(np.isin(self.fault, self.fault[np.asarray(rows, np.int64)]))
        found = found[np.argsort(self.fault[found], kind="stable")]
        return found, self.fault[found]

    def translation(self, row: int, lang: Lang) -> int:
        """The row of the same issue in `lang`, or `row` itself where there is none."""
        same = np.flatnonzero((self.issue == self.issue[row]) & (self.lang == LANGS.index(lang)))
        return int(same[0]) if len(same) else row


@dataclass(eq=False, repr=False)
class Vocabulary:
    """The terms of the records, sorted by code point, so that bisection finds a term without a dictionary."""

    terms: Sequence[str]
    df: Array
    """(terms,) int64: in how many records each stands"""
    surprisal: Array
    """(terms,) float32: -ln p in technical text (see `kb.encoders.surprisal`)"""
    log_p: Array
    """(terms,) float32: log probability of a Chinese word, by which questions are segmented as the records were; 0 for
    a term that is none"""

    def numbers(self, terms: Sequence[str]) -> Array:
        """(len(terms),) int64: the number of each, or -1."""
        memo, numbers = self._numbers, list[int]()
        if len(memo) > _MOST_NUMBERS:
            memo.clear()
        for term in terms:
            number = memo.get(term)
            if number is None:
                number = find(self.terms, term)
                if len(term) <= _LONGEST_KEPT:
                    memo[term] = number
            numbers.append(number)
        return np.array(numbers, np.int64)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """A memo of `numbers`: the terms of a question are looked up several times."""
        return {}

    @cached_property
    def _segmenter(self) -> Segmenter:
        return Segmenter.from_vocabulary(self.terms, self.log_p)

    def tokenise(self, text: str) -> list[str]:
        """The terms of a question, segmented as the records were."""
        return tokenise(clean(text), self._segmenter)

    def shares(self, text: str) -> dict[str, float]:
        """The distinct terms of a question, each with the share of a word that it is."""
        return term_weights(clean(text), self._segmenter) if text else {}


@dataclass(eq=False, repr=False)
class Header:
    """An index as far as it is read at once."""

    manifest: dict[str, Any]
    """what manifest.json says: encoder, counts, projects, files"""
    snapshot: str
    """which state of the index this is"""
    columns: Columns
    vocabulary: Vocabulary
