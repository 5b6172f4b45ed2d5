"""Copies the child's output to our own stdout and stderr, at once and byte for byte, and keeps its end.

If our stream is a terminal, the child writes to a second terminal (a pty) of the same size and modes; otherwise to a
pipe for each stream.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import stat
import subprocess
import sys
import threading
from typing import Any

from kb.run.tail import Tail

if sys.platform != "win32":
    import fcntl
    import termios

__all__ = ["Streams"]

CHUNK = 1 << 16
PIPE_BYTES = 1 << 20  # the largest that Linux gives anybody
# After the child's end another process may still hold a pipe: seconds of silence after which we stop reading, and
# seconds that we wait in all, without the time that a slow reader of ours takes.
QUIET_S, WAIT_S = 0.3, 1.0
LOOK_S = 0.02


class Streams:
    """The channels of the child's output, from the ends that it writes to, to our own descriptors."""

    def __init__(self) -> None:
        self.tail: Tail = Tail()
        self._terminal: int | None = None
        self._copies: list[_Copy] = []
        ends: dict[int, int] = {}
        for target in (1, 2):
            shared = _shared(target, ends)
            ends[target] = ends[shared] if shared else self._open_channel(target)
        self.outer_ends: tuple[int, int] = (ends[1], ends[2])

    def _open_channel(self, target: int) -> int:
        """Opens a channel to our descriptor `target`; returns the end for the child."""
        if sys.platform != "win32" and os.isatty(target):
            source, end = os.openpty()
            self._terminal = source
            modes = termios.tcgetattr(target)
            modes[1] &= ~termios.OPOST  # the outer terminal does that
            termios.tcsetattr(end, termios.TCSANOW, modes)
            self.resize()
        else:
            source, end = os.pipe()
            if sys.platform == "linux":
                with contextlib.suppress(OSError):
                    fcntl.fcntl(source, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._copies.append(_Copy(source, target, self.tail, follow_modes=source == self._terminal))
        return end

    def resize(self) -> bool:
        """Gives the child's terminal the size of ours. False when the child has none."""
        if self._terminal is None:
            return False
        for target in (1, 2, 0):
            with contextlib.suppress(OSError):
                size = fcntl.ioctl(target, termios.TIOCGWINSZ, bytes(8))
                fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, size)
                break
        return True

    def start(self) -> None:
        self._close_ends()
        for copy in self._copies:
            copy.start()

    def drain(self) -> None:
        """After the child's end: copies the rest. A process that it left behind may keep its end open for ever."""
        left = WAIT_S
        for copy in self._copies:
            left = copy.wait(left)
            copy.restore_modes()

    @property
    def failed(self) -> str:
        """Why output was lost, as a full disk; empty when none was."""
        return next((copy.failed for copy in self._copies if copy.failed), "")

    def leave(self) -> None:
        """Lets another process read what is still written, so that its writer does not get SIGPIPE."""
        for copy in self._copies:
            copy.leave()

    def close(self) -> None:
        self._close_ends()
        for copy in self._copies:
            copy.close()

    def _close_ends(self) -> None:
        for end in {*self.outer_ends}:
            os.close(end)


class _Copy(threading.Thread):
    """Copies from `source` to `target` until the end. Each channel has a thread, so that a slow reader of one stream
    does not delay the other."""

    def __init__(self, source: int, target: int, tail: Tail, *, follow_modes: bool) -> None:
        super().__init__(daemon=True)
        self.source = source
        self._target = target
        self._tail = tail
        self._busy = False
        self.failed: str = ""
        """why what came could not be written, where a reader is not the reason"""
        self._wake, self._waker = os.pipe()
        self._copied = 0
        self._follow = follow_modes and os.isatty(0)
        self._seen = _input_modes(source) if self._follow else None
        self._own: Any = None

    def run(self) -> None:
        while data := self._next():
            self._busy = True
            self._tail.add(data, self._target)
            if self._follow:
                self._follow_modes()
            try:
                _write(self._target, data)
            except OSError as error:  # the child gets EPIPE; where our reader is gone, as without us
                self.failed = "" if error.errno == errno.EPIPE else os.strerror(error.errno or errno.EIO)
                os.close(self.source)
                return
            self._copied += len(data)
            self._busy = False

    def _next(self) -> bytes:
        """What comes next; nothing at the end of the stream, and once `leave` was called."""
        try:
            if sys.platform != "win32" and self._wake in select.select([self.source, self._wake], [], [])[0]:
                return b""
            return os.read(self.source, CHUNK)
        except OSError:  # EIO: the last process with this terminal closed it
            return b""

    def close(self) -> None:
        """Of a thread that was never started."""
        for end in (self.source, self._wake, self._waker):
            os.close(end)

    def wait(self, left: float) -> float:
        """Waits for the end of the stream, at most `left` seconds; returns the seconds that remain.

        It stops early when nothing comes for `QUIET_S`, or when a process keeps writing without end. Time in which our
        reader blocks, or in which unread data waits, does not count.
        """
        before = self._copied
        quiet = 0.0
        while self.is_alive() and left > 0 and quiet < QUIET_S and self._copied - before <= 2 * PIPE_BYTES:
            copied = self._copied
            self.join(LOOK_S)
            if self._busy or self._unread():
                quiet = 0.0
            else:
                left -= LOOK_S
                quiet = quiet + LOOK_S if self._copied == copied else 0.0
        return left

    def _unread(self) -> int:
        if sys.platform != "win32":
            with contextlib.suppress(OSError):
                return int.from_bytes(fcntl.ioctl(self.source, termios.FIONREAD, bytes(4)), sys.byteorder)
        return 0

    def leave(self) -> None:
        """Starts a `cat` that reads on, and writes where we wrote unless a reader there waits for the end.

        This thread stops reading first: what it read while the interpreter ends would never be written.
        """
        if sys.platform != "win32" and self.is_alive():
            os.write(self._waker, b"\0")
            self.join()
            with contextlib.suppress(OSError):
                kind = os.fstat(self._target).st_mode
                waits = not (stat.S_ISREG(kind) or stat.S_ISCHR(kind))
                subprocess.Popen(
                    ["cat"],
                    stdin=self.source,
                    stdout=subprocess.DEVNULL if waits else self._target,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )

    def _follow_modes(self) -> None:
        """Copies input modes that a full-screen program sets on its output terminal to the keyboard's terminal."""
        with contextlib.suppress(OSError, termios.error):
            modes_now = _input_modes(self.source)
            if modes_now != self._seen:
                modes = termios.tcgetattr(0)
                self._own = self._own or list(modes)
                modes[0], modes[3] = modes_now
                termios.tcsetattr(0, termios.TCSANOW, modes)
            self._seen = modes_now

    def restore_modes(self) -> None:
        if self._own is not None:
            with contextlib.suppress(OSError, termios.error):
                termios.tcsetattr(0, termios.TCSADRAIN, self._own)


def _shared(target: int, others: dict[int, int]) -> int | None:
    """Another of our descriptors with the same target (`2>&1`): one channel for both keeps their order."""
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
        except BlockingIOError:  # another process made the shared terminal non-blocking
            select.select([], [target], [])
