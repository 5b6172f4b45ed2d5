"""Here is a command; it runs as if it had been called without kb, and I give you how it ended and what it said last.

The child keeps this process's stdin, group and terminal: keys, Ctrl-C and Ctrl-Z reach it from the kernel as ever. Only
its output takes a way around (`streams`), whose end is kept (`tail`); a signal to kb alone is passed on (`signals`).
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
    said: bytes
    """of one that failed: the end of its output, both streams as they came, and earlier places that speak of failure"""
    ends_a_line: bool
    message: str = ""
    """why it could not be started; empty when it could"""

    @property
    def interrupted(self) -> bool:
        """Was it ended by whoever watched it: Ctrl-C, or a reader of its output that left?"""
        pipe = getattr(signal, "SIGPIPE", signal.SIGINT)
        return self.code in (-signal.SIGINT, 128 + signal.SIGINT, -pipe, 128 + pipe)


def run(command: Sequence[str]) -> Outcome:
    """Runs `command` to its end. Whoever its output is shown to is passed on to it: terminal or pipe, window size,
    signals."""
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
    return Outcome(code, tail.read() if code else b"", tail.ends_a_line)


def leave(outcome: Outcome) -> NoReturn:
    """Ends this process as the command ended. After a signal by the same signal: a shell's 128 + n cannot be told from
    an exit code, and a script that is interrupted goes on when its child says that it merely failed."""
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
