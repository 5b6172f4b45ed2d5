"""Here is an exception that nobody caught; Python prints it as ever, and below it stands the known issue.

Installing sets two hooks and imports nothing heavy. What was installed before is called first, with what it would have
got without us.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from kb.hooks.guard import PATIENCE_S, Guard, Ration

if TYPE_CHECKING:
    from kb.records import Lang, SearchResult

__all__ = ["install_excepthook", "uninstall_excepthook"]

PER_MINUTE = 6  # threads can fail for ever


def install_excepthook(
    *,
    index: str | Path | None = None,
    lang: Lang | None = None,
    seconds: float = PATIENCE_S,
    say_unknown: bool = False,
) -> None:
    """From now on an uncaught exception, in any thread, is followed on stderr by its known issue, if it has one.

    `index`: as in `KnowledgeBase.open`. `seconds`: how long the end of the program may wait for that. `say_unknown`: a
    line also when it is not known. Installing again changes these.
    """
    global _hook
    uninstall_excepthook()
    _hook = _Hook(Guard(index, lang=lang), Guard(index, lang=lang), seconds, say_unknown)


def uninstall_excepthook() -> None:
    """As it was before; a hook that somebody put over ours stays, and ours keeps silent below it."""
    global _hook
    if _hook is not None:
        _hook.remove()
        _hook = None


class _Hook:
    """The end of a program is told whatever its threads said before: it has a guard and a ration of its own."""

    def __init__(self, guard: Guard, of_threads: Guard, seconds: float, say_unknown: bool) -> None:
        self._guard, self._of_threads, self._seconds, self._say_unknown = guard, of_threads, seconds, say_unknown
        self._ration, self._ration_of_threads = Ration(PER_MINUTE), Ration(PER_MINUTE)
        self._told: set[str] = set()
        self._active = True
        self._before, self._before_thread = sys.excepthook, threading.excepthook
        sys.excepthook, threading.excepthook = self.main, self.thread

    def remove(self) -> None:
        self._active = False
        if sys.excepthook == self.main:
            sys.excepthook = self._before
        if threading.excepthook == self.thread:
            threading.excepthook = self._before_thread

    def main(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        self._before(kind, error, trace)
        self._explain(error, self._hint)

    def thread(self, args: threading.ExceptHookArgs) -> None:
        self._before_thread(args)
        self._explain(args.exc_value, self._hint_of_thread)

    def _explain(self, error: BaseException | None, hint: Callable[[BaseException], str]) -> None:
        try:
            from kb.hooks.hint import is_failure

            text = hint(error) if self._active and sys.stderr is not None and error and is_failure(error) else ""
            if text:
                sys.stderr.write(f"\n{text}\n")
                sys.stderr.flush()
        except BaseException:  # a closed stderr; Ctrl-C of somebody who does not want to wait
            pass

    def _hint(self, error: BaseException) -> str:
        """What is not known costs nothing of the ration: whatever a host calls the hook for, the end may be known."""
        result = self._ask(self._guard, error)
        return "" if result is not None and result.answered and not self._ration.take() else self._say(result)

    def _hint_of_thread(self, error: BaseException) -> str:
        if not self._ration_of_threads.take():
            return ""
        result = self._ask(self._of_threads, error)
        if result is not None and result.answered:
            if result.hits[0].issue in self._told:  # eight threads that die of the same
                return ""
            self._told.add(result.hits[0].issue)
        return self._say(result)

    def _ask(self, guard: Guard, error: BaseException) -> SearchResult | None:
        from kb.hooks.hint import question

        return guard.ask_in_time(lambda: question(error), self._seconds)

    def _say(self, result: SearchResult | None) -> str:
        from kb.hooks.hint import NOT_KNOWN, hint

        if result is None or not result.answered:
            return NOT_KNOWN if result is not None and self._say_unknown else ""
        return hint(result.hits[0])


_hook: _Hook | None = None
