"""`kb last`: explains the last command of this shell that failed.

The shell says which command that was (`kb hook`), tmux or screen what it printed (`kb.run.screen`), and `kb.cli.run`
what that means, as if it had run under `kb run`.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kb.cli.common import base_option, complain, echo, index_option, lang_option, plain
from kb.cli.words import say

if TYPE_CHECKING:
    from kb.records import Lang

__all__ = ["last"]

_EXIT_UNKNOWN = 1
_EXIT_NOTHING = 66  # there is nothing to explain
_SHOWN = 300  # characters of the command
_SWITCH_ON = {"fish": "kb hook fish | source", "zsh": 'eval "$(kb hook zsh)"', "bash": 'eval "$(kb hook bash)"'}


@click.command()
@lang_option
@base_option
@index_option
def last(lang: Lang | None, bases: tuple[str, ...], index: str | Path | None) -> None:
    """Explain the last command of this shell that failed, by what it printed.

    \b
      eval "$(kb hook bash)"    once, in ~/.bashrc (or zsh, fish: kb hook --help)
      python train.py           it fails
      kb last

    The shell has to run inside tmux or GNU screen, which keep what was printed. Nothing is recorded, and the command
    is not run again. Exits with 0 for a known issue, with 1 for one that is likely or unknown, with 66 when there is
    nothing to explain.
    """
    from kb.cli.run import explained
    from kb.run import Outcome
    from kb.run.screen import asks_terminal, output_of, screen_text

    command = os.environ.get("KB_LAST_COMMAND")
    if command is None:
        shell = Path(os.environ.get("SHELL", "")).name
        complain(say("this shell does not tell kb what failed; to switch that on:"))
        echo(f"    {_SWITCH_ON.get(shell, _SWITCH_ON['bash'])}", err=True)
        sys.exit(_EXIT_NOTHING)
    if not command:
        complain(say("no command has failed here since kb was told to watch"))
        sys.exit(_EXIT_NOTHING)
    if not asks_terminal():
        complain(say("what `{command}` printed was not kept: that takes tmux or screen", command=_shown(command)))
        complain(say("outside of it: {command}", command=f"kb run -- {_shown(command)}"))
        sys.exit(_EXIT_NOTHING)
    text = screen_text()
    output = None if text is None else output_of(text, command, os.environ.get("KB_LAST_NEXT", ""))
    if output is None:
        complain(say("the terminal no longer has what `{command}` printed", command=_shown(command)))
        sys.exit(_EXIT_NOTHING)
    echo(f"$ {_shown(command)}")
    code = os.environ.get("KB_LAST_CODE", "")
    outcome = Outcome(int(code) if code.isdecimal() and len(code) < 4 else 1, output.encode(), True)
    answer = explained(outcome, _words_of(command), bases, index)
    sys.exit(0 if answer == "known" else _EXIT_UNKNOWN)


def _shown(command: str) -> str:
    one_line = " ".join(command.split())
    return plain(one_line if len(one_line) <= _SHOWN else f"{one_line[:_SHOWN]}…")


def _words_of(command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError:  # an open quote
        return tuple(command.split())
