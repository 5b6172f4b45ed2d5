"""How far what people say moves a confidence: many voices a little, one voice never.

A calibrated confidence p counts as `WORTH` voices that were heard before, so that after h voices for an issue and d
against it the confidence is (p WORTH + h) / (WORTH + h + d): the mean of a Beta distribution after binomial votes. Held
back are

- the first `UNHEARD` voices of the majority: nobody turns an answer alone, nor with a friend;
- the voices about other questions: each counts as `OTHERS` of one, all of them as `MOST_OTHERS` at most. An article may
  be bad for everybody, but mostly a vote is about one question;
- more than `MOST_UP` in log odds upwards;
- more than one step of the verdict: what is known becomes likely and not unknown, what is unknown likely and not known.

What a number rules out stays so, and so does the silence after the log of a healthy program.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from kb.errors import FeedbackError
from kb.records import Hit, SearchResult, Voices
from kb.search.verdict import LIKELY_AT, MOST_LIKELY, verdict

__all__ = ["Voiced", "moved", "shifted", "tally"]

WORTH = 8.0
"""voices that a confidence counts as: ten that say "did not fit" make the surest answer a likely one"""
UNHEARD = 2.0
"""voices of the majority that do not count"""
OTHERS, MOST_OTHERS = 0.25, 2.0
"""what one voice about other questions counts, and all of them at most"""
MOST_UP = 1.5
"""in log odds: .2 becomes .53"""
_LEAST = 1e-6  # of a confidence whose log odds are asked

_Families = Mapping[str, Mapping[str, bool]]


class _Heard(Protocol):
    """`kb.feedback.store.Feedback`, or anything else that has heard people."""

    def heard(self) -> Mapping[tuple[str, str], _Families]: ...


class Voiced:
    """The votes as a base takes them (`kb.base.Votes`): it hands over its answer and gets it back, weighed."""

    def __init__(self, feedback: _Heard) -> None:
        self._feedback = feedback
        self._complained = False

    def any(self) -> bool:
        return bool(self._all())

    def weighed(self, result: SearchResult, k: int, known_at: float) -> SearchResult:
        """The first k hits, moved by the voices. `known_at`: as it was searched."""
        heard = self._all()
        if not any((hit.base, hit.issue) in heard for hit in result.hits):
            return _first(result, k)
        from kb.feedback.gist import gist  # late: its patterns cost a start 20 ms

        about = gist(result.query)
        hits = [
            _with(hit, heard.get((hit.base, hit.issue), {}), about.family if about else None, known_at)
            for hit in result.hits
        ]
        return _first(moved(result, hits, known_at), k)

    def _all(self) -> Mapping[tuple[str, str], _Families]:
        """None is heard from a file that cannot be read: a search is more important."""
        try:
            return self._feedback.heard()
        except FeedbackError as error:
            if not self._complained:
                logging.getLogger("kb").warning("%s", error)
            self._complained = True
            return {}


def tally(families: _Families, family: str | None) -> tuple[float, float]:
    """What was said of one issue, for a question of this family (None: of none): voices that it helped, voices that it
    did not fit. A person who spoke about the question itself counts for that alone."""
    here = families.get(family, {}) if family else {}
    helped = float(sum(here.values()))
    against = len(here) - helped
    said: dict[str, list[bool]] = {}
    for name, voices in families.items():
        if name != family:
            for person, voice in voices.items():
                if person not in here:
                    said.setdefault(person, []).append(voice)
    part = min(OTHERS * len(said), MOST_OTHERS) / len(said) if said else 0.0
    shares = [sum(voices) / len(voices) for voices in said.values()]
    return helped + part * sum(shares), against + part * sum(1 - share for share in shares)


def shifted(confidence: float, helped: float, against: float, known_at: float) -> float:
    """The confidence after these voices, for an answer that is known from `known_at` on."""
    margin = helped - against
    if abs(margin) <= UNHEARD:
        return confidence
    helped -= UNHEARD if margin > 0 else 0
    against -= UNHEARD if margin < 0 else 0
    told = (confidence * WORTH + helped) / (WORTH + helped + against)
    if margin > 0:
        told = max(confidence, min(told, _probability(_log_odds(confidence) + MOST_UP)))
        return min(told, max(confidence, known_at - 0.01)) if confidence < min(LIKELY_AT, known_at) else told
    told = min(confidence, told)
    return max(told, min(LIKELY_AT, confidence)) if confidence >= known_at else told


def moved(result: SearchResult, hits: list[Hit], known_at: float) -> SearchResult:
    """The result with `hits`, its own with other confidences: in order, with the verdict that they have now. A hit that
    did not move keeps its place among those that did not."""
    if not any(map(_has_moved, hits)):
        return replace(result, hits=tuple(hits))
    order = list(hits)
    for end in range(1, len(order)):
        at = end
        while at and _passes(order[at], order[at - 1]):
            order[at - 1 : at + 1] = order[at], order[at - 1]
            at -= 1
    ranked = tuple(replace(hit, rank=rank) for rank, hit in enumerate(order, 1))
    said = verdict(ranked[0].confidence, known_at) if ranked and not ranked[0].ruled_out else "unknown"
    if result.query.is_log and not result.query.failures:
        said = "unknown"
    likely = [hit.issue for hit in ranked if hit.confidence >= LIKELY_AT and not hit.ruled_out][:MOST_LIKELY]
    return replace(result, hits=ranked, verdict=said, likely=tuple(likely) if said == "likely" else ())


def _with(hit: Hit, families: _Families, family: str | None, known_at: float) -> Hit:
    helped, against = tally(families, family)
    if hit.ruled_out or not (helped or against):
        return hit
    now = shifted(hit.confidence, helped, against, known_at)
    return replace(hit, confidence=now, voices=Voices(round(helped, 2), round(against, 2), hit.confidence))


def _has_moved(hit: Hit) -> bool:
    return hit.voices is not None and hit.voices.before != hit.confidence


def _passes(hit: Hit, before: Hit) -> bool:
    told = _has_moved(hit) or _has_moved(before)
    return told and not hit.ruled_out and hit.confidence > before.confidence


def _first(result: SearchResult, k: int) -> SearchResult:
    if len(result.hits) <= k:
        return result
    hits = result.hits[:k]
    return replace(result, hits=hits, likely=tuple(one for one in result.likely if one in {hit.issue for hit in hits}))


def _log_odds(p: float) -> float:
    p = min(max(p, _LEAST), 1 - _LEAST)
    return math.log(p / (1 - p))


def _probability(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds))
