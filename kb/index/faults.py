"""Which issues tell the same fault: the same page for two versions, an answer that stands in two FAQs.

Such issues are one answer. As rivals they would take each other's confidence away, and a list of hits would repeat
itself. Two records are one fault when they have the same title, versions aside, and half of their terms in common. Of
two pages for two versions nearly all records have nine tenths in common; "tidb-server does not start" and "pd-server
does not start" have as much, so that likeness of the text alone does not count.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence, Set

from kb.index.bm25 import Bag
from kb.records import IssueRecord
from kb.text import clean

__all__ = ["ALIKE", "faults"]

ALIKE = 0.5
"""Jaccard coefficient of the terms of two records with one title"""

_MOST_COMPARED = 50  # records with one title; of a title that many have ("Symptom") each meets the last ones before it
_VERSION = re.compile(r"\bv?\d+(?:\.\d+)+(?:\.x)?\b|\bv\d+\b")
_NO_WORD = re.compile(r"[\W_]+")


def faults(records: Sequence[IssueRecord], bags: Sequence[Bag]) -> list[int]:
    """Of each record a number that the records of one fault share: translations of one issue, and issues that are the
    same fault in one of the languages. `bags`: the terms of each record. The numbers count from 0."""
    parent = {record.issue: record.issue for record in records}

    def root(issue: str) -> str:
        while parent[issue] != issue:
            parent[issue] = issue = parent[parent[issue]]
        return issue

    titled: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row, record in enumerate(records):
        same_title = titled[record.lang, plain_title(record.title)]
        for other in same_title[-_MOST_COMPARED:]:
            first, second = sorted((root(record.issue), root(records[other].issue)))
            if first != second and _jaccard(bags[row].keys(), bags[other].keys()) >= ALIKE:
                parent[second] = first
        same_title.append(row)
    number = {issue: i for i, issue in enumerate(sorted({root(issue) for issue in parent}))}
    return [number[root(record.issue)] for record in records]


def plain_title(title: str) -> str:
    """Without versions, marks and letter case."""
    return _NO_WORD.sub(" ", _VERSION.sub(" ", clean(title).casefold())).strip()


def _jaccard(one: Set[str], other: Set[str]) -> float:
    both = len(one & other)
    return both / (len(one) + len(other) - both) if both else 0.0
