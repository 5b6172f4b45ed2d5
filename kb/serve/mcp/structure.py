"""Answers as a structure, beside the text: some clients show their model only the one, some only the other.

So each half can be acted on alone, and neither is a copy of the other: here stand the verdict, ids and numbers, and of
what is known or likely one sentence and what to try first. Nothing near is named where nothing is known.
"""

from __future__ import annotations

from typing import Any

from kb.brief import cause_sentence, first_to_try, likely_hits, plain, tells_apart
from kb.records import Hit, IssueRecord, SearchResult
from kb.scan import Finding, ScanReport
from kb.serve.mcp.told import MAX_FINDINGS
from kb.text import visible
from kb.text.width import cut

__all__ = ["scan_structure", "search_structure"]

_SAID = 300  # columns of a sentence


def search_structure(result: SearchResult) -> dict[str, Any]:
    if result.answered:
        shown = [{**_issue(result.hits[0]), **_remedy(result.hits[0].record)}]
    else:
        likely = likely_hits(result)
        records = [hit.record for hit in likely]
        shown = [
            {**_issue(hit), "tells_apart": _said(tells_apart(hit.record, [r for r in records if r is not hit.record]))}
            for hit in likely
        ]
    return {"answered": result.answered, "verdict": result.verdict, "results": shown}


def scan_structure(report: ScanReport) -> dict[str, Any]:
    surest = sorted(report.findings, key=lambda finding: -finding.confidence)[:MAX_FINDINGS]
    shown = [
        {**_issue(one), "verdict": one.verdict, "first_line": one.first_line, **_remedy(one.record)}
        for one in report.findings
        if one in surest
    ]
    return {"answered": report.verdict == "known", "verdict": report.verdict, "results": shown}


def _issue(found: Hit | Finding) -> dict[str, Any]:
    return {
        "issue": visible(found.issue),
        "confidence": round(found.confidence, 2),
        "title": _said(found.record.title),
    }


def _remedy(record: IssueRecord) -> dict[str, str]:
    summary = _said(plain(record.summary or cause_sentence(record)))
    # A summary ends with what to try.
    return {"summary": summary} if "`" in summary else {"summary": summary, "try": _said(first_to_try(record))}


def _said(text: str) -> str:
    return visible(cut(text, _SAID))
