"""The segments that a build has in hand: those of the last snapshot, those of a build that was interrupted, new ones.

A piece is a segment and which of its articles still count. What an interrupted build had finished is noted in a file
beside the manifest, and taken up by the next build of the same program, encoder and settings, so that nothing is read
and encoded a second time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from kb.arrays import Array
from kb.errors import IndexCorrupt, IndexMissing
from kb.index import snapshot
from kb.index.chunk import Chunk
from kb.index.faiss import FaissStore, files_of
from kb.index.intake import key_of
from kb.index.segment import Segment
from kb.index.snapshot import Entry
from kb.index.writer import Made, SegmentWriter

__all__ = [
    "MOST_OF_A_TIER",
    "ONE_UP_TO",
    "SEGMENT",
    "Piece",
    "forget",
    "joined",
    "last_snapshot",
    "remember",
    "tidy",
    "to_join",
    "unfinished",
]

ONE_UP_TO = 10_000
"""records; a smaller base is always one segment: to write it anew takes a second, and the same articles give the same
bytes, whatever was edited on the way"""

SEGMENT = 250_000
"""records from which on a segment is closed: a build then needs some 2 GB"""

MOST_OF_A_TIER = 8
"""segments of one order of magnitude: when there are so many they are joined, as Lucene does"""

_SMALLEST = 1000  # records; all smaller segments are of one tier
_MOSTLY_DEAD = 0.5
_UNFINISHED = ".unfinished"
_MAX_BYTES = 1 << 20


@dataclass(eq=False)
class Piece:
    files: Mapping[str, Entry]
    counts: Mapping[str, int]
    projects: Sequence[str]
    segment: Segment
    articles: Sequence[tuple[str, str, int]]
    """path, sha256, number of records; in the order of the rows"""
    dead: set[int] = field(default_factory=set)
    """places in `articles` that count no more"""

    @classmethod
    def of(cls, folder: Path, made: Made) -> Piece:
        segment = Segment(folder, made.files)
        return cls(made.files, made.counts, sorted(made.projects), segment, segment.articles())

    @property
    def live(self) -> int:
        """Records that count."""
        return sum(count for place, (_, _, count) in enumerate(self.articles) if place not in self.dead)

    def dead_rows(self) -> Array:
        """(rows,) int64: of the articles that count no more."""
        starts = np.concatenate([[0], np.cumsum([count for _, _, count in self.articles])]).tolist()
        spans = [np.arange(starts[place], starts[place + 1]) for place in sorted(self.dead)]
        return np.concatenate([np.zeros(0, np.int64), *spans]).astype(np.int64)

    def issues(self) -> int:
        """How many issues count."""
        if not self.dead:
            return self.counts["issues"]
        return len(np.unique(np.delete(self.segment.rows.issue, self.dead_rows())))

    def as_dict(self) -> dict[str, Any]:
        """What a manifest says of it."""
        return {"counts": dict(self.counts), "projects": list(self.projects)}


def last_snapshot(folder: Path, made_by: Mapping[str, Any]) -> list[Piece]:
    """Nothing where there is no snapshot, or another program or encoder made it, or something else was assumed: it is
    derived, and made anew from the articles."""
    with contextlib.suppress(IndexMissing, IndexCorrupt, FileNotFoundError):
        store = FaissStore(folder)
        for segment in store.segments:
            segment.verify()
        manifest = store.header.manifest
        if {key: manifest.get(key) for key in made_by} == made_by:
            dead: dict[int, set[int]] = {}
            for number, place in store.dead:
                dead.setdefault(number, set()).add(place)
            return [
                Piece(files_of(manifest, n), one["counts"], one["projects"], segment, articles, dead.get(n, set()))
                for n, (one, segment) in enumerate(zip(manifest["segments"], store.segments, strict=True))
                for articles in [segment.articles()]
            ]
    return []


def unfinished(folder: Path, made_by: Mapping[str, Any]) -> list[Piece]:
    """What a build that did not come to its end had finished."""
    found: list[Piece] = []
    noted = _noted(folder)
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError, AttributeError, IndexCorrupt):
        if noted["made_by"] == made_by:
            for one in noted["segments"]:
                segment = Segment(folder, one["files"])
                segment.verify()
                found.append(Piece(one["files"], one["counts"], one["projects"], segment, segment.articles()))
    return found


def _noted(folder: Path) -> dict[str, Any]:
    """Empty when there is no note, or none of ours."""
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        with snapshot.open_plainly(folder / _UNFINISHED) as file:
            digest, _, data = file.read(_MAX_BYTES + 1).partition(b"\n")
        if digest != _digest(data):  # what it counts would end in the manifest
            return {}
        noted: dict[str, Any] = json.loads(data)
        if all(snapshot.is_ours(entry) for one in noted["segments"] for entry in one["files"].values()):
            return noted
    return {}


def remember(folder: Path, made_by: Mapping[str, Any], pieces: Sequence[Piece]) -> None:
    """Notes what is finished. A note that cannot be written is no error."""
    noted = {"made_by": made_by, "segments": [{"files": dict(one.files), **one.as_dict()} for one in pieces]}
    data = json.dumps(noted).encode()
    with contextlib.suppress(OSError):
        snapshot.write(folder / _UNFINISHED, _digest(data) + b"\n" + data)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode("ascii")


def tidy(folder: Path) -> None:
    """After a build that came to nothing: removes what it wrote, but for what `remember` has noted."""
    with contextlib.suppress(IndexCorrupt):
        files: list[Entry] = [entry for one in _noted(folder).get("segments", ()) for entry in one["files"].values()]
        with contextlib.suppress(IndexMissing):
            files += snapshot.read_manifest(folder)[0]["files"].values()
        snapshot.sweep(folder, {entry["name"] for entry in files})


def forget(folder: Path) -> None:
    """After a snapshot was published."""
    with contextlib.suppress(OSError):
        (folder / _UNFINISHED).unlink()


def to_join(pieces: Sequence[Piece], *, compact: bool) -> list[Piece]:
    """Which of the pieces are written anew, as one or as several full segments."""
    live = [piece.live for piece in pieces]
    if compact or sum(live) <= ONE_UP_TO:
        return [] if len(pieces) == 1 and not pieces[0].dead else list(pieces)
    chosen = {n for n, piece in enumerate(pieces) if live[n] < (1 - _MOSTLY_DEAD) * piece.counts["records"]}
    tiers: dict[int, list[int]] = {}
    for n, size in enumerate(live):
        if size < SEGMENT:
            tiers.setdefault(int(math.log10(max(size, _SMALLEST))), []).append(n)
    for numbers in tiers.values():
        if len(numbers) >= MOST_OF_A_TIER:
            chosen.update(numbers)
    return [pieces[n] for n in sorted(chosen)]


def joined(folder: Path, pieces: Sequence[Piece]) -> Iterator[Made]:
    """Writes the articles that count as new segments, in the order of a build from nothing."""
    places = [
        (key_of(path), path, number, place)
        for number, piece in enumerate(pieces)
        for place, (path, _, _) in enumerate(piece.articles)
        if place not in piece.dead
    ]
    places.sort()
    if not places:
        return
    cuts = [i for i, (one, other) in enumerate(pairwise(places), 1) if (one[2], one[3] + 1) != (other[2], other[3])]
    runs = [(places[a][2], places[a][3], places[b - 1][3] + 1) for a, b in pairwise([0, *cuts, len(places)])]
    sources = [
        piece.segment.chunks([(first, last) for n, first, last in runs if n == number])
        for number, piece in enumerate(pieces)
    ]
    writer = SegmentWriter(folder, pieces[0].segment.dim)
    try:
        for number, _, last in runs:
            for chunk in _until(sources[number], last):
                writer.add(chunk)
                if writer.size >= SEGMENT:
                    yield writer.finish()
                    writer = SegmentWriter(folder, pieces[0].segment.dim)
        if writer.size or writer.articles:
            yield writer.finish()
    finally:
        writer.discard()


def _until(chunks: Iterator[tuple[tuple[int, int], Chunk]], last: int) -> Iterator[Chunk]:
    end = -1
    while end != last:
        (_, end), chunk = next(chunks)
        yield chunk
