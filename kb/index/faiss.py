"""A store in a folder. FAISS searches the vectors, an inverted index the terms.

Vectors lie in a safetensors file as half floats, and FAISS searches them as they are (a flat index of half floats,
exact inner product), so that it never parses a file (of 360 flipped bits in a FAISS file 13 loaded and answered
wrongly) and nothing is converted at start. Exact search takes 2 ms over 50,000 vectors on one core; past some 200,000 a
graph index would be worth its recall. docs/index-format.md describes the files.
"""

from __future__ import annotations

import json
import re
import sys
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kb.arrays import Array, dump, load
from kb.errors import IndexCorrupt
from kb.index import snapshot
from kb.index.bm25 import Bag, Postings
from kb.index.header import LANGS, Columns, Header, Vocabulary
from kb.index.parts import Parts, digests_of, starts_of
from kb.index.passages import View
from kb.index.profile import Profile, unpack
from kb.index.store import Views, rank
from kb.records import IssueRecord, Ranking
from kb.text import HAN

if TYPE_CHECKING:
    from kb.index.batch import Batch

__all__ = ["FaissStore", "publish"]

_ATTEMPTS = 5  # how often an index may be replaced under a reader that is just opening it
_MOST_KEPT = 1 << 24  # numbers in the table of vectors that are also kept as float32: 64 MB


def publish(folder: Path, batch: Batch) -> str:
    """Commits the batch to the folder and returns the snapshot's id. The caller holds `snapshot.locked(folder)`."""
    from kb.index.faults import faults  # late: a search has no use for it

    lines = [_line(record.as_dict()) for record in batch.records]
    issues = {issue: i for i, issue in enumerate(sorted({r.issue for r in batch.records}, key=_by_version))}
    subjects = [{name.casefold() for name in (r.project, *r.tags) if name} for r in batch.records]
    names = sorted(set().union(*subjects))
    number = {name: i for i, name in enumerate(names)}
    about = [(row, number[name]) for row, found in enumerate(subjects) for name in sorted(found)]
    postings = batch.postings
    log_p = np.fromiter((batch.han.get(term, 0.0) for term in postings.terms), np.float32, len(postings.terms))
    files = {
        "records.jsonl": b"".join(lines),
        "profiles.bin": b"".join(batch.profiles),
        "rows.safetensors": dump(
            {
                "starts": starts_of(lines),
                "digests": digests_of(lines),
                "profile_starts": starts_of(batch.profiles),
                "profile_digests": digests_of(batch.profiles),
                "issue": np.fromiter((issues[r.issue] for r in batch.records), np.int32, len(lines)),
                "fault": np.array(faults(batch.records, batch.bags), np.int32),
                "lang": np.fromiter((LANGS.index(r.lang) for r in batch.records), np.int32, len(lines)),
                "about": np.array(about, np.int32).reshape(-1, 2),  # row, number of a name among the subjects
            }
        ),
        "dense.safetensors": dump(
            {
                "views": batch.views.vectors.astype(np.float16),  # half the bytes to read and to check at every start
                "rows": batch.views.rows.astype(np.int32),
                "kinds": batch.views.kinds.astype(np.int32),
            }
        ),
        "lexical.safetensors": dump(
            {
                "terms": np.frombuffer("\n".join(postings.terms).encode("utf-8"), np.uint8),
                "log_p": log_p,
                "surprisal": np.asarray(batch.surprisal, np.float32),
                "starts": postings.starts,
                "rows": postings.rows,
                "counts": postings.counts,
                "weights": postings.weights,
            }
        ),
        "articles.jsonl": b"".join(_line(list(article)) for article in batch.articles),
    }
    counts = {
        "articles": len(batch.articles),
        "issues": len(issues),
        "records": len(lines),
        "views": len(batch.views.rows),
        "terms": len(postings.terms),
    }
    projects = sorted({r.project for r in batch.records if r.project})
    manifest = {**batch.manifest, "counts": counts, "projects": projects, "subjects": names}
    return snapshot.publish(folder, files, manifest)


def _faiss() -> Any:
    """FAISS. Its loader tells of some ten steps at INFO when it is imported first, which is of no concern to a program
    that asks kb; its level is set back, and one that the program has set counts."""
    if "faiss" not in sys.modules:
        import logging

        loader = logging.getLogger("faiss.loader")
        if loader.level == logging.NOTSET:
            loader.setLevel(logging.WARNING)
            try:
                import faiss
            finally:
                loader.setLevel(logging.NOTSET)
    import faiss

    return faiss


def _by_version(issue: str) -> tuple[list[tuple[int, str]], str]:
    """Orders names so that that of version 1.10 comes after that of 1.9."""
    parts = re.split(r"(\d{1,18})", issue)  # a name begins with a text, empty or not: texts and numbers alternate
    return [(int(part), "") if n % 2 else (0, part) for n, part in enumerate(parts)], issue


def _line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


