"""Here is a folder; give me the nearest records in it. FAISS for the dense half, postings for the lexical half.

Vectors lie in a safetensors file and FAISS searches them where they are (`faiss.knn`, exact inner product), so that
it never parses a file (of 360 flipped bits in a FAISS file 13 loaded and answered wrongly) and nothing is built at
start. Exact search takes 2 ms over 50,000 vectors on one core; past some 200,000 a graph index would be worth its
recall.
"""

from __future__ import annotations

import hashlib
import json
import os
import weakref
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from kb.arrays import Array, dump, load
from kb.errors import IndexCorrupt, IndexMissing
from kb.index import snapshot
from kb.index.bm25 import Postings, weigh
from kb.index.passages import VIEW_KINDS
from kb.index.store import Batch, rank
from kb.records import IssueRecord, Lang, Ranking
from kb.text import HAN, Segmenter, clean, term_weights, tokenise

__all__ = ["FaissStore", "publish"]

# -ln p in technical text: `error` and `type` are at 6, `list` 7, `cuda` and `checkpoint` 9, `deque` 11, `sigfpe` 14.
COMMON, RARE = 5.0, 11.0
LEAST = 0.15  # of its idf, what the most common word still tells

# A base of three articles has hardly any idf: every word stands in a third of them. What a word tells is reckoned as if
# the base held at least as many records as the one that the ranking was fitted with, the rest about something else.
LEAST_RECORDS = 400

_LANGS: tuple[Lang, ...] = ("en", "zh")
_ATTEMPTS = 5  # how often an index may be replaced under a reader that is just opening it


def publish(folder: Path, batch: Batch) -> str:
    """Commits the batch to the folder and returns the snapshot's id. The caller holds `snapshot.locked(folder)`."""
    lines = [_line(record.as_dict()) for record in batch.records]
    starts = np.concatenate([[0], np.cumsum([len(line) for line in lines])]).astype(np.int64)
    digests = b"".join(hashlib.sha256(line).digest()[:8] for line in lines)
    issues = {issue: i for i, issue in enumerate(sorted({r.issue for r in batch.records}))}
    subjects = [{name.casefold() for name in (r.project, *r.tags) if name} for r in batch.records]
    names = sorted(set().union(*subjects))
    number = {name: i for i, name in enumerate(names)}
    about = [(row, number[name]) for row, found in enumerate(subjects) for name in sorted(found)]
    postings = weigh(batch.bags)
    log_p = np.fromiter((batch.han.get(term, 0.0) for term in postings.terms), np.float32, len(postings.terms))
    files = {
        "records.jsonl": b"".join(lines),
        "rows.safetensors": dump(
            {
                "starts": starts,
                "digests": np.frombuffer(digests, np.uint8).reshape(-1, 8),
                "issue": np.fromiter((issues[r.issue] for r in batch.records), np.int32, len(lines)),
                "lang": np.fromiter((_LANGS.index(r.lang) for r in batch.records), np.int32, len(lines)),
                "about": np.array(about, np.int32).reshape(-1, 2),  # row, number of a name among the subjects
            }
        ),
        "dense.safetensors": dump(
            {
                "views": batch.views.astype(np.float16),  # half the bytes to read and to check at every start
                "rows": batch.view_rows.astype(np.int32),
                "kinds": batch.view_kinds.astype(np.int32),
            }
        ),
        "lexical.safetensors": dump(
            {
                "terms": np.frombuffer("\n".join(postings.terms).encode("utf-8"), np.uint8),
                "log_p": log_p,
                "rarity": np.clip(
                    (np.array(batch.surprisal(postings.terms)) - COMMON) / (RARE - COMMON), LEAST, 1
                ).astype(np.float32),
                "starts": postings.starts,
                "rows": postings.rows,
                "counts": postings.counts,
                "weights": postings.weights,
                "idf": postings.idf,
            }
        ),
        "articles.jsonl": b"".join(_line(list(article)) for article in batch.articles),
    }
    counts = {
        "articles": len(batch.articles),
        "issues": len(issues),
        "records": len(lines),
        "views": len(batch.view_rows),
        "terms": len(postings.terms),
    }
    projects = sorted({r.project for r in batch.records if r.project})
    manifest = {**batch.manifest, "counts": counts, "projects": projects, "subjects": names}
    return snapshot.publish(folder, files, manifest)


