"""An assertion without a message: what failed is the statement, which Python shows in the frame above its line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kb.logs.prefix import strip_prefix

__all__ = ["LINES_ABOVE", "with_statement"]

LINES_ABOVE = 2  # the statement, and since Python 3.11 the marks below it
_BARE = re.compile(r"(?:[A-Za-z_][\w.]{0,100}\.)?AssertionError")


def with_statement(line: str, above: Sequence[str]) -> str:
    """`AssertionError` as `AssertionError: assert x > 0`, by the lines above it; any other line as it is."""
    if not _BARE.fullmatch(strip_prefix(line).strip()):
        return line
    shown = (strip_prefix(one).strip() for one in reversed(above[-LINES_ABOVE:]))
    statement = next((one for one in shown if one.startswith(("assert ", "assert("))), None)
    return f"{line.rstrip()}: {statement}" if statement else line
