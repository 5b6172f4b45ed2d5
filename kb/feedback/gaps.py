"""What was asked and not known, put together: the gaps of a base, those that most people met first.

Misses of one family are one already. Families that say the same in other words are put together by the likeness of
their lines: the mean of the cosine of their vectors and the share of rare words that they have in common. What names
different codes stays apart. Then the base is asked again: what it knows by now is no gap any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kb.encoders import rarity, surprisal, term_table
from kb.errors import QueryError
from kb.feedback.gist import unmarked
from kb.feedback.store import Miss
from kb.logs.codes import codes, contradicts
from kb.logs.fingerprints import words_of
from kb.records import SearchResult, Verdict

__all__ = ["ALIKE", "Asked", "Gap", "gaps"]

ALIKE = 0.55
"""the likeness from which two families are one gap. Of 159,995 pairs of test questions about different issues 95 reach
it, most of them word by word the same line, which many issues print"""
MAX_FAMILIES = 3000  # that are compared, those that were asked most often
_LEAST_RARITY = 0.1  # that the most common word counts


class Asked(Protocol):
    """One base, or several that are asked together."""

    def search(self, text: str, k: int) -> SearchResult: ...


@dataclass(frozen=True, slots=True)
class Gap:
    """Questions that nobody could answer, and that ask the same."""

    misses: tuple[Miss, ...]
    """what was asked most often first; one at least"""
    verdict: Verdict
    """of the base as it is now: unknown, or what it says since"""
    issue: str | None
    """that it names now; None when it is unknown"""

    @property
    def name(self) -> str:
        """By which it is named: the beginning of its first family."""
        return self.misses[0].family[:6]

    @property
    def count(self) -> int:
        return sum(miss.count for miss in self.misses)

    @property
    def askers(self) -> int:
        return len(frozenset[str]().union(*(miss.askers for miss in self.misses)))

    @property
    def dismissed(self) -> bool:
        return all(miss.dismissed for miss in self.misses)

    @property
    def is_open(self) -> bool:
        """It is to be written about."""
        return self.verdict != "known" and not self.dismissed

    def as_dict(self) -> dict[str, Any]:
        """The public JSON form (`kb gaps --json`). Times are seconds since 1970."""
        return {
            "gap": self.name,
            "count": self.count,
            "askers": self.askers,
            "first": min(miss.first for miss in self.misses),
            "last": max(miss.last for miss in self.misses),
            "verdict": self.verdict,
            "issue": self.issue,
            "dismissed": self.dismissed,
            "questions": [
                {"family": miss.family, "lang": miss.lang, "lines": list(miss.lines), "count": miss.count}
                for miss in self.misses
            ],
        }


def gaps(misses: Sequence[Miss], base: Asked | None) -> list[Gap]:
    """The gaps that are open first, then by the number of askers and of questions. `base`: is asked again; None: every
    gap counts as unknown."""
    found = [_asked_again(tuple(group), base) for group in _alike(misses)]
    return sorted(found, key=lambda gap: (not gap.is_open, -gap.askers, -gap.count, gap.name))


def _asked_again(misses: tuple[Miss, ...], base: Asked | None) -> Gap:
    """Known when the base knows most of what was asked."""
    said: dict[tuple[Verdict, str | None], int] = {}
    for miss in misses:
        answer = _answer(base, miss) if base is not None else ("unknown", None)
        said[answer] = said.get(answer, 0) + miss.count
    verdict, issue = max(said, key=lambda answer: said[answer])
    return Gap(misses, verdict, issue)


def _answer(base: Asked, miss: Miss) -> tuple[Verdict, str | None]:
    try:
        result = base.search("\n".join(map(unmarked, miss.lines)), 1)
    except QueryError:  # nothing but marks
        return "unknown", None
    return result.verdict, None if result.verdict == "unknown" else result.hits[0].issue


def _alike(misses: Sequence[Miss]) -> list[list[Miss]]:
    """The misses in groups; the first of each was asked most often."""
    ordered = sorted((miss for miss in misses if miss.lines), key=lambda miss: (-miss.count, miss.family))
    likeness = _likeness([unmarked(miss.lines[0]) for miss in ordered[:MAX_FAMILIES]])
    named = [codes(unmarked(miss.lines[0])) for miss in ordered]
    groups: list[list[int]] = []
    for one in range(len(ordered)):
        fits = [
            (max(likeness(one, other) for other in group), number)
            for number, group in enumerate(groups if one < MAX_FAMILIES else ())
            if not any(contradicts(named[one], named[other]) for other in group)
        ]
        best, number = max(fits, default=(0.0, -1))
        if best >= ALIKE:
            groups[number].append(one)
        else:
            groups.append([one])
    return [[ordered[n] for n in group] for group in groups]


def _likeness(lines: Sequence[str]) -> Callable[[int, int], float]:
    """The likeness of two of the lines, 0 to 1."""
    vectors = np.nan_to_num(term_table().encode(lines, kind="query")) if lines else np.zeros((0, 1), np.float32)
    words = [frozenset(word for word in words_of(line).split() if not word.isdigit()) for line in lines]
    distinct = sorted(frozenset[str]().union(*words))
    rare = np.maximum(rarity(np.array(surprisal(distinct))), _LEAST_RARITY).tolist() if distinct else []
    says = dict(zip(distinct, rare, strict=True))
    sums = [sum(map(says.__getitem__, one)) for one in words]

    def likeness(one: int, other: int) -> float:
        cosine = float(vectors[one] @ vectors[other])
        if cosine < 2 * ALIKE - 1:
            return 0.0  # whatever the words are
        both = sums[one] + sums[other]
        shared = 2 * sum(map(says.__getitem__, words[one] & words[other])) / both if both else 0.0
        return (max(cosine, 0.0) + shared) / 2

    return likeness
