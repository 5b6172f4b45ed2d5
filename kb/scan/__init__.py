"""The known issues in a log of any size, each with the lines that it stands in.

In: the bytes of a log, and one snapshot of a base. Out: `Finding`s in a `ScanReport`.

    scanner    which lines are candidates, and what a search says of them
    prefilter  which lines of a block are worth a look at all
"""

from kb.scan.scanner import Finding, Scan, Scanner, ScanReport

__all__ = ["Finding", "Scan", "ScanReport", "Scanner"]
