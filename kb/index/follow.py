"""Moves a long-lived reader to the newest snapshot of an index.

A server runs for weeks while `kb build` publishes beside it. At most once a second, the next caller looks at the
manifest file. When it has changed, that caller opens the new snapshot while all others go on with the old one. What
began on the old snapshot ends on it. A new index that cannot be opened leaves the old one in service.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from kb.errors import KbError
from kb.index.snapshot import MANIFEST

__all__ = ["Follower", "seen"]

LOOK_EVERY_S = 1.0
TRY_AGAIN_S = 10.0  # a broken index is read to its end each time, to find that it is still broken

T = TypeVar("T")


def seen(folder: Path) -> tuple[int, int, int] | None:
    """Changes with every manifest that is renamed into its place; None when there is none."""
    try:
        found = os.stat(folder / MANIFEST)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


class Follower(Generic[T]):
    """Safe between threads; never waits for another one."""

    def __init__(
        self,
        value: T,
        folder: Path | str,
        state: object,
        renew: Callable[[], T],
        *,
        look: Callable[[], object] | None = None,
    ) -> None:
        """`state`: what `seen` said before `value` was made. `renew` makes it anew, or raises. `look`: asked in the
        place of `seen` for an index that is in no folder."""
        self._seen: Callable[[], object] = look or partial(seen, Path(folder))
        self.stale: str
        """why what lies in the folder now cannot be used, and an older value is; names no file; empty: all is well"""
        self._value, self._folder, self._state, self._renew = value, folder, state, renew
        self._lock, self._pid = threading.Lock(), os.getpid()
        self._look_at = time.monotonic() + LOOK_EVERY_S
        self._complaint = self.stale = ""

    @property
    def newest(self) -> T:
        if time.monotonic() >= self._look_at:
            if self._pid != os.getpid():  # a thread that was looking is not in the child, and would hold it for ever
                self._lock, self._pid = threading.Lock(), os.getpid()
            lock = self._lock
            if lock.acquire(blocking=False):
                try:
                    self._look()
                finally:
                    lock.release()
        return self._value

    def _look(self) -> None:
        # Set before the work: a slow renewal is not begun again by the next to come.
        self._look_at = time.monotonic() + LOOK_EVERY_S
        state = self._seen()
        if state == self._state:
            self._complaint = self.stale = ""
        elif state is None:
            self._complain(f"{self._folder}: the index has gone")
            self.stale = "the index has gone"
        else:
            try:
                self._value = self._renew()
            except Exception as error:
                self._complain(str(error))
                self.stale = error.message if isinstance(error, KbError) else type(error).__name__
                self._look_at = time.monotonic() + TRY_AGAIN_S
            else:
                self._state, self._complaint, self.stale = state, "", ""

    def _complain(self, message: str) -> None:
        """Once, not every second."""
        if message != self._complaint:
            import logging  # late: a start has no use for it

            self._complaint = message
            logging.getLogger("kb").warning("%s; answering from the last good snapshot", message)
