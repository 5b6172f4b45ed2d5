"""Passes signals on to the child, each exactly once.

The child is in our process group. A signal to the group (a key at the terminal, a scheduler, `timeout`) reaches the
child by itself; a signal to kb alone must be passed on. A process cannot ask the kernel which of the two it got. So a
sentinel runs beside the child: a process in the same group that does nothing. If the sentinel got a signal, the child
got it, too; if only kb got it, kb passes it on. This also works for signals to all processes of a job, one by one.

A process group of its own for the child would need no sentinel. But then a signal to the group of kb would miss the
child, and kb would have to do the job control of a shell: hand over the terminal, stop and continue with the child.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

__all__ = ["Signals"]

GRACE_S = 0.05  # time in which somebody who signals a job one process at a time reaches all
ANSWER_S = 5.0  # limit for an answer of the sentinel, on a busy machine

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH")


class Signals:
    """Create it before any thread and any pipe: the sentinel is a fork of this process."""

    def __init__(self) -> None:
        self._over = False
        self.interrupted: bool = False
        """has a SIGINT come while the child ran?"""
        self.for_child: dict[str, Any] = {}
        if sys.platform != "win32":
            self._signals = {getattr(signal, name) for name in _NAMES}
            # SIGTTOU would stop us when we set the modes of a terminal in whose background we run.
            self._before = before = signal.pthread_sigmask(signal.SIG_BLOCK, {*self._signals, signal.SIGTTOU})
            self.for_child = {"preexec_fn": lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before)}
            self._sentinel = _Sentinel()

    def start(self, child: subprocess.Popen[bytes], resize: Callable[[], bool]) -> None:
        """`resize`: gives the child's own terminal, if it has one, the size of ours."""
        if sys.platform == "win32":
            signal.signal(signal.SIGINT, self._note_interrupt)  # the console sends it to the child, too
        else:
            threading.Thread(target=self._pass_on, args=(child, resize), daemon=True).start()

    def restore(self) -> None:
        """The child has ended: from now on signals are for this process again."""
        self._over = True
        # Ctrl-C, for both, may have ended the child before the thread here has woken up to hear of it.
        if hasattr(signal, "sigtimedwait") and signal.sigtimedwait([signal.SIGINT], 0):
            self.interrupted = True
        if sys.platform != "win32":
            signal.pthread_sigmask(signal.SIG_SETMASK, self._before)
            self._sentinel.close()

    def _note_interrupt(self, *_: object) -> None:
        self.interrupted = True

    def _pass_on(self, child: subprocess.Popen[bytes], resize: Callable[[], bool]) -> None:
        while True:
            number = signal.sigwait(self._signals)
            if self._over:  # it was for this process
                os.kill(os.getpid(), number)
                return
            self.interrupted = self.interrupted or number == signal.SIGINT
            # The kernel signals the new size before the child's own terminal has it, so this is always passed on.
            if not (number == signal.SIGWINCH and resize()) and self._was_for_all(number):
                continue
            with contextlib.suppress(OSError):
                child.send_signal(number)

    def _was_for_all(self, number: int) -> bool:
        time.sleep(GRACE_S)
        if not self._sentinel.received(number):
            return False
        while number in signal.sigpending():  # sent again meanwhile: the child sees one signal
            signal.sigwait({number})
            self._sentinel.received(number)
        return True


class _Sentinel:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = 0
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        with contextlib.suppress(OSError):  # fork failed: then every signal is passed on
            self._pid = os.fork()
            if self._pid == 0:
                try:
                    os.close(self._requests)
                    os.close(self._answers)
                    _report_signals(requests, answers)
                finally:
                    os._exit(0)
        os.close(requests)
        os.close(answers)

    def received(self, number: int) -> bool:
        """Did the sentinel get this signal since the last call?"""
        with self._lock, contextlib.suppress(OSError):
            if self._pid:
                os.write(self._requests, bytes([number]))
                if select.select([self._answers], [], [], ANSWER_S)[0]:
                    return os.read(self._answers, 1) == b"y"
        return False

    def close(self) -> None:
        with self._lock:
            os.close(self._requests)
            os.close(self._answers)
            if self._pid:
                with contextlib.suppress(OSError):
                    os.waitpid(self._pid, 0)
            self._pid = 0


def _report_signals(requests: int, answers: int) -> None:
    """The sentinel's loop: signals stay blocked, hence pending, until kb asks. Ends when kb closes the pipe."""
    while request := os.read(requests, 1):
        number = request[0]
        pending = number in signal.sigpending()
        if pending:
            signal.sigwait({number})
        os.write(answers, b"y" if pending else b"n")
