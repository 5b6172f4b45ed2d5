"""The lexical half of a segment: its terms, what is known of each, and their postings."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kb.arrays import Array
from kb.index.postings import Postings
from kb.index.terms import Terms

__all__ = ["Lexicon"]


class Lexicon:
    """Safe to share between threads."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        """As `kb.index.invert` made them. Raises KeyError or ValueError when they do not fit together."""
        self.terms: Terms = Terms.among(arrays, "terms")
        self.postings: Postings = Postings.among(arrays)
        self.surprisal: Array = arrays["surprisal"]
        """(terms,) float32: -ln p in technical text (`kb.encoders.surprisal`)"""
        self.log_p: Array = arrays["log_p"]
        """(terms,) float32: log probability of a Chinese word, by which questions are segmented as the records were; 0
        for other terms"""
        n = len(self.terms)
        if not (
            len(self.postings.most) == n
            and self.surprisal.shape == self.log_p.shape == (n,)
            and self.surprisal.dtype == self.log_p.dtype == np.float32
        ):
            raise ValueError("terms and postings do not belong together")

    def is_sound(self) -> bool:
        """Looks at every number."""
        p = self.postings
        return bool(
            (np.diff(p.starts) >= 0).all()
            and (not len(p.rows) or 0 <= p.rows.min() <= p.rows.max() < p.size)
            and all(np.isfinite(one).all() for one in (self.surprisal, self.log_p, p.least))
            and (p.counts > 0).all()
            and self.terms.is_sound()
        )
