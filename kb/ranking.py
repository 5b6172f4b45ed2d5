"""Here is what each half of the index says about a record; give me one score, and how sure it may be.

Few numbers, each between 0 and 1. Their weighted sum orders the records. A logistic curve over the same numbers and the
lead over the next issue says how likely the first is right: what is hardly nearer than its neighbours is a guess.
Weights and curve are fitted by `scripts/fit_ranking.py` on development questions; its output is pasted here. Chosen by
hand are only where to answer (an even chance) and which lead is a long one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise

import numpy as np

from kb.arrays import Array
from kb.records import Evidence

__all__ = ["ANSWER_AT", "ahead", "closeness", "confidence", "coverage", "score"]


# fitted by scripts/fit_ranking.py
WEIGHTS = Evidence(dense=4.69, lexical=3.99, covered=5.61, context=0.57, close=1.71)
CURVE = Evidence(dense=1.19, lexical=1.55, covered=2.63, context=1.24, close=0.00)
LEAD = 2.30
BIAS = -3.23

ANSWER_AT = 0.5
"""the confidence below which the knowledge base does not speak"""

FAR = 0.15
"""of scores: what is this far ahead of the others is as sure as if it were alone"""

_NAMES = [f.name for f in fields(Evidence)]
_ALL = Evidence(*(1.0 for _ in _NAMES))


def score(evidence: Evidence) -> float:
    """A weighted mean of the evidence, in [0, 1]: what hits are ordered by."""
    return _sum(WEIGHTS, evidence) / _sum(WEIGHTS, _ALL)


def confidence(evidence: Evidence, lead: float) -> float:
    """The probability, in (0, 1), that the record is the issue asked about. `lead`: its score less that of the best
    other issue."""
    return 1.0 / (1.0 + math.exp(-(_sum(CURVE, evidence) + LEAD * ahead(lead) + BIAS)))


def ahead(lead: float) -> float:
    """The lead in [-1, 1]."""
    return max(-1.0, min(1.0, lead / FAR))


def _sum(weights: Evidence, evidence: Evidence) -> float:
    return float(sum(getattr(weights, name) * getattr(evidence, name) for name in _NAMES))


def coverage(weights: Array, idf: Array, unseen: float) -> Array:
    """(n,) from BM25 weights (n, terms) and idf (terms,): the share of the terms' idf that stands in each record, as if
    one more term had been asked for that no record has, of idf `unseen`: one common word is a question half told."""
    return np.asarray(np.where(weights > 0, idf, 0).sum(axis=1) / (idf.sum() + unseen), np.float32)


def closeness(lines: Sequence[Sequence[str]], errors: Sequence[Sequence[str]]) -> float:
    """The nearest pair of a question's line and a record's error line, both as terms: shared pairs of neighbours, over
    those of the shorter line (Szymkiewicz-Simpson overlap), damped where that is short."""
    best = 0.0
    asked = [_pairs(line) for line in lines]
    for error in errors:
        told = _pairs(error)
        for pairs in asked:
            shared = len(pairs & told)
            if shared:
                best = max(best, shared / min(len(pairs), len(told)) * (1 - 0.5**shared))
    return best


def _pairs(terms: Sequence[str]) -> set[tuple[str, str]]:
    return set(pairwise(terms))
