"""From features to a score.

Features are few numbers, each between 0 and 1 (`kb.records.Features`). Their weighted mean orders the issues. A pasted
error and a description are weighed apart, because a program repeats itself word by word and people never do. Whether
the first one is the right one is decided by `kb.search.verdict`.

The weights are data: `weights.json`, written by `scripts/fit_ranking.py`, which also says there what they were fitted
on. Chosen by hand are only the constants below.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import fields
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from kb.arrays import Array
from kb.errors import KbError
from kb.records import Features

__all__ = [
    "NAMES",
    "WEIGHTS",
    "Table",
    "bigram_overlap",
    "coverage",
    "fit_for",
    "lead",
    "read_weights",
    "scaled_bm25",
    "scores",
]

NAMES = tuple(f.name for f in fields(Features))
"""of the features, in the order of `Features`"""

Table = Mapping[str, Array]
"""feature name -> (n,) float32 in [0, 1]: the features of n candidates"""

WEIGHTS = Path(__file__).with_name("weights.json")

ENOUGH_WORDS = 9.0
"""a BM25 sum counts as 1 from here on, measured in words that no issue has"""

FAR_IN_WORDS = 6.0
"""the same for the margin between two BM25 sums"""


def read_weights() -> dict[str, Any]:
    """What `weights.json` holds. Raises KbError."""
    try:
        found = json.loads(WEIGHTS.read_bytes())
    except (OSError, ValueError) as error:
        raise KbError(f"the weights cannot be read ({error})", path=WEIGHTS, hint="install kb again") from None
    return found if isinstance(found, dict) else {}


@cache
def _fits() -> dict[str, Mapping[str, float]]:
    try:
        found = read_weights()["ranking"]
        fits = {kind: found[kind] for kind in ("pasted", "described")}
        good = all({*one} == {*NAMES} and sum(one.values()) > 0 for one in fits.values())
    except (KeyError, TypeError, AttributeError):
        good = False
    if not good:
        raise KbError("the weights of the ranking are damaged", path=WEIGHTS, hint="install kb again")
    return fits


def fit_for(*, pasted: bool) -> Mapping[str, float]:
    """Feature -> its weight in the score, for a question with error lines (`pasted`), or for a description."""
    return _fits()["pasted" if pasted else "described"]


def scores(table: Table, weights: Mapping[str, float]) -> Array:
    """(n,): the weighted mean of each candidate's features, in [0, 1], by which hits are ordered."""
    total = sum(weights[name] * table[name] for name in NAMES)
    return np.asarray(total, np.float64) / sum(weights.values())


def lead(scores: Array, far: float) -> Array:
    """(n,) in [-1, 1]: how far each is above the best of the others, or below it; 1 is `far` above."""
    if not len(scores):
        return np.zeros(0)
    first = int(np.argmax(scores))
    others = np.concatenate([scores[:first], scores[first + 1 :]])
    leads = scores - scores[first]
    leads[first] = scores[first] - (others.max() if len(others) else 0.0)
    return np.asarray(np.clip(leads / far, -1, 1))


def scaled_bm25(sums: Array, unseen: float) -> tuple[Array, Array]:
    """From BM25 sums (n,): each as a share of enough, in [0, 1], and its margin over the others, 1/2 for a tie.
    `unseen`: the information of a word that no issue has."""
    return np.minimum(sums / (ENOUGH_WORDS * unseen), 1), (lead(sums, FAR_IN_WORDS * unseen) + 1) / 2


def coverage(weights: Array, information: Array, unseen: float) -> Array:
    """(n,) from BM25 weights (n, terms) and the information of each term (terms,): the share of it that stands in each
    issue. One more term that no issue has is counted in, of information `unseen`, so that a question of one common word
    is never covered to its end."""
    covered = np.where(weights > 0, information, 0).sum(axis=1)
    return np.asarray(covered / (information.sum() + unseen), np.float32)


Pairs = Set[tuple[str, str]]


def bigrams(line: Sequence[str]) -> Pairs:
    """The pairs of neighbours in a line of terms."""
    return set(pairwise(line))


def bigram_overlap(asked: Iterable[Pairs], errors: Iterable[Pairs]) -> float:
    """The nearest pair of a question's line and a record's error line, both as `bigrams`: shared pairs, over those of
    the shorter line (Szymkiewicz-Simpson overlap), damped where few pairs are shared."""
    best = 0.0
    for printed in errors:
        for pairs in asked:
            shared = len(pairs & printed)
            if shared:
                best = max(best, shared / min(len(pairs), len(printed)) * (1 - 0.5**shared))
    return best
