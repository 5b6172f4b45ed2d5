"""Here is an exception; give me the question that it is. Here is a hit; give me what to say of it in a few lines."""

from __future__ import annotations

import re
import traceback
from typing import TYPE_CHECKING, Any

from kb.hooks.guard import MAX_TEXT, clip
from kb.text import fences, visible

if TYPE_CHECKING:
    from kb.records import Hit, Lang

__all__ = ["NOT_KNOWN", "hint", "is_failure", "question"]

MAX_FRAMES = 50  # of each exception of a chain; a recursion error has a thousand
MAX_STEPS = 6  # lines of the fix
MAX_WIDTH = 200  # characters of a line of prose; a command is never cut

_END = re.compile(r"[.!?](?=\s)|[。！？]")

NOT_KNOWN = "kb: not known · 未收录"

_WORDS: dict[Lang, tuple[str, str, str, str]] = {
    "en": ("known issue", "Cause: ", "Fix:", "shows the whole of it"),
    "zh": ("已知问题", "原因：", "解决方案：", "查看全文"),
}


def is_failure(error: BaseException | None) -> bool:
    """Is there anything to explain? Not in an interrupt, an exit, or a group of nothing else."""
    if isinstance(error, Exception):
        return True
    inner = getattr(error, "exceptions", ())  # of a BaseExceptionGroup, which Python has from 3.11 on
    return isinstance(inner, tuple) and any(map(is_failure, inner))


def question(error: BaseException) -> str:
    """The traceback as Python prints it, causes and groups with it; a `__str__` that raises is Python's to survive.
    Of what is long, the beginning and the end."""
    told = traceback.TracebackException(type(error), error, error.__traceback__, limit=-MAX_FRAMES, compact=True)
    _shorten(told)
    return clip("".join(told.format()))


def _shorten(told: traceback.TracebackException) -> None:
    """Before it is formatted, which copies a message several times and lets no other thread run meanwhile."""
    todo = [told]
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
    """Title, cause in a line, the first steps of the fix, and how to read the rest; no line end behind the last."""
    record = hit.record
    known, cause, fix, whole = _WORDS[record.lang]
    project = f"[{record.project}] " if record.project else ""
    lines = [f"kb: {known} ({int(hit.confidence * 100)}%): {project}{record.title}"]
    if record.cause:
        lines.append(f"  {cause}{_sentence(record.cause)}")
    steps = _steps(record.fix)
    if steps:
        lines += [f"  {fix}", *(f"    {step}" for step in steps[:MAX_STEPS])]
        if len(steps) > MAX_STEPS:
            lines.append("    …")
    lines.append(f"  kb show '{hit.issue}'   {whole}")
    return visible("\n".join(lines))


def _steps(markdown: str) -> list[str]:
    """The lines that are not blank, without the marks around code."""
    found: list[str] = []
    for block in fences.split(markdown):
        if isinstance(block, fences.Code):
            marker = block.lead.rstrip() if block.lead.strip(" \t>") else ""
            found += [marker, *map(str.rstrip, block.inside)]
        else:
            found += [_cut(line.rstrip()) for line in block.lines]
    return [line for line in found if line]


def _sentence(markdown: str) -> str:
    text = " ".join(markdown.strip().partition("\n\n")[0].split())
    end = _END.search(text)
    return _cut(text[: end.end()].rstrip() if end else text)


def _cut(line: str) -> str:
    return line if len(line) <= MAX_WIDTH else line[: MAX_WIDTH - 2].rstrip() + " …"
