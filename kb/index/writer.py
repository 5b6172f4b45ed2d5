"""Writes one segment of an index: chunks of articles in, the files of the segment out.

What grows with the number of records goes to disk as it comes (records, profiles, vectors); in memory stay some 600
bytes a record for the terms and their places. What is decided among all records of a segment, such as which issues
tell the same fault, is decided at its end, from what the records say and not from where they came: the same records in
the same order give the same bytes. docs/index-format.md describes the files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Set
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kb.arrays import Array, Shape, load, stream
from kb.index import snapshot
from kb.index.chunk import Chunk
from kb.index.faults import faults
from kb.index.header import LANGS
from kb.index.invert import PostingsBuilder
from kb.index.mapped import note_made
from kb.index.parts import digests_of
from kb.index.prints import PrintsBuilder
from kb.index.profile import said
from kb.index.snapshot import Entry, Spool
from kb.index.terms import Terms
from kb.index.vectors import approximate

__all__ = ["Made", "SegmentWriter"]

_BLOCK = 1 << 16  # vectors that are read and written at once: 32 MB


@dataclass(frozen=True)
class Made:
    """A segment that lies in its folder, not yet named by a manifest."""

    files: dict[str, Entry]
    """stem -> what the manifest will say of it"""
    counts: dict[str, int]
    """articles, issues, records, views, terms; of an approximate index found_of_1000, the share of what is nearest that
    it finds"""
    projects: frozenset[str]


class SegmentWriter:
    """One at a time in a folder. The caller holds `snapshot.locked(folder)`."""

    def __init__(self, folder: Path, dim: int) -> None:
        self._folder, self._dim = folder, dim
        with ExitStack() as begun:  # all of them or none
            spools = []
            for name in ("records.jsonl", "profiles.bin", "views.bin"):
                spools.append(Spool(folder, name))
                begun.callback(spools[-1].discard)
            begun.pop_all()
        self._records, self._profiles, self._views = spools
        self.articles: list[tuple[str, str, int]] = []
        """what was added: path, sha256, number of records"""
        self._ids: list[str] = []
        self._subjects: list[tuple[str, ...]] = []
        self._projects: set[str] = set()
        self._found: int | None = None
        self._line_sizes: list[int] = []
        self._profile_sizes: list[int] = []
        self._columns: dict[str, list[Array]] = {
            name: [] for name in ("titles", "digests", "profile_digests", "kinds", "view_counts")
        }
        self._postings = PostingsBuilder()
        self._prints = PrintsBuilder()

    @property
    def size(self) -> int:
        """Records so far; none once they are written."""
        return len(self._ids)

    def add(self, chunk: Chunk) -> None:
        self.articles += chunk.articles
        self._ids += chunk.ids
        self._subjects += map(tuple, chunk.subjects)
        self._projects.update(filter(None, chunk.projects))
        self._line_sizes += map(len, chunk.lines)
        self._profile_sizes += map(len, chunk.profiles)
        columns = {
            "titles": chunk.titles,
            "digests": digests_of(chunk.lines),
            "profile_digests": digests_of(chunk.profiles),
            "kinds": chunk.kinds,
            "view_counts": chunk.view_counts,
        }
        for name, column in columns.items():
            self._columns[name].append(column)
        self._records.write(b"".join(chunk.lines))
        self._profiles.write(b"".join(chunk.profiles))
        self._views.write(np.ascontiguousarray(chunk.views, np.float16).tobytes())
        self._postings.add(chunk)
        self._prints.add(chunk)

    def discard(self) -> None:
        """Nothing is kept of what was added."""
        self._ids.clear()
        for spool in (self._records, self._profiles, self._views):
            spool.discard()

    def finish(self) -> Made:
        """Raises IndexWriteFailed."""
        try:
            return self._finish()
        finally:
            self.discard()

    def _finish(self) -> Made:
        n = self.size
        column = {name: _joined(blocks, name) for name, blocks in self._columns.items()}
        names = [one.rpartition("/")[0] for one in self._ids]
        ordered = {name: i for i, name in enumerate(sorted(set(names), key=_by_version))}
        issue = np.array([ordered[name] for name in names], np.int32)
        profile_starts = _starts(self._profile_sizes)

        def terms_of(row: int) -> Set[int]:
            first, last = profile_starts[row : row + 2].tolist()
            return said(load(self._profiles.read(first, last - first), "profile"))

        subjects = sorted(set().union(*self._subjects))
        number = {name: i for i, name in enumerate(subjects)}
        about = [(row, number[name]) for row, found in enumerate(self._subjects) for name in found]
        keys = sorted((one.casefold(), row) for row, one in enumerate(self._ids))
        fault = faults(issue, column["titles"], terms_of)
        lexical = self._postings.finish()
        rows = {
            "starts": _starts(self._line_sizes),
            "digests": column["digests"],
            "profile_starts": profile_starts,
            "profile_digests": column["profile_digests"],
            "issue": issue,
            "fault": fault,
            "by_fault": np.argsort(fault, kind="stable").astype(np.int32),
            "fault_starts": np.concatenate([[0], np.cumsum(np.bincount(fault))]).astype(np.int64),
            "titles": column["titles"],
            "by_title": np.argsort(column["titles"], kind="stable").astype(np.int32),
            "lang": np.array([LANGS.index(one.rpartition("/")[2]) for one in self._ids], np.int32),
            "about": np.array(about, np.int32).reshape(-1, 2),  # row, number of a name among the subjects
            **Terms.of(subjects).arrays("subjects"),
            **Terms.of([key for key, _ in keys]).arrays("ids"),
            "id_rows": np.array([row for _, row in keys], np.int32),
        }
        files = {
            "records": self._records.finish(),
            "profiles": self._profiles.finish(),
            "articles": snapshot.store(self._folder, "articles.jsonl", b"".join(map(_line, self.articles))),
            "rows": self._streamed("rows", rows),
            "lexical": self._streamed("lexical", lexical),
            "prints": self._streamed("prints", self._prints.finish()),
            **self._dense(column["kinds"], column["view_counts"]),
        }
        counts = {
            "articles": len(self.articles),
            "issues": len(ordered),
            "records": n,
            "views": len(column["kinds"]),
            "terms": len(lexical["log_p"]),
            **({"found_of_1000": self._found} if self._found is not None else {}),  # by an approximate index
        }
        return Made(files, counts, frozenset(self._projects))

    def _dense(self, kinds: Array, counts: Array) -> dict[str, Entry]:
        n = len(kinds)
        shape = n, self._dim
        views = np.memmap(self._views.opened(), np.float16, "r", shape=shape) if n else np.zeros(shape, np.float16)
        files: dict[str, Entry] = {}
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        if (near := approximate(views, starts)) is not None:
            files["near"] = snapshot.store(self._folder, "near.faiss", near.data.tobytes())
            self._found = round(near.recall * 1000)
            note_made(files["near"]["sha256"])
        blocks: Iterator[Array] = (views[at : at + _BLOCK] for at in range(0, n, _BLOCK))
        arrays: dict[str, Array | Shape] = {
            "views": Shape("<f2", (n, self._dim), blocks),
            "starts": starts,
            "kinds": kinds.astype(np.int32),
        }
        return {"dense": self._streamed("dense", arrays), **files}

    def _streamed(self, stem: str, arrays: Mapping[str, Array | Shape]) -> Entry:
        spool = Spool(self._folder, f"{stem}.safetensors")
        try:
            stream(spool.write, arrays)
            return spool.finish()
        finally:
            with suppress(OSError):
                spool.discard()


def _joined(blocks: list[Array], name: str) -> Array:
    if blocks:
        return np.concatenate(blocks)
    return np.zeros((0, 8), np.uint8) if "digests" in name else np.zeros(0, np.uint64)


def _starts(sizes: list[int]) -> Array:
    """(n + 1,) int64: where each part begins in the file of all of them, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _by_version(issue: str) -> tuple[list[tuple[int, str]], str]:
    """Orders names so that that of version 1.10 comes after that of 1.9."""
    parts = re.split(r"(\d{1,18})", issue)  # a name begins with a text, empty or not: texts and numbers alternate
    return [(int(part), "") if n % 2 else (0, part) for n, part in enumerate(parts)], issue


def _line(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"
