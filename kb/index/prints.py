"""The prints of a segment: what its records print and say, as the recognition of lines in a log needs it.

A print is a fingerprint without what depends on the whole base (`kb.logs.fingerprints`): runs of words, joined by "|".
How much each word weighs, and which issues print it, is asked of all segments together when a line is looked up
(`kb.scan.fingerprints`); so what is kept here depends on the records of this segment alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kb.arrays import Array
from kb.index.chunk import Chunk
from kb.index.terms import Terms
from kb.logs.fingerprints import anchor_of, printed_by, said_by
from kb.records import IssueRecord

__all__ = ["Lists", "Prints", "PrintsBuilder", "prints_of_records", "text_of_prints"]

_BETWEEN = "\n"


class Lists(NamedTuple):
    """For each of some things the numbers of some others, ascending."""

    starts: Array
    """(things + 1,) int64: where the numbers of each begin"""
    values: Array
    """int32"""

    def of(self, thing: int) -> Array:
        return self.values[self.starts[thing] : self.starts[thing + 1]]

    def turned(self, size: int) -> Lists:
        """The other way round: for each of `size` others the numbers of the things."""
        things = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        return _lists(self.values.astype(np.int64) << 32 | things, size)

    def belongs(self, things: int) -> bool:
        """Are these lists of so many things? Looks at two numbers."""
        return (
            self.starts.ndim == self.values.ndim == 1
            and self.starts.dtype == np.int64
            and self.values.dtype == np.int32
            and len(self.starts) == things + 1
            and (self.starts[0], self.starts[-1]) == (0, len(self.values))
        )

    def is_sound(self, others: int) -> bool:
        """Looks at every number."""
        return bool(
            (np.diff(self.starts) >= 0).all()
            and self.values.min(initial=0) >= 0
            and self.values.max(initial=-1) < others
        )


class Prints:
    """Safe to share between threads."""

    def __init__(self, arrays: Mapping[str, Array], size: int) -> None:
        """`size`: records. Raises KeyError or ValueError when the arrays do not fit together."""

        def lists(name: str) -> Lists:
            return Lists(arrays[f"{name}_starts"], arrays[name])

        self.words: Terms = Terms.among(arrays, "words")
        """of all records and their error lines, sorted"""
        self.lines: Terms = Terms.among(arrays, "lines")
        """the words of each distinct error line, with spaces between them; sorted"""
        self.prints: Terms = Terms.among(arrays, "prints")
        """the distinct prints, sorted"""
        self.said: Lists = lists("said")
        """word -> records whose text holds it"""
        self.holding: Lists = lists("holding")
        """word -> lines that hold it"""
        self.anchored: Lists = lists("anchored")
        """word -> prints that are looked at where a line holds it"""
        self.printed: Lists = lists("printed")
        """line -> records that print it"""
        self.made: Lists = lists("made")
        """print -> records of whose lines it was made"""
        self.sizes: Array = arrays["sizes"]
        """(records,) int32: how many distinct words each record says"""
        if self.sizes.shape != (size,) or not all(one.belongs(things) for one, things, _ in self._kept()):
            raise ValueError("the arrays of the prints do not belong together")

    def _kept(self) -> list[tuple[Lists, int, int]]:
        """The lists, how many there are of each, and of how many others."""
        records, words, lines, prints = len(self.sizes), len(self.words), len(self.lines), len(self.prints)
        return [
            (self.said, words, records),
            (self.holding, words, lines),
            (self.anchored, words, prints),
            (self.printed, lines, records),
            (self.made, prints, records),
        ]

    def is_sound(self) -> bool:
        """Looks at every number and word: are they all of something that is there?"""
        return all(one.is_sound(others) for one, _, others in self._kept()) and all(
            one.is_sound() for one in (self.words, self.lines, self.prints)
        )

    def by_record(self, size: int) -> Callable[[int], tuple[str, str, str]]:
        """The other way round, which a later build starts from: what each of the `size` records contributed, as
        `text_of_prints` gives it."""
        kept = [
            (names[:], names_of.turned(size))
            for names, names_of in ((self.words, self.said), (self.lines, self.printed), (self.prints, self.made))
        ]

        def contributed(row: int) -> tuple[str, str, str]:
            said, lines, prints = ([names[number] for number in of.of(row).tolist()] for names, of in kept)
            return " ".join(said), _BETWEEN.join(lines), _BETWEEN.join(prints)

        return contributed


def text_of_prints(record: IssueRecord) -> tuple[str, str, str]:
    """What a record contributes, each sorted: its distinct words, with spaces between them; the words of its error
    lines; and their prints, one a line."""
    printed = printed_by(record)
    prints = set().union(*printed.values())
    return " ".join(sorted(said_by(record))), _BETWEEN.join(sorted(printed)), _BETWEEN.join(sorted(prints))


class PrintsBuilder:
    """Numbers what records print and say, a chunk at a time."""

    def __init__(self) -> None:
        self._words, self._lines, self._prints = _Names(), _Names(), _Names()
        self._said, self._printed, self._made = _Pairs(), _Pairs(), _Pairs()
        self._size = 0

    def add(self, chunk: Chunk) -> None:
        """The next records."""
        self.add_texts(chunk.prints)

    def add_texts(self, texts: Iterable[tuple[str, str, str]]) -> None:
        """The same, of each record what `text_of_prints` gives."""
        for said, lines, prints in texts:
            row = self._size
            self._said.add((self._words[word], row) for word in said.split())
            for line in filter(None, lines.split(_BETWEEN)):
                known = len(self._lines)
                number = self._lines[line]
                self._printed.add([(number, row)])
                if number == known:
                    for word in line.split():
                        self._words[word]
            # Of the record, not of its lines: of the same words, written in two ways, two records have other prints.
            self._made.add((self._prints[text], row) for text in filter(None, prints.split(_BETWEEN)))
            self._size += 1

    def finish(self) -> dict[str, Array]:
        """The arrays of the part. The builder is of no use afterwards."""
        lines, prints = self._lines.sorted(), self._prints.sorted()
        anchors = list(map(anchor_of, prints))
        for anchor in anchors:  # where a part of a word was cut out, no line has the rest of it: `0xBuffer`
            self._words[anchor]
        words = self._words.sorted()
        word = {text: n for n, text in enumerate(words)}
        holding = _Pairs()
        for number, line in enumerate(lines):
            holding.add((word[one], number) for one in set(line.split()))
        anchored = _Pairs()
        anchored.add((word[anchor], number) for number, anchor in enumerate(anchors))
        place, line_place, print_place = (names.places() for names in (self._words, self._lines, self._prints))
        lists = {
            "said": self._said.lists(len(words), place),
            "holding": holding.lists(len(words)),
            "anchored": anchored.lists(len(words)),
            "printed": self._printed.lists(len(lines), line_place),
            "made": self._made.lists(len(prints), print_place),
        }
        return {
            "sizes": np.bincount(lists["said"].values, minlength=self._size).astype(np.int32),
            **Terms.of(words).arrays("words"),
            **Terms.of(lines).arrays("lines"),
            **Terms.of(prints).arrays("prints"),
            **{f"{name}_starts": one.starts for name, one in lists.items()},
            **{name: one.values for name, one in lists.items()},
        }


def prints_of_records(records: Sequence[IssueRecord | None]) -> Prints:
    """Those of records that no segment keeps; None has none."""
    builder = PrintsBuilder()
    builder.add_texts(("", "", "") if record is None else text_of_prints(record) for record in records)
    return Prints(builder.finish(), len(records))


class _Names(dict[str, int]):
    """A number for each text, in the order of arrival."""

    def __missing__(self, text: str) -> int:
        number = self[text] = len(self)
        return number

    def sorted(self) -> list[str]:
        return sorted(self)

    def places(self) -> Array:
        """(texts,) int64: of each number its place among the sorted ones."""
        place = np.empty(len(self), np.int64)
        place[[self[text] for text in sorted(self)]] = np.arange(len(self))
        return place


class _Pairs:
    """Pairs of numbers, eight bytes each."""

    def __init__(self) -> None:
        self._blocks: list[Array] = []
        self._open: list[int] = []

    def add(self, pairs: Iterable[tuple[int, int]]) -> None:
        self._open += [first << 32 | second for first, second in pairs]
        if len(self._open) >= 1 << 16:
            self._close()

    def _close(self) -> None:
        self._blocks.append(np.array(self._open, np.int64))
        self._open = []

    def lists(self, size: int, firsts: Array | None = None, seconds: Array | None = None) -> Lists:
        """The distinct pairs as lists. `firsts` and `seconds`: what stands for each number. Nothing is kept."""
        self._close()
        keys = np.empty(sum(map(len, self._blocks)), np.int64)
        end = len(keys)
        while self._blocks:  # what was laid out is freed
            block = self._blocks.pop()
            first, second = block >> 32, block & _LOW
            first = first if firsts is None else firsts[first]
            second = second if seconds is None else seconds[second]
            keys[end - len(block) : end] = first << 32 | second
            end -= len(block)
        return _lists(keys, size)


_LOW = 0xFFFFFFFF


def _lists(keys: Array, size: int) -> Lists:
    """The lists of the distinct pairs `first << 32 | second`, which are put in order in their place."""
    keys.sort()
    if (again := keys[1:] == keys[:-1]).any():
        keys = np.concatenate([keys[:1], keys[1:][~again]])
    starts = np.searchsorted(keys, np.arange(size + 1, dtype=np.int64) << 32).astype(np.int64)
    return Lists(starts, (keys & _LOW).astype(np.int32))
