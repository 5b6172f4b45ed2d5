"""Computes figures from the outcomes of the questions.

recall@k         share of questions with a right issue among the first k hits
MRR@10           mean of 1/rank of the first right issue; 0 when none is among the first ten
nDCG@10          binary relevance (Järvelin and Kekäläinen, TOIS 2002): each right issue counts 1/log2(1 + rank),
                 divided by the sum of the best order
answered         share of questions with a known issue for which the base gives an answer
answered_right   the same, and the first hit is right
abstention_rate  share of questions without a known issue for which the base gives no answer
calibration      expected calibration error of the first hit's confidence (Naeini et al., AAAI 2015; ten bins of
                 equal width); balanced: right and wrong first hits have the same total weight
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

from kb.evaluate.questions import Question

__all__ = [
    "DEPTH",
    "METRICS",
    "Bin",
    "Calibration",
    "Judged",
    "Known",
    "Latency",
    "Summary",
    "Unknown",
    "calibrate",
    "judge",
    "slug_of",
    "summarise",
    "wilson",
]

DEPTH = 10  # hits of a question that count
BINS = 10
METRICS = ("recall@1", "recall@3", "recall@10", "mrr@10", "ndcg@10", "answered", "answered_right", "abstention_rate")
"""all in [0, 1], higher is better"""


@dataclass(frozen=True, slots=True)
class Judged:
    """A question and its outcome."""

    question: Question
    found: tuple[str, ...]
    """issues, nearest first, at most `DEPTH`"""
    ranks: tuple[int, ...]
    """of the right issues among them, from 1, ascending"""
    wanted: int
    """how many right issues the base has; with 0 the base must not answer"""
    confidence: float | None
    """of the first hit"""
    answered: bool
    took_ms: float

    @property
    def right(self) -> bool:
        return self.ranks[:1] == (1,)

    @property
    def wrong(self) -> str | None:
        """What went wrong, or None."""
        if not self.wanted:
            return "answered" if self.answered else None
        if not self.right:
            return "wrong answer" if self.answered else "wrong first"
        return None if self.answered else "not answered"


@dataclass(frozen=True, slots=True)
class Known:
    """Figures of `n` questions with an issue in the base."""

    n: int
    recall_at_1: float
    recall_at_3: float
    recall_at_10: float
    mrr_at_10: float
    ndcg_at_10: float
    answered: float
    answered_right: float
    """answered, and the first hit is right"""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Figures of `n` questions that no issue in the base answers."""

    n: int
    abstention_rate: float


@dataclass(frozen=True, slots=True)
class Bin:
    low: float
    high: float
    n: int
    confidence: float | None
    """the mean; None in an empty bin"""
    right: float | None
    """share of right first hits; None in an empty bin"""


@dataclass(frozen=True, slots=True)
class Calibration:
    error: float
    balanced_error: float | None
    """None when all first hits are right, or all are wrong"""
    bins: tuple[Bin, ...]


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds of a search in an open base."""

    p50: float
    p95: float
    p99: float
    max: float


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of a group of questions; a part is None when the group has no question for it."""

    known: Known | None
    unknown: Unknown | None
    calibration: Calibration | None
    latency_ms: Latency | None

    def as_dict(self) -> dict[str, Any]:
        """The public JSON form: `recall@1` for `recall_at_1`."""
        parts = {name: getattr(self, name) for name in self.__slots__}
        return {name: part and _public(asdict(part)) for name, part in parts.items()}

    def metrics(self) -> dict[str, float | None]:
        """`METRICS` by name; None for one that no question measures."""
        values: dict[str, float | None] = dict.fromkeys(METRICS)
        for part in (self.known, self.unknown):
            values |= {name: value for name, value in (_public(asdict(part)) if part else {}).items() if name != "n"}
        return values


