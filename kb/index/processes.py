"""Reads articles in several processes of our own: one Python uses one core.

The children are plain `python` processes that speak over their pipes, not `multiprocessing`: that would run the main
module of whoever calls `KnowledgeBase.build` again in every child. They import what the parent would import, and
nothing from the current folder.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, BinaryIO

from kb.errors import KbError
from kb.index.intake import Intake, Taken

__all__ = ["ReaderEnded", "serve", "taken"]

_START = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from kb.index.processes import serve; serve()"
_AHEAD = 2  # jobs for each process that are read before they are wanted


def taken(intake: Intake, jobs: Iterable[Sequence[Sequence[str]]], processes: int) -> Iterator[Taken]:
    """`intake.take` of every job, in order. With one process in this one. Raises what `take` does, and ReaderEnded when
    a process has died."""
    if processes < 2 or not sys.executable:
        yield from map(intake.take, jobs)
        return
    children = [_Child(intake) for _ in range(processes)]
    free = deque(children)
    lock = threading.Lock()

    def ask(job: Sequence[Sequence[str]]) -> Taken:
        with lock:
            child = free.popleft()
        try:
            return child.ask(job)
        finally:
            with lock:
                free.append(child)

    try:
        with ThreadPoolExecutor(processes) as threads:
            try:
                waiting: deque[Future[Taken]] = deque()
                for job in jobs:
                    waiting.append(threads.submit(ask, job))
                    if len(waiting) > processes * _AHEAD:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            except BaseException:  # an interrupt, too: nobody waits for what is under way
                for child in children:
                    child.kill()
                threads.shutdown(wait=False, cancel_futures=True)
                raise
    finally:
        for child in children:
            child.kill()


class ReaderEnded(KbError):
    """A process that read articles was killed."""


class _Child:
    def __init__(self, intake: Intake) -> None:
        path = [os.path.abspath(entry) for entry in sys.path if entry]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _START, json.dumps(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            **_apart(),
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        self._send(intake)

    def ask(self, job: Sequence[Sequence[str]]) -> Taken:
        try:
            self._send(job)
            answer = pickle.load(self._from)
        except (OSError, EOFError, pickle.UnpicklingError):
            code = self._process.wait()
            raise ReaderEnded(
                f"a process that read articles ended ({code})", hint="is there enough memory? kb build goes on there"
            ) from None
        if isinstance(answer, Taken):
            return answer
        raise answer

    def _send(self, value: Any) -> None:
        pickle.dump(value, self._to, pickle.HIGHEST_PROTOCOL)
        self._to.flush()

    def kill(self) -> None:
        self._process.kill()
        for pipe in (self._to, self._from):
            try:
                pipe.close()
            except OSError:  # what was not sent is not wanted any more
                continue
        self._process.wait()


def _apart() -> dict[str, Any]:
    """Ctrl-C at the terminal goes to the parent alone, which ends its children."""
    return {} if sys.platform == "win32" else {"start_new_session": True}


def serve() -> None:
    """A child: answers jobs from standard input until it ends."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # each process of a service gets one; the parent ends its children
    source, sink = sys.stdin.buffer, _only_ours()
    intake: Intake = pickle.load(source)
    while True:
        try:
            job = pickle.load(source)
        except EOFError:
            return
        try:
            answer: object = intake.take(job)
        except KbError as error:
            answer = error
        try:
            pickle.dump(answer, sink, pickle.HIGHEST_PROTOCOL)
            sink.flush()
        except BrokenPipeError:  # the parent was killed, and nobody wants the answer
            os._exit(1)  # not by returning: the interpreter would flush once more, and say so


def _only_ours() -> BinaryIO:
    """Standard output for answers; what anybody prints goes to standard error."""
    ours = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return ours
