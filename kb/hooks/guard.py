"""Here is a question that came up inside somebody else's program; give me the answer in time, or nothing, and no harm.

Whoever asks for a hint did not ask for trouble: whatever goes wrong here (no index, a damaged one, no memory, a search
that hangs) leaves one debug line on the logger "kb" and no other trace. An index is used where there is one; none is
made here.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import LogRecord

    from kb.base import KnowledgeBase
    from kb.index.locate import Location
    from kb.records import Lang, SearchResult

__all__ = ["MAX_TEXT", "PATIENCE_S", "Guard", "Ration", "clip", "note", "pinned"]

PATIENCE_S = 1.5
"""how long a first question may take, which imports numpy and opens the base; the next take milliseconds"""
FORK_S = 5.0
"""how long a fork waits for a question that is being answered"""
MAX_TEXT = 1 << 15
"""characters of the beginning, and of the end, of a text that is looked at: work on a long one holds up all threads"""
MAX_WHY = 500


class Guard:
    """Asks the base of `index` (see `KnowledgeBase.open`), which is opened at the first question and then kept."""

    def __init__(self, index: str | Path | Location | None = None, *, lang: Lang | None = None) -> None:
        self._index = str(index) if isinstance(index, Path) else index
        self._lang = lang
        self._worker: threading.Thread | None = None

    def ask(self, question: Callable[[], str]) -> SearchResult | None:
        """None when there is no answer to be had, for whatever reason. Takes as long as it takes; for threads of ours
        only, of which a fork waits for the end."""
        with _gate:
            try:
                _hush()
                if _gate.torn:
                    raise RuntimeError("forked while another thread was in kb")
                return _base(self._index).search(clip(question()), 1, lang=self._lang)
            except BaseException as error:  # of a host's __str__: SystemExit is none of our business
                note("no hint", error)
                return None

    def ask_in_time(self, question: Callable[[], str], seconds: float = PATIENCE_S) -> SearchResult | None:
        """The same within `seconds`. While an earlier question hangs there is no answer, and no waiting either."""
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


class Ration:
    """So many a minute, whatever happens."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute, self._taken, self._since = per_minute, 0, time.monotonic()

    def take(self) -> bool:
        now = time.monotonic()
        if now - self._since >= 60:
            self._taken, self._since = 0, now
        self._taken += 1
        return self._taken <= self._per_minute


def clip(text: str, most: int = MAX_TEXT) -> str:
    """Its beginning and its end."""
    return text if len(text) <= 2 * most else f"{text[:most]}\n…\n{text[-most:]}"


def note(what: str, error: BaseException | None = None) -> None:
    """The one debug line."""
    with suppress(Exception):  # an error that cannot be shown, a host's own filter that raises
        import logging

        why = "" if error is None else f": {type(error).__name__}: {clip(str(error), MAX_WHY)}"
        logging.getLogger("kb").debug("%s%s", what, why)


def pinned(index: str | Path | None = None) -> Location | None:
    """The base that is meant here and now, for a host that will change its folder and environment; None when there is
    none."""
    try:
        from dataclasses import replace

        from kb.index.locate import locate

        place = locate(index)
        return replace(place, index=Path(os.path.abspath(place.index)))
    except Exception as error:
        note("no hint", error)
        return None


@cache
def _base(index: str | Location | None) -> KnowledgeBase:
    """All guards of one index share one base. One that the cache should hold is used as it is, were it stale."""
    from dataclasses import replace

    from kb.index.locate import locate
    from kb.index.snapshot import MANIFEST

    place = locate(index) if index is None or isinstance(index, str) else index
    if not (place.index / MANIFEST).is_file():  # before numpy is imported in vain
        from kb.errors import IndexMissing

        raise IndexMissing("there is no index here yet; `kb search` or `kb build` makes it", path=place.index)
    from kb.base import KnowledgeBase

    return KnowledgeBase.at(replace(place, articles=None, kept_fresh=False))


class _Gate:
    """No fork while a thread of ours is inside: the child would inherit the locks of modules half imported, and no
    thread that opens them. Waiting has an end, and who made it wait in vain is not waited for again."""

    def __init__(self) -> None:
        self.torn = False
        """a child of a fork that could not wait any longer: here kb does nothing"""
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
        return threading.get_ident() in self._inside

    def close(self) -> None:
        """Before a fork. Nobody comes in until it is done."""
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
    """What kb warns of while it answers (articles written to since, an index that broke) is not the host's concern."""
    import logging

    def passes(record: LogRecord) -> bool:
        return record.levelno <= logging.DEBUG or not _gate.is_mine()

    logging.getLogger("kb").addFilter(passes)
