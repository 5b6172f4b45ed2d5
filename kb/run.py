"""Here is a command; it runs as if it had been called without kb, and I give you how it ended and what it said last.

The child keeps this process's stdin, group and terminal: keys, Ctrl-C and Ctrl-Z reach it from the kernel as ever. Only
its output takes a way around: where it would go to a terminal, through a second terminal (a pty) of the same size and
modes; else through a pipe for each stream. What comes is passed on at once, byte for byte, and its end is kept.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

if sys.platform != "win32":
    import fcntl
    import resource
    import termios

__all__ = ["Outcome", "Tail", "leave", "run"]

NOT_FOUND, NOT_EXECUTABLE = 127, 126  # as shells count
TAIL_BYTES = 256 << 10
EARLY_PIECES, EARLY_BYTES = 16, 2048  # of what spoke of failure before the tail
CHUNK = 1 << 16
PIPE_BYTES = 1 << 20  # the largest that Linux gives anybody
QUIET_S = 0.3  # after the child's end: so long may nothing come before whoever still holds the pipe is left alone

_FAILURES = (b"Traceback", b"rror:", b"FATAL")


class Tail:
    """The end of what a command said, and the first places before it that speak of failure. Safe between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._chunks: deque[bytes] = deque()
        self._kept = 0
        self._size = 0
        self._early: list[tuple[int, bytes]] = []

    def add(self, data: bytes) -> None:
        with self._lock:
            if len(self._early) < EARLY_PIECES:
                self._note_failures(data)
            self._chunks.append(data)
            self._kept += len(data)
            self._size += len(data)
            while self._kept - len(self._chunks[0]) >= TAIL_BYTES:
                self._kept -= len(self._chunks.popleft())

    def _note_failures(self, data: bytes) -> None:
        words = _FAILURES if len(data) < CHUNK else _FAILURES[:1]  # a flood: each takes a second per gigabyte
        found = min((at for word in words if (at := data.find(word)) >= 0), default=None)
        if found is not None:
            start = data.rfind(b"\n", max(0, found - EARLY_BYTES), found) + 1 or max(0, found - EARLY_BYTES)
            self._early.append((self._size + start, data[start : found + EARLY_BYTES]))

    def read(self) -> bytes:
        with self._lock:
            kept = b"".join(self._chunks)[-TAIL_BYTES:]
            early = [piece for at, piece in self._early if at < self._size - len(kept)]
            return b"\n".join((*early, kept))

    @property
    def ends_a_line(self) -> bool:
        return not self._chunks or self._chunks[-1].endswith(b"\n")


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    """0 to 255; minus the signal's number when a signal ended the command"""
    said: bytes
    """the end of its output, both streams as they came, and earlier places that speak of failure"""
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
    streams = _Streams()
    watch = _Signals(streams)
    try:
        child = subprocess.Popen(
            list(command),
            stdout=streams.outer_ends[0],
            stderr=streams.outer_ends[1],
            close_fds=False,  # whatever else it was given is its own
            **watch.for_child,
        )
    except OSError as error:
        watch.restore()
        streams.close()
        missing = isinstance(error, FileNotFoundError) or error.errno == errno.ENOTDIR
        why = "command not found" if missing else (error.strerror or str(error))
        return Outcome(NOT_FOUND if missing else NOT_EXECUTABLE, b"", True, f"{command[0]}: {why}")
    watch.start(child)
    streams.start()
    code = child.wait()
    streams.drain()
    watch.restore()
    return Outcome(code, streams.tail.read(), streams.tail.ends_a_line)


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


class _Streams:
    """The ways of the child's output: each from an end that it writes to, to one of our own descriptors."""

    def __init__(self) -> None:
        self.tail = Tail()
        self.terminal: int | None = None
        self._copies: list[_Copy] = []
        ends: dict[int, int] = {}
        for target in (1, 2):
            shared = _shared(target, ends)
            ends[target] = ends[shared] if shared else self._way_to(target)
        self.outer_ends = ends[1], ends[2]

    def _way_to(self, target: int) -> int:
        """A new way to our descriptor `target`: the end for the child."""
        if sys.platform != "win32" and os.isatty(target):
            source, end = os.openpty()
            self.terminal = source
            modes = termios.tcgetattr(target)
            modes[1] &= ~termios.OPOST  # the terminal that shows it will do that
            termios.tcsetattr(end, termios.TCSANOW, modes)
            self.resize()
        else:
            source, end = os.pipe()
            if sys.platform == "linux":
                with contextlib.suppress(OSError):
                    fcntl.fcntl(source, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._copies.append(_Copy(source, target, self.tail, follow_modes=source == self.terminal))
        return end

    def resize(self) -> None:
        """Gives the child's terminal the size of ours."""
        if self.terminal is not None:
            for target in (1, 2, 0):
                with contextlib.suppress(OSError):
                    size = fcntl.ioctl(target, termios.TIOCGWINSZ, bytes(8))
                    fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, size)
                    return

    def start(self) -> None:
        self._close_ends()
        for copy in self._copies:
            copy.start()

    def drain(self) -> None:
        """After the child's end: passes on what it wrote. A process that it left behind may hold its end open for ever;
        something then reads on, so that it does not die of writing."""
        for copy in self._copies:
            if not copy.ended():
                with contextlib.suppress(OSError):
                    nowhere = subprocess.DEVNULL
                    subprocess.Popen(["cat"], stdin=copy.source, stdout=nowhere, stderr=nowhere, start_new_session=True)
            copy.restore_modes()

    def close(self) -> None:
        self._close_ends()
        for copy in self._copies:
            os.close(copy.source)

    def _close_ends(self) -> None:
        for end in {*self.outer_ends}:
            os.close(end)


