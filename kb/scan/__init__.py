"""Known issues in a log of any size, each with the lines that it stands in."""

from kb.scan.scanner import Finding, Scan, Scanner, ScanReport

__all__ = ["Finding", "Scan", "ScanReport", "Scanner"]
