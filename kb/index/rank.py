"""The best of many scores, in one order."""

from __future__ import annotations

import numpy as np

from kb.arrays import Array
from kb.records import Ranking

__all__ = ["rank"]


def rank(scores: Array, k: int, rows: Array | None = None) -> Ranking:
    """The k best of `scores` above zero: score descending, then row ascending. `rows[i]` is the row of `scores[i]`."""
    keep = np.flatnonzero(scores > 0)  # first: to partition thousands of zeros takes long
    if k <= 0 or not len(keep):
        return Ranking((), ())
    if len(keep) > 4 * k:
        floor = np.partition(scores[keep], len(keep) - k)[len(keep) - k]
        keep = keep[scores[keep] >= floor]
    numbers = keep if rows is None else rows[keep]
    order = np.lexsort((numbers, -scores[keep]))[:k]
    return Ranking(tuple(numbers[order].tolist()), tuple(scores[keep[order]].tolist()))
