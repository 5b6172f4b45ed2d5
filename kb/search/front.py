"""The vectors of the terms that people meet in records: title, symptom, error lines, aliases."""

from __future__ import annotations

from itertools import pairwise
from threading import Lock

import numpy as np

from kb.arrays import Array
from kb.encoders import term_table

__all__ = ["FrontTerms"]


class FrontTerms:
    """The vector of each distinct term once, however many records have it. Safe to share between threads."""

    def __init__(self) -> None:
        self._row: dict[bytes, int] = {}  # the tokens of a term -> its row
        self._lock = Lock()
        self.vectors: Array = np.zeros((0, term_table().dim), np.float32)
        """(at least as many as there are terms, dim); a row never changes once it is given out"""
        self.norms: Array = np.zeros(0, np.float32)
        """of each before it was made 1: what the term says"""

    def __len__(self) -> int:
        return len(self._row)

    def rows(self, tokens: Array, starts: Array) -> Array:
        """(len(starts) - 1,) int32: the row of each term; they are given as in `StaticEncoder.vectors`."""
        data = tokens.tobytes()
        keys = [data[first:last] for first, last in pairwise((starts * tokens.itemsize).tolist())]
        with self._lock:
            size = len(self._row)
            new = {key: size + n for n, key in enumerate(dict.fromkeys(k for k in keys if k not in self._row))}
            if new:
                new_starts = np.cumsum([0, *map(len, new)]) // tokens.itemsize
                vectors, norms = term_table().vectors(np.frombuffer(b"".join(new), tokens.dtype), new_starts)
                if size + len(new) > len(self.vectors):  # readers go on with the arrays that they have
                    more = max(size + 2 * len(new), size + size // 2)  # else each new issue would copy all
                    self.vectors, self.norms = _longer(self.vectors, more), _longer(self.norms, more)
                self.vectors[size : size + len(new)] = vectors
                self.norms[size : size + len(new)] = norms
                self._row.update(new)
        return np.fromiter(map(self._row.__getitem__, keys), np.int32, len(keys))


def _longer(array: Array, size: int) -> Array:
    longer = np.zeros((size, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
