"""From evidence to a probability, and from that to what the base says: known, likely or unknown.

A logistic curve over the evidence (`kb.records.Evidence`), fitted on the world as it is: of the questions that people
really ask, one in four is about an issue that a base has. So the questions of the fit are asked with their article in
the base and with it taken out, and weighed one to three (`scripts/fit_evidence.py`). Pasted errors and descriptions
have weights of their own, because a program repeats itself word by word and people never do. So have issues that list
no phrasings ("Asked as"), as the pages of most people: what others hear from the phrasings must not be held against
them. The weights are data, in `weights.json`; chosen by hand are only the two thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from kb.errors import KbError
from kb.records import Evidence, SearchResult, Verdict
from kb.search.evidence import NAMES
from kb.search.ranking import WEIGHTS, read_weights

__all__ = [
    "CLIP",
    "KNOWN_AT",
    "LIKELY_AT",
    "MOST_LIKELY",
    "SCANNED_FROM",
    "Curve",
    "confidence",
    "contributions",
    "curve_for",
    "less_sure",
    "of_a_bare_question",
    "of_a_repeated_line",
    "verdict",
]

KNOWN_AT = 0.5
"""the confidence from which an answer is said to be known"""

LIKELY_AT = 0.2
"""the confidence from which an issue is named as likely"""

MOST_LIKELY = 3
"""issues that are named as likely"""

SCANNED_FROM = 25
"""lines of a log from which on its verdict is that of a scan (`kb.scan.whole`); of a shorter one, that of a search
where the search knows it"""

WORD_BY_WORD, NEARLY = 0.97, 0.8
"""the share of a line from which an issue prints it, and from which another one prints it nearly"""

NOTHING_ELSE, ITS_SUBJECT = 0.85, 0.1
"""the share of a question that a family says in any words, and the share of its title that the question says, from
which a question is about nothing else"""

OF_A_BARE_QUESTION = 0.3
"""the least confidence in the family that such a question is about: above issues for which little speaks"""

CLIP = 4.0
"""standard deviations beyond which a value counts no more: evidence of a kind that the fit has not seen"""


@dataclass(eq=False, repr=False)
class Curve:
    """What was learned for one kind of question."""

    center: Mapping[str, float]
    """name -> mean over the questions of the fit"""
    spread: Mapping[str, float]
    """name -> standard deviation"""
    weights: Mapping[str, float]
    """name -> what one standard deviation counts in the log odds of being right"""
    bias: float


@cache
def _curves() -> dict[tuple[str, str], Curve]:
    try:
        found = read_weights()["evidence"]
        curves = {
            (issue, question): Curve(found[issue]["center"], found[issue]["spread"], **found[issue][question])
            for issue in ("with phrasings", "without")
            for question in ("pasted", "described")
        }
        good = all(
            {*numbers} == {*NAMES} for one in curves.values() for numbers in (one.center, one.spread, one.weights)
        ) and all(value > 0 for one in curves.values() for value in one.spread.values())
    except (KeyError, TypeError, AttributeError):
        good = False
    if not good:
        raise KbError("the weights of the evidence are damaged", path=WEIGHTS, hint="install kb again")
    return curves


def curve_for(*, pasted: bool, phrasings: bool = True) -> Curve:
    """The curve for a question with error lines (`pasted`) or a description, and for an issue that lists `phrasings` or
    none."""
    return _curves()["with phrasings" if phrasings else "without", "pasted" if pasted else "described"]


def contributions(found: Evidence, curve: Curve) -> dict[str, float]:
    """What each kind of evidence adds to the log odds, or takes from them, against an average question's."""
    return {
        name: curve.weights[name]
        * max(-CLIP, min(CLIP, (getattr(found, name) - curve.center[name]) / curve.spread[name]))
        for name in NAMES
    }


def confidence(found: Evidence, curve: Curve) -> float:
    """In (0, 1): the probability that this is the issue in question."""
    return 1 / (1 + math.exp(-(sum(contributions(found, curve).values()) + curve.bias)))


def of_a_repeated_line(confidence: float, share: float, others: Iterable[float]) -> float:
    """The confidence in an issue that prints what was pasted word by word, however little else speaks for it: known,
    when no other issue prints it, and one of those that are likely, when others do. For issues without phrasings: of
    250 lines of other people's pages 211 are known rightly in the place of 199; the others gain nothing. `share`, and
    `others` of the other issues: as `Candidates.repeated`."""
    if share < WORD_BY_WORD:
        return confidence
    return max(confidence, KNOWN_AT if max(others, default=0.0) < NEARLY else LIKELY_AT)


def of_a_bare_question(confidence: float, found: Evidence) -> float:
    """The confidence in an issue with many causes, when a question says nothing but what that is about ("loss is nan",
    "显存不足", `CUDA out of memory`). It says too little to be sure of anything, so nothing else would be named; which
    causes there are, and what tells them apart, is what helps then. Such an issue is likely."""
    is_bare = found.aligned_coverage >= NOTHING_ELSE and found.title_coverage >= ITS_SUBJECT and found.own_terms > 0
    return max(confidence, OF_A_BARE_QUESTION) if is_bare else confidence


def verdict(confidence: float, known_at: float = KNOWN_AT) -> Verdict:
    """Of the first hit's confidence."""
    return "known" if confidence >= known_at else "likely" if confidence >= LIKELY_AT else "unknown"


def less_sure(result: SearchResult, known_at: float = KNOWN_AT) -> SearchResult:
    """The same, in which nothing is known."""
    most = known_at - 0.01
    hits = tuple(replace(hit, confidence=min(hit.confidence, most)) for hit in result.hits)
    likely = tuple(hit.issue for hit in hits if hit.confidence >= LIKELY_AT)[:MOST_LIKELY]
    return replace(result, verdict="likely" if likely else "unknown", likely=likely, hits=hits)
