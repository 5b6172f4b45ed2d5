"""What somebody means who gives `kb` no command: a question to search for, or a command that they mistyped.

`kb "CUDA out of memory"`, `kb train.log` and `... | kb` search. A lower-case word alone is more likely a command than
a question: `kb serach` is told of `kb search`, and nothing runs.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import sys
from collections.abc import Sequence
from difflib import get_close_matches

import click

from kb.cli.words import say

__all__ = ["has_piped_input", "is_option", "is_question", "near_commands", "no_command"]

_COMMAND = re.compile(r"[a-z][a-z-]*")  # how commands are written; RuntimeError, 507899 and 显存不足 are none
_OPTIONS = {"help": "--help", "version": "--version"}
_NEAR = 0.7  # difflib's ratio, from which one word is a misspelling of another
_SENTENCE = 3  # words without quotes from which they are a question; `list projects` are two


def is_question(words: Sequence[str], commands: Sequence[str]) -> bool:
    """Are these arguments, of which the first is no command, something to search for?"""
    first = words[0]
    if not _COMMAND.fullmatch(first) or os.path.isfile(first):
        return True
    in_a_row = next((n for n, word in enumerate(words) if word.startswith("-")), len(words))
    return in_a_row >= _SENTENCE and not near_commands(first, commands)


def near_commands(word: str, commands: Sequence[str]) -> list[str]:
    """What `kb` knows under a name that is spelled like this one."""
    names = {**dict.fromkeys(commands), **_OPTIONS}
    return [names[near] or near for near in get_close_matches(word, names, n=2, cutoff=_NEAR)]


def no_command(words: Sequence[str], commands: Sequence[str]) -> click.UsageError:
    """What to say where nothing can be meant for sure: names the commands that are spelled like the first word, and
    how to search for the words."""
    near = " / ".join(f"`kb {name}`" for name in near_commands(words[0], commands))
    search = shlex.join(["kb", "search", *words])
    if os.path.isfile(log := " ".join(words)):  # a name with a space
        near = f"`{shlex.join(['kb', log])}`"
    ways = say("did you mean {commands}?", commands=near) + "\n" if near else ""
    ways += say("to search for it: {command}", command=search)
    return click.UsageError(say("no such command {word}; {ways}", word=repr(words[0]), ways=ways))


def is_option(word: str, command: click.Command, context: click.Context) -> bool:
    """Is it an option of this command, as `--json` of `kb search` in `kb --json "the error"`?"""
    names = {name for one in command.get_params(context) for name in one.opts if name.startswith("-")}
    return word.partition("=")[0] in names or (word[:2] in names and not word.startswith("--"))


def has_piped_input() -> bool:
    """Is stdin a pipe or a file? Not a terminal, the null device, or the connection of a remote shell that nobody
    writes to."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):  # closed, or no file at all
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)
