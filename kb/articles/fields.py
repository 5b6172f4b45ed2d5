"""The lines of one issue, sorted by field, before they become an `IssueRecord`.

`kb.articles.own` and the free-form reader of `kb.scraped` fill an `IssueFields`; `kb.scraped.parse` turns it into a
record. A field is a list of parts, so that text from several places of an article can go into one field.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kb.articles.lines import Line
from kb.records import Branch

__all__ = ["IssueFields", "Part", "slice_of"]


@dataclass(slots=True)
class Part:
    """Some text of one field: whole `lines`, or a piece of a line (`text`)."""

    lines: Sequence[Line] = ()
    text: str = ""

    def render(self) -> str:
        return self.text or slice_of(self.lines)


@dataclass(slots=True)
class IssueFields:
    title: str
    first: int
    """number of the issue's first line, from 1"""
    last: int
    """number of its last line"""
    symptom: list[Part] = field(default_factory=list)
    cause: list[Part] = field(default_factory=list)
    fix: list[Part] = field(default_factory=list)
    summary: list[Part] = field(default_factory=list)
    """only of an article in our own form, as are all up to `conditions`"""
    only_when: list[Part] = field(default_factory=list)
    triage: list[Part] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)
    """the bullets of `triage`"""
    confusable: list[Part] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    """what the bullets of `only_when` begin with"""
    errors: list[str] = field(default_factory=list)
    """error lines; empty: `kb.articles.errors` finds them in title and symptom"""
    aliases: list[str] = field(default_factory=list)
    """how people put the problem who have no error line"""
    project: str | None = None
    """stated by the issue itself; None: the project of the article"""


def slice_of(lines: Iterable[Line]) -> str:
    """The lines as they stand in the article, without the blank ones at either end."""
    texts = [line.text.rstrip() for line in lines]
    while texts and not texts[0]:
        texts.pop(0)
    while texts and not texts[-1]:
        texts.pop()
    return "\n".join(texts)
