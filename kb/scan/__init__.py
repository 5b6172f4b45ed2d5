"""The known issues in a log of any size, each with the lines that it stands in.

In: the bytes of a log, and one snapshot of a base. Out: `Finding`s in a `ScanReport`.

    scanner    which lines are candidates, and what a search says of them
    report     what is found
    fingerprints  which error lines of which issues a line is like
    prefilter  which lines of a block are worth a look at all
    several    one log, read for several bases at once
"""

from kb.scan.report import Finding, ScanReport
from kb.scan.scanner import Scan, Scanner
from kb.scan.several import Scans

__all__ = ["Finding", "Scan", "ScanReport", "Scanner", "Scans"]
