"""Here is a base; give me its issues by id and by project, read once for each state of the index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from kb.records import IssueRecord

if TYPE_CHECKING:
    from kb.base import KnowledgeBase

__all__ = ["Catalogue", "Shelf"]


@dataclass(frozen=True)
class Shelf:
    """The issues of one state of the index."""

    snapshot: str
    tellings: Mapping[str, Sequence[IssueRecord]]
    """by `slug#n` in small letters, in the index's order"""
    projects: Sequence[tuple[str, int]]
    """how many issues each has; most first, then by name"""

    def near(self, issue: str) -> list[str]:
        """Ids that somebody may have meant, who mistyped one."""
        return get_close_matches(issue.casefold(), self.tellings, n=3, cutoff=0.6) if len(issue) < 200 else []


class Catalogue:
    def __init__(self, base: KnowledgeBase) -> None:
        self._base = base
        self._shelf = _read(base)

    def now(self) -> Shelf:
        if self._shelf.snapshot != self._base.snapshot:
            self._shelf = _read(self._base)
        return self._shelf


def _read(base: KnowledgeBase) -> Shelf:
    snapshot, tellings = base.snapshot, dict[str, list[IssueRecord]]()
    for record in base.records():
        tellings.setdefault(record.issue.casefold(), []).append(record)
    counts = Counter(project for told in tellings.values() for project in {r.project for r in told if r.project})
    return Shelf(snapshot, tellings, sorted(counts.items(), key=lambda pair: (-pair[1], pair[0].casefold())))
