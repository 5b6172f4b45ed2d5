"""Turns an exception into the text that is searched for, and a hit into the lines that are printed."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

from kb.brief import known_issue
from kb.hooks.guard import MAX_TEXT, clip
from kb.text import visible

if TYPE_CHECKING:
    from kb.records import Hit

__all__ = ["NOT_KNOWN", "hint", "is_failure", "question"]

MAX_FRAMES = 50  # of each exception of a chain; a recursion error has a thousand

NOT_KNOWN = "kb: not known · 未收录"


def is_failure(error: BaseException | None) -> bool:
    """Is this worth an explanation? An interrupt, an exit, and a group of nothing else are not."""
    if isinstance(error, Exception):
        return True
    inner = getattr(error, "exceptions", ())  # of a BaseExceptionGroup, which Python has from 3.11 on
    return isinstance(inner, tuple) and any(map(is_failure, inner))


def question(error: BaseException) -> str:
    """The traceback as Python prints it, with its causes and groups. Of a long message, the beginning and the end.

    `TracebackException` handles a `__str__` that raises.
    """
    trace = traceback.TracebackException(type(error), error, error.__traceback__, limit=-MAX_FRAMES, compact=True)
    _shorten(trace)
    return clip("".join(trace.format()))


def _shorten(trace: traceback.TracebackException) -> None:
    """Cuts long messages before they are formatted: formatting copies them several times and holds the GIL."""
    todo = [trace]
    while todo:
        one: Any = todo.pop()
        if isinstance(getattr(one, "_str", None), str):
            one._str = clip(one._str)
        notes = getattr(one, "__notes__", None)
        if isinstance(notes, list | tuple):
            one.__notes__ = [clip(text) if isinstance(text, str) else text for text in notes[:MAX_FRAMES]]
        if len(getattr(one, "text", None) or "") > MAX_TEXT:  # the line of a syntax error
            one.text = None
        todo += filter(None, (one.__cause__, one.__context__, *(getattr(one, "exceptions", None) or ())))


def hint(hit: Hit) -> str:
    """The known issue in a few lines, safe to print; no line end behind the last."""
    return visible("\n".join(known_issue(hit)))
