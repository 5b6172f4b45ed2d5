"""The variable parts of a printed line: what differs between two runs of one failure.

Two runs print the same words around other numbers, addresses, paths and names. `mask` replaces the parts that are
certain to differ, for comparing lines word by word. `forms` cuts a line at more and more of them, for fingerprints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["GAP", "forms", "mask"]

GAP = "\0"  # stands for a variable part in `forms`

_PLACEHOLDER = re.compile(r"\.{3}|…|<[^<>\n]{1,40}>|\{\}|\*|%[sd]|\b(?:[NXYZ]|[Xx]{2,4})\b")
_HASH = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-f]{8}-[0-9a-f-]{4,40}|\b(?=[a-f]{0,40}[0-9])[0-9a-f]{12,80}\b")
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9])[0-9]+(?:[.,:][0-9]+)*(?![A-Za-z0-9])(?: ?(?:[KMGT]i?B|bytes|ms|s|seconds|milliseconds|%)\b)?"
)
_DIGITS = re.compile(r"\d+(?:[.,:]\d+)*")
_NAME = r"[\w.@+~-]"
_PATH = re.compile(
    rf"https?://[^\s'\"`)]+|(?<!{_NAME})(?:[A-Za-z]:)?{_NAME}*(?:[\\/]{_NAME}+){{2,}}[\\/]?"
    rf"|(?<!{_NAME}){_NAME}*[\\/]{_NAME}+\.\w{{1,5}}\b"
)
_QUOTED = re.compile(r"(?<!\w)(?:'[^'\n]{1,200}'|\"[^\"\n]{1,200}\"|`[^`\n]{1,200}`)(?!\w)")
_OWN_NAME = re.compile(r"(?<![\w.])\w*[0-9][\w.]*|(?<![\w.])\w+(?:\.\w+){2,}")
_SENTENCE_END = re.compile(r"[.!?;。！？；](?=\s|$)|\s\([^()]{1,200}\)$")
_EXCEPTION_HEAD = re.compile(r"(?:\w{1,60}\.){0,9}(\w{0,60}[A-Z]\w{0,60}): ?")


def mask(line: str) -> str:
    """The line with addresses, hashes and all digits as `#`, paths as `/#`, and runs of spaces as one space."""
    line = _DIGITS.sub("#", _PATH.sub("/#", _HASH.sub("#", line)))
    return " ".join(line.split())


def forms(line: str) -> Iterator[str]:
    """The line with GAP for its variable parts, the strictest form first. The first form has no placeholders, paths and
    hashes; the second also no free-standing numbers with their units; the others also no quoted text and no names with
    a digit or dots in them. Those others exist for the whole line and for its first sentence, because what follows is
    often advice that changes between versions, and with and without the name of the exception that the line opens
    with (its module is always cut)."""
    for pattern in (_PLACEHOLDER, _PATH, _HASH):
        line = pattern.sub(GAP, line)
    yield line
    line = _NUMBER.sub(GAP, line)
    yield line
    first = _SENTENCE_END.split(line, maxsplit=1)[0]
    for part in dict.fromkeys((line, first)):
        part = _QUOTED.sub(GAP, part)
        head = _EXCEPTION_HEAD.match(part)
        tail = _OWN_NAME.sub(GAP, part[head.end() :] if head else part)
        yield f"{head[1]}: {tail}" if head else tail
        if head:
            yield tail
