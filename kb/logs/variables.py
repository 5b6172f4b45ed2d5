"""The variable parts of a printed line: what differs between two runs of one failure.

Two runs print the same words around other numbers, addresses, paths and names. `mask` replaces the parts that are
certain to differ, for comparing lines word by word. Fingerprints cut a line at more of them (`kb.logs.fingerprints`).
"""

from __future__ import annotations

import re

__all__ = ["HASH", "PATH", "mask"]

HASH = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-f]{8}-[0-9a-f-]{4,40}|\b(?=[a-f]{0,40}[0-9])[0-9a-f]{12,80}\b")
_DIGITS = re.compile(r"\d+(?:[.,:]\d+)*")
_NAME = r"[\w.@+~-]"
PATH = re.compile(
    rf"https?://[^\s'\"`)]+|(?<!{_NAME})(?:[A-Za-z]:)?{_NAME}*(?:[\\/]{_NAME}+){{2,}}[\\/]?"
    rf"|(?<!{_NAME}){_NAME}*[\\/]{_NAME}+\.\w{{1,5}}\b"
)


def mask(line: str) -> str:
    """The line with addresses, hashes and all digits as `#`, paths as `/#`, and runs of spaces as one space."""
    line = _DIGITS.sub("#", PATH.sub("/#", HASH.sub("#", line)))
    return " ".join(line.split())
