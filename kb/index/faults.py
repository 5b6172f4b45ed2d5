"""Which issues tell the same fault: the same page for two versions, an answer that stands in two FAQs.

Such issues are one answer. As rivals they would take each other's confidence away, and a list of hits would repeat
itself. Two records are one fault when they have the same title, versions aside, and half of their terms in common. Of
two pages for two versions nearly all records have nine tenths in common; "tidb-server does not start" and "pd-server
does not start" have as much, so that likeness of the text alone does not count.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Callable, Set

import numpy as np

from kb.arrays import Array
from kb.records import IssueRecord
from kb.text import clean

__all__ = ["ALIKE", "alike", "faults", "plain_title", "title_key"]

ALIKE = 0.5
"""Jaccard coefficient of the terms of two records with one title"""

MOST_COMPARED = 50
"""records with one title; of a title that many have ("Symptom") each meets the last ones before it"""

_VERSION = re.compile(r"\bv?\d+(?:\.\d+)+(?:\.x)?\b|\bv\d+\b")
_NO_WORD = re.compile(r"[\W_]+")


def title_key(record: IssueRecord) -> int:
    """64 bits of a digest of the record's language and plain title."""
    text = f"{record.lang} {plain_title(record.title)}"
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8], "little")


def faults(issues: Array, titles: Array, terms_of: Callable[[int], Set[int]]) -> Array:
    """(n,) int32: of each record a number that the records of one fault share: translations of one issue, and issues
    that are the same fault in one of the languages. The numbers count from 0.

    `issues`: (n,) the number of each record's issue. `titles`: (n,) uint64, see `title_key`. `terms_of`: digests of the
    terms of the record in a row; asked only where others have the same title.
    """
    parent = list(range(int(issues.max(initial=-1)) + 1))

    def root(issue: int) -> int:
        while parent[issue] != issue:
            parent[issue] = issue = parent[parent[issue]]
        return issue

    order = np.argsort(titles, kind="stable")
    ends = np.flatnonzero(np.diff(titles[order], append=titles[order][-1:] + np.uint64(1)))
    of = issues.tolist()
    for rows in (order[first:last] for first, last in _runs(ends)):
        before: deque[tuple[int, Set[int]]] = deque(maxlen=MOST_COMPARED)
        for row in rows.tolist():
            own = terms_of(row)
            for other, theirs in before:
                first, second = sorted((root(of[row]), root(of[other])))
                if first != second and alike(own, theirs):
                    parent[second] = first
            before.append((row, own))
    roots = np.array([root(issue) for issue in range(len(parent))], np.int64)
    return np.unique(roots, return_inverse=True)[1][issues].astype(np.int32) if len(issues) else issues.astype(np.int32)


def _runs(ends: Array) -> list[tuple[int, int]]:
    """The spans of more than one record that share a title; `ends`: the last place of each span."""
    starts = np.concatenate([[0], ends[:-1] + 1])
    several = ends > starts
    return list(zip(starts[several].tolist(), (ends[several] + 1).tolist(), strict=True))


def plain_title(title: str) -> str:
    """Without versions, marks and letter case."""
    return _NO_WORD.sub(" ", _VERSION.sub(" ", clean(title).casefold())).strip()


def alike(one: Set[int], other: Set[int]) -> bool:
    both = len(one & other)
    return bool(both) and both / (len(one) + len(other) - both) >= ALIKE
