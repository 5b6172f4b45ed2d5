"""What `kb search` is asked: the words of the command line, stdin, or the content of a file that is named."""

from __future__ import annotations

import os
import shlex
import stat
import sys
from collections.abc import Iterator, Sequence
from io import BufferedReader
from typing import cast

import click

from kb.cli.common import MAX_STDIN, complain, ends_of, is_terminal, plain
from kb.cli.words import say
from kb.errors import LogDamaged, QueryError

__all__ = ["question_of"]

_LOGS = (".log", ".txt", ".out", ".err", ".gz")
_SUBSTITUTED = ("/dev/fd/", "/proc/self/fd/", "/dev/stdin")
"""what a shell puts in the place of `<(command)`"""


def question_of(words: Sequence[str]) -> str:
    """The question. One word that names a file means what stands in it. Raises QueryError for one that cannot be read,
    UsageError where there is no question at all."""
    from kb.text.decode import decode

    if not words or [*words] == ["-"]:
        if sys.stdin is None or (not words and is_terminal(sys.stdin)):
            raise click.UsageError('what is the question? kb search "the error message", or pipe a log into it')
        raw = sys.stdin.buffer
        raw = raw if hasattr(raw, "peek") else BufferedReader(raw)  # a caller's own
        return decode(ends_of(_up_to_damage(cast(BufferedReader, raw), "stdin")))
    if len(words) == 1:
        if _is_log(words[0]):
            if not words[0].startswith(_SUBSTITUTED):
                path, command = _named(words[0]), f"echo {shlex.quote(words[0])} | kb"
                complain(say("reading the log {log}; for the words themselves: {command}", log=path, command=command))
            return decode(_read_log(words[0]))
        if words[0].endswith(_LOGS) and not any(map(str.isspace, words[0])) and not os.path.exists(words[0]):
            complain(say("there is no file {name}; searching for the words", name=_named(words[0])))
        if (words[0].endswith(_LOGS) or os.sep in words[0]) and os.path.isdir(words[0]):
            logs = f"{shlex.quote(words[0].rstrip('/'))}/*.log"
            raise QueryError("this is a folder, and no log", path=words[0], hint=f"one of its files, or kb scan {logs}")
    return " ".join(words)


def _is_log(word: str) -> bool:
    """Does it name a regular file, or what a shell lets one read as a file?"""
    try:
        mode = os.stat(word).st_mode
    except (OSError, ValueError):  # a question may be longer than any name, or hold a zero byte
        return False
    return stat.S_ISREG(mode) or (stat.S_ISFIFO(mode) and word.startswith(_SUBSTITUTED))


def _named(path: str) -> str:
    """Its end, where it is long."""
    return plain(path) if len(path) < 200 else f"…{plain(path[-200:])}"


def _read_log(path: str) -> bytes:
    """The content, at most as much as of stdin."""
    from kb.logs.unpack import is_packed

    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size <= MAX_STDIN or is_packed(file):
                return ends_of(_up_to_damage(file, path))
            first = file.read(MAX_STDIN // 2)
            file.seek(size - MAX_STDIN // 2)
            return first + file.read(MAX_STDIN // 2)
    except OSError as error:
        raise QueryError(f"cannot be read ({error.strerror or error})", path=path) from None


def _up_to_damage(file: BufferedReader, name: str) -> Iterator[bytes]:
    """The log, unpacked. Of a damaged one what comes before the damage, and a word about that; raises LogDamaged when
    that is nothing."""
    from kb.logs.unpack import chunks_of

    some = False
    try:
        for chunk in chunks_of(file, name):
            some = some or bool(chunk)
            yield chunk
    except LogDamaged as error:
        if not some:
            raise
        complain(error)
