"""Do two records tell the same fault? Asked of records of different bases that answer one question.

Stub until the near-duplicates of one base are found by the same rule.
"""

from __future__ import annotations

from kb.logs.variables import mask
from kb.records import IssueRecord

__all__ = ["same_fault"]


def same_fault(one: IssueRecord, other: IssueRecord) -> bool:
    """A line that both print, and half of the words of the shorter remedy, or one title."""
    if " ".join(one.title.casefold().split()) == " ".join(other.title.casefold().split()):
        return True
    printed = {mask(line) for line in one.errors} & {mask(line) for line in other.errors}
    if not any(len(line.split()) >= 3 for line in printed):
        return False
    words = [set(record.fix.casefold().split()) for record in (one, other)]
    return len(words[0] & words[1]) >= 0.5 * min(map(len, words))
