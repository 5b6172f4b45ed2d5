"""What of an index is asked at once: what each row is, and what is known of a term.

A row is one record: an issue in one language. An index has one or several segments, whose rows are numbered one after
the other; rows of articles that were edited or removed since are dead and never named. Everything larger (vectors,
term weights, records) is asked of the store by row numbers; see `kb.index.store`.

The classes here never change after they were made; they are plain classes because a frozen dataclass costs every start
half a millisecond more.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from kb.arrays import Array
from kb.index.lexicon import Lexicon
from kb.index.terms import Terms
from kb.records import Lang
from kb.text import Segmenter, clean, term_weights, tokenise

__all__ = ["LANGS", "Columns", "Fact", "Filter", "Header", "Rows", "Vocabulary"]

LANGS: tuple[Lang, ...] = ("en", "zh")
"""a language's position here is its number in `Rows.lang`"""

_MOST_KEPT, _LONGEST_KEPT = 1 << 14, 64  # terms, and characters of one, of which the facts are kept
_MOST_FILTERS = 16


class Filter(NamedTuple):
    """Which records may be found: those in one language, and those about a project or tag, in any letter case."""

    lang: Lang | None = None
    project: str | None = None


class Rows:
    """What each of the n rows of one segment is."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        """Raises KeyError or ValueError when the arrays do not fit together."""
        self.issue: Array = arrays["issue"]
        """(n,) int32: a number that the translations of one issue share; it grows with the version in the issue's
        name"""
        self.fault: Array = arrays["fault"]
        """(n,) int32: a number that the issues of one fault share (`kb.index.faults`)"""
        self.by_fault: Array = arrays["by_fault"]
        """(n,) int32: the rows, ordered by fault"""
        self.fault_starts: Array = arrays["fault_starts"]
        """(faults + 1,) int64: where the rows of each fault begin in `by_fault`"""
        self.titles: Array = arrays["titles"]
        """(n,) uint64: `kb.index.faults.title_key`"""
        self.by_title: Array = arrays["by_title"]
        """(n,) int32: the rows, ordered by title"""
        self.lang: Array = arrays["lang"]
        """(n,) int32: position in `LANGS`"""
        self.about: Array = arrays["about"]
        """(pairs, 2) int32, ordered: row, and the number of a project or tag of its record among `subjects`"""
        self.subjects: Terms = Terms.among(arrays, "subjects")
        """projects and tags in lower case, sorted"""
        self.ids: Terms = Terms.among(arrays, "ids")
        """of every record in lower case, sorted"""
        self.id_rows: Array = arrays["id_rows"]
        """(n,) int32: the row of each"""
        n = len(self.issue)
        columns = (self.issue, self.fault, self.by_fault, self.id_rows)
        fits = (
            all(one.shape == (n,) and one.dtype == np.int32 for one in (self.lang, *columns))
            and self.titles.shape == self.by_title.shape == (n,)
            and self.about.ndim == 2
            and self.about.shape[1] == 2
            and self.about.dtype == np.int32
            and self.fault_starts.dtype == np.int64
            and self.fault_starts.ndim == 1
            and len(self.ids) == n
            and self.fault_starts[0] == 0
            and self.fault_starts[-1] == n
            and (not n or self.fault.max() == len(self.fault_starts) - 2)
            and (not n or 0 <= self.lang.min() <= self.lang.max() < len(LANGS))
            and all(not n or 0 <= one.min() <= one.max() < n for one in (*columns, self.by_title))
        )
        if not fits:
            raise ValueError("the columns of the rows do not fit together")

    @property
    def size(self) -> int:
        return len(self.issue)

    def is_sound(self) -> bool:
        """Looks at every number and name."""
        about = self.about
        return bool(
            (np.diff(self.fault_starts) >= 0).all()
            and (np.diff(about[:, 0]) >= 0).all()
            and (about >= 0).all()
            and (about.max(axis=0, initial=-1) < (self.size, len(self.subjects))).all()
            and self.subjects.is_sound()
            and self.ids.is_sound()
        )

    def about_subject(self, name: str) -> Array:
        """The rows of records whose project or one of whose tags has this name in lower case, ascending."""
        number = self.subjects.find(name)
        return self.about[self.about[:, 1] == number, 0] if number >= 0 else self.about[:0, 0]

    def subjects_of(self, row: int) -> list[str]:
        rows = self.about[:, 0]
        first, last = bisect_left(rows, row), bisect_right(rows, row)  # np.searchsorted would copy the whole column
        return [self.subjects[number] for number in self.about[first:last, 1].tolist()]


class Columns:
    """What each row of all segments is."""

    def __init__(self, parts: Sequence[Rows], dead: Array, same: Array) -> None:
        """`dead`: rows that count no more. `same`: (pairs, 2) rows of different segments that tell the same fault."""
        self.parts: Sequence[Rows] = parts
        self.starts: Array = np.concatenate([[0], np.cumsum([part.size for part in parts], dtype=np.int64)])
        """(parts + 1,) int64: the first row of each segment, and how many rows there are"""
        self.alive: Array | None = None
        """(rows,) bool; None when all are"""
        if len(dead):
            self.alive = np.ones(self.size, bool)
            self.alive[dead] = False
        self._faults = np.concatenate([[0], np.cumsum([len(part.fault_starts) - 1 for part in parts], dtype=np.int64)])
        issues = np.concatenate([[0], np.cumsum([part.issue.max(initial=-1) + 1 for part in parts], dtype=np.int64)])
        self.issue: Array = _numbered([part.issue for part in parts], issues)
        """(rows,) int32: see `Rows.issue`; issues of other segments have other numbers"""
        self.fault: Array = _numbered([part.fault for part in parts], self._faults)
        """(rows,) int32: see `Rows.fault`; across segments, too"""
        self.lang: Array = parts[0].lang if len(parts) == 1 else np.concatenate([part.lang for part in parts])
        self._members: dict[int, list[int]] = {}  # a fault that several segments tell -> its numbers in them
        if len(same):
            self._join(same)
        self._passing: dict[Filter, Array] = {}

    def _join(self, same: Array) -> None:
        root: dict[int, int] = {}

        def of(fault: int) -> int:
            while (up := root.get(fault, fault)) != fault:
                fault = up
            return fault

        for one, other in self.fault[same].tolist():
            first, second = sorted((of(one), of(other)))
            if first != second:
                root[second] = first
        for fault in root:
            self._members.setdefault(of(fault), [of(fault)]).append(fault)
        changed = np.arange(int(self._faults[-1]))
        for fault in root:
            changed[fault] = of(fault)
        self.fault = changed[self.fault].astype(np.int32)

    @property
    def size(self) -> int:
        """Rows, the dead ones included."""
        return int(self.starts[-1])

    def rows(self) -> Array:
        """Those that count, ascending."""
        return np.arange(self.size) if self.alive is None else np.flatnonzero(self.alive)

    @cached_property
    def first_telling(self) -> Array:
        """(rows,) int64: of each row the first row that counts of the same fault; such issues count as one. -1 for a
        dead row."""
        rows, found = self.rows(), np.full(self.size, -1, np.int64)
        first = np.empty(int(self._faults[-1]), np.int64)
        faults = self.fault[rows]
        first[faults[::-1]] = rows[::-1]  # of several the last one written stays
        found[rows] = first[faults]
        return found

    def passing(self, within: Filter) -> Array:
        """(rows,) bool: the records that may be found."""
        found = self._passing.get(within)
        if found is None:
            found = np.ones(self.size, bool) if self.alive is None else self.alive.copy()
            if within.lang is not None:
                found &= self.lang == LANGS.index(within.lang)
            if within.project is not None:
                about = np.zeros(self.size, bool)
                for start, part in zip(self.starts.tolist(), self.parts, strict=False):
                    about[start + part.about_subject(within.project.casefold())] = True
                found &= about
            if len(self._passing) >= _MOST_FILTERS:
                self._passing.clear()
            self._passing[within] = found
        return found

    def subjects(self) -> list[str]:
        """Projects and tags in lower case, sorted."""
        return sorted(set().union(*(part.subjects for part in self.parts)))

    def subjects_of(self, row: int) -> list[str]:
        """The projects and tags of a record, in lower case."""
        at, own = self.place(row)
        return self.parts[at].subjects_of(own)

    def place(self, row: int) -> tuple[int, int]:
        """The number of the segment that holds the row, and the row's number in it."""
        at = int(np.searchsorted(self.starts, row, side="right")) - 1
        return at, row - int(self.starts[at])

    def tellings(self, rows: Sequence[int] | Array) -> tuple[Array, Array]:
        """All rows of the faults that `rows` belong to, and the fault number of each; ordered by fault, then row."""
        wanted = set(self.fault[np.asarray(rows, np.int64)].tolist())  # not `np.unique`: it imports numpy.ma, 12 ms
        own = np.array(sorted({n for fault in wanted for n in self._members.get(fault, [fault])}), np.int64)
        found: list[Array] = []
        for start, part, (first, last) in zip(self.starts, self.parts, pairwise(self._faults.tolist()), strict=False):
            faults = (own[(own >= first) & (own < last)] - first).tolist()
            found += [start + part.by_fault[part.fault_starts[n] : part.fault_starts[n + 1]] for n in faults]
        told = np.concatenate([np.zeros(0, np.int64), *found]).astype(np.int64)
        if self.alive is not None:
            told = told[self.alive[told]]
        told = told[np.lexsort((told, self.fault[told]))]
        return told, self.fault[told]

    def translation(self, row: int, lang: Lang) -> int:
        """The row of the same issue in `lang`, or `row` itself where there is none."""
        told, _ = self.tellings([row])
        same = told[(self.issue[told] == self.issue[row]) & (self.lang[told] == LANGS.index(lang))]
        return int(same[0]) if len(same) else row

    def find(self, name: str, end: str = "") -> list[int]:
        """The rows of the record with this id in lower case; or of those whose ids go on with `end` after it: "/" for
        those of an issue, "#" for those of an article. Ascending."""
        found: list[int] = []
        for start, part in zip(self.starts.tolist(), self.parts, strict=False):
            exact = part.ids.find(name)
            places = part.ids.beginning_with(name + end) if end else [exact] * (exact >= 0)
            found += [start + int(part.id_rows[at]) for at in places]
        return sorted(row for row in found if self.alive is None or self.alive[row])

    def ids_near(self, name: str, most: int) -> list[str]:
        """Some `most` ids of records in lower case, those that stand around `name` in the order of letters."""
        found: list[str] = []
        for start, part in zip(self.starts.tolist(), self.parts, strict=False):
            at = part.ids.beginning_with(name).start
            places = range(max(0, at - most // 2), min(len(part.ids), at + most // 2))
            found += [part.ids[i] for i in places if self.alive is None or self.alive[start + part.id_rows[i]]]
        return found


def _numbered(columns: Sequence[Array], offsets: Array) -> Array:
    """One column of all segments, each counting on from the one before."""
    if len(columns) == 1:
        return columns[0]
    blocks = [column + np.int32(offset) for column, offset in zip(columns, offsets.tolist(), strict=False)]
    return np.concatenate([np.zeros(0, np.int32), *blocks]).astype(np.int32)


class Fact(NamedTuple):
    """What is known of a term."""

    numbers: tuple[int, ...]
    """its number in each segment, -1 where it does not stand"""
    df: int
    """in how many records it stands, dead ones included; 0: no record has it"""
    surprisal: float
    """-ln p in technical text (`kb.encoders.surprisal`); 0 when no record has it"""


class Vocabulary:
    """The terms of the records."""

    def __init__(self, parts: Sequence[Lexicon]) -> None:
        self._parts = parts
        self._facts: dict[str, Fact] = {}  # a memo: the terms of a question are looked up several times

    def facts(self, terms: Sequence[str]) -> list[Fact]:
        """Of each term, in order."""
        memo = self._facts
        if len(memo) > _MOST_KEPT:
            memo.clear()
        new = [term for term in dict.fromkeys(terms) if term not in memo]
        told = dict(zip(new, self._looked_up(new), strict=True)) if new else {}
        memo.update((term, fact) for term, fact in told.items() if len(term) <= _LONGEST_KEPT)
        return [told[term] if term in told else memo[term] for term in terms]

    def _looked_up(self, terms: Sequence[str]) -> list[Fact]:
        numbers = [part.terms.numbers(terms) for part in self._parts]
        df, surprisal = np.zeros(len(terms), np.int64), np.zeros(len(terms), np.float32)
        for part, found in zip(self._parts, numbers, strict=True):
            df += part.postings.df(found)
            there = np.flatnonzero(found >= 0)
            surprisal[there] = part.surprisal[found[there]]
        of_each = zip(*(found.tolist() for found in numbers), strict=True)
        return [Fact(*one) for one in zip(of_each, df.tolist(), surprisal.tolist(), strict=True)]

    @cached_property
    def _segmenter(self) -> Segmenter:
        return Segmenter.from_vocabulary([(part.terms, part.log_p) for part in self._parts])

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
