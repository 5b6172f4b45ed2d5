"""Measures how well a base answers questions with known answers. In come a base and questions; out comes an
`Evaluation` with recall, MRR, nDCG, answer and abstention rates, calibration and latency.

    questions   reads a file of questions
    leave_out   each question without the article that answers it
    own         questions that are made from the base's own records
    figures     the figures, and what each of them means
    plot        a picture of calibration and recall (needs the extra `plot`)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kb.errors import QueryError
from kb.evaluate.figures import DEPTH, METRICS, Judged, Known, Summary, calibrate, judge, slug_of, summarise, wilson
from kb.evaluate.questions import Question, read_questions
from kb.search.verdict import KNOWN_AT

if TYPE_CHECKING:
    from kb.base import KnowledgeBase
    from kb.index.build import Progress
    from kb.records import Lang, SearchResult

__all__ = [
    "DEPTH",
    "METRICS",
    "Evaluation",
    "Judged",
    "Known",
    "Question",
    "Summary",
    "calibrate",
    "evaluate",
    "judge",
    "read_questions",
    "summarise",
    "wilson",
]

WARM_UP = 5  # questions that are asked before the measured ones, so that one-time work is not measured


@dataclass(frozen=True, slots=True)
class Evaluation:
    snapshot: str
    issues: int
    """how many the base has"""
    only: Lang | None
    """the only language that was searched"""
    min_confidence: float
    """the confidence from which a hit counts as an answer"""
    judged: tuple[Judged, ...]
    absent: tuple[Question, ...]
    """their issue is not in this base: they are not asked and not counted"""
    all: Summary
    by_kind: dict[str, Summary]
    by_lang: dict[str, Summary]
    """by the language of the question"""
    recall_at_1_interval: tuple[float, float] | None
    """95 %, by Wilson's score"""

    @property
    def misses(self) -> list[Judged]:
        return [one for one in self.judged if one.wrong]

    def as_dict(self) -> dict[str, Any]:
        """The public JSON form (`kb eval --json`)."""
        return {
            "snapshot": self.snapshot,
            "issues": self.issues,
            "only": self.only,
            "min_confidence": self.min_confidence,
            "questions": len(self.judged),
            "all": self.all.as_dict(),
            "by_kind": {name: summary.as_dict() for name, summary in self.by_kind.items()},
            "by_lang": {name: summary.as_dict() for name, summary in self.by_lang.items()},
            "recall@1_interval": self.recall_at_1_interval and list(self.recall_at_1_interval),
            "misses": [
                {
                    "id": one.question.id,
                    "wrong": one.wrong,
                    "wanted": list(one.question.wanted),
                    "found": list(one.found[:3]),
                    "confidence": one.confidence,
                    "query": one.question.query,
                }
                for one in self.misses
            ],
            "not_in_base": [{"id": one.id, "wanted": list(one.wanted)} for one in self.absent],
        }


def evaluate(
    base: KnowledgeBase,
    questions: Sequence[Question],
    *,
    only: Lang | None = None,
    min_confidence: float | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Asks every question once. `only` searches one language; `min_confidence` replaces the base's own threshold.

    An issue that tells the same fault as a right one is right, too: of such issues a search names one. A question whose
    issue is not in the base is listed as absent and counts in no figure. Raises QueryError for a question that cannot
    be asked.
    """
    told = base.searcher.first_telling
    issues = {record.issue for record in base.records() if only in (None, record.lang)}
    known = issues | {slug_of(issue) for issue in issues}
    present = [one for one in questions if not one.wanted or known.intersection(one.wanted)]
    absent = tuple(one for one in questions if one.wanted and not known.intersection(one.wanted))
    for question in present[:WARM_UP]:
        _asked(base, question, only)
    judged = []
    for done, question in enumerate(present, 1):
        result = _asked(base, question, only)
        confidence = result.hits[0].confidence if result.hits else None
        answered = result.answered
        if min_confidence is not None:
            answered = confidence is not None and confidence >= min_confidence
        named = {told.get(issue, issue): issue for issue in question.wanted}
        found = [named.get(told.get(hit.issue, ""), hit.issue) for hit in result.hits]
        judged.append(judge(question, found, known, confidence=confidence, answered=answered, took_ms=result.took_ms))
        if progress is not None:
            progress("ask", done, len(present))
    everything = summarise(judged)
    hits = sum(one.right for one in judged)
    return Evaluation(
        snapshot=base.snapshot,
        issues=base.size,
        only=only,
        min_confidence=KNOWN_AT if min_confidence is None else min_confidence,
        judged=tuple(judged),
        absent=absent,
        all=everything,
        by_kind=_by(judged, lambda one: one.question.kind),
        by_lang=_by(judged, lambda one: one.question.lang),
        recall_at_1_interval=wilson(hits, everything.known.n) if everything.known else None,
    )


def _asked(base: KnowledgeBase, question: Question, only: Lang | None) -> SearchResult:
    try:
        return base.search(question.query, DEPTH, only=only)
    except QueryError as error:
        raise QueryError(error.message, path=question.path, line=question.line, hint=error.hint) from None


def _by(judged: Sequence[Judged], key: Callable[[Judged], str]) -> dict[str, Summary]:
    groups: dict[str, list[Judged]] = defaultdict(list)
    for one in judged:
        groups[key(one)].append(one)
    return {name: summarise(groups[name]) for name in sorted(groups)}
