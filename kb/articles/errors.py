"""Here is an issue's title and symptom; give me the literal error lines it is known by."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errorlines import error_lines, is_command, is_error_line, quoted_errors
from .draft import Part
from .lines import Line

__all__ = ["errors_in"]

_MAX_ERRORS = 40
_MAX_CHARS = 1000
_WORD = re.compile(r"[A-Za-z]{2,}")
_FRAMES = re.compile(r"\s{1,40}|Traceback|During handling|The above exception|File \"")


def errors_in(title: str, symptom: Sequence[Part]) -> list[str]:
    """Lines of fences, quotes and inline code, and sentences that are one message; each once, in order."""
    found: list[str] = []
    for part in symptom:
        if part.text:
            found += _in_prose(part.text)
            continue
        fence: list[Line] = []
        for line in [*part.lines, Line(0, "", "blank")]:
            if line.kind == "code":
                fence.append(line)
                continue
            if fence and (line.kind != "blank" or line.no == 0):
                found += _in_fence([code.text for code in fence])
                fence = []
            if line.kind in ("text", "heading", "html"):
                found += _in_prose(line.text)
    found += _in_prose(title)
    kept = [text[:_MAX_CHARS] for text in dict.fromkeys(text.strip() for text in found) if len(text) >= 4]
    return kept[:_MAX_ERRORS]


def _in_fence(texts: list[str]) -> list[str]:
    """The error lines of a fence; of a short one without any, what the program printed."""
    lines = error_lines("\n".join(texts))
    if lines:
        return lines
    printed = [text.strip() for text in texts if text.strip() and not is_command(text) and not _FRAMES.match(text)]
    return printed if 0 < len(printed) <= 3 and all(len(_WORD.findall(text)) >= 2 for text in printed) else []


def _in_prose(text: str) -> list[str]:
    stripped = text.strip().lstrip("-*•># ").strip()
    found = quoted_errors(stripped)
    if not found and stripped.isascii() is False:
        return found
    if not found and is_error_line(stripped) and len(stripped) < 400 and not stripped.endswith("."):
        found.append(stripped.strip("*` "))
    return found
