"""Here is a question that came up inside somebody else's program; give me the answer in time, or nothing, and no harm.

Whoever asks for a hint did not ask for trouble: whatever goes wrong here (no index, a damaged one, no memory, a search
that hangs) leaves one debug line on the logger "kb" and no other trace.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kb.records import Lang, SearchResult
    from kb.search import KnowledgeBase

__all__ = ["MAKING_S", "PATIENCE_S", "Guard", "Ration", "note"]

PATIENCE_S = 1.5
"""how long a first question may take, which imports numpy and opens the base; the next take milliseconds"""
MAKING_S = 10.0
"""how much longer it may take the one time that the index must be made first, in the user's cache"""


class Guard:
    """Asks the base of `index` (see `KnowledgeBase.open`), which is opened at the first question and then kept."""

    def __init__(self, index: str | Path | None = None, *, lang: Lang | None = None) -> None:
        self._index = None if index is None else str(index)
        self._lang = lang
        self._worker: threading.Thread | None = None
        self._is_open = False
        self.making: bool = False
        """is an index being made before the first answer?"""

    def ask(self, question: Callable[[], str]) -> SearchResult | None:
        """None when there is no answer to be had, for whatever reason. Takes as long as it takes."""
        try:
            if not self._is_open:
                self.making = _must_be_made(self._index)
            base = _base(self._index)
            self._is_open, self.making = True, False
            return base.search(question(), 1, lang=self._lang)
        except BaseException as error:  # of a thread of ours or of a host's __str__: SystemExit is none of our business
            self.making = False
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
        if self.making:
            worker.join(MAKING_S)
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


def note(what: str, error: BaseException | None = None) -> None:
    """The one debug line."""
    with suppress(Exception):  # an error that cannot be shown, a host's own filter that raises
        import logging

        why = "" if error is None else f": {type(error).__name__}: {error}"
        logging.getLogger("kb").debug("%s%s", what, why)


def _must_be_made(index: str | None) -> bool:
    from kb.locate import is_fresh, locate

    place = locate(index)
    return place.kept_fresh and not is_fresh(place)


@cache
def _base(index: str | None) -> KnowledgeBase:
    """All guards of one index share one base."""
    from kb.search import KnowledgeBase

    return KnowledgeBase.open(index)
