"""Asks a base questions that are made from its own records: how far can its confidence be trusted on these articles?

Nobody has to write questions, so this works on any base. Each record gives up to three: an error line with other
numbers and without a fifth of its words, its title without two fifths, a sentence of its symptom without two fifths.
Each is asked twice: with its issue in the base, and with it passed over, so that every answer is wrong. With it go the
rest of its article and whatever prints one of its error lines: those would be right, in part at least. Questions made
of a record's own words are easier than what people type; the figures say whether confidence means on this base what it
means on kb's own articles, and where to set `known-at`.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kb.errors import QueryError
from kb.records import IssueRecord
from kb.text import HAN_CHAR, sentences

if TYPE_CHECKING:
    from kb.index.build import Progress
    from kb.search.searcher import Searcher

__all__ = ["OwnAnswers", "ask_own", "own_questions"]

RECORDS = 200  # of a larger base so many are asked about, chosen by their ids
_LEAST_CHARS = 12  # of a question
_WORD = re.compile(rf"{HAN_CHAR.pattern}{{1,2}}|[^\s\u4e00-\u9fd5]+")

_LETTERS = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class OwnAnswers:
    """The answers to questions of one kind: line, title or sentence."""

    kind: str
    confidences: tuple[float, ...]
    """of the first hit, with the issue in the base"""
    right: tuple[bool, ...]
    """is the first hit the issue, or another telling of the same fault?"""
    left_out: tuple[float, ...]
    """of the first hit, with the issue passed over"""

    def as_dict(self, known_at: float) -> dict[str, Any]:
        """The public JSON form (`kb eval --json`): shares of the questions, known from `known_at` on."""
        n = max(len(self.right), 1)
        known = [right for right, p in zip(self.right, self.confidences, strict=True) if p >= known_at]
        return {
            "kind": self.kind,
            "questions": len(self.right),
            "first": sum(self.right) / n,
            "known_right": sum(known) / n,
            "known_wrong": (len(known) - sum(known)) / n,
            "left_out_known": sum(p >= known_at for p in self.left_out) / n,
        }


def ask_own(searcher: Searcher, progress: Progress | None = None) -> list[OwnAnswers]:
    """The answers by kind. Takes some 50 ms a record, for at most `RECORDS` of them."""
    columns, same = searcher.store.header.columns, searcher.first_telling
    records = searcher.records()
    near: dict[str, set[int]] = defaultdict(set)
    for row, record in enumerate(records):
        for mark in _marks(record):
            near[mark].add(row)
    found: dict[str, list[tuple[float, bool, float]]] = {}
    chosen = _chosen(records)
    for done, (row, record) in enumerate(chosen, 1):
        told = columns.tellings([row])[0].tolist()
        others = set[int]().union(*(near[mark] for one in told for mark in _marks(records[one])))
        absent = set(columns.tellings(sorted(others))[0].tolist())
        for kind, question in own_questions(record):
            try:
                there = searcher.search(question, 1).hits[:1]
                away = searcher.search(question, 1, absent=absent).hits[:1]
            except QueryError:  # no words are left
                continue
            right = any(same[hit.issue] == same[record.issue] for hit in there)
            first = (max((hit.confidence for hit in hits), default=0.0) for hits in (there, away))
            found.setdefault(kind, []).append((next(first), right, next(first)))
        if progress is not None:
            progress("ask", done, len(chosen))
    return [
        OwnAnswers(kind, *(tuple(column) for column in zip(*answers, strict=True)))
        for kind, answers in sorted(found.items())
    ]


def _marks(record: IssueRecord) -> set[str]:
    """By these two records belong together: their article, and each error line but for its numbers."""
    lines = {" ".join(_LETTERS.findall(line.casefold())) for line in record.errors}
    return {record.issue.rpartition("#")[0], *lines} - {""}


def own_questions(record: IssueRecord) -> Iterator[tuple[str, str]]:
    """Kind and text of the questions that are made of a record; always the same ones."""
    chance = random.Random(record.id)
    parts = [("line", max(record.errors, key=len, default=""), 0.2), ("title", record.title, 0.4)]
    if told := [one for one in sentences(record.symptom, 6) if len(one) > 2 * _LEAST_CHARS]:
        parts.append(("sentence", chance.choice(told), 0.4))
    for kind, text, share in parts:
        other_numbers = re.sub(r"\d", lambda found: str(chance.randrange(10)), text) if kind == "line" else text
        question = _thinned(other_numbers, share, chance)
        if len(question) >= _LEAST_CHARS:
            yield kind, question


def _thinned(text: str, share: float, chance: random.Random) -> str:
    """Without so many of its words; Chinese is taken in pairs of characters."""
    words = [word for word in _WORD.findall(text) if chance.random() >= share]
    return ("" if HAN_CHAR.search("".join(words[:20])) else " ").join(words)


def _chosen(records: list[IssueRecord]) -> list[tuple[int, IssueRecord]]:
    order = sorted(enumerate(records), key=lambda pair: hashlib.sha256(pair[1].id.encode()).digest())
    return order[:RECORDS]