def judge(
    question: Question,
    found: Sequence[str],
    known: Collection[str],
    *,
    confidence: float | None,
    answered: bool,
    took_ms: float,
) -> Judged:
    """`found`: issues, nearest first. `known`: the issues and slugs of the base."""
    left = {one for one in question.wanted if one in known}
    wanted, ranks = len(left), []
    for rank, issue in enumerate(found[:DEPTH], 1):
        match = next((one for one in (issue, slug_of(issue)) if one in left), None)
        if match is not None:  # a slug means any of its issues, and counts once
            left.remove(match)
            ranks.append(rank)
    return Judged(question, tuple(found[:DEPTH]), tuple(ranks), wanted, confidence, answered, took_ms)


def slug_of(issue: str) -> str:
    return issue.rpartition("#")[0]


def summarise(judged: Iterable[Judged]) -> Summary:
    """The figures of the questions. They do not depend on the order of the questions, to the last bit."""
    judged = list(judged)
    known = [one for one in judged if one.wanted]
    unknown = [one for one in judged if not one.wanted]
    return Summary(
        known=_known(known) if known else None,
        unknown=Unknown(len(unknown), _mean(not one.answered for one in unknown)) if unknown else None,
        calibration=calibrate([(one.confidence, one.right) for one in judged if one.confidence is not None]),
        latency_ms=_latency(sorted(one.took_ms for one in judged)),
    )


def _known(judged: Sequence[Judged]) -> Known:
    first = [one.ranks[0] if one.ranks else math.inf for one in judged]
    return Known(
        n=len(judged),
        recall_at_1=_mean(rank <= 1 for rank in first),
        recall_at_3=_mean(rank <= 3 for rank in first),
        recall_at_10=_mean(rank <= 10 for rank in first),
        mrr_at_10=_mean(1 / rank for rank in first),
        ndcg_at_10=_mean(_dcg(one.ranks) / _dcg(range(1, min(one.wanted, DEPTH) + 1)) for one in judged),
        answered=_mean(one.answered for one in judged),
        answered_right=_mean(one.answered and one.right for one in judged),
    )


def _dcg(ranks: Iterable[int]) -> float:
    return math.fsum(1 / math.log2(1 + rank) for rank in ranks)


def _mean(values: Iterable[float]) -> float:
    values = list(values)
    return math.fsum(values) / len(values)


def calibrate(seen: Sequence[tuple[float, bool]]) -> Calibration | None:
    """`seen`: the confidence of each first hit, and whether it was right. None without any."""
    if not seen:
        return None
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for confidence, right in seen:
        bins[min(int(confidence * BINS), BINS - 1)].append((confidence, right))
    rights = sum(right for _, right in seen)
    wrongs = len(seen) - rights

    def error(of_right: float, of_wrong: float) -> float:
        gaps = (math.fsum((c - r) * (of_right if r else of_wrong) for c, r in one) for one in bins)
        return math.fsum(map(abs, gaps))

    return Calibration(
        error=error(1 / len(seen), 1 / len(seen)),
        balanced_error=error(0.5 / rights, 0.5 / wrongs) if rights and wrongs else None,
        bins=tuple(
            Bin(
                low=i / BINS,
                high=(i + 1) / BINS,
                n=len(one),
                confidence=_mean(c for c, _ in one) if one else None,
                right=_mean(r for _, r in one) if one else None,
            )
            for i, one in enumerate(bins)
        ),
    )


def _latency(times: Sequence[float]) -> Latency | None:
    """Percentiles by nearest rank: each is the time of a real question."""
    if not times:
        return None
    p50, p95, p99 = (times[math.ceil(len(times) * percent / 100) - 1] for percent in (50, 95, 99))
    return Latency(p50, p95, p99, times[-1])


def wilson(hits: int, n: int) -> tuple[float, float]:
    """The 95 % confidence interval of the share `hits / n` (Wilson, JASA 1927)."""
    z2 = NormalDist().inv_cdf(0.975) ** 2
    centre = (hits + z2 / 2) / (n + z2)
    half = math.sqrt(z2 * (hits * (n - hits) / n + z2 / 4)) / (n + z2)
    return max(0.0, centre - half), min(1.0, centre + half)


def _public(values: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("_at_", "@"): value for name, value in values.items()}
