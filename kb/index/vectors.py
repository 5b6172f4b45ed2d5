"""The vectors of one segment: which of its records are nearest to a question, exact for few, approximate for many.

A segment never changes. Its vectors lie as half floats in the order of its records; a record has several ("views").
Few are searched by FAISS as they are, where they lie: nothing is parsed, copied or widened. For many there is a second,
smaller file of FAISS: of every two numbers of a view which of 16 pairs is nearest (a product quantiser), an eighth of
the size, and FAISS adds up the products of such pairs in registers, 3 ns a view. It only proposes views; their cosines
are taken from the half floats, so that scores are exact and comparable between segments. Lists around centroids (IVF)
were tried: at the same recall nearly all of them had to be read, which takes longer than to read codes without lists.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from kb.arrays import Array, finite
from kb.index.rank import rank
from kb.index.store import Views
from kb.index.threads import cores
from kb.records import Ranking

__all__ = ["Approximate", "Vectors", "approximate"]

MANY = 100_000
"""views; from here on a segment gets an approximate index: exact search takes 4 ms"""
_FEW = 1 << 10  # views that may be gathered and compared one by one; FAISS is faster over more
_PROPOSED = 200  # views whose cosines are taken, for up to 25 records
_FOR_EACH = 8  # views that are proposed for one record that is wanted
_MOST_GATHERED = 1 << 15  # proposals; before more are compared one by one, all views are read in order
_MOST_KEPT = 1 << 24  # numbers in the table of vectors that are also kept as float32: 64 MB
_BLOCK = 1 << 16  # views that are widened at once: 64 MB at 256 dimensions
_TRAINERS = 1 << 15  # views from which the quantiser learns its pairs
_SAMPLE = 128  # views that are asked for, to measure recall

Progress = Callable[[int, int], None]
"""how many views are done, of how many"""


class Vectors:
    """The vectors of a segment, opened. Safe to share between threads."""

    def __init__(self, views: Array, starts: Array, kinds: Array, near: Array | None = None) -> None:
        """`views`: (v, dim) float16, rows of norm 1 or 0, in the order of their records; `starts`: (n + 1,), record i
        owns the views `starts[i]` to `starts[i + 1]`; `kinds`: (v,) int32, a `kb.index.passages.View`; `near`: the
        bytes of `approximate`, (b,) uint8. All may be maps of files: opening reads `starts` and nothing else, and no
        copy is made.

        FAISS does not defend itself against a damaged or malicious file, so `near` must have been verified (sha256)
        before it comes here: it is parsed with the first question. Raises ValueError when the shapes do not agree.
        """
        if (
            views.ndim != 2
            or views.dtype != np.float16
            or not views.flags.c_contiguous
            or starts.ndim != 1
            or starts.dtype != np.int64
            or kinds.dtype != np.int32
            or not len(starts)
            or starts[0] != 0
            or starts[-1] != len(views)
            or kinds.shape != (len(views),)
            or (np.diff(starts) < 0).any()
        ):
            raise ValueError("views, starts and kinds do not belong together")
        self._views, self._starts, self._kinds, self._near = views, starts, kinds, near

    @property
    def size(self) -> int:
        """Records."""
        return len(self._starts) - 1

    def nearest(self, vector: Array, k: int, allowed: Array | None = None) -> Ranking:
        """The k records nearest to `vector` (dim,) by the cosine of their best view, of those that are `allowed`
        ((n,) bool; None for all). A vector of zeros, or of what are no numbers, and cosines of 0 or less match
        nothing."""
        most = len(self._views)
        if not np.any(vector) or not np.isfinite(vector).all() or not most or k <= 0:
            return Ranking((), ())
        if allowed is not None:
            most = int(self._counts[allowed].sum())
            if most <= _FEW:
                return self._compare(vector, k, np.flatnonzero(allowed))
        return self._search(np.ascontiguousarray(vector, np.float32), k, allowed, most)

    def _search(self, vector: Array, k: int, allowed: Array | None, most: int) -> Ranking:
        """By the index. A record has a few views and every one may be among the nearest; and some may not be allowed:
        more are asked for until the k best records are sure, as far as the index knows."""
        faiss = _faiss()
        faiss.omp_set_num_threads(1)  # one question over 50,000 vectors: 1.9 ms; with two threads on a busy machine 32
        if self._near is not None:
            return self._proposed(vector, k, allowed, most)
        chosen, asked, wanted = None, len(self._views), 4 * k
        if allowed is not None and 2 * most < asked:  # else most of what is found is allowed
            bits = np.packbits(np.repeat(allowed, self._counts), bitorder="little")
            chosen, asked = faiss.IDSelectorBitmap(bits), most
        while True:
            depth = min(wanted, asked)
            cosines, found = self._index.search(vector[None], depth, params=faiss.SearchParameters(sel=chosen))
            valid, unseen = found[0] >= 0, float(cosines[0, -1])
            ranking = self._ranked(found[0][valid], cosines[0][valid], k, allowed)
            # What was not seen is no nearer than the last that was; as near as the k-th, it might come before it.
            is_sure = len(ranking.rows) == k and ranking.scores[-1] > unseen
            if is_sure or unseen <= 0 or depth == asked or not valid.all():  # what is no number is near nothing
                return ranking
            wanted *= 4

    def _proposed(self, vector: Array, k: int, allowed: Array | None, most: int) -> Ranking:
        """By the cosines of what the index proposes; of all that are allowed, one by one, where that is too much."""
        wanted = max(_PROPOSED, _FOR_EACH * k) * len(self._views) // most
        while wanted < min(_MOST_GATHERED, len(self._views)):
            near, found = self._index.search(vector[None], wanted)
            ids = np.sort(found[0][found[0] >= 0])  # as they lie in the file
            # Not `@`: it would wake the threads of BLAS for a single question.
            values = np.einsum("vd,d->v", self._views[ids].astype(np.float32), vector)
            ranking = self._ranked(ids, values, k, allowed)
            if len(ranking.rows) == k and ranking.scores[-1] > near[0, -1]:
                return ranking
            wanted *= 4
        return self._compare(vector, k, np.arange(self.size) if allowed is None else np.flatnonzero(allowed))

    def _ranked(self, views: Array, cosines: Array, k: int, allowed: Array | None) -> Ranking:
        """The k best records of these views, of those that are allowed."""
        owners = np.searchsorted(self._starts, views, side="right") - 1
        if allowed is not None:
            inside = allowed[owners]
            owners, cosines = owners[inside], cosines[inside]
        return _best(owners, cosines, k)

    def _compare(self, vector: Array, k: int, rows: Array) -> Ranking:
        """By all views of these rows, one by one."""
        return rank(self._best_of(vector[None], rows)[0], k, rows)

    def _best_of(self, vectors: Array, rows: Array) -> Array:
        """(q, len(rows)) float32: the cosine of each vector (q, dim) with the best view of each row, 0 without one."""
        best = np.zeros((len(vectors), len(rows)), np.float32)
        counts = self._counts[rows]
        ends = np.cumsum(counts)
        at = 0
        while at < len(rows):
            until = max(at + 1, int(np.searchsorted(ends, (ends[at - 1] if at else 0) + _BLOCK, side="right")))
            some = at + np.flatnonzero(counts[at:until])
            if len(some):
                cosines = finite(np.einsum("qd,vd->qv", vectors, self._floats(rows[some])))
                firsts = np.concatenate([[0], np.cumsum(counts[some])[:-1]])
                best[:, some] = np.maximum.reduceat(cosines, firsts, axis=1)
            at = until
        return best

    def of(self, rows: Array) -> Views:
        """All vectors of `rows` (ascending)."""
        return Views(finite(self._floats(rows)), np.repeat(rows, self._counts[rows]), self._kinds[self._places(rows)])

    def _places(self, rows: Array) -> Array:
        """Where the views of these rows are: `starts[row]`, `starts[row] + 1`, ... one row after the other."""
        counts = self._counts[rows]
        firsts: Array = np.repeat(self._starts[rows] - np.cumsum(counts) + counts, counts)
        return firsts + np.arange(len(firsts))

    def _floats(self, rows: Array) -> Array:
        """(views of `rows`, dim) float32. The same records are near to many questions, and to widen their halves takes
        longer than to compare them: it is done once for each, unless the table is too large to be kept twice."""
        if self._views.size > _MOST_KEPT and len(rows) and rows[-1] - rows[0] == len(rows) - 1:
            return np.asarray(self._views[self._starts[rows[0]] : self._starts[rows[-1] + 1]], np.float32)
        places = self._places(rows)
        if self._views.size > _MOST_KEPT:
            return np.asarray(self._views[places], np.float32)
        wide, is_wide = self._widened
        if not is_wide[rows].all():
            wide[places] = self._views[places]
            is_wide[rows] = True  # only now: another thread may ask for the same rows
        return wide[places]

    @cached_property
    def _widened(self) -> tuple[Array, Array]:
        """The table of vectors as float32, and of which rows it holds them. What is not written to takes no memory."""
        return np.empty(self._views.shape, np.float32), np.zeros(self.size, bool)

    @cached_property
    def _counts(self) -> Array:
        return np.diff(self._starts)

    @cached_property
    def _index(self) -> Any:
        """What FAISS searches: the approximate index, or else the half floats, both where they lie."""
        faiss = _faiss()
        if self._near is not None:
            reader = faiss.ZeroCopyIOReader(faiss.swig_ptr(self._near), self._near.size)
            return faiss.read_index(reader)
        dim = self._views.shape[1]
        index = faiss.IndexScalarQuantizer(dim, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
        place = faiss.swig_ptr(self._views.view(np.uint8).ravel())
        nobody = index.codes.owner  # FAISS does not free what it did not make; `self` keeps it
        index.codes = faiss.MaybeOwnedVectorUInt8.create_view(place, self._views.nbytes, nobody)
        index.ntotal, index.is_trained = len(self._views), True
        return index


class Approximate(NamedTuple):
    data: Array
    """(b,) uint8, as `Vectors` takes it"""
    recall: float
    """of the ten records nearest to each of some vectors of the segment, the share that it finds"""


def approximate(
    views: Array, starts: Array, progress: Progress | None = None, *, many: int = MANY
) -> Approximate | None:
    """An approximate index over these views; None where exact search is fast enough. It takes 4 bits for every two
    numbers of a view: 64 bytes at 256 dimensions. Equal views give equal bytes on one machine; another one may round
    otherwise. Memory beyond the views: some 200 MB, and twice what it returns."""
    if len(views) < many:
        return None
    faiss = _faiss()
    dim = views.shape[1]
    index = faiss.index_factory(dim, f"PQ{dim // 2 if dim % 2 == 0 else dim}x4fs", faiss.METRIC_INNER_PRODUCT)
    sample = np.random.default_rng(1).choice(len(views), min(len(views), _TRAINERS), replace=False)
    faiss.omp_set_num_threads(1)  # many tiny steps, at which threads would only wait
    index.train(views[np.sort(sample)].astype(np.float32))
    with _all_cores():
        for at in range(0, len(views), _BLOCK):
            index.add(views[at : at + _BLOCK].astype(np.float32))
            if progress:
                progress(min(at + _BLOCK, len(views)), len(views))
    data = np.asarray(faiss.serialize_index(index))
    vectors = Vectors(views, starts, np.broadcast_to(np.int32(0), len(views)), data)
    return Approximate(data, _found(vectors, *_exact(vectors)))


def _exact(vectors: Vectors) -> tuple[Array, Array]:
    """Questions (q, dim), which are views of the segment, and the cosine of the tenth record nearest to each."""
    views = vectors._views
    some = np.random.default_rng(2).choice(len(views), min(len(views), _SAMPLE), replace=False)
    questions = views[np.sort(some)].astype(np.float32)
    with _all_cores():
        best = vectors._best_of(questions, np.arange(vectors.size))
    last = max(0, best.shape[1] - 10)
    return questions, np.partition(best, last, axis=1)[:, last]


def _found(vectors: Vectors, questions: Array, floor: Array) -> float:
    """Of the ten records nearest to each of the questions, the share that the index finds."""
    found = expected = 0
    for question, least in zip(questions, floor.tolist(), strict=True):
        scores = vectors.nearest(question, 10).scores
        if least > 0:
            found += sum(score >= least - 1e-5 for score in scores)
            expected += min(10, vectors.size)
    return found / expected if expected else 1.0


def _best(rows: Array, cosines: Array, k: int) -> Ranking:
    """The k best rows; each may stand there several times."""
    order = np.argsort(rows, kind="stable")
    rows, cosines = rows[order], cosines[order]
    firsts = np.flatnonzero(np.diff(rows, prepend=-1))
    return rank(np.maximum.reduceat(cosines, firsts), k, rows[firsts]) if len(rows) else Ranking((), ())


@contextmanager
def _all_cores() -> Iterator[None]:
    """A search sets FAISS to one thread; what is inside uses all that this process may."""
    faiss = _faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(cores())
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


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
