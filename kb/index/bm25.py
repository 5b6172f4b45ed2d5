"""BM25 in Lucene's form, without the constant factor k1 + 1, as surveyed by Kamphuis, de Vries, Boytsov and Lin, "Which
BM25 Do You Mean?" (ECIR 2020), table 1:

    weight(t, d) = ln(1 + (N - df + 0.5) / (df + 0.5)) * tf / (tf + k1 * (1 - b + b * |d| / mean |d|))

A test holds scores equal to bm25s' `method="lucene"`.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from kb.arrays import Array

__all__ = ["K1", "B", "idf", "saturation"]

K1 = 1.5
B = 0.75

Numbers = TypeVar("Numbers", float, Array)


def idf(df: Array, size: int) -> Array:
    """The first factor, of terms that stand in `df` of `size` records."""
    return np.log1p((size - df + 0.5) / (df + 0.5))


def saturation(tf: Numbers, length: Numbers, mean: float) -> Numbers:
    """The second factor, in [0, 1): of a term that stands `tf` times in a record of `length` terms."""
    return tf / (tf + K1 * (1 - B + B * length / mean))
