"""A store in a folder. FAISS searches the vectors, an inverted index the terms; both of every segment.

docs/index-format.md describes the files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kb.arrays import Array
from kb.errors import IndexCorrupt
from kb.index import snapshot
from kb.index.bm25 import idf
from kb.index.header import Columns, Fact, Filter, Header, Vocabulary
from kb.index.mapped import arrays
from kb.index.parts import Parts
from kb.index.profile import Profile, unpack
from kb.index.rank import rank
from kb.index.segment import Segment
from kb.index.snapshot import Entry
from kb.index.store import Views
from kb.index.threads import cores, side_by_side
from kb.records import IssueRecord, Ranking

if TYPE_CHECKING:
    from kb.index.prints import Prints

__all__ = ["FaissStore", "files_of", "named"]

_ATTEMPTS = 5  # how often an index may be replaced under a reader that is just opening it
_EVERYTHING = Filter()
Ask = Callable[[int, Segment, Array | None], Ranking]
"""of a segment, given its number, itself, and which of its rows are allowed (None: all)"""

_LARGE = 50_000  # records of a segment that it takes a millisecond to ask: then a thread is worth its start


def named(stem: str, segment: int) -> str:
    """How a manifest calls a file of the segment with this number."""
    return f"{stem}.{segment}" if segment else stem


def files_of(manifest: dict[str, Any], segment: int) -> dict[str, Entry]:
    """stem -> entry, of one segment."""
    keys = (key.partition(".") for key in manifest["files"])
    return {
        stem: manifest["files"][named(stem, segment)]
        for stem, _, number in keys
        if number == (str(segment) if segment else "") and stem not in _OF_ALL
    }


_OF_ALL = ("dead", "same")


class FaissStore:
    """A published snapshot, opened. Later builds do not disturb it. Safe to share between threads."""

    header: Header

    def __init__(self, folder: Path) -> None:
        """Raises IndexMissing or IndexCorrupt."""
        self.folder = folder
        self.segments: list[Segment] = []
        for attempt in range(_ATTEMPTS):
            manifest, identity = snapshot.read_manifest(folder)
            try:
                self.close()  # of an attempt that came to nothing
                self._open(manifest, identity)
                return
            except FileNotFoundError as error:
                # Published anew between manifest and file: the next manifest names files that are there.
                if attempt == _ATTEMPTS - 1 or snapshot.read_manifest(folder)[1] == identity:
                    raise IndexCorrupt(
                        "a file that the manifest names is missing",
                        path=error.filename,
                        hint="`kb build` writes it anew",
                    ) from None
            except (KeyError, ValueError, TypeError, IndexError, UnicodeDecodeError) as error:
                raise IndexCorrupt(
                    f"the index does not hold what it should ({error!r})", path=folder, hint="`kb build`"
                ) from None

    def _open(self, manifest: dict[str, Any], identity: str) -> None:
        folder, files = self.folder, manifest["files"]
        self.segments = []
        for number in range(len(manifest["segments"])):
            self.segments.append(Segment(folder, files_of(manifest, number)))
        dead, same = (arrays(folder, files[key]) if key in files else {} for key in _OF_ALL)
        none = np.zeros((0, 2), np.int64)
        self.dead: frozenset[tuple[int, int]] = frozenset(map(tuple, dead.get("articles", none).tolist()))
        """articles that were edited or removed since: the number of the segment, and the place there"""
        columns = Columns(
            [segment.rows for segment in self.segments], dead.get("rows", none[:, 0]), same.get("rows", none)
        )
        vocabulary = Vocabulary([segment.lexicon for segment in self.segments])
        self.header = Header(manifest, identity, columns, vocabulary)
        lengths = [segment.lexicon.postings.total for segment in self.segments]
        self._mean = sum(lengths) / columns.size if sum(lengths) else 1.0
        self._threads = cores() if any(segment.size >= _LARGE for segment in self.segments) else 1
        self._check(manifest)

    def _check(self, manifest: dict[str, Any]) -> None:
        agree = (
            self.segments
            and manifest["counts"]["records"] == self.size
            and all(segment.dim == manifest["encoder"]["dim"] for segment in self.segments)
            and isinstance(manifest["encoder"]["name"], str)
            and isinstance(manifest["projects"], list)
            and all(isinstance(name, str) for name in manifest["projects"])
        )
        if not agree:
            raise IndexCorrupt("the files of the index do not belong together", path=self.folder, hint="`kb build`")

    def close(self) -> None:
        for segment in self.segments:
            segment.close()

    @property
    def size(self) -> int:
        """Records, without the dead ones."""
        return len(self.header.columns.rows())

    def near(
        self, vector: Array, terms: Sequence[str], k: int, within: Filter | None = None
    ) -> tuple[Ranking, Ranking]:
        dense, lexical = self._best(k, within, self._by_vector(vector, k), self._by_terms(terms, k))
        return dense, lexical

    def dense(self, vector: Array, k: int, within: Filter | None = None) -> Ranking:
        return self._best(k, within, self._by_vector(vector, k))[0]

    def lexical(self, terms: Sequence[str], k: int, within: Filter | None = None) -> Ranking:
        return self._best(k, within, self._by_terms(terms, k))[0]

    @staticmethod
    def _by_vector(vector: Array, k: int) -> Ask:
        return lambda _, segment, allowed: segment.vectors.nearest(vector, k, allowed)

    def _by_terms(self, terms: Sequence[str], k: int) -> Ask:
        asked = self._weighed(terms)
        best_so_far: list[float] = []  # of the segments that were asked before: what is below them is not looked for

        def best(number: int, segment: Segment, allowed: Array | None) -> Ranking:
            here = [(fact.numbers[number], weight) for fact, weight in asked if fact.numbers[number] >= 0]
            floor = sorted(best_so_far)[-k] if len(best_so_far) >= k else 0.0
            found = segment.lexicon.postings.best(here, self._mean, k, allowed, floor)
            best_so_far.extend(found.scores)
            return found

        return best

    def _weighed(self, terms: Sequence[str]) -> list[tuple[Fact, float]]:
        facts = self.header.vocabulary.facts(terms)
        weights = idf(np.array([fact.df for fact in facts], np.int64), self.header.columns.size)
        return list(zip(facts, weights.tolist(), strict=True))

    def _best(self, k: int, within: Filter | None, *asks: Ask) -> list[Ranking]:
        """For each of `asks` the best of all segments, which are asked side by side."""
        if k <= 0:
            return [Ranking((), ())] * len(asks)
        columns, every = self.header.columns, len(self.segments)
        allowed = columns.alive if within in (None, _EVERYTHING) else columns.passing(within)
        if every == 1 and self._threads == 1:
            return [ask(0, self.segments[0], allowed) for ask in asks]

        def best_of(task: tuple[Ask, int]) -> tuple[list[int], Sequence[float]]:
            ask, number = task
            segment, start = self.segments[number], int(columns.starts[number])
            found = ask(number, segment, None if allowed is None else allowed[start : start + segment.size])
            return [start + row for row in found.rows], found.scores

        answers = side_by_side(best_of, [(ask, number) for ask in asks for number in range(every)], self._threads)
        rankings = []
        for at in range(0, len(answers), every):
            rows = [row for found, _ in answers[at : at + every] for row in found]
            scores = [score for _, found in answers[at : at + every] for score in found]
            rankings.append(rank(np.array(scores, np.float32), k, np.array(rows, np.int64)))
        return rankings

    def views(self, rows: Array) -> Views:
        found = [segment.vectors.of(own) for _, segment, own in self._split(rows)]
        if len(self.segments) == 1:
            return found[0]
        starts = [start for start, _, _ in self._split(rows)]
        dim = self.segments[0].dim
        return Views(
            np.concatenate([np.zeros((0, dim), np.float32), *(one.vectors for one in found)]),
            np.concatenate([np.zeros(0, np.int64), *(s + one.rows for s, one in zip(starts, found, strict=True))]),
            np.concatenate([np.zeros(0, np.int32), *(one.kinds for one in found)]),
        )

    def _split(self, rows: Array) -> Iterator[tuple[int, Segment, Array]]:
        """Of each segment that has some of `rows` (ascending): its first row, and theirs in it."""
        columns = self.header.columns
        if len(self.segments) == 1:
            yield 0, self.segments[0], rows
            return
        bounds = np.searchsorted(rows, columns.starts).tolist()
        for number, segment in enumerate(self.segments):
            if bounds[number] < bounds[number + 1]:
                start = int(columns.starts[number])
                yield start, segment, rows[bounds[number] : bounds[number + 1]] - start

    def weights(self, terms: Sequence[str], rows: Array) -> Array:
        asked = self._weighed(terms)
        found = np.zeros((len(rows), len(terms)), np.float32)
        of = np.searchsorted(self.header.columns.starts, rows, side="right") - 1
        for number, segment in enumerate(self.segments):
            here = np.flatnonzero(of == number)
            if len(here):
                numbered = [(fact.numbers[number], weight) for fact, weight in asked]
                own = np.asarray(rows)[here] - int(self.header.columns.starts[number])
                found[here] = segment.lexicon.postings.weights(numbered, self._mean, own)
        return found

    def profiles(self, rows: Sequence[int]) -> list[Profile]:
        return [
            unpack(data, f"profile {row}")
            for row, data in zip(rows, self._parts(rows, lambda segment: segment.profiles), strict=True)
        ]

    def records(self, rows: Sequence[int]) -> list[IssueRecord]:
        lines = self._parts(rows, lambda one: one.records)
        try:
            return [IssueRecord.from_dict(json.loads(line)) for line in lines]
        except (KeyError, ValueError, TypeError, RecursionError) as error:
            raise IndexCorrupt(f"holds no record ({error!r})", path=self.folder, hint="`kb build`") from None

    def _parts(self, rows: Sequence[int], of: Callable[[Segment], Parts]) -> Iterator[bytes]:
        for row in rows:
            number, own = self.header.columns.place(row)
            yield of(self.segments[number]).read(own)

    def prints(self) -> list[tuple[int, Prints]]:
        return [
            (start, segment.prints)
            for start, segment in zip(self.header.columns.starts.tolist(), self.segments, strict=False)
        ]

    def articles(self) -> list[tuple[str, str, int]]:
        """path, sha256 and number of records of every article, as published; sorted by path."""
        return sorted(
            one
            for number, segment in enumerate(self.segments)
            for place, one in enumerate(segment.articles())
            if (number, place) not in self.dead
        )
