"""The fingerprints of a base: which of them match a line, what they weigh here, and which issues print such a line.

Nothing is prepared: what the segments keep (`kb.index.prints`) is looked up for the words of a line. What depends on
all of them is worked out when a line needs it, from the records that count, and then remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from kb.arrays import Array
from kb.index.header import Columns
from kb.index.prints import Prints
from kb.logs.fingerprints import MIN_WEIGHT, Fingerprint, fingerprint_of, word_weight, words_in

__all__ = ["Fingerprints", "Print"]

_FEW = 16  # lines that are compared sooner than more of their words are looked up


class Print(NamedTuple):
    """A fingerprint of which the weight is not known yet."""

    text: str
    words: frozenset[str]


class Fingerprints:
    """A line is compared only with those whose anchor it holds. Safe to share between threads."""

    def __init__(self, parts: Sequence[tuple[int, Prints]], columns: Columns) -> None:
        """`parts`: the prints of each segment, and its first row."""
        self._parts = parts
        self._alive = columns.alive
        self._first = columns.first_telling
        self._issues = int(np.count_nonzero(self._first == np.arange(columns.size)))
        self._weights: dict[str, float] = {}
        self._anchored: dict[str, list[Print]] = {}
        self._weighed: dict[str, Fingerprint] = {}
        self._printing: dict[tuple[str, ...], frozenset[int]] = {}

    @cached_property
    def anchors(self) -> frozenset[str]:
        """The words that some fingerprint is found by."""
        return frozenset(
            part.words[number]
            for _, part in self._parts
            for number in np.flatnonzero(np.diff(part.anchored.starts)).tolist()
        )

    def __iter__(self) -> Iterator[Fingerprint]:
        for anchor in sorted(self.anchors):
            for one in self.anchored(anchor):
                if (found := self.weighed(one.text)).weight >= MIN_WEIGHT:
                    yield replace(found, issues=self._printing_it(found))

    def anchored(self, anchor: str) -> list[Print]:
        """Those that are found by this word."""
        found = self._anchored.get(anchor)
        if found is None:
            texts = {
                part.prints[number]
                for start, part in self._parts
                for number in _listed(part.anchored.of, part.words.find(anchor)).tolist()
                if self._counts(start, part, number)
            }
            found = self._anchored[anchor] = [Print(text, words_in(text)) for text in sorted(texts)]
        return found

    def weighed(self, text: str) -> Fingerprint:
        """What a print is in this base, its issues left open."""
        found = self._weighed.get(text)
        if found is None:
            found = self._weighed[text] = fingerprint_of(text, self._weight_of)
        return found

    def matching(self, words: str) -> list[Fingerprint]:
        """Those that match the line, as `words_of` returns it; the highest weight first."""
        present = set(words.split())
        near = [self.weighed(p.text) for a in present & self.anchors for p in self.anchored(a) if p.words <= present]
        found = [one for one in near if one.weight >= MIN_WEIGHT and one.matches(words)]
        whole = (replace(one, issues=self._printing_it(one)) for one in found)
        return sorted(whole, key=lambda one: (-one.weight, one.runs))

    def _counts(self, start: int, part: Prints, number: int) -> bool:
        """Is the print of a record that counts?"""
        return self._alive is None or bool(self._alive[start + part.made.of(number)].any())

    def _weight_of(self, word: str) -> float:
        weight = self._weights.get(word)
        if weight is None:
            rows = [start + _listed(part.said.of, part.words.find(word)) for start, part in self._parts]
            spread = len(self._issues_of(np.concatenate(rows)))
            weight = self._weights[word] = word_weight(word, spread, self._issues)
        return weight

    def _issues_of(self, rows: Array) -> set[int]:
        """Of the issues of these rows that count, the first that tell the same faults."""
        return set(self._first[rows].tolist()) - {-1}

    def _printing_it(self, fingerprint: Fingerprint) -> frozenset[int]:
        """Every issue with an error line that it matches."""
        found = self._printing.get(fingerprint.runs)
        if found is None:
            rows = [start + _rows_printing(part, fingerprint) for start, part in self._parts]
            found = self._printing[fingerprint.runs] = frozenset(self._issues_of(np.concatenate(rows)))
        return found


def _rows_printing(part: Prints, fingerprint: Fingerprint) -> Array:
    """(rows,): the records of the segment with an error line that it matches."""
    numbers = part.words.numbers(sorted(fingerprint.words)).tolist()
    if min(numbers) < 0:
        return _NONE
    lines, *others = sorted(map(part.holding.of, numbers), key=len)
    for other in others:
        if len(lines) <= _FEW:
            break
        at = np.searchsorted(other, lines)
        at[at == len(other)] = 0
        lines = lines[other[at] == lines]
    rows = [part.printed.of(line) for line in lines.tolist() if fingerprint.matches(f" {part.lines[line]} ")]
    return np.concatenate([_NONE, *rows])


_NONE = np.zeros(0, np.int32)


def _listed(of: Callable[[int], Array], number: int) -> Array:
    return of(number) if number >= 0 else _NONE