@dataclass(frozen=True)
class Contents:
    """Of a snapshot, what a later build starts from; row i is `records[i]`."""

    records: list[IssueRecord]
    bags: list[Bag]
    """the terms of each"""
    views: Views
    profiles: list[bytes]
    han: dict[str, float]
    """Chinese terms -> log probability"""


class FaissStore:
    """A published snapshot, opened. Later builds do not disturb it. Safe to share between threads."""

    header: Header

    def __init__(self, folder: Path) -> None:
        """Raises IndexMissing or IndexCorrupt."""
        self.folder = folder
        self._records: Parts | None = None
        self._profiles: Parts | None = None
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
            except (KeyError, ValueError, TypeError, UnicodeDecodeError) as error:
                raise IndexCorrupt(
                    f"the index does not hold what it should ({error!r})", path=folder, hint="`kb build`"
                ) from None

    def _open(self, manifest: dict[str, Any], identity: str) -> None:
        folder, files = self.folder, manifest["files"]
        rows = load(snapshot.read_file(folder, files["rows"]), folder / files["rows"]["name"])
        dense = load(snapshot.read_file(folder, files["dense"]), folder / files["dense"]["name"])
        lexical = load(snapshot.read_file(folder, files["lexical"]), folder / files["lexical"]["name"])
        self._records = Parts(folder, files["records"], rows["starts"], rows["digests"])
        self._profiles = Parts(folder, files["profiles"], rows["profile_starts"], rows["profile_digests"])
        text = bytes(lexical["terms"]).decode("utf-8")
        terms = text.split("\n") if text else []
        columns = Columns(rows["issue"], rows["fault"], rows["lang"], rows["about"], manifest["subjects"])
        vocabulary = Vocabulary(terms, np.diff(lexical["starts"]), lexical["surprisal"], lexical["log_p"])
        self.header = Header(manifest, identity, columns, vocabulary)
        self._views = Views(dense["views"], dense["rows"], dense["kinds"])  # half floats, unlike what `views` gives
        self._postings = Postings(
            terms,
            lexical["starts"],
            lexical["rows"],
            lexical["counts"],
            lexical["weights"],
            self.size,
        )
        self._check(manifest)

    def _check(self, manifest: dict[str, Any]) -> None:
        """Files may each be whole and still not belong together (mem0 #7117: ids off by n, answers confident)."""
        n, p, v, columns, vocabulary = (
            self.size,
            self._postings,
            self._views,
            self.header.columns,
            self.header.vocabulary,
        )
        agree = (
            self._records is not None
            and self._profiles is not None
            and self._records.size == self._profiles.size == n
            and columns.issue.shape == columns.fault.shape == columns.lang.shape == (n,)
            and columns.about.ndim == 2
            and columns.about.shape[1] == 2
            and v.vectors.dtype == np.float16
            and v.vectors.ndim == 2
            and v.rows.shape == v.kinds.shape == (len(v.vectors),)
            and len(p.starts) == len(p.terms) + 1
            and len(vocabulary.log_p) == len(vocabulary.surprisal) == len(p.terms)
            and len(p.rows) == len(p.counts) == len(p.weights) == (p.starts[-1] if len(p.starts) else 0)
            and (not len(v.rows) or 0 <= v.rows.min() <= v.rows.max() < n)
            and (not len(v.kinds) or 0 <= v.kinds.min() <= v.kinds.max() < len(View))
            and (not len(p.rows) or 0 <= p.rows.min() <= p.rows.max() < n)
            # All are finite: in the place of np.isfinite, which takes six times as long for half floats.
            and bool(((v.vectors.view(np.uint16) & 0x7C00) != 0x7C00).all())
            and bool(np.isfinite(p.weights).all() and np.isfinite(vocabulary.surprisal).all())
            and bool((np.diff(p.starts) >= 0).all())
            and (not len(p.starts) or p.starts[0] == 0)
            and bool((np.diff(v.rows) >= 0).all())
            and (not n or 0 <= columns.lang.min() <= columns.lang.max() < len(LANGS))
            and manifest["counts"]["records"] == n
            and manifest["counts"]["views"] == len(v.vectors)
            and manifest["counts"]["terms"] == len(p.terms)
            and manifest["encoder"]["dim"] == v.vectors.shape[1]
            and isinstance(manifest["encoder"]["name"], str)
            and all(isinstance(manifest[key], list) for key in ("projects", "subjects"))
            and all(isinstance(name, str) for key in ("projects", "subjects") for name in manifest[key])
        )
        if not agree:
            raise IndexCorrupt("the files of the index do not belong together", path=self.folder, hint="`kb build`")

    def close(self) -> None:
        for parts in (self._records, self._profiles):
            if parts is not None:
                parts.close()

    @property
    def size(self) -> int:
        return len(self.header.columns.issue)

    def dense(self, vector: Array, k: int, rows: Array | None = None) -> Ranking:
        faiss = _faiss()

        owners, most, within = self._views.rows, len(self._views.rows), None
        if rows is not None:
            inside = np.isin(owners, rows)
            most = int(inside.sum())
            within = faiss.SearchParameters(sel=faiss.IDSelectorBitmap(np.packbits(inside, bitorder="little")))
        if not np.any(vector) or not most or k <= 0:
            return Ranking((), ())
        faiss.omp_set_num_threads(1)  # one query, 50,000 vectors: 1.9 ms; with two threads on a busy machine 32
        query = np.ascontiguousarray(vector[None], np.float32)
        # A record has a few views and every one may be among the nearest: ask until the k best records are sure.
        wanted = k * 4
        while True:
            depth = min(wanted, most)
            cosines, found = self._halves.search(query, depth, params=within)
            best = np.zeros(self.size, np.float32)
            valid = found[0] >= 0
            np.maximum.at(best, owners[found[0][valid]], cosines[0][valid])
            seen = np.flatnonzero(best)
            ranking = rank(best[seen], k, seen)
            # What was not seen is no nearer than the last that was; as near as the k-th, it might come before it.
            unseen = float(cosines[0, -1])
            if depth == most or unseen <= 0 or (len(ranking.rows) == k and ranking.scores[-1] > unseen):
                return ranking
            wanted *= 4

    @cached_property
    def _halves(self) -> Any:
        """The vectors as FAISS takes them: one copy, made when first searched."""
        faiss = _faiss()

        vectors = self._views.vectors
        index = faiss.IndexScalarQuantizer(vectors.shape[1], faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
        faiss.copy_array_to_vector(vectors.view(np.uint8).ravel(), index.codes)
        index.ntotal, index.is_trained = len(vectors), True
        return index

    def lexical(self, terms: Sequence[str], k: int, rows: Array | None = None) -> Ranking:
        scores = self._postings.scores(terms)
        return rank(scores, k) if rows is None else rank(scores[rows], k, rows)

    def views(self, rows: Array) -> Views:
        owners = self._views.rows
        firsts = np.searchsorted(owners, rows, side="left")
        counts = np.searchsorted(owners, rows, side="right") - firsts
        # Every view of every row, as positions in the table: firsts[i], firsts[i] + 1, ... one row after the other.
        at = np.arange(counts.sum()) + np.repeat(firsts - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        return Views(self._floats(rows, at), owners[at], self._views.kinds[at])

    def _floats(self, rows: Array, at: Array) -> Array:
        """(len(at), dim) float32: the vectors at these places of the table, all those of `rows`. The same records are
        near to many questions, and to widen their halves takes longer than to compare them: it is done once for each,
        unless the table is too large to be kept twice."""
        if self._views.vectors.size > _MOST_KEPT:
            return self._views.vectors[at].astype(np.float32)
        wide, is_wide = self._widened
        if not is_wide[rows].all():
            wide[at] = self._views.vectors[at]
            is_wide[rows] = True  # only now: another thread may ask for the same rows
        return wide[at]

    @cached_property
    def _widened(self) -> tuple[Array, Array]:
        """The table of vectors as float32, and of which rows it holds them. What is not written to takes no memory."""
        return np.empty(self._views.vectors.shape, np.float32), np.zeros(self.size, bool)

    def weights(self, terms: Sequence[str], rows: Array) -> Array:
        p = self._postings
        found = np.zeros((len(terms), len(rows)), np.float32)
        spread = np.zeros(self.size, np.float32)  # one term's weights, where its records are
        for number, into in zip(map(p.find, terms), found, strict=True):
            if number >= 0:
                span = slice(p.starts[number], p.starts[number + 1])
                there = p.rows[span]
                spread[there] = p.weights[span]
                into[:] = spread[rows]
                spread[there] = 0
        return found.T

    def profiles(self, rows: Sequence[int]) -> list[Profile]:
        assert self._profiles is not None
        return [unpack(self._profiles.read(row), f"profile {row}") for row in rows]

    def records(self, rows: Sequence[int]) -> list[IssueRecord]:
        assert self._records is not None
        return [IssueRecord.from_dict(json.loads(self._records.read(row))) for row in rows]

    def articles(self) -> list[tuple[str, str, int]]:
        """path, sha256 and number of records of every article, as published."""
        data = snapshot.read_file(self.folder, self.header.manifest["files"]["articles"])
        return [(path, digest, count) for path, digest, count in map(json.loads, data.splitlines())]

    def contents(self) -> Contents:
        """Everything a later build starts from."""
        files = self.header.manifest["files"]
        records = snapshot.read_file(self.folder, files["records"])
        profiles = snapshot.read_file(self.folder, files["profiles"])
        assert self._profiles is not None
        bounds = self._profiles.starts.tolist()
        vocabulary = self.header.vocabulary
        first = bisect_left(vocabulary.terms, HAN[0])
        log_p = vocabulary.log_p.tolist()
        return Contents(
            [IssueRecord.from_dict(json.loads(line)) for line in records.splitlines()],
            self._postings.bags(),
            Views(self._views.vectors.astype(np.float32), self._views.rows, self._views.kinds),
            [profiles[start:end] for start, end in pairwise(bounds)],
            {term: log_p[i] for i, term in enumerate(vocabulary.terms[first:], first) if log_p[i] < 0},
        )
