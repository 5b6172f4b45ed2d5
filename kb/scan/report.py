"""What a scan found: the issues of one log, each with its lines, and their public JSON form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from kb.records import IssueRecord, Verdict
from kb.search.verdict import verdict

__all__ = ["Finding", "ScanReport", "joined"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One known issue in a log."""

    issue: str
    record: IssueRecord
    confidence: float
    """in [0, 1]: the probability that this is the issue, as in a search"""
    first_line: int
    """1-based, as an editor and `grep -n` count"""
    last_line: int
    count: int
    """how many lines say so"""
    processes: int
    """how many ranks, workers or processes wrote them, as far as the lines' prefixes show; else 1"""
    text: str
    """the first of these lines, without colours, a long one cut"""
    base: str
    """the base that it comes from, as in `Hit.base`"""

    @property
    def verdict(self) -> Verdict:
        """known, or likely"""
        return "known" if verdict(self.confidence) == "known" else "likely"

    def as_dict(self) -> dict[str, Any]:
        r = self.record
        return {
            "issue": self.issue,
            "lang": r.lang,
            "project": r.project,
            "title": r.title,
            "verdict": self.verdict,
            "confidence": round(self.confidence, 4),
            "first_line": self.first_line,
            "last_line": self.last_line,
            "count": self.count,
            "processes": self.processes,
            "text": self.text,
            "summary": r.summary,
            "cause": r.cause,
            "fix": r.fix,
            "sources": list(r.sources),
            "updated": r.updated,
            "base": self.base,
        }


@dataclass(frozen=True, slots=True)
class ScanReport:
    findings: tuple[Finding, ...]
    """by first line; an issue at most once"""
    lines: int
    size: int
    """bytes read"""
    snapshot: str
    took_ms: float

    @property
    def verdict(self) -> Verdict:
        """That of the surest finding; unknown without any."""
        verdicts = {finding.verdict for finding in self.findings}
        return "known" if "known" in verdicts else "likely" if verdicts else "unknown"

    @property
    def likely(self) -> tuple[str, ...]:
        """The issues that are only likely, by first line."""
        return tuple(finding.issue for finding in self.findings if finding.verdict == "likely")

    def at_least(self, confidence: float | None) -> ScanReport:
        """The same without the findings that are less sure; None keeps all."""
        kept = tuple(finding for finding in self.findings if finding.confidence >= (confidence or 0.0))
        return replace(self, findings=kept)

    def as_dict(self) -> dict[str, Any]:
        """The public JSON form of one log (`kb scan --json` puts the log's name before it; HTTP)."""
        return {
            "verdict": self.verdict,
            "likely": list(self.likely),
            "lines": self.lines,
            "bytes": self.size,
            "took_ms": round(self.took_ms, 3),
            "snapshot": self.snapshot,
            "findings": [finding.as_dict() for finding in self.findings],
        }


def joined(earlier: Finding | None, later: Finding | None) -> Finding:
    """One issue, found by two snapshots in one log."""
    if earlier is None or later is None:
        found = earlier or later
        assert found is not None
        return found
    return replace(
        earlier,
        confidence=max(earlier.confidence, later.confidence),
        last_line=later.last_line,
        count=earlier.count + later.count,
        processes=max(earlier.processes, later.processes),
    )
