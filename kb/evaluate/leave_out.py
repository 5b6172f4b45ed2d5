"""Asks each question of a base without the article that answers it.

Then every answer is wrong, and nobody has to judge it: this measures how well a base knows what it does not know. The
article's issues are passed over in the search; how rare its words are is still counted with them, which moves no
verdict of a hundred (the base built anew without each article takes half a second an article).
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kb.base import KnowledgeBase
from kb.evaluate.questions import Question
from kb.records import SearchResult
from kb.search.verdict import KNOWN_AT

if TYPE_CHECKING:
    from kb.index.build import Progress

__all__ = ["LeftOut", "left_out", "measure_left_out"]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Questions asked of a base without the article that answers them."""

    n: int
    known: int
    """answered all the same: all of these answers are wrong"""
    likely: int
    """given a list of likely issues: all of them are others"""
    wrong: tuple[tuple[Question, str, float], ...]
    """the questions that were answered, with the issue and the confidence, the surest first"""

    def as_dict(self) -> dict[str, Any]:
        """The public JSON form (`kb eval --leave-out --json`)."""
        wrong = [{"id": one.id, "found": issue, "confidence": p, "query": one.query} for one, issue, p in self.wrong]
        return {"questions": self.n, "known": self.known, "likely": self.likely, "wrong": wrong}


def measure_left_out(
    articles: Path,
    questions: Sequence[Question],
    *,
    min_confidence: float | None = None,
    progress: Progress | None = None,
) -> LeftOut:
    """`min_confidence` replaces the base's own threshold. Questions without an answer below `articles` do not count."""
    known_at = KNOWN_AT if min_confidence is None else min_confidence
    verdicts = {"known": 0, "likely": 0, "unknown": 0}
    wrong = []
    for question, result in left_out(articles, questions, min_confidence=known_at, progress=progress):
        verdicts[result.verdict] += 1
        if result.answered:
            wrong.append((question, result.hits[0].issue, result.hits[0].confidence))
    wrong.sort(key=lambda one: -one[2])
    return LeftOut(sum(verdicts.values()), verdicts["known"], verdicts["likely"], tuple(wrong))


def left_out(
    articles: Path,
    questions: Sequence[Question],
    *,
    k: int = 3,
    min_confidence: float = KNOWN_AT,
    progress: Progress | None = None,
) -> Iterator[tuple[Question, SearchResult]]:
    """Each question whose issue is in an article below `articles`, with the answer of a base that lacks all articles
    with a right issue; in the order of the questions."""
    with tempfile.TemporaryDirectory() as index:
        KnowledgeBase.build(articles, index, keep_going=True)
        with KnowledgeBase.open(index) as base:
            searcher = base.searcher
            columns = searcher.store.header.columns
            paths: dict[str, set[str]] = defaultdict(set)
            rows: dict[str, list[int]] = defaultdict(list)
            for row, record in zip(columns.rows().tolist(), searcher.records(), strict=True):
                rows[record.source.path].append(row)
                paths[record.issue].add(record.source.path)
                paths[record.issue.partition("#")[0]].add(record.source.path)
            for done, question in enumerate(questions, 1):
                there = {path for issue in question.wanted for path in paths.get(issue, ())}
                if there:
                    out = columns.tellings([row for path in there for row in rows[path]])[0]
                    absent = set(out.tolist())
                    yield question, searcher.search(question.query, k, min_confidence=min_confidence, absent=absent)
                if progress is not None:
                    progress("leave out", done, len(questions))
