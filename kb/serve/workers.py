"""Several processes that answer on one socket, and the parent that keeps them alive.

The parent opens no base and loads no numpy: a fork of a process with the threads of BLAS or faiss can hang. Each worker
opens the base by itself, follows new snapshots by itself, and shares the pages of the index files with the others. The
socket is one and the same, so that what waits in its queue is not lost with a worker; a free worker takes the next
connection. The first worker starts alone, because it may have to make the index; when it is ready, the others start.

    a worker dies            another is started, at once or, when it did not live 10 s, after a growing wait
    SIGTERM, SIGINT          each worker finishes what it is answering, then all end
    SIGHUP                   a new worker for each, one after another; at a terminal it ends all, as for any program
    the parent dies          its workers end
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import FrameType

from kb.serve.place import Place

__all__ = ["Worker", "fork"]

_YOUNG_S = 10.0  # who dies younger may die again at once
_WAITS_S = (0.5, 30.0)  # the first wait and the longest
_STOP_S = 5.0  # for workers to end; `listen` gives their requests less
_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP")


_Handlers = dict[str, Callable[[int, FrameType | None], object] | int | None]


@dataclass(frozen=True)
class Worker:
    """What a worker knows of itself."""

    first: bool
    """did it start before all others?"""
    say_ready: Callable[[], None]
    """to be called as soon as it answers"""


@dataclass(slots=True)
class _Child:
    number: int
    pid: int
    started: float
    ready: bool = False
    retired: bool = False
    follows: _Child | None = None
    """which it replaces as soon as it is ready"""


def fork(count: int, place: Place, tell: Callable[[str, dict[str, object]], None]) -> Worker:
    """Returns in each worker. In the parent it does not return: it ends as the signal that stopped it, or with the
    status of the first worker when that one cannot start.

    `tell` gets what happened, as a template and its values. Raises OSError when there is no room for temporary files.
    """
    # The library adds up the counts of all workers by files; it reads this variable when a worker imports it.
    figures = tempfile.mkdtemp(prefix="kb-metrics-")
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = figures
    parent = os.getpid()
    try:
        return _Parent(count, place, tell).run()
    except _Stopped as stopped:
        number = stopped.number
    finally:
        if os.getpid() == parent:
            shutil.rmtree(figures, ignore_errors=True)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    raise SystemExit(128 + number)  # the first process of a container outlives its own signals


class _Parent:
    def __init__(self, count: int, place: Place, tell: Callable[[str, dict[str, object]], None]) -> None:
        self._count = count
        self._place = place
        self._tell = tell
        self._workers: dict[int, _Child] = {}  # by the end of the pipe on which it speaks
        self._due: dict[int, float] = {}  # number of a worker that is to be started -> when
        self._failures: dict[int, int] = {}
        self._to_replace: list[_Child] = []
        self._at_terminal = sys.stderr.isatty()
        self._alive = os.pipe()  # closed when the parent is gone, however it went
        self._woken, self._wake = os.pipe()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._woken, selectors.EVENT_READ)

    def run(self) -> Worker:
        os.set_blocking(self._wake, False)
        os.set_blocking(self._woken, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        kept: _Handlers = {name: signal.signal(getattr(signal, name), _note) for name in _SIGNALS}
        self._due[0] = 0.0
        while True:
            for number in [n for n, at in self._due.items() if at <= time.monotonic()]:
                del self._due[number]
                if worker := self._start(number, None, kept):
                    return worker
            wait = min(self._due.values(), default=None)
            heard = self._selector.select(None if wait is None else max(0.0, wait - time.monotonic()))
            for key, _ in heard:
                if key.fd == self._woken:
                    for number in os.read(self._woken, 64):
                        if number != signal.SIGHUP or self._at_terminal:
                            self._stop(number)
                        self._to_replace = [one for one in self._workers.values() if not one.retired]
                elif key.fd in self._workers:
                    self._hear(key.fd)
            replacing = any(one.follows for one in self._workers.values())
            if self._to_replace and not replacing:
                old = self._to_replace.pop(0)
                if old in self._workers.values() and (worker := self._start(old.number, old, kept)):
                    return worker

    def _start(self, number: int, follows: _Child | None, kept: _Handlers) -> Worker | None:
        """None in the parent."""
        first = not self._workers and not self._failures
        ours, theirs = os.pipe()
        # A signal to the new process before it has its own handlers would be taken by `_note` and be lost.
        numbers = [getattr(signal, name) for name in _SIGNALS]
        before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
        try:
            pid = os.fork()
            if pid == 0:
                self._become_worker(kept)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if pid == 0:
            return Worker(first, partial(_say_ready, theirs))
        os.close(theirs)
        self._workers[ours] = _Child(number, pid, time.monotonic(), follows=follows)
        self._selector.register(ours, selectors.EVENT_READ)
        return None

    def _become_worker(self, kept: _Handlers) -> None:
        signal.set_wakeup_fd(-1)
        for name, handler in kept.items():
            signal.signal(getattr(signal, name), handler)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        os.setsid()  # Ctrl-C reaches the parent, which passes it on once
        self._selector.close()
        for fd in (*self._workers, self._alive[1], self._woken, self._wake):
            os.close(fd)
        threading.Thread(target=_end_with_parent, args=(self._alive[0],), name="kb-parent", daemon=True).start()

    def _hear(self, fd: int) -> None:
        worker = self._workers[fd]
        if os.read(fd, 1):
            worker.ready = True
            old, worker.follows = worker.follows, None
            if old is not None and old in self._workers.values():
                old.retired = True
                os.kill(old.pid, signal.SIGTERM)
            running = {one.number for one in self._workers.values()} | self._due.keys()
            self._due.update({n: 0.0 for n in range(self._count) if n not in running})
            return
        self._selector.unregister(fd)
        os.close(fd)
        del self._workers[fd]
        status = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])  # minus the signal that ended it
        if worker.retired:
            return
        for heir in self._workers.values():
            if heir.follows is worker:
                heir.follows = None
                return
        if not worker.ready and worker.follows is not None:
            self._tell("worker {pid} did not start ({status}); the old ones go on", _values(worker, status))
            self._to_replace = []
            return
        if not worker.ready and len(self._workers) + len(self._due) == 0 and not self._failures:
            raise SystemExit(status if status > 0 else 128 - status)  # it has said why
        self._restart(worker, status)

    def _restart(self, worker: _Child, status: int) -> None:
        young = time.monotonic() - worker.started < _YOUNG_S
        failures = self._failures[worker.number] = self._failures.get(worker.number, 0) + 1 if young else 0
        wait = min(_WAITS_S[1], _WAITS_S[0] * 2.0 ** min(failures - 1, 10)) if failures else 0.0
        self._due[worker.number] = time.monotonic() + wait
        self._tell("worker {pid} has died ({status}); another starts in {wait} s", _values(worker, status, wait))

    def _stop(self, number: int) -> None:
        """Ends all workers, then raises _Stopped."""
        self._place.close()
        for worker in self._workers.values():
            os.kill(worker.pid, signal.SIGTERM)
        deadline = time.monotonic() + _STOP_S
        self._selector.unregister(self._woken)
        while self._workers:
            if time.monotonic() > deadline:
                for worker in self._workers.values():
                    os.kill(worker.pid, signal.SIGKILL)
            for key, _ in self._selector.select(max(0.1, deadline - time.monotonic())):
                if not os.read(key.fd, 1):
                    self._selector.unregister(key.fd)
                    os.waitpid(self._workers.pop(key.fd).pid, 0)
        raise _Stopped(number)


class _Stopped(Exception):
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number: int = number


def _note(number: int, frame: FrameType | None) -> None:
    """The signal wakes the parent by its pipe."""


def _end_with_parent(alive: int) -> None:
    os.read(alive, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _values(worker: _Child, status: int, wait: float = 0.0) -> dict[str, object]:
    how = f"exit {status}" if status >= 0 else signal.Signals(-status).name
    return {"pid": worker.pid, "status": how, "wait": f"{wait:g}"}


def _say_ready(pipe: int) -> None:
    os.write(pipe, b"!")
