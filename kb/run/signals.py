"""Here is a child that shares our group; it gets each signal that was meant for it, and gets it once.

Nobody tells a process whether a signal was sent to it alone or to its whole group, as terminals, schedulers and
`timeout` do, and the child of a signal to the group got it by itself. So a witness stands beside the child: a process
in the same group that does nothing. What the witness got, the child got; what only we got is passed on. This holds
for a terminal's keys, for `kill` of a group, and for whoever signals every process of a job one by one.
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

GRACE_S = 0.05  # whoever signals the processes of a job one by one has reached all of them by then
ANSWER_S = 5.0  # of a witness on a busy machine

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH")


class Signals:
    """Made before any thread and any way of the child's output: the witness is a copy of this process."""

    def __init__(self) -> None:
        self._over = False
        self.for_child: dict[str, Any] = {}
        if sys.platform != "win32":
            self._signals = {getattr(signal, name) for name in _NAMES}
            # SIGTTOU: setting the modes of a terminal that somebody else has the keys of shall not stop us.
            self._before = before = signal.pthread_sigmask(signal.SIG_BLOCK, {*self._signals, signal.SIGTTOU})
            self.for_child = {"preexec_fn": lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before)}
            self._witness = _Witness()

    def start(self, child: subprocess.Popen[bytes], resize: Callable[[], bool]) -> None:
        """`resize`: gives the child's own terminal, if it has one, the size of ours."""
        if sys.platform == "win32":
            signal.signal(signal.SIGINT, lambda *_: None)  # the console sends it to the child, too
        else:
            threading.Thread(target=self._pass_on, args=(child, resize), daemon=True).start()

    def restore(self) -> None:
        """From now on a signal is for this process, which has only a report to write."""
        self._over = True
        if sys.platform != "win32":
            signal.pthread_sigmask(signal.SIG_SETMASK, self._before)
            self._witness.close()

    def _pass_on(self, child: subprocess.Popen[bytes], resize: Callable[[], bool]) -> None:
        while True:
            number = signal.sigwait(self._signals)
            if self._over:  # it was meant for us
                os.kill(os.getpid(), number)
                return
            # The kernel told the child of the new size before its own terminal had it.
            if not (number == signal.SIGWINCH and resize()) and self._was_for_all(number):
                continue
            with contextlib.suppress(OSError):
                child.send_signal(number)

    def _was_for_all(self, number: int) -> bool:
        time.sleep(GRACE_S)
        if not self._witness.had(number):
            return False
        while number in signal.sigpending():  # once more meanwhile: to the child, this is the same one
            signal.sigwait({number})
            self._witness.had(number)
        return True


class _Witness:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = 0
        asked, self._ask = os.pipe()
        self._answers, answer = os.pipe()
        with contextlib.suppress(OSError):  # no process more: then every signal is passed on
            self._pid = os.fork()
            if self._pid == 0:
                try:
                    os.close(self._ask)
                    os.close(self._answers)
                    _testify(asked, answer)
                finally:
                    os._exit(0)
        os.close(asked)
        os.close(answer)

    def had(self, number: int) -> bool:
        """Was the witness sent this signal since it was last asked?"""
        with self._lock, contextlib.suppress(OSError):
            if self._pid:
                os.write(self._ask, bytes([number]))
                if select.select([self._answers], [], [], ANSWER_S)[0]:
                    return os.read(self._answers, 1) == b"y"
        return False

    def close(self) -> None:
        with self._lock:
            os.close(self._ask)
            os.close(self._answers)
            if self._pid:
                with contextlib.suppress(OSError):
                    os.waitpid(self._pid, 0)
            self._pid = 0


def _testify(asked: int, answer: int) -> None:
    """Signals stay blocked, and pending, until the question comes; no haste is needed. Ends when kb does, however."""
    while question := os.read(asked, 1):
        number = question[0]
        pending = number in signal.sigpending()
        if pending:
            signal.sigwait({number})
        os.write(answer, b"y" if pending else b"n")
