"""Rules about all articles together: ids, titles and texts that occur twice, and two spellings of a project."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from kb.records import IssueRecord
from kb.review.files import unfinished
from kb.review.pages import Found, Pages, at
from kb.text import HAN

__all__ = ["WORD", "duplicate", "same_id", "same_title", "spelling"]

WORD = re.compile(rf"[{HAN}]|[^\W{HAN}]+")
_SHINGLE = 5  # words
_HOLDERS = 8  # of the records with a shingle, how many are compared with a later one
_ALIKE = 0.5  # Jaccard similarity of the shingles from which two issues are probably one


def same_id(pages: Pages) -> Iterator[Found]:
    """Once for each file: the rest of it clashes, too."""
    path_of: dict[str, str] = {}
    told: set[str] = set()
    for record in pages.records:
        path = record.source.path
        first = path_of.setdefault(record.id.casefold(), path)
        if first != path and path not in told:
            told.add(path)
            yield at(record, "error", f"{record.id} is in {first} already")


def same_title(pages: Pages) -> Iterator[Found]:
    """Two issues under one title: an answer does not show which of the two it is."""
    first: dict[tuple[str, str], IssueRecord] = {}
    for record in pages.records:
        same = first.setdefault((" ".join(record.title.casefold().split()), record.lang), record)
        if same.issue != record.issue:
            yield at(record, "warning", f"{record.id} has the title of {same.id}: {record.title}")


def spelling(pages: Pages) -> Iterator[Found]:
    """Projects with two spellings: the rarer one is the mistake."""
    counts = Counter(record.project for record in pages.records if record.project)
    usual: dict[str, str] = {}
    for name in sorted(counts, key=lambda name: (-counts[name], name)):
        usual.setdefault(name.casefold(), name)
    for record in pages.records:
        if record.project and usual[record.project.casefold()] != record.project:
            yield at(record, "warning", f"{record.project} is written {usual[record.project.casefold()]} elsewhere")


def duplicate(pages: Pages) -> Iterator[Found]:
    """Records whose text is mostly that of an earlier record of another issue in the same language."""
    records = [record for page in pages.pages if not unfinished(page) for record in page.article.records]
    shingles: list[set[int]] = []
    holders: dict[int, list[int]] = defaultdict(list)
    for row, record in enumerate(records):
        text = f"{record.title}\n{record.symptom}\n{record.cause}\n{record.fix}"
        words = [word.casefold() for word in WORD.findall(text)]
        shingles.append({hash(tuple(words[i : i + _SHINGLE])) for i in range(max(1, len(words) - _SHINGLE + 1))})
        shared: Counter[int] = Counter()
        for run in shingles[row]:
            shared.update(holders[run])
            if len(holders[run]) < _HOLDERS:  # a common shingle costs no more than a rare one
                holders[run].append(row)
        near = [r for r, _ in shared.most_common(_HOLDERS)]
        near = [r for r in near if records[r].lang == record.lang and records[r].issue != record.issue]
        for other in near[:1]:
            alike = len(shingles[row] & shingles[other]) / len(shingles[row] | shingles[other])
            if alike >= _ALIKE:
                same = records[other].id
                yield at(record, "warning", f"{record.id} is {alike:.0%} the same as {same}; one of them is enough")
