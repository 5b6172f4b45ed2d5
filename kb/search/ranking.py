"""Here is what speaks for each issue; give me one score, and how sure it may be.

Few numbers, each between 0 and 1. Their weighted sum orders the issues. A logistic curve over the same numbers and the
lead over the next issue says how likely the first is right: what is hardly nearer than its neighbours is a guess. A
pasted error and a description are weighed apart, for a program repeats itself word by word and people never do.

Weights and curves are fitted by `scripts/fit_ranking.py` on development questions, which writes them below. Chosen by
hand are only how many words are enough, which lead is a long one, and where to answer: there, somewhat below an even
chance, few more wrong answers are given than at it, and two questions in a hundred fewer are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np

from kb.arrays import Array
from kb.records import Features

__all__ = ["ANSWER_AT", "NAMES", "Fit", "ahead", "closeness", "confidences", "coverage", "in_words", "scores"]

NAMES = tuple(f.name for f in fields(Features))


@dataclass(frozen=True, slots=True)
class Fit:
    """What was learned for one kind of question; `weights` and `curve` in the order of NAMES."""

    weights: tuple[float, ...]
    """what a kind of evidence counts in the score"""
    curve: tuple[float, ...]
    """what it counts in the log odds of being right"""
    lead: float
    """what the lead over the next issue counts there"""
    chinese: float
    """what is added for a Chinese question, which shares more words by chance"""
    bias: float


# fitted by scripts/fit_ranking.py
PASTED = Fit(
    weights=(1.90, 1.93, 2.63, 3.19, 2.89, 3.03, 2.55),
    curve=(1.43, 3.80, 4.01, 1.33, 1.75, 2.41, 0.53),
    lead=3.16,
    chinese=-0.55,
    bias=-7.57,
)
DESCRIBED = Fit(
    weights=(3.37, 4.82, 4.56, 0.00, 7.18, 0.00, 1.07),
    curve=(1.53, 5.16, 4.78, 0.00, 2.31, 0.00, 0.00),
    lead=3.95,
    chinese=-0.83,
    bias=-5.57,
)
# end of what was fitted

ANSWER_AT = 0.4
"""the confidence below which the knowledge base does not speak"""

FAR = 3.0
"""of weighted sums: what is this far ahead of the others is as sure as if it were alone"""

ENOUGH_WORDS = 9.0
"""of BM25 sums, in words that no issue has: more of them say no more"""

FAR_IN_WORDS = 6.0
"""the same for leads"""


def scores(evidence: Array, *, pasted: bool) -> Array:
    """(n,) from evidence (n, len(NAMES)): its weighted mean, in [0, 1], by which hits are ordered. `pasted`: the
    question holds error lines."""
    weights = np.array((PASTED if pasted else DESCRIBED).weights)
    return np.asarray(evidence @ weights / weights.sum())


def confidences(evidence: Array, scores: Array, beside: float, *, pasted: bool, chinese: bool) -> Array:
    """(n,): the probability, in (0, 1), that each is the issue asked about. `beside`: the highest score of an issue
    that is not among them."""
    fit = PASTED if pasted else DESCRIBED
    leads = ahead(np.append(scores, beside) * sum(fit.weights), FAR)[: len(scores)]
    bias = fit.bias + (fit.chinese if chinese else 0.0)
    return np.asarray(1.0 / (1.0 + np.exp(-(evidence @ np.array(fit.curve) + fit.lead * leads + bias))))


def ahead(scores: Array, far: float) -> Array:
    """(n,) in [-1, 1]: how far each is ahead of the best of the others, or behind it; 1 is `far` ahead."""
    if not len(scores):
        return np.zeros(0)
    first = int(np.argmax(scores))
    others = np.delete(scores, first)
    leads = scores - scores[first]
    leads[first] = scores[first] - (others.max() if len(others) else 0.0)
    return np.asarray(np.clip(leads / far, -1, 1))


def in_words(sums: Array, unseen: float) -> tuple[Array, Array]:
    """From BM25 sums (n,): how much each is, in [0, 1], and how far ahead, 1/2 for a tie. `unseen`: what a word tells
    that no issue has."""
    return np.minimum(sums / (ENOUGH_WORDS * unseen), 1), (ahead(sums, FAR_IN_WORDS * unseen) + 1) / 2


def coverage(weights: Array, tells: Array, unseen: float) -> Array:
    """(n,) from BM25 weights (n, terms) and what each term tells (terms,): the share of it that stands in each issue,
    as if one more term had been asked for that no issue has, which tells `unseen`: one common word is a question half
    told."""
    return np.asarray(np.where(weights > 0, tells, 0).sum(axis=1) / (tells.sum() + unseen), np.float32)


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
