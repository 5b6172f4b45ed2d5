"""Turns an exception into the text that is searched for, and the answer into the lines that are printed.

Nobody asked, so only an issue is named of which a component is loaded in this program or stands in the traceback
(`kb.components`).
"""

from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING, Any, NamedTuple

from kb.brief import known_issue, likely_hits, likely_issues
from kb.components import is_present
from kb.hooks.guard import MAX_TEXT, clip
from kb.text import visible

if TYPE_CHECKING:
    from kb.records import SearchResult, Verdict

__all__ = ["NOT_KNOWN", "Hint", "hint", "is_failure", "question"]

MAX_FRAMES = 50  # of each exception of a chain; a recursion error has a thousand

NOT_KNOWN = "kb: not known · 未收录"


def is_failure(error: BaseException | None) -> bool:
    """Is this worth an explanation? An interrupt, what fails because of it, an exit, and a group of nothing else are
    not."""
    if isinstance(error, Exception):
        return not _after_interrupt(error)
    inner = getattr(error, "exceptions", ())  # of a BaseExceptionGroup, which Python has from 3.11 on
    return isinstance(inner, tuple) and any(map(is_failure, inner))


def _after_interrupt(error: BaseException) -> bool:
    """Was it raised while a KeyboardInterrupt was handled?"""
    one: BaseException | None = error
    for _ in range(MAX_FRAMES):  # a chain may be a circle
        one = one and (one.__cause__ or one.__context__)
        if one is None or isinstance(one, KeyboardInterrupt):
            return one is not None
    return False


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


class Hint(NamedTuple):
    verdict: Verdict
    """known or likely"""
    issues: tuple[str, ...]
    """the known one, or those that are likely"""
    text: str
    """safe to print; no line end behind the last line"""


def hint(result: SearchResult | None, around: str = "") -> Hint | None:
    """What to say in this program; None when nothing is to be said. `around`: more of the failure than was asked with,
    where components may be named."""
    if result is None or result.verdict == "unknown":
        return None
    named = result.hits[:1] if result.verdict == "known" else likely_hits(result)
    text = f"{result.query.text}\n{around}"
    hits = [hit for hit in named if is_present(hit.record, text, modules=sys.modules)]
    if not hits:
        return None
    lines = known_issue(hits[0]) if result.verdict == "known" else likely_issues(hits)
    return Hint(result.verdict, tuple(hit.issue for hit in hits), visible("\n".join(lines)))
