"""Answers in short as plain values: what an editor or a chat bot shows of an issue before somebody asks for all of it.

Texts are those of the articles, in one line and without markup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kb.brief.issue import cause_sentence
from kb.brief.prose import plain
from kb.brief.remedy import MOST_STEPS, Step, steps_of
from kb.records import Hit, IssueRecord, SearchResult, Verdict

if TYPE_CHECKING:
    from kb.scan import Finding, ScanReport

__all__ = ["short_answer", "short_report"]

MOST_CODE = 15  # lines of code that are shown; more of them are a file, not a command to try


def short_answer(result: SearchResult) -> dict[str, Any]:
    return {
        "lang": result.query.lang,
        "answered": result.answered,
        "verdict": result.verdict,
        "likely": list(result.likely),
        "took_ms": round(result.took_ms, 3),
        "snapshot": result.snapshot,
        "bases": list(result.bases),
        "silent": [silence._asdict() for silence in result.silent],
        "results": [{"rank": hit.rank, **_issue(hit, _verdict(hit, result))} for hit in result.hits],
    }


def short_report(report: ScanReport) -> dict[str, Any]:
    found = [
        {
            **_issue(one, one.verdict),
            **{name: getattr(one, name) for name in ("first_line", "last_line", "count", "processes", "text")},
        }
        for one in report.findings
    ]
    return {**report.as_dict(), "findings": found}


def _verdict(hit: Hit, result: SearchResult) -> Verdict:
    """Of one hit: the answer itself, or one of those that are likely."""
    if result.answered and hit.rank == 1:
        return "known"
    return "likely" if hit.issue in result.likely else "unknown"


def _issue(found: Hit | Finding, verdict: Verdict) -> dict[str, Any]:
    record = found.record
    return {
        "issue": found.issue,
        "lang": record.lang,
        "project": record.project,
        "title": record.title,
        "verdict": verdict,
        "confidence": round(found.confidence, 4),
        "summary": plain(record.summary or cause_sentence(record)),
        "try": _to_try(record),
    }


def _to_try(record: IssueRecord) -> list[dict[str, Any]]:
    """The first steps of the fix; of an issue with many causes the one that says where to look."""
    return [_step(step) for step in steps_of(record.fix)[: 1 if record.branches else MOST_STEPS]]


def _step(step: Step) -> dict[str, Any]:
    shown = len(step.code) <= MOST_CODE
    return {
        "says": step.says,
        "warnings": list(step.warnings),
        "basis": step.mark.strip("()（）"),
        "code": "\n".join(step.code) if shown else "",
        "more": step.more or not shown,
    }
