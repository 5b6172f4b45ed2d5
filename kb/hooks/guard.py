"""Asks the base from inside another program, in limited time and without side effects.

Whatever goes wrong (no index, a damaged one, no memory, a search that hangs) leaves one debug line on the logger "kb"
and no other trace. An existing index is used as it is; none is built or renewed.
"""

from __future__ import annotations

import logging  # before `_gate`: a fork asks the last hook first, and the one of logging holds its lock
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kb.bases import AnyBase
    from kb.index.locate import Location
    from kb.records import Lang, SearchResult

__all__ = ["MAX_TEXT", "PATIENCE_S", "Guard", "RateLimiter", "clip", "note", "pinned"]

PATIENCE_S = 1.5
"""seconds that a first query may take, which imports numpy and opens the base; later ones take milliseconds"""
FORK_S = 5.0
"""seconds that a fork waits for a query that is running"""
MAX_TEXT = 1 << 15
"""characters at the beginning, and at the end, of a text that are used: work on a long text holds the GIL"""
MAX_WHY = 500  # characters of an error message in the debug line


class Guard:
    """Asks the bases of `index` (see `kb.places`) on this machine: they are opened at the first query and then
    kept. What fails in somebody's program is sent to no address."""

    def __init__(self, index: str | Path | tuple[Location, ...] | None = None, *, lang: Lang | None = None) -> None:
        self._index = str(index) if isinstance(index, Path) else index
        self._lang = lang
        self._worker: threading.Thread | None = None

    def ask(self, question: Callable[[], str]) -> SearchResult | None:
        """The result of the search, or None when anything goes wrong. Takes as long as the search takes.

        Call it only from a thread that kb started: a fork of the program waits until it returns.
        """
        with _gate:
            try:
                _hush()
                if _gate.torn:
                    raise RuntimeError("the process was forked while another thread was in kb")
                base = _base(self._index)
                from kb.language import reader_language
                from kb.search.verdict import MOST_LIKELY

                return base.search(clip(question()), MOST_LIKELY, lang=reader_language(self._lang))
            except BaseException as error:  # the program's own __str__ may raise anything, even SystemExit
                note("no hint", error)
                return None

    def ask_in_time(self, question: Callable[[], str], seconds: float = PATIENCE_S) -> SearchResult | None:
        """The same in a thread, for at most `seconds`. While an earlier query hangs it returns None at once."""
        if sys.is_finalizing() or (self._worker is not None and self._worker.is_alive()):
            return None
        answers: list[SearchResult | None] = []
        worker = threading.Thread(target=lambda: answers.append(self.ask(question)), name="kb", daemon=True)
        try:
            worker.start()
        except (RuntimeError, MemoryError) as error:  # no more threads
            note("no hint", error)
            return None
        self._worker = worker
        worker.join(seconds)
        if not answers:
            note(f"no hint within {seconds} s")
            return None
        return answers[0]


class RateLimiter:
    """Allows `per_minute` hints in each minute."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute, self._taken, self._since = per_minute, 0, time.monotonic()

    def take(self) -> bool:
        """Is one more allowed now? Counts it."""
        now = time.monotonic()
        if now - self._since >= 60:
            self._taken, self._since = 0, now
        self._taken += 1
        return self._taken <= self._per_minute


def clip(text: str, most: int = MAX_TEXT) -> str:
    """The first and the last `most` characters of a longer text."""
    return text if len(text) <= 2 * most else f"{text[:most]}\n…\n{text[-most:]}"


def note(what: str, error: BaseException | None = None) -> None:
    """Writes the one debug line."""
    with suppress(Exception):  # an error without a usable __str__, or a log filter that raises
        why = "" if error is None else f": {type(error).__name__}: {clip(str(error), MAX_WHY)}"
        logging.getLogger("kb").debug("%s%s", what, why)


def pinned(index: str | Path | None = None) -> tuple[Location, ...] | None:
    """The bases that `index`, the environment, kb.toml and the current folder name now, or None.

    For a program that changes its folder and environment later.
    """
    try:
        from dataclasses import replace

        return tuple(replace(place, index=Path(os.path.abspath(place.index))) for place in _local(index))
    except Exception as error:
        note("no hint", error)
        return None


def _local(index: str | Path | None) -> Iterator[Location]:
    from kb.index.locate import Location
    from kb.places import places

    return (place for place in places(index=index) if isinstance(place, Location))


@cache
def _base(index: str | tuple[Location, ...] | None) -> AnyBase:
    """The open bases, shared by all guards of one index. A cached index is used even if it is stale."""
    from dataclasses import replace

    from kb.index.snapshot import MANIFEST

    found = index if isinstance(index, tuple) else tuple(_local(index))
    ready = [place for place in found if (place.index / MANIFEST).is_file()]
    if not ready:  # before the import of numpy, which would be in vain
        from kb.errors import IndexMissing

        if any(place.kept_fresh for place in found):  # one that kb would make
            _say_why_silent()
        where = found[0].index if found else None
        raise IndexMissing("there is no index here yet; `kb search` or `kb build` makes it", path=where)
    from kb.bases import opened

    return opened([replace(place, articles=None, kept_fresh=False) for place in ready])


TOLD = "told-no-index"
"""a file in the user's cache: this user was told why the hooks are silent"""


def _say_why_silent() -> None:
    """Says once to each user, on stderr, why no failure is explained: there is no index yet. Where that cannot be
    remembered, nothing is said."""
    with suppress(Exception):
        from kb.index.user import cache_folder, is_own

        folder = cache_folder()
        if sys.stderr is None or not is_own(folder):
            return
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(folder / TOLD, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        sys.stderr.write(
            "kb: failures are not explained yet: there is no index; `kb projects` makes it (said once)\n"
            "kb: 尚未建立索引，暂不能解释报错；运行 `kb projects` 即可建立（仅提示一次）\n"
        )


class _Gate:
    """Delays a fork while a thread is inside kb.

    Otherwise the child would inherit the locks of half-imported modules, but not the thread that releases them. A fork
    waits for `FORK_S` at most, and does not wait again for a thread that was too slow once.
    """

    def __init__(self) -> None:
        self.torn = False
        """True in a child whose fork could not wait any longer: kb does nothing there"""
        self._reset()

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._inside: set[int] = set()
        self._hanging: set[int] = set()

    def __enter__(self) -> None:
        with self._changed:
            self._inside.add(threading.get_ident())

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._inside.discard(threading.get_ident())
            self._hanging.discard(threading.get_ident())
            self._changed.notify_all()

    def is_mine(self) -> bool:
        """Is this thread inside?"""
        return threading.get_ident() in self._inside

    def close(self) -> None:
        """Before a fork: waits, and keeps other threads out until the fork is done."""
        self._changed.acquire()
        me = threading.get_ident()
        if not self._changed.wait_for(lambda: self._inside <= {me, *self._hanging}, FORK_S):
            self._hanging = self._inside - {me}

    def open(self) -> None:
        self._changed.release()

    def open_in_child(self) -> None:
        self.torn = self.torn or bool(self._inside - {threading.get_ident()})
        self._reset()


_gate = _Gate()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_gate.close, after_in_parent=_gate.open, after_in_child=_gate.open_in_child)


@cache
def _hush() -> None:
    """Drops warnings that kb logs while it answers: a stale or broken index is not the program's concern."""

    def passes(record: logging.LogRecord) -> bool:
        return record.levelno <= logging.DEBUG or not _gate.is_mine()

    logging.getLogger("kb").addFilter(passes)
