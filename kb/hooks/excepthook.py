"""Prints the known issue, or those that are likely, below an uncaught exception.

Installing sets `sys.excepthook` and `threading.excepthook` and imports nothing heavy. The hooks that were there before
are called first, with the same arguments as without kb.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from kb.hooks.guard import PATIENCE_S, Guard, RateLimiter

if TYPE_CHECKING:
    from kb.hooks.hint import Hint
    from kb.records import Lang, SearchResult

__all__ = ["install_excepthook", "uninstall_excepthook"]

PER_MINUTE = 6  # hints; a program may start failing threads for ever


def install_excepthook(
    *,
    index: str | Path | None = None,
    lang: Lang | None = None,
    seconds: float = PATIENCE_S,
    say_unknown: bool = False,
) -> None:
    """Prints the known issue of an uncaught exception, in any thread, on stderr below the traceback.

    `index`: as in `KnowledgeBase.open`. `seconds`: how long the program may wait for the answer at its end.
    `say_unknown`: print a line also when no issue is known. Installing again changes these settings.
    """
    global _hook
    uninstall_excepthook()
    _hook = _Hook(Guard(index, lang=lang), Guard(index, lang=lang), seconds, say_unknown)


def uninstall_excepthook() -> None:
    """Restores the earlier hooks. A hook that was installed over ours stays, and ours does nothing below it."""
    global _hook
    if _hook is not None:
        _hook.remove()
        _hook = None


class _Hook:
    """The main thread and the other threads have a guard and a rate limiter each, so that failing threads cannot keep
    the program's last exception from being explained."""

    def __init__(self, guard: Guard, of_threads: Guard, seconds: float, say_unknown: bool) -> None:
        self._guard, self._of_threads, self._seconds, self._say_unknown = guard, of_threads, seconds, say_unknown
        self._limiter, self._limiter_of_threads = RateLimiter(PER_MINUTE), RateLimiter(PER_MINUTE)
        self._explained: set[tuple[str, ...]] = set()
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
        except BaseException:  # a closed stderr, or Ctrl-C while waiting
            pass

    def _hint(self, error: BaseException) -> str:
        """Only what is said counts for the limiter: a program may call the hook often before its last exception."""
        result = self._ask(self._guard, error)
        found = self._found(result)
        return "" if found and not self._limiter.take() else self._say(result, found)

    def _hint_of_thread(self, error: BaseException) -> str:
        if not self._limiter_of_threads.take():
            return ""
        result = self._ask(self._of_threads, error)
        found = self._found(result)
        if found:
            if found.issues in self._explained:  # eight threads that end with the same error
                return ""
            self._explained.add(found.issues)
        return self._say(result, found)

    def _ask(self, guard: Guard, error: BaseException) -> SearchResult | None:
        from kb.hooks.hint import question

        return guard.ask_in_time(lambda: question(error), self._seconds)

    def _found(self, result: SearchResult | None) -> Hint | None:
        from kb.hooks.hint import hint

        return hint(result)

    def _say(self, result: SearchResult | None, found: Hint | None) -> str:
        from kb.hooks.hint import NOT_KNOWN

        return found.text if found else NOT_KNOWN if result is not None and self._say_unknown else ""


_hook: _Hook | None = None
