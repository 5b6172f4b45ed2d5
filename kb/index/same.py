"""Which issues of different segments tell the same fault; within a segment `kb.index.faults` has decided it."""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import lru_cache

import numpy as np

from kb.arrays import Array, load
from kb.index.faults import MOST_COMPARED, alike
from kb.index.profile import said
from kb.index.segment import Segment

__all__ = ["same_faults"]


def same_faults(segments: Sequence[Segment], dead: Sequence[Array]) -> Array:
    """(pairs, 2) int64: rows of the whole index that tell the same fault, in segments of which neither knows the other.
    `dead`: of each segment the rows that count no more."""
    if len(segments) < 2:
        return np.zeros((0, 2), np.int64)
    starts = np.cumsum([0, *(segment.size for segment in segments)])
    titles = np.concatenate([segment.rows.titles for segment in segments])
    rows = np.delete(np.arange(len(titles)), np.concatenate([s + d for s, d in zip(starts, dead, strict=False)]))
    rows = rows[np.argsort(titles[rows], kind="stable")]
    of = np.searchsorted(starts, rows, side="right") - 1
    cuts = np.flatnonzero(np.diff(titles[rows])) + 1

    @lru_cache(maxsize=4 * MOST_COMPARED)
    def terms_of(row: int, segment: int) -> Set[int]:
        return said(load(segments[segment].profiles.read(row - int(starts[segment])), "profile"))

    found: list[tuple[int, int]] = []
    for first, last in zip([0, *cuts.tolist()], [*cuts.tolist(), len(rows)], strict=True):
        if last - first < 2 or of[first] == of[last - 1]:  # within a run rows ascend, and so do their segments
            continue
        here = list(zip(rows[first:last].tolist(), of[first:last].tolist(), strict=True))
        for i, (row, segment) in enumerate(here):
            for other, another in here[max(0, i - MOST_COMPARED) : i]:
                if another != segment and alike(terms_of(row, segment), terms_of(other, another)):
                    found.append((other, row))
                    break
    return np.array(found, np.int64).reshape(-1, 2)
