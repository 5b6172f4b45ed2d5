"""Here is what each half of the index says about a record; give me one score, and how sure it may be.

Few numbers, each between 0 and 1, weighted and summed; a logistic curve makes the sum a probability. Weights and
curve are fitted by `scripts/fit_ranking.py` on development questions, and its output is pasted here: nothing in this
file is guessed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise

import numpy as np

from kb.arrays import Array
from kb.records import Evidence

__all__ = ["ANSWER_AT", "closeness", "confidence", "coverage", "score"]


# fitted by scripts/fit_ranking.py
WEIGHTS = Evidence(dense=3.56, lexical=3.40, covered=6.53, context=0.22, close=0.00)
BIAS = -4.04

ANSWER_AT = 0.5
"""the confidence below which the knowledge base does not speak"""


def score(evidence: Evidence) -> float:
    """A weighted mean of the evidence, in [0, 1]: what hits are ordered by."""
    names = [f.name for f in fields(Evidence)]
    total = sum(getattr(WEIGHTS, name) for name in names)
    return float(sum(getattr(WEIGHTS, name) * getattr(evidence, name) for name in names) / total)


def confidence(evidence: Evidence) -> float:
    """The probability, in (0, 1), that the record is the issue asked about."""
    total = sum(getattr(WEIGHTS, f.name) for f in fields(Evidence))
    return 1.0 / (1.0 + math.exp(-(score(evidence) * total + BIAS)))


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
