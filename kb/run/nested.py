"""The frame that `kb run` puts around an explanation, and how an outer `kb run` finds it again.

A command under `kb run` may run another `kb run`. The inner one explains its own failure at once, because the outer
command may still succeed. The outer one must neither repeat that explanation nor mistake its words for the command's
output. Both see one stream of text, so both sides of the frame are defined here.
"""

from __future__ import annotations

import re

__all__ = ["first_line", "unknown_line", "without_explanations"]

_COLOUR = re.compile(rb"\x1b\[[0-9;]{0,20}m|\r(?=\n)")
_FIRST, _SHOW = "\n── kb: ".encode(), b"\nkb show "
_LAST = re.compile(
    rb"(?:\nkb show [^\n]*)+\n"
)  # an explanation ends with a `kb.brief.show_line` for each of its issues
_UNKNOWN = re.compile(rb"^kb: (?:exit code|ended by) [^;\n]{1,40}; [^\n]{0,800}\n", re.MULTILINE)


def first_line(how: str, *, certain: bool = True) -> str:
    """Above an explanation. `how`: how the command ended, as in "exit code 3"."""
    return f"── kb: {how}; this {'is' if certain else 'may be'} a known issue " + "─" * 24


def unknown_line(how: str, why: str = "not known to kb") -> str:
    """In place of an explanation; `why` there is none."""
    return f"kb: {how}; {why}"


def without_explanations(output: bytes) -> tuple[bytes, bool]:
    """The command's own output, and whether it ends with the explanation of an inner `kb run`."""
    output = b"\n" + _COLOUR.sub(b"", output).rstrip() + b"\n"
    last = output[output.rfind(b"\n", 0, -1) :]
    before, *explanations = output.split(_FIRST)
    kept = [before + b"\n"]
    for explanation in explanations:  # from its first line to its last
        end = _LAST.search(explanation)
        kept.append(explanation[end.end() :] if end else explanation)
    own = _UNKNOWN.sub(b"", b"".join(kept))[1:]
    return own, last.startswith((b"\nkb: ", _SHOW))
