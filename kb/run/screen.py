"""Finds what a command printed, in the text that tmux keeps of a terminal.

The terminal is asked only when somebody asks (`kb last`), so the shell's integration has nothing to store: it says what
was typed, and the lines between that and the next command are the output.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence

from kb.run.tail import TAIL_BYTES

__all__ = ["asks_terminal", "output_of", "screen_text"]

LINES = 5000  # of the history that are looked through
PATIENCE_S = 5.0


def asks_terminal() -> bool:
    """Is this a terminal that can be asked for its text?"""
    return bool(os.environ.get("TMUX") and os.environ.get("TMUX_PANE"))


def screen_text() -> str | None:
    """The last lines of this terminal; wrapped ones joined. None where it gives nothing."""
    pane = os.environ.get("TMUX_PANE", "")
    if not (asks_terminal() and re.fullmatch(r"%\d{1,9}", pane)):
        return None
    command = ["tmux", "capture-pane", "-p", "-J", "-S", f"-{LINES}", "-t", pane]
    try:
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return ran.stdout.decode("utf-8", "replace")


def output_of(text: str, command: str, after: str) -> str | None:
    """What stands between the last place where `command` was typed and the next one where `after` was; the end of it,
    if it is long. None where `command` is not to be found, as after `clear`."""
    lines = text.splitlines()
    typed = [line.strip() for line in command.strip().splitlines()] or [""]
    asked = (n for n in range(len(lines) - 1, -1, -1) if "kb last" in lines[n])
    ends = next(asked, len(lines))
    start = _last(lines, typed[0], ends)
    if start is None or not typed[0]:
        return None
    first = start + 1
    for line in typed[1:]:  # the rest of a command of several lines
        first += first < ends and _is_typed(lines[first], line)
    following = (after.strip().splitlines() or [""])[0]
    stop = next((n for n in range(first, ends) if _is_typed(lines[n], following)), ends) if following else ends
    return "\n".join(line.rstrip() for line in lines[first:stop])[-TAIL_BYTES:]


def _last(lines: Sequence[str], typed: str, before: int) -> int | None:
    return next((n for n in range(before - 1, -1, -1) if _is_typed(lines[n], typed)), None)


def _is_typed(line: str, typed: str) -> bool:
    """Does the line show a prompt and this, and perhaps a prompt at the right?"""
    at = line.rfind(typed)
    rest = line[at + len(typed) :]
    return at > 0 and (not rest.strip() or rest.startswith("  "))
