"""The words of a line, as lines are compared: in lower case, without whatever stands between them."""

from __future__ import annotations

import re

__all__ = ["words_of"]

_WORD = re.compile(r"[a-z]+|[0-9]+|[^\W\d_]")


def words_of(text: str) -> str:
    """The words of cleaned text in lower case, with a space around each: runs of letters, runs of digits, single
    Chinese characters. A line end that a JSON log wrote as `\\n` separates words."""
    text = text.replace("\\n", "  ").replace("\\t", "  ") if "\\" in text else text
    return f" {' '.join(_WORD.findall(text.lower()))} "
