"""Stand-in until the real one comes."""

from __future__ import annotations

import sys
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from kb.arrays import Array
from kb.index.store import Views, rank
from kb.records import Ranking

_MOST_KEPT = 1 << 24


def _faiss() -> Any:
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


class Vectors:
    def __init__(self, views: Array, owners: Array, starts: Array, kinds: Array, near: Path | None = None) -> None:
        self._views, self._owners, self._starts, self._kinds = views, owners, starts, kinds
        self.size = len(starts) - 1

    def nearest(self, vector: Array, k: int, allowed: Array | None) -> Ranking:
        faiss = _faiss()
        owners, most, within = self._owners, len(self._owners), None
        if allowed is not None:
            inside = allowed[owners]
            most = int(inside.sum())
            within = faiss.SearchParameters(sel=faiss.IDSelectorBitmap(np.packbits(inside, bitorder="little")))
        if not np.any(vector) or not most or k <= 0:
            return Ranking((), ())
        faiss.omp_set_num_threads(1)
        query = np.ascontiguousarray(vector[None], np.float32)
        wanted = k * 4
        while True:
            depth = min(wanted, most)
            cosines, found = self._halves.search(query, depth, params=within)
            best = np.zeros(self.size, np.float32)
            valid = found[0] >= 0
            np.maximum.at(best, owners[found[0][valid]], cosines[0][valid])
            seen = np.flatnonzero(best)
            ranking = rank(best[seen], k, seen)
            unseen = float(cosines[0, -1])
            if depth == most or unseen <= 0 or (len(ranking.rows) == k and ranking.scores[-1] > unseen):
                return ranking
            wanted *= 4

    @cached_property
    def _halves(self) -> Any:
        faiss = _faiss()
        vectors = self._views
        index = faiss.IndexScalarQuantizer(vectors.shape[1], faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
        faiss.copy_array_to_vector(vectors.view(np.uint8).ravel(), index.codes)
        index.ntotal, index.is_trained = len(vectors), True
        return index

    def of(self, rows: Array) -> Views:
        firsts = self._starts[rows]
        counts = self._starts[np.asarray(rows) + 1] - firsts
        at = np.arange(counts.sum()) + np.repeat(firsts - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        return Views(self._floats(rows, at), self._owners[at], self._kinds[at])

    def _floats(self, rows: Array, at: Array) -> Array:
        if self._views.size > _MOST_KEPT:
            return self._views[at].astype(np.float32)
        wide, is_wide = self._widened
        if not is_wide[rows].all():
            wide[at] = self._views[at]
            is_wide[rows] = True
        return wide[at]

    @cached_property
    def _widened(self) -> tuple[Array, Array]:
        return np.empty(self._views.shape, np.float32), np.zeros(self.size, bool)


def approximate(views: Array) -> bytes | None:
    return None
