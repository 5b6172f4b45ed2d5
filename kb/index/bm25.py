"""BM25 in Lucene's form, without the constant factor k1 + 1, as surveyed by Kamphuis, de Vries, Boytsov and Lin, "Which
BM25 Do You Mean?" (ECIR 2020), table 1:

    weight(t, d) = ln(1 + (N - df + 0.5) / (df + 0.5)) * tf / (tf + k1 * (1 - b + b * |d| / mean |d|))

A test holds scores equal to bm25s' `method="lucene"`.
"""

from __future__ import annotations

import numpy as np

from kb.arrays import Array

__all__ = ["K1", "B", "idf"]

K1 = 1.5
B = 0.75


def idf(df: Array, size: int) -> Array:
    """The first factor, of terms that stand in `df` of `size` records."""
    return np.log1p((size - df + 0.5) / (df + 0.5))