def _line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


class FaissStore:
    """A published snapshot. It holds what it opened: later builds do not disturb it. Safe to share between threads."""

    manifest: dict[str, Any]
    snapshot: str

    def __init__(self, folder: Path) -> None:
        """Raises IndexMissing or IndexCorrupt."""
        self.folder = folder
        self._reading = Lock()
        self._release: weakref.finalize[..., FaissStore] | None = None
        for attempt in range(_ATTEMPTS):
            self.manifest, self.snapshot = snapshot.read_manifest(folder)
            try:
                self.close()  # of an attempt that came to nothing
                self._open(self.manifest["files"])
                return
            except FileNotFoundError as error:
                # Published anew between manifest and file: the next manifest names files that are there.
                if attempt == _ATTEMPTS - 1 or snapshot.read_manifest(folder)[1] == self.snapshot:
                    raise IndexCorrupt(
                        "a file that the manifest names is missing",
                        path=error.filename,
                        hint="`kb build` writes it anew",
                    ) from None
            except (KeyError, ValueError, TypeError, UnicodeDecodeError) as error:
                raise IndexCorrupt(
                    f"the index does not hold what it should ({error!r})", path=folder, hint="`kb build`"
                ) from None

    def _open(self, files: dict[str, Any]) -> None:
        folder = self.folder
        rows = load(snapshot.read_file(folder, files["rows"]), folder / files["rows"]["name"])
        dense = load(snapshot.read_file(folder, files["dense"]), folder / files["dense"]["name"])
        lexical = load(snapshot.read_file(folder, files["lexical"]), folder / files["lexical"]["name"])
        # Read by offset, each record against its own digest: a search shows a few of what may be many megabytes.
        # Not mapped: a file that is cut short under a mapping kills the process.
        with snapshot.open_file(folder, files["records"]) as file:
            self._records = os.dup(file.fileno())
        self._release = weakref.finalize(self, os.close, self._records)
        self._starts, self._digests = rows["starts"], rows["digests"]
        self._issue, self._lang, self._about = rows["issue"], rows["lang"], rows["about"]
        self._views = dense["views"].astype(np.float32)
        self._view_rows, self._view_kinds = dense["rows"], dense["kinds"]
        text = bytes(lexical["terms"]).decode("utf-8")
        self._postings = Postings(
            text.split("\n") if text else [],
            lexical["starts"],
            lexical["rows"],
            lexical["counts"],
            lexical["weights"],
            lexical["idf"],
            self.size,
        )
        self._log_p, self._rarity = lexical["log_p"], lexical["rarity"]
        self._check()
        df, most = np.diff(self._postings.starts), max(self.size, LEAST_RECORDS)
        self._tells = self._rarity * np.log1p((most - df + 0.5) / (df + 0.5)).astype(np.float32)
        self._factor = self._tells / np.maximum(self._postings.idf, 1e-6)
        self._unseen = float(np.log1p((most + 0.5) / 0.5))
        self._segmenter = Segmenter.from_vocabulary(self._postings.terms, self._log_p)

    def _check(self) -> None:
        """Files may each be whole and still not belong together (mem0 #7117: ids off by n, answers confident)."""
        n, p = self.size, self._postings
        agree = (
            self._digests.shape == (n, 8)
            and self._issue.shape == self._lang.shape == (n,)
            and self._about.ndim == 2
            and self._about.shape[1] == 2
            and self._views.ndim == 2
            and self._view_rows.shape == self._view_kinds.shape == (len(self._views),)
            and len(p.starts) == len(p.terms) + 1
            and len(self._log_p) == len(self._rarity) == len(p.idf) == len(p.terms)
            and len(p.rows) == len(p.counts) == len(p.weights) == (p.starts[-1] if len(p.starts) else 0)
            and (not len(self._view_rows) or 0 <= self._view_rows.min() <= self._view_rows.max() < n)
            and (not len(self._view_kinds) or 0 <= self._view_kinds.min() <= self._view_kinds.max() < len(VIEW_KINDS))
            and (not len(p.rows) or 0 <= p.rows.min() <= p.rows.max() < n)
            and bool(np.isfinite(self._views).all())
            and (self._starts[-1] if len(self._starts) else -1) == self.manifest["files"]["records"]["bytes"]
            and self.manifest["counts"]["records"] == n
            and self.manifest["counts"]["views"] == len(self._views)
            and self.manifest["counts"]["terms"] == len(p.terms)
            and self.manifest["encoder"]["dim"] == self._views.shape[1]
            and isinstance(self.manifest["encoder"]["name"], str)
            and all(isinstance(self.manifest[key], list) for key in ("projects", "subjects"))
            and all(isinstance(name, str) for key in ("projects", "subjects") for name in self.manifest[key])
        )
        if not agree:
            raise IndexCorrupt("the files of the index do not belong together", path=self.folder, hint="`kb build`")

    def close(self) -> None:
        if self._release is not None:
            self._release()

    @property
    def size(self) -> int:
        return len(self._starts) - 1

    def rows(self, *, lang: Lang | None = None, project: str | None = None) -> Array | None:
        if lang is None and project is None:
            return None
        keep = np.ones(self.size, bool)
        if lang is not None:
            keep &= self._lang == _LANGS.index(lang)
        if project is not None:
            number = self._number(project)
            keep &= np.isin(np.arange(self.size), self._about[self._about[:, 1] == number, 0])
        return np.flatnonzero(keep)

    def _number(self, subject: str) -> int:
        """The number of a project or tag, in any letter case; -1 when no record is about it."""
        names, wanted = self.manifest["subjects"], subject.casefold()
        at = bisect_left(names, wanted)
        return at if at < len(names) and names[at] == wanted else -1

    def dense(self, vectors: Array, k: int, rows: Array | None = None) -> Ranking:
        import faiss

        vectors = np.ascontiguousarray(vectors[np.any(vectors != 0, axis=1)], np.float32)
        views, owners = self._views, self._view_rows
        if rows is not None:
            inside = np.isin(owners, rows)
            views, owners = np.ascontiguousarray(views[inside]), owners[inside]
        if not len(vectors) or not len(views) or k <= 0:
            return Ranking((), ())
        if len(vectors) <= 8:
            faiss.omp_set_num_threads(1)  # one query, 50,000 vectors: 1.9 ms; with two threads on a busy machine 32
        # A record has a few views and every one may be among the nearest: ask until the k best records are sure.
        wanted, most = k * 4, len(views)
        while True:
            depth = min(wanted, most)
            cosines, found = faiss.knn(vectors, views, depth, metric=faiss.METRIC_INNER_PRODUCT)
            best = np.zeros(self.size, np.float32)
            flat = found.ravel()
            valid = flat >= 0
            np.maximum.at(best, owners[flat[valid]], cosines.ravel()[valid])
            ranking = rank(best, k)
            # What was not seen is no nearer than the last that was; as near as the k-th, it might come before it.
            unseen = float(cosines[:, -1].max())
            if depth == most or unseen <= 0 or (len(ranking.rows) == k and ranking.scores[-1] > unseen):
                return ranking
            wanted *= 4

    def lexical(self, terms: Sequence[str], k: int, rows: Array | None = None) -> Ranking:
        scores = self._postings.scores(terms)
        return rank(scores, k) if rows is None else rank(scores[rows], k, rows)

    def cosines(self, vectors: Array, rows: Sequence[int]) -> Array:
        found = np.zeros((len(rows), len(VIEW_KINDS)), np.float32)
        if not len(vectors) or not len(rows):
            return found
        firsts = np.searchsorted(self._view_rows, rows, side="left")
        counts = np.searchsorted(self._view_rows, rows, side="right") - firsts
        # Every view of every row, as positions in the table: firsts[i], firsts[i] + 1, ... one row after the other.
        which = np.repeat(np.arange(len(rows)), counts)
        at = np.arange(len(which)) + np.repeat(firsts - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        # Not `@`: BLAS would wake its threads, which cost more than these few products on a machine that is busy.
        cosines = np.einsum("vd,qd->vq", self._views[at], vectors).max(axis=1)
        np.maximum.at(found, (which, self._view_kinds[at]), cosines)
        return found

    def tokenise(self, text: str) -> list[str]:
        return tokenise(clean(text), self._segmenter)

    def shares(self, text: str) -> dict[str, float]:
        return term_weights(clean(text), self._segmenter)

    def information(self, terms: Sequence[str]) -> Array:
        numbers = np.fromiter(map(self._postings.find, terms), np.int64, len(terms))
        if not len(self._tells):
            return np.full(len(terms), self._unseen, np.float32)
        return np.where(numbers >= 0, self._tells[numbers], self._unseen).astype(np.float32)

    def weights(self, terms: Sequence[str], rows: Sequence[int]) -> Array:
        p = self._postings
        wanted = np.asarray(rows, np.int64)
        found = np.zeros((len(terms), len(rows)), np.float32)
        spread = np.zeros(self.size, np.float32)  # one term's weights, where its records are
        for number, into in zip(map(p.find, terms), found, strict=True):
            if number >= 0:
                span = slice(p.starts[number], p.starts[number + 1])
                there = p.rows[span]
                spread[there] = p.weights[span]
                np.multiply(spread[wanted], self._factor[number], out=into)
                spread[there] = 0
        return found.T

    def issues(self, rows: Sequence[int] | Array) -> Array:
        return self._issue[np.asarray(rows, np.int64)]

    def tellings(self, rows: Sequence[int], within: Array | None = None) -> tuple[Array, Array]:
        same = np.isin(self._issue, self._issue[np.asarray(rows, np.int64)])
        found = np.flatnonzero(same) if within is None else within[same[within]]
        found = found[np.argsort(self._issue[found], kind="stable")]
        return found, self._issue[found]

    def telling(self, row: int, lang: Lang) -> int:
        same = np.flatnonzero((self._issue == self._issue[row]) & (self._lang == _LANGS.index(lang)))
        return int(same[0]) if len(same) else row

    def records(self, rows: Sequence[int]) -> list[IssueRecord]:
        """Raises IndexCorrupt when a record is not what was written."""
        return [IssueRecord.from_dict(json.loads(self._read(row))) for row in rows]

    def _read(self, row: int) -> bytes:
        first, last = int(self._starts[row]), int(self._starts[row + 1])
        if self._release is None or not self._release.alive:
            raise IndexMissing("this base is closed", hint="open it anew")
        data = self._bytes(first, last - first)
        if hashlib.sha256(data).digest()[:8] != self._digests[row].tobytes():
            path = self.folder / self.manifest["files"]["records"]["name"]
            raise IndexCorrupt(f"record {row} is damaged", path=path, hint="`kb build` writes it anew")
        return data

    def _bytes(self, offset: int, size: int) -> bytes:
        if hasattr(os, "pread"):  # forked processes share a position in the file
            return os.pread(self._records, size, offset)
        with self._reading:
            os.lseek(self._records, offset, os.SEEK_SET)
            return os.read(self._records, size)

    def articles(self) -> list[tuple[str, str, int]]:
        """path, sha256 and number of records of every article, as published."""
        data = snapshot.read_file(self.folder, self.manifest["files"]["articles"])
        return [(path, digest, count) for path, digest, count in map(json.loads, data.splitlines())]

    def batch(self) -> tuple[list[IssueRecord], list[dict[str, int]], Array, Array, Array, dict[str, float]]:
        """Everything a later build starts from: records, bags, views, view rows, view kinds, Chinese terms."""
        data = snapshot.read_file(self.folder, self.manifest["files"]["records"])
        records = [IssueRecord.from_dict(json.loads(line)) for line in data.splitlines()]
        first = bisect_left(self._postings.terms, HAN[0])
        log_p = self._log_p.tolist()
        han = {term: log_p[i] for i, term in enumerate(self._postings.terms[first:], first) if log_p[i] < 0}
        return records, self._postings.bags(), self._views, self._view_rows, self._view_kinds, han
