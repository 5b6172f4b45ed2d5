"""What was asked and not known, put together: the gaps of a base, those that most people met first.

Misses of one family are one already. Families that say the same in other words are put together by the likeness of
their lines: the mean of the cosine of their vectors and the share of rare words that they have in common. What names
different codes stays apart, and so do two lines of which each has a word in quotes that the other lacks (`No module
named 'x'`). Then the base is asked again: what it knows by now is no gap any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kb.encoders import rarity, surprisal, term_table
from kb.errors import QueryError
from kb.feedback.gist import unmarked
from kb.feedback.store import Miss
from kb.logs.codes import codes, contradicts
from kb.logs.variables import mask
from kb.logs.words import words_of
from kb.records import SearchResult, Verdict

__all__ = ["ALIKE", "Asked", "Gap", "gaps"]

ALIKE = 0.55
"""the likeness from which two families are one gap. Of 159,995 pairs of test questions about different issues 95 reach
it, most of them word by word the same line, which many issues print"""
MAX_FAMILIES = 3000  # that are compared, those that were asked most often
MAX_ASKED = 1000  # families that the base is asked about again: 5 s
_LEAST_RARITY = 0.1  # that the most common word counts
_LEAST_COSINE = 0.3  # of what is compared word by word
_QUOTED = re.compile(r"(?<!\w)(?:'([^'\n]{1,80})'|\"([^\"\n]{1,80})\"|`([^`\n]{1,80})`)(?!\w)")


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
    groups = sorted(_alike(misses), key=lambda group: -sum(miss.count for miss in group))
    found: list[Gap] = []
    asked = 0
    for group in groups:
        found.append(_asked_again(tuple(group), base if asked < MAX_ASKED else None))
        asked += len(group)
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
    lines = [unmarked(miss.lines[0]) for miss in ordered]
    named, quoted = [codes(line) for line in lines], [_quoted(line) for line in lines]
    groups: list[list[int]] = []
    group_of: list[int] = []

    def contradict(one: int, other: int) -> bool:
        each_its_own = bool(quoted[one] - quoted[other]) and bool(quoted[other] - quoted[one])
        return each_its_own or contradicts(named[one], named[other])

    for one, near in _likenesses(lines[:MAX_FAMILIES]):
        fits = sorted(
            {(likeness, -group_of[other]) for other, likeness in near.items() if likeness >= ALIKE}, reverse=True
        )
        numbers = (-number for _, number in fits)
        number = next((n for n in numbers if not any(contradict(one, other) for other in groups[n])), len(groups))
        groups += [[]] if number == len(groups) else []
        groups[number].append(one)
        group_of.append(number)
    alone = range(MAX_FAMILIES, len(ordered))
    return [[ordered[n] for n in group] for group in [*groups, *([n] for n in alone)]]


def _quoted(line: str) -> frozenset[str]:
    """The words in quotes, without what was masked there."""
    return frozenset(mask(found[found.lastindex or 0]) for found in _QUOTED.finditer(line)) - {"", "#"}


def _likenesses(lines: Sequence[str]) -> Iterator[tuple[int, dict[int, float]]]:
    """For each line those before it that are near, with their likeness, 0 to 1."""
    if not lines:
        return
    vectors = np.nan_to_num(term_table().encode(lines, kind="query"))
    words = [frozenset(word for word in words_of(line).split() if not word.isdigit()) for line in lines]
    distinct = sorted(frozenset[str]().union(*words))
    says = dict(zip(distinct, np.maximum(rarity(np.array(surprisal(distinct))), _LEAST_RARITY).tolist(), strict=True))
    sums = [sum(map(says.__getitem__, one)) for one in words]
    for one in range(len(lines)):
        cosines = vectors[:one] @ vectors[one]
        near = {}
        for other in np.flatnonzero(cosines >= _LEAST_COSINE).tolist():
            both = sums[one] + sums[other]
            shared = 2 * sum(map(says.__getitem__, words[one] & words[other])) / both if both else 0.0
            near[other] = (float(cosines[other]) + shared) / 2
        yield one, near
