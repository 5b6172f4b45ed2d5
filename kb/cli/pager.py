"""Long output through a pager, as git does it: at a terminal only, and only what is higher than the terminal.

$KB_PAGER names the program, else $PAGER, else it is `less` if there is one. `KB_PAGER=` (empty), `cat` and --no-pager
switch it off. `less` gets `-FRX` unless $LESS says otherwise: it ends by itself on one screen, shows colours, and
leaves the text on the screen.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys

import click

__all__ = ["pager", "show"]


def pager() -> list[str]:
    """The program and its arguments; empty when there is none to use."""
    for name in ("KB_PAGER", "PAGER"):
        named = os.environ.get(name)
        if named is not None:
            try:
                words = shlex.split(named)
            except ValueError:  # an open quote
                words = []
            return [] if not words or words == ["cat"] or shutil.which(words[0]) is None else words
    return ["less"] if shutil.which("less") else []


def show(text: str, height: int, *, use: bool = True) -> None:
    """Writes a text to stdout. `height`: the rows that it takes. `use`: False writes it as it is."""
    from kb.cli.common import is_terminal

    command = pager() if use and is_terminal(sys.stdout) and os.environ.get("TERM") != "dumb" else []
    if not command or height < shutil.get_terminal_size((80, 24)).lines:
        click.echo(text, nl=False)
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the pager's while it runs
    try:
        with subprocess.Popen(command, stdin=subprocess.PIPE, env={"LESS": "FRX", **os.environ}) as process:
            assert process.stdin is not None
            try:
                process.stdin.write(text.encode("utf-8", "backslashreplace"))
                process.stdin.close()
            except OSError:  # it was left before all was read
                process.stdin = None
    except OSError:
        click.echo(text, nl=False)
    finally:
        signal.signal(signal.SIGINT, before)
