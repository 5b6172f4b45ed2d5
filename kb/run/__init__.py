"""Runs a command as if kb were not there, and keeps the end of its output. `run` takes the command and returns an
`Outcome`; `leave` ends this process the way the command ended. What the failure means is not decided here.

The child keeps this process's stdin, process group and terminal: keys, Ctrl-C and Ctrl-Z reach it from the kernel.

    streams   copies the child's output to our own, byte for byte, through pipes or a second terminal
    tail      keeps the end of that output, and earlier lines that report a failure
    signals   passes on a signal that was sent to kb alone
    nested    the frame around an explanation, and how a `kb run` around another one recognises it
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from kb.run.signals import Signals
from kb.run.streams import Streams

if sys.platform != "win32":
    import resource

__all__ = ["Outcome", "leave", "run"]

NOT_FOUND, NOT_EXECUTABLE = 127, 126  # as shells count


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    """0 to 255; minus the signal's number when a signal ended the command"""
    output: bytes
    """of a command that failed: the end of its output, both streams as they came, after earlier lines about failures"""
    ends_a_line: bool
    """False when the last line of the output has no line end"""
    message: str = ""
    """why it could not be started; empty when it could"""
    lost: str = ""
    """why some of the output could not be written; empty when all was"""
    told_to_stop: bool = False
    """Ctrl-C, or another SIGINT, came while it ran; launchers then end with an exit code of their own"""

    @property
    def interrupted(self) -> bool:
        """Did Ctrl-C end it, or a reader of its output that closed the pipe? Then nobody needs an explanation."""
        pipe = getattr(signal, "SIGPIPE", signal.SIGINT)
        return self.told_to_stop or self.code in (-signal.SIGINT, 128 + signal.SIGINT, -pipe, 128 + pipe)


def run(command: Sequence[str]) -> Outcome:
    """Runs `command` to its end. It sees the same kind of output as kb does: a terminal with its size, or a pipe."""
    signals = Signals()
    streams = Streams()
    try:
        child = subprocess.Popen(
            list(command),
            stdout=streams.outer_ends[0],
            stderr=streams.outer_ends[1],
            close_fds=False,  # whatever else it was given is its own
            **signals.for_child,
        )
    except OSError as error:
        signals.restore()
        streams.close()
        missing = isinstance(error, FileNotFoundError) or error.errno == errno.ENOTDIR
        why = "command not found" if missing else (error.strerror or str(error))
        return Outcome(NOT_FOUND if missing else NOT_EXECUTABLE, b"", True, f"{command[0]}: {why}")
    signals.start(child, streams.resize)
    streams.start()
    code = child.wait()
    streams.drain()
    signals.restore()
    streams.leave()
    tail = streams.tail
    output = tail.read() if code else b""
    return Outcome(code, output, tail.ends_a_line, lost=streams.failed, told_to_stop=signals.interrupted)


def leave(outcome: Outcome) -> NoReturn:
    """Ends this process as the command ended; after a signal, by the same signal.

    A shell cannot tell 128 + n from an exit code, and a script whose child merely failed goes on after Ctrl-C.
    """
    if outcome.code < 0 and sys.platform != "win32":
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the child left its own core; ours would overwrite it
        with contextlib.suppress(OSError, ValueError):  # SIGKILL has no handler
            signal.signal(-outcome.code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [-outcome.code])
        os.kill(os.getpid(), -outcome.code)
    sys.exit(outcome.code if outcome.code >= 0 else 128 - outcome.code)
