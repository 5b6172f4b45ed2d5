"""Here is the end of what a command said; tell whether a kb inside it has explained the failure already."""

from __future__ import annotations

import re

__all__ = ["by_command"]

_COLOUR = re.compile(rb"\x1b\[[0-9;]{0,20}m|\r(?=\n)")
_HEAD, _END = "\n── kb: ".encode(), b"\nkb show "
_UNKNOWN = re.compile(rb"^kb: (?:exit code|ended by) [^\n]{1,40}; not known to kb[^\n]{0,400}\n", re.MULTILINE)


def by_command(said: bytes) -> tuple[bytes, bool]:
    """What the command itself said, and whether a kb in it had the last word."""
    said = b"\n" + _COLOUR.sub(b"", said).rstrip() + b"\n"
    last = said[said.rfind(b"\n", 0, -1) :]
    before, *reports = said.split(_HEAD)
    kept = [before + b"\n"]
    for report in reports:  # from its head to its last line
        end = report.find(_END)
        kept.append(report[report.index(b"\n", end + 1) + 1 :] if end >= 0 else report)
    own = _UNKNOWN.sub(b"", b"".join(kept))[1:]
    return own, last.startswith((b"\nkb: ", _END))
