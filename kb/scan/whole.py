"""A whole log as a question: every door says of it what a scan says.

A search reads a log by what it holds as a whole, and the lines that matter drown in it. A scan looks at each line, and
at the lines around it. So of a long log the scan decides: what it finds is the answer, and what only the search is sure
of is no more than likely. A short log is read as a whole (`kb.scan.scanner` asks the search where it finds nothing);
one that the search does not know so is scanned, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kb.records import Hit, SearchResult
from kb.scan.report import Finding
from kb.scan.scanner import Scanner
from kb.search.verdict import less_sure

__all__ = ["as_scanned"]

_AS_SURE = 0.05


def as_scanned(
    result: SearchResult, scanner: Scanner, known_at: float, search: Callable[[str], SearchResult]
) -> SearchResult:
    """What a search said of a long log, corrected by a scan of it. `search` asks about a line as the log was asked
    about."""
    report = scanner.scan([result.query.text.encode("utf-8", "replace")])
    found = [finding for finding in report.findings if finding.confidence >= known_at]
    surest = max(found, key=_sureness, default=None)
    if result.answered:
        first, telling = result.hits[0], scanner.first_telling
        agrees = telling(first.issue) in {telling(one.issue) for one in report.findings}
        # What is told by many causes stands in every log of its kind; which of two is meant, the whole log says better.
        # The statement of an assertion without a message is a line of source, at which no scan looks.
        asserted = not found and any(": assert " in line for line in result.read_as.signatures)
        sure = surest and first.confidence >= surest.confidence - _AS_SURE
        if agrees or first.record.branches or sure or asserted:
            return result
    if surest and (corrected := _answer(result, surest, search)):
        return corrected
    if not result.answered:
        return result
    return less_sure(result, known_at)


def _answer(result: SearchResult, finding: Finding, search: Callable[[str], SearchResult]) -> SearchResult | None:
    """The finding before what else is near; None where no search shows its issue."""
    line = search(finding.text)
    first = next((hit for hit in (*line.hits, *result.hits) if hit.issue == finding.issue), None)
    if first is None:
        return None
    first = replace(first, confidence=finding.confidence)
    others = [hit for hit in line.hits if hit.issue != finding.issue]
    shown = [first, *(replace(hit, confidence=min(hit.confidence, first.confidence)) for hit in others)]
    hits: list[Hit] = [replace(hit, rank=rank) for rank, hit in enumerate(shown[: len(result.hits)], 1)]
    return replace(result, verdict="known", likely=(), hits=tuple(hits), read_as=line.query)


def _sureness(finding: Finding) -> tuple[bool, float, int]:
    """A message with many causes comes last, and of equally sure ones that which came first is the first."""
    return not finding.record.branches, round(finding.confidence, 1), -finding.first_line
