"""One log, read for the issues of several bases at once.

Each base reads the log by itself, so that it finds what it would find alone. Two bases may know the same failure, or
each take the same line for another issue: then the surer one counts, and of equals the one that is asked first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kb.records import Lang
from kb.scan.report import Finding, ScanReport
from kb.scan.scanner import Scan, Scanner

__all__ = ["Scans"]


class Scans:
    """`kb.scan.Scan` over the scanners of several bases, in the order in which these are asked."""

    def __init__(self, scanners: Sequence[Scanner], *, lang: Lang | None = None, warnings: bool = False) -> None:
        self._scans = [Scan(scanner, lang=lang, warnings=warnings) for scanner in scanners]

    def feed(self, data: bytes) -> None:
        for one in self._scans:
            one.feed(data)

    def settle(self) -> None:
        for one in self._scans:
            one.settle()

    def move_to(self, scanners: Sequence[Scanner]) -> None:
        """Looks for the issues of newer snapshots of the same bases from the next line on."""
        for one, scanner in zip(self._scans, scanners, strict=True):
            one.move_to(scanner)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return _merged(one.findings for one in self._scans)

    def finish(self) -> ScanReport:
        first, *others = reports = [one.finish() for one in self._scans]
        if not others:
            return first
        return replace(
            first,
            findings=_merged(report.findings for report in reports),
            snapshot="+".join(report.snapshot for report in reports),
            took_ms=max(report.took_ms for report in reports),
        )


def _merged(found: Iterable[Sequence[Finding]]) -> tuple[Finding, ...]:
    """By first line. Where findings of several bases begin in the same line, those of the base with the surest."""
    surest: dict[int, Finding] = {}
    every = [finding for findings in found for finding in findings]
    for finding in every:
        other = surest.get(finding.first_line)
        if other is None or finding.confidence > other.confidence:
            surest[finding.first_line] = finding
    kept = [finding for finding in every if surest[finding.first_line].base == finding.base]
    return tuple(sorted(kept, key=lambda finding: (finding.first_line, finding.issue)))
