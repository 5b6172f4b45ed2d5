"""Shows what a terminal would obey in untrusted text, or only a machine would read, as symbols for the eye."""

from __future__ import annotations

import re

__all__ = ["CONTROL", "HIDDEN", "visible", "visible_line"]

_CONTROL = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
_TAGS = "[\u2065\u206a-\u206f\ufff0-\ufffb\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]"
_STYLE = "\ufe00-\ufe0f\U000e0100-\U000e01ef"  # one behind a sign chooses its form: of an emoji, of a name in Chinese
# One joins or parts what stands beside it, or takes the place of a letter: the other characters that Unicode says to
# show as nothing (Default_Ignorable_Code_Point), those of Egyptian quadrats, and the empty Braille cell.
_BLANK = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2064\u2800\u3164\ufeff\uffa0"
    "\U00013430-\U00013438\U00016fe4\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
)

HIDDEN = re.compile(f"{_TAGS}|(?<=[{_BLANK}])[{_BLANK}{_STYLE}]|(?<=[{_STYLE}])[{_STYLE}]")
"""characters without a shape by which a text can say to an agent what no person sees: tags, and runs of those of which
one has a use"""

CONTROL = re.compile(f"{_CONTROL}|{HIDDEN.pattern}")
"""those, and characters that move a cursor, change a colour, write a clipboard, or reverse the direction of reading"""


def visible(text: str) -> str:
    """The text with control characters replaced by symbols that show them (ESC becomes ␛), hidden ones by U+FFFD."""
    return CONTROL.sub(lambda m: chr(0x2400 + ord(m[0])) if ord(m[0]) < 0x20 else "\ufffd", text)


def visible_line(text: str) -> str:
    """The same for what is one line, such as a path: a line feed in a name must not begin a line of its own."""
    return visible(text).replace("\n", "\u240a").replace("\t", "\u2409")
