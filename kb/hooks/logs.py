"""A logging handler that explains error records.

The thread that logs only queues the record. A daemon thread of kb asks the base and logs the known issue as a warning
of the logger "kb", so that it goes wherever the program's log goes. When the queue is full, records are left out.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

from kb.hooks.guard import PATIENCE_S, Guard, RateLimiter, clip

if TYPE_CHECKING:
    from kb.records import Lang

__all__ = ["KbHandler"]

MAX_WAITING = 16
MAX_SEEN = 1000
MAX_KEY = 300  # characters
_DIGITS = re.compile(r"\d+")
_OWN = "kb"


class _Failure(NamedTuple):
    message: str
    error: BaseException | None

    def question(self) -> str:
        from kb.hooks.hint import question

        return self.message if self.error is None else f"{self.message}\n{question(self.error)}"


class KbHandler(logging.Handler):
    """Explains records of `level` and above, each kind of message once and `per_minute` at most.

    The explanation is a warning of the logger "kb". `index` as in `KnowledgeBase.open`. In a program without any other
    handler, this one also prints what `logging.lastResort` would have printed without it.
    """

    def __init__(
        self,
        level: int | str = logging.ERROR,
        *,
        index: str | Path | None = None,
        lang: Lang | None = None,
        per_minute: int = 6,
    ) -> None:
        super().__init__(level)
        self.setLevel(level)
        self._guard = Guard(index, lang=lang)
        self._limiter = RateLimiter(per_minute)
        self._explained: set[tuple[str, ...]] = set()
        self._seen: set[tuple[str, str]] = set()
        self._closed = False
        self._forget()

    def _forget(self) -> None:
        """New state for a forked child, which has neither the thread nor the queue of its parent."""
        self._pid = os.getpid()
        self._brief = threading.RLock()
        self._waiting: SimpleQueue[_Failure | threading.Event] = SimpleQueue()  # put() is safe even in a signal handler
        self._worker: threading.Thread | None = None

    def setLevel(self, level: int | str) -> None:  # noqa: N802 (the name that logging gave it)
        """The level from which records are explained. The handler itself also takes warnings, for the last resort."""
        super().setLevel(level)
        self._explain_from = self.level
        self.level: int = min(self.level, logging.WARNING)

    def handle(self, record: logging.LogRecord) -> bool:
        """Does not take the handler's lock: at exit `flush` holds it and waits for a thread that may log."""
        last = logging.lastResort
        if last is not None and record.levelno >= last.level and self._is_alone(record.name):
            last.handle(record)
        own = record.name == _OWN or record.name.startswith(f"{_OWN}.")
        if own or record.levelno < self._explain_from or not self.filter(record):
            return False
        self.emit(record)
        return True

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if self._pid != os.getpid():
                self._forget()
            if self._closed or self._waiting.qsize() >= MAX_WAITING:
                return
            from kb.hooks.hint import is_failure  # late: most programs never come here

            error = record.exc_info[1] if record.exc_info else None
            failure = _Failure(_message(record), error if is_failure(error) else None)
            key = _key(failure)
            with self._brief:
                if key in self._seen or not self._limiter.take():
                    return
                if len(self._seen) >= MAX_SEEN:
                    self._seen.clear()
                self._seen.add(key)
                self._waiting.put(failure)
                if self._worker is None:
                    self._worker = threading.Thread(target=self._work, args=(self._waiting,), name="kb", daemon=True)
                    self._worker.start()
        except Exception:  # wrong format arguments or no more threads: other handlers report it
            pass

    def flush(self) -> None:
        """Waits until the queued records are explained, at most as long as a first query may take."""
        if self._worker is None or self._pid != os.getpid() or not self._worker.is_alive():
            return
        done = threading.Event()
        self._waiting.put(done)
        if not done.wait(PATIENCE_S):
            self._worker = None  # it hangs: do not wait for it again, and drop its queue
            self._closed = True

    def close(self) -> None:
        self._closed = True
        super().close()

    def _is_alone(self, name: str) -> bool:
        """Would this logger have no handler without kb?"""
        known = logging.root.manager.loggerDict.get(name)
        logger: logging.Logger | None = known if isinstance(known, logging.Logger) else logging.root
        found: list[logging.Handler] = []
        while logger is not None:
            found += logger.handlers
            logger = logger.parent if logger.propagate else None
        return bool(found) and found[0] is self and all(isinstance(handler, KbHandler) for handler in found)

    def _work(self, waiting: SimpleQueue[_Failure | threading.Event]) -> None:
        while True:
            item = waiting.get()
            if isinstance(item, threading.Event):
                item.set()
            else:
                self._explain(item)
            del item  # the frames of an exception may hold gigabytes

    def _explain(self, failure: _Failure) -> None:
        result = self._guard.ask(failure.question)
        if result is None:
            return
        with suppress(BaseException):  # a handler of the program may raise
            from kb.hooks.hint import hint

            found = hint(result)
            if found and found.issues not in self._explained:
                self._explained.add(found.issues)
                logging.getLogger(_OWN).warning("%s", found.text)


def _message(record: logging.LogRecord) -> str:
    """Like `getMessage`, but long texts are cut before they are formatted."""
    text, values = str(record.msg), record.args
    if not values or clip(text) is not text:
        return clip(text)
    if isinstance(values, Mapping):
        return clip(text % values)
    return clip(text % tuple(clip(value) if isinstance(value, str) else value for value in values))


def _key(failure: _Failure) -> tuple[str, str]:
    """Equal for messages that differ in numbers only."""
    error = failure.error
    message = failure.message[:MAX_KEY]
    try:
        why = "" if error is None else f"{type(error).__name__}: {str(error)[:MAX_KEY]}"
    except Exception:
        why = type(error).__name__
    return _DIGITS.sub("#", message), _DIGITS.sub("#", why)
