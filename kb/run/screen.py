"""Finds what a command printed, in the text that tmux or GNU screen keeps of a terminal.

The terminal is asked only when somebody asks (`kb last`), so the shell's integration has nothing to store: it says what
was typed, and the lines between that and the next command are the output.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from kb.run.tail import TAIL_BYTES
from kb.text.width import cells

__all__ = ["asks_terminal", "output_of", "screen_text"]

LINES = 5000  # of the history that are looked through
PATIENCE_S = 5.0


def asks_terminal() -> bool:
    """Is this a terminal that can be asked for its text?"""
    return _in_tmux() or _in_screen()


def screen_text() -> str | None:
    """The last lines of this terminal; wrapped ones joined. None where it gives nothing."""
    with suppress(OSError, subprocess.SubprocessError):
        return _of_tmux() if _in_tmux() else _of_screen() if _in_screen() else None
    return None


def _in_tmux() -> bool:
    return bool(os.environ.get("TMUX")) and re.fullmatch(r"%\d{1,9}", os.environ.get("TMUX_PANE", "")) is not None


def _of_tmux() -> str:
    command = ["tmux", "capture-pane", "-p", "-J", "-S", f"-{LINES}", "-t", os.environ["TMUX_PANE"]]
    return _ask(command).decode("utf-8", "replace")


def _in_screen() -> bool:
    """GNU screen names its session and the window in each shell that it starts."""
    place = f"{os.environ.get('STY', '')} {os.environ.get('WINDOW', '')}"
    return re.fullmatch(r"\d{1,9}\.[\w.@-]{1,200} \d{1,4}", place) is not None


def _of_screen() -> str | None:
    """screen writes a file, some time after it was asked. It cuts long lines at the width of the window: those that
    fill it are joined with the next one."""
    with tempfile.TemporaryDirectory(prefix="kb-") as folder:
        copy = Path(folder) / "copy"
        command = ["screen", "-S", os.environ["STY"], "-p", os.environ["WINDOW"], "-X"]
        _ask([*command, "hardcopy", "-h", str(copy)])
        size, end = -1, time.monotonic() + PATIENCE_S
        while time.monotonic() < end:  # whole when it has stopped growing
            time.sleep(0.05)
            now = copy.stat().st_size if copy.exists() else -1
            if now > 0 and now == size:
                break
            size = now
        lines = copy.read_text("utf-8", "replace").splitlines()[-LINES:]
    width = shutil.get_terminal_size().columns
    return "".join(line if cells(line) >= width else f"{line}\n" for line in lines)


def _ask(command: list[str]) -> bytes:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, check=True).stdout


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
