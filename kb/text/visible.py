"""Replaces control characters in untrusted text with symbols, so that a terminal shows them and does not obey them."""

from __future__ import annotations

import re

__all__ = ["CONTROL", "visible", "visible_line"]

CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""characters that move a cursor, change a colour, write a clipboard, or reverse the direction of reading"""


def visible(text: str) -> str:
    """The text with control characters replaced by symbols that show them (ESC becomes ␛)."""
    return CONTROL.sub(lambda m: chr(0x2400 + ord(m[0])) if ord(m[0]) < 0x20 else "\ufffd", text)


def visible_line(text: str) -> str:
    """The same for what is one line, such as a path: a line feed in a name must not begin a line of its own."""
    return visible(text).replace("\n", "\u240a").replace("\t", "\u2409")
