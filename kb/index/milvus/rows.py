"""What the engine gets of an index folder: a row for each record that counts, and rows for each of its views.

In memory is one segment's list of terms by record, some 15 bytes for each pair of a record and a term.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kb.arrays import Array, dump
from kb.index import snapshot
from kb.index.bm25 import idf
from kb.index.faiss import FaissStore
from kb.index.milvus.layout import MANIFEST_ROW, MOST_SUBJECTS, NOTHING, PIECE, pack, pack_views
from kb.index.milvus.words import merged
from kb.index.segment import Segment

__all__ = ["Row", "Source", "kept"]

Row = dict[str, Any]

_AT_ONCE = 256  # records


class Source:
    """An opened index folder, as rows."""

    def __init__(self, store: FaissStore) -> None:
        self._store = store
        words, self._numbers = merged([segment.lexicon for segment in store.segments])
        columns = store.header.columns
        self._idf = idf(words["dfs"].astype(np.int64), columns.size)
        total = sum(segment.lexicon.postings.total for segment in store.segments)
        self._mean = total / columns.size if total else 1.0
        self._words = dump(words)
        self._subjects = {name: number for number, name in enumerate(columns.subjects())}
        self.dim: int = store.segments[0].dim
        self.size: int = len(columns.rows())
        """records that count"""

    def rows(self) -> Iterator[tuple[Row, list[Row]]]:
        """Of each record that counts: its row, and those of its views."""
        columns = self._store.header.columns
        live, views = columns.rows(), 0
        for at, segment in enumerate(self._store.segments):
            start = int(columns.starts[at])
            own = live[(live >= start) & (live < start + segment.size)] - start
            weighed = _Weighed(segment, self._idf[self._numbers[at]], self._numbers[at], self._mean)
            for first in range(0, len(own), _AT_ONCE):
                for row, vectors, kinds in _with_views(segment, own[first : first + _AT_ONCE]):
                    known = self._known(start + row)
                    record = {
                        **known,
                        "terms": weighed.of(row) or dict(NOTHING),
                        "record": pack(segment.records.read(row)),
                        "profile": pack(segment.profiles.read(row)),
                        "views": pack_views(vectors, kinds),
                    }
                    wide = vectors.astype(np.float32)  # Milvus Lite has no float16; the numbers are the same
                    yield record, [{**known, "id": views + n, "vector": vector} for n, vector in enumerate(wide)]
                    views += len(wide)

    def _known(self, row: int) -> Row:
        columns = self._store.header.columns
        about = [self._subjects[name] for name in columns.subjects_of(row)]
        return {"row": row, "lang": int(columns.lang[row]), "subjects": about[:MOST_SUBJECTS]}

    def header(self) -> tuple[dict[str, Any], Iterator[Row]]:
        """What a reader wants at once: of each file what a manifest says of it and in which rows it is; and the rows,
        which must be read to their end."""
        files = self._store.header.manifest["files"]
        parts = {key: files[key] for key in files if key.partition(".")[0] in ("rows", "dead", "same")}
        digest = hashlib.sha256(self._words).hexdigest()
        name = f"words-{digest[:12]}.safetensors"
        whole = {**parts, "words": {"name": name, "bytes": len(self._words), "sha256": digest}}
        noted: dict[str, Any] = {}
        below = MANIFEST_ROW
        for key, entry in whole.items():
            count = -(-entry["bytes"] // PIECE)
            noted[key] = {**entry, "first": below - 1, "pieces": count}
            below -= count
        return noted, self._pieces(parts)

    def _pieces(self, parts: Mapping[str, Any]) -> Iterator[Row]:
        row = MANIFEST_ROW
        blocks = [_blocks(self._store.folder, entry) for entry in parts.values()]
        words = (self._words[at : at + PIECE] for at in range(0, len(self._words), PIECE))
        for one in (*blocks, words):
            for block in one:
                row -= 1
                yield kept(row, block)


def kept(row: int, data: bytes) -> Row:
    """A row that is no record."""
    nothing: dict[str, Any] = {"lang": -1, "subjects": [], "terms": dict(NOTHING), "profile": [], "views": []}
    return {**nothing, "row": row, "record": pack(data)}


def _blocks(folder: Path, entry: Mapping[str, Any]) -> Iterator[bytes]:
    with snapshot.open_file(folder, entry) as file:
        while block := file.read(PIECE):
            yield block


def _with_views(segment: Segment, rows: Array) -> Iterator[tuple[int, Array, Array]]:
    """Of each of the rows: its vectors as float16, and their kinds."""
    views = segment.vectors.of(rows)
    firsts, lasts = np.searchsorted(views.rows, [rows, rows + 1]).tolist()
    for row, first, last in zip(rows.tolist(), firsts, lasts, strict=True):
        yield row, views.vectors[first:last].astype(np.float16), views.kinds[first:last]


class _Weighed:
    """The BM25 weights of the terms of each record of a segment, as `FaissStore.weights` has them."""

    def __init__(self, segment: Segment, factors: Array, numbers: Array, mean: float) -> None:
        """Of each term of the segment: its idf, and its number in the base."""
        self._factors, self._numbers, self._mean = factors, numbers, mean
        self._postings = segment.lexicon.postings
        self._starts, self._terms, self._counts = self._postings.by_record()

    def of(self, row: int) -> dict[int, float]:
        span = slice(*self._starts[[row, row + 1]].tolist())
        terms, counts = self._terms[span], self._counts[span]
        saturation = self._postings.saturation(np.full(len(terms), row), counts, self._mean)
        weights = (self._factors[terms] * saturation).astype(np.float32)
        keep = weights > 0
        return dict(zip((self._numbers[terms[keep]] + 1).tolist(), weights[keep].tolist(), strict=True))
