"""Here are the lines an issue owns; keep them apart by field until the record is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kb.articles.lines import Line

__all__ = ["Draft", "Part", "slice_of"]


@dataclass(slots=True)
class Part:
    """A run of lines that belongs to one field, or one sentence of a line (`text`)."""

    lines: Sequence[Line] = ()
    text: str = ""

    def render(self) -> str:
        return self.text or slice_of(self.lines)


@dataclass(slots=True)
class Draft:
    title: str
    first: int
    last: int
    symptom: list[Part] = field(default_factory=list)
    cause: list[Part] = field(default_factory=list)
    fix: list[Part] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)
    project: str | None = None
    own: bool = False
    """in our own form: nothing in it is guessed"""


def slice_of(lines: Iterable[Line]) -> str:
    """The lines as they stand in the article, without the blank ones at either end."""
    texts = [line.text.rstrip() for line in lines]
    while texts and not texts[0]:
        texts.pop(0)
    while texts and not texts[-1]:
        texts.pop()
    return "\n".join(texts)
