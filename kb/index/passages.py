"""The texts by which a record is found: several that are encoded as vectors, and one whose terms are indexed."""

from __future__ import annotations

import re
from enum import IntEnum

from kb.records import IssueRecord

__all__ = ["MAX_ALIASES", "View", "lexical_text", "plain", "views", "without_code"]

_MARKS = re.compile(r"[`*#>|]+|\]\([^)\n]{0,400}\)|!?\[")
MAX_VIEW_CHARS = 4000  # the mean of more tokens than this is the mean of any text
MAX_ALIASES = 32
"""of the ways in which people put one problem"""


class View(IntEnum):
    """What a vector of a record stands for. The numbers are in the index."""

    DESCRIBED = 0
    """title and symptom, without what is in fences"""
    PRINTED = 1
    """the error lines"""
    WHOLE = 2
    """project, title, symptom, cause and fix"""
    ALIAS = 3
    """one alias; a record has a vector for each"""
    ALL_ALIASES = 4
    """all aliases together"""


def views(record: IssueRecord) -> list[tuple[View, str]]:
    """The texts of a record that are encoded, each on its own; empty ones are left out."""
    described = plain(f"{record.title}\n{without_code(record.symptom)}")
    printed = "\n".join(record.errors)
    whole = plain(f"{record.project or ''}\n{record.title}\n{record.symptom}\n{record.cause}\n{record.fix}")
    aliases = record.aliases[:MAX_ALIASES]
    texts = [
        (View.DESCRIBED, described),
        (View.PRINTED, printed),
        (View.WHOLE, whole),
        *((View.ALIAS, one) for one in aliases),
        (View.ALL_ALIASES, "\n".join(aliases)),
    ]
    return [(kind, text[:MAX_VIEW_CHARS]) for kind, text in texts if text.strip()]


def lexical_text(record: IssueRecord) -> str:
    """The text whose terms are indexed for BM25: every field of the record, its tags and aliases."""
    parts = (record.project, record.title, record.symptom, *record.errors, record.cause, record.fix)
    return "\n".join(part for part in (*parts, *record.tags, *record.aliases[:MAX_ALIASES]) if part)


def without_code(markdown: str) -> str:
    """An empty line in place of each fenced block."""
    from kb.text import fences  # a search imports this module, but never gets here

    blocks = fences.split(markdown)
    return "\n".join(block.text if isinstance(block, fences.Prose) else "" for block in blocks)


def plain(markdown: str) -> str:
    """The words without the marks of markdown and without the targets of links."""
    return _MARKS.sub(" ", markdown)
