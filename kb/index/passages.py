"""Here is a record; give me the texts by which it is found: views for the dense half, words for the lexical half."""

from __future__ import annotations

import re

from kb.records import IssueRecord

__all__ = ["VIEW_KINDS", "lexical_text", "views"]

_MARKS = re.compile(r"[`*#>|]+|\]\([^)\n]{0,400}\)|!?\[")
MAX_VIEW_CHARS = 4000  # the mean of more tokens than this is the mean of any text
MAX_ALIASES = 32  # of the ways in which people put one problem

VIEW_KINDS = ("described", "printed", "whole", "alias", "all aliases")


def views(record: IssueRecord) -> list[tuple[int, str]]:
    """Texts that are encoded each on its own, with their number in VIEW_KINDS: what the article describes, what a
    program prints, all of it, each way in which people put the problem, and these ways together."""
    described = _plain(f"{record.title}\n{_without_code(record.symptom)}")
    printed = "\n".join(record.errors)
    whole = _plain(f"{record.project or ''}\n{record.title}\n{record.symptom}\n{record.cause}\n{record.fix}")
    aliases = record.aliases[:MAX_ALIASES]
    texts = [(0, described), (1, printed), (2, whole), *((3, one) for one in aliases), (4, "\n".join(aliases))]
    return [(kind, text[:MAX_VIEW_CHARS]) for kind, text in texts if text.strip()]


def lexical_text(record: IssueRecord) -> str:
    parts = (record.project, record.title, record.symptom, *record.errors, record.cause, record.fix)
    return "\n".join(part for part in (*parts, *record.tags, *record.aliases[:MAX_ALIASES]) if part)


def _without_code(markdown: str) -> str:
    """An empty line in place of each fenced block."""
    from kb.text import fences  # a search imports this module, but never gets here

    blocks = fences.split(markdown)
    return "\n".join(block.text if isinstance(block, fences.Prose) else "" for block in blocks)


def _plain(markdown: str) -> str:
    return _MARKS.sub(" ", markdown)
