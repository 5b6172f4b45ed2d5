"""Do two records of different bases, which answer one question, tell the same fault?

Within one index `kb.index.faults` knows it, by the terms of all records. Between bases there is no common vocabulary,
and few records are compared: the hits of one question, which it has brought near each other already.
"""

from __future__ import annotations

from kb.index.faults import plain_title
from kb.logs.variables import mask
from kb.records import IssueRecord

__all__ = ["same_fault"]

_LEAST_WORDS = 3  # of a line that says something


def same_fault(one: IssueRecord, other: IssueRecord) -> bool:
    """They have one title, versions aside; or both print a line, and share half the words of the shorter remedy."""
    if plain_title(one.title) == plain_title(other.title):
        return True
    printed = {mask(line) for line in one.errors} & {mask(line) for line in other.errors}
    if not any(len(line.split()) >= _LEAST_WORDS for line in printed):
        return False
    words = [set(record.fix.casefold().split()) for record in (one, other)]
    return len(words[0] & words[1]) >= 0.5 * min(map(len, words))