class _Copy(threading.Thread):
    """Copies from `source` to `target` until the end; one thread each, so that a reader who is slow with one stream
    does not hold up the other."""

    def __init__(self, source: int, target: int, tail: Tail, *, follow_modes: bool) -> None:
        super().__init__(daemon=True)
        self.source = source
        self._target = target
        self._tail = tail
        self._busy = False
        self._copied = 0
        self._follow = follow_modes and os.isatty(0)
        self._seen = _input_modes(source) if self._follow else None
        self._own: Any = None

    def run(self) -> None:
        while data := self._next():
            self._busy = True
            self._tail.add(data)
            if self._follow:
                self._follow_modes()
            try:
                _write(self._target, data)
            except OSError:  # nobody reads any more: the child shall hear of it as it would without us
                os.close(self.source)
                return
            self._copied += len(data)
            self._busy = False

    def _next(self) -> bytes:
        try:
            return os.read(self.source, CHUNK)
        except OSError:  # EIO: the last who had the terminal closed it
            return b""

    def ended(self) -> bool:
        """Waits for the end, but not for somebody who holds the other end and says nothing, or never stops."""
        before = self._copied
        quiet = 0.0
        while self.is_alive() and quiet < QUIET_S and self._copied - before <= 2 * PIPE_BYTES:
            copied = self._copied
            self.join(0.02)
            quiet = 0.0 if self._busy or self._copied != copied else quiet + 0.02
        return not self.is_alive()

    def _follow_modes(self) -> None:
        """A full-screen program sets the modes of the terminal it writes to, and means the one it is typed into."""
        with contextlib.suppress(OSError, termios.error):
            asked = _input_modes(self.source)
            if asked != self._seen:
                modes = termios.tcgetattr(0)
                self._own = self._own or list(modes)
                modes[0], modes[3] = asked
                termios.tcsetattr(0, termios.TCSANOW, modes)
            self._seen = asked

    def restore_modes(self) -> None:
        if self._own is not None:
            with contextlib.suppress(OSError, termios.error):
                termios.tcsetattr(0, termios.TCSADRAIN, self._own)


class _Signals:
    """Passes on to the child what is sent to us alone. What a terminal sends, it sends to the child as well."""

    _NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH")

    def __init__(self, streams: _Streams) -> None:
        self._streams = streams
        self._child: subprocess.Popen[bytes] | None = None
        self._over = False
        self.for_child: dict[str, Any] = {}
        if sys.platform != "win32":
            self._signals = {getattr(signal, name) for name in self._NAMES}
            # SIGTTOU: setting the modes of a terminal that somebody else has the keys of shall not stop us.
            self._before = before = signal.pthread_sigmask(signal.SIG_BLOCK, {*self._signals, signal.SIGTTOU})
            self.for_child = {"preexec_fn": lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before)}

    def start(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        if sys.platform == "win32":
            signal.signal(signal.SIGINT, lambda *_: None)  # the console sends it to the child, too
        else:
            threading.Thread(target=self._pass_on, daemon=True).start()

    def restore(self) -> None:
        """From now on a signal is for this process, which has only a report to write."""
        self._over = True
        if sys.platform != "win32":
            signal.pthread_sigmask(signal.SIG_SETMASK, self._before)

    def _pass_on(self) -> None:
        assert self._child is not None
        while True:
            number, by_terminal = _next_signal(self._signals)
            if self._over:  # it was meant for us
                os.kill(os.getpid(), number)
                return
            if number == signal.SIGWINCH:
                self._streams.resize()
            elif by_terminal:
                continue
            with contextlib.suppress(OSError):
                self._child.send_signal(number)


def _next_signal(signals: set[signal.Signals]) -> tuple[signal.Signals, bool]:
    """The next of `signals`, and whether a key or a hang-up sent it rather than a process."""
    if hasattr(signal, "sigwaitinfo"):
        info = signal.sigwaitinfo(signals)
        return signal.Signals(info.si_signo), info.si_code > 0
    number = signal.sigwait(signals)  # macOS does not say who
    keys = number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
    return signal.Signals(number), keys and any(_is_foreground(target) for target in (0, 1, 2))


def _is_foreground(target: int) -> bool:
    try:
        return os.tcgetpgrp(target) == os.getpgrp()
    except OSError:
        return False


def _shared(target: int, others: dict[int, int]) -> int | None:
    """Another of our descriptors that leads to the same place (`2>&1`): one way for both keeps their order."""
    for other in others:
        if os.isatty(target) and os.isatty(other):
            return other
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(target), os.fstat(other)):
                return other
    return None


def _input_modes(terminal: int) -> tuple[int, int]:
    modes = termios.tcgetattr(terminal)
    return modes[0], modes[3]


def _write(target: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(target, view) :]
        except BlockingIOError:  # somebody made the terminal we share non-blocking
            select.select([], [target], [])
