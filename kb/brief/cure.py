"""The one command or setting to try first: what a copy button copies.

An article in our own form names it in its summary, behind the cause. Elsewhere it is the code of the first step that
changes something: a command that only shows something is no cure, unless the issue has many causes and one must look.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from kb.brief.prose import first_sentence
from kb.brief.remedy import steps_of
from kb.records import IssueRecord
from kb.text.width import CODE_SPAN

__all__ = ["cure"]

_MOST_LINES = 15  # more of them are a file, not a command to try
_COMMAND = re.compile(r"\S[ =]{1,4}\S|^--?\w|\(.{0,200}\)")  # a command, setting or call, not the name of a thing
_SHOWS = re.compile(
    r"(?:sudo )?(?:cat|curl|df|dmesg|du|find|free|grep|head|ldd|ls|nproc|nvcc|nvidia-smi|ping|ps|tail|which)\b"
    r"|(?:sudo )?(?:docker|kubectl|npu-smi|ray|pip|conda) (?:describe|get|info|inspect|list|logs|show|status|version)\b"
    r"|python3? -(?:c|m torch.utils.collect_env)\b|python3? - <<|print\(",
)


def cure(record: IssueRecord) -> dict[str, Any]:
    """`{"says": ..., "code": ..., "warnings": [...]}`: plain text; `code` is empty where the fix has no command."""
    return _cure(record.summary, record.fix, looks=bool(record.branches)).copy()


@lru_cache(maxsize=4000)
def _cure(summary: str, fix: str, *, looks: bool) -> dict[str, Any]:
    steps = steps_of(fix)
    if code := _of_summary(summary, looks=looks):
        near = (one for step in steps if code in step.says or code in "\n".join(step.code) for one in step.warnings)
        return {"says": "", "code": code, "warnings": list(dict.fromkeys(near))}
    with_code = [step for step in steps if 0 < len(step.code) <= _MOST_LINES]
    for step in (*(step for step in with_code if looks or _changes(step.code[0])), *with_code[:1]):
        return {"says": step.says, "code": "\n".join(step.code), "warnings": list(step.warnings)}
    first = steps[0] if steps else None
    return {"says": first.says if first else "", "code": "", "warnings": list(first.warnings) if first else []}


def _of_summary(summary: str, *, looks: bool) -> str:
    """The longest command behind the sentence about the cause, or in the only sentence there is."""
    rest = summary.removeprefix(first_sentence(summary)).strip() or summary
    spans = (span[0].strip("`").strip() for span in CODE_SPAN.finditer(rest))
    return max((code for code in spans if _COMMAND.search(code) and (looks or _changes(code))), key=len, default="")


def _changes(code: str) -> bool:
    return _SHOWS.match(code.strip()) is None
