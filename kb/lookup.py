"""Finds issues by a part of their id or title, for somebody who remembers `fsdp` and not the whole id."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kb.base import Catalogue
    from kb.records import IssueRecord, Lang

__all__ = ["issues_with", "near_words", "title_in"]

_WORDS = re.compile(r"[^\W_]+")
_BETWEEN = re.compile(r"[\s_-]+")  # `nccl-timeout`: both words, wherever they stand
_LONGEST = 200  # characters; a longer fragment is a question


def issues_with(catalogue: Catalogue, fragment: str) -> list[Sequence[IssueRecord]]:
    """The issues with all words of `fragment` in their id, else in their id and the titles of all translations; each
    with its translations, in the index's order. Letter case does not matter."""
    fragment = fragment.strip().casefold()
    words = [word for word in _BETWEEN.split(fragment) if word]
    if not words or len(fragment) > _LONGEST:
        return []
    by_id = [records for key, records in catalogue.issues.items() if fragment in key]
    by_id = by_id or [records for key, records in catalogue.issues.items() if all(word in key for word in words)]
    return by_id or [
        records
        for key, records in catalogue.issues.items()
        if _holds(words, [key, *(record.title.casefold() for record in records)])
    ]


def _holds(words: Iterable[str], texts: Sequence[str]) -> bool:
    return all(any(word in text for text in texts) for word in words)


def near_words(catalogue: Catalogue, fragment: str) -> list[str]:
    """Up to three words of ids that are spelled like `fragment`, nearest first."""
    if len(fragment) > _LONGEST:
        return []
    known = {word for key in catalogue.issues for word in _WORDS.findall(key)}
    return get_close_matches(fragment.strip().casefold(), sorted(known), n=3, cutoff=0.7)


def title_in(lang: Lang | None, records: Sequence[IssueRecord]) -> str:
    """Of an issue, in this language where it has it."""
    return next((record.title for record in records if record.lang == lang), records[0].title)
