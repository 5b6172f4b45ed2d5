"""Counts what a folder of articles holds, by language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kb.records import Article
from kb.review.among import WORD
from kb.review.pages import Pages

__all__ = ["Tally", "tally"]


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts for one language; with `lang` "all", for all languages."""

    lang: str
    articles: int
    issues: int
    records: int
    projects: int
    with_errors: int
    """records with a literal error line"""
    without_errors: int
    with_fix: int
    mean_words: float
    """mean number of words in symptom, cause and fix; a Chinese character counts as a word"""
    sources: int
    """different ones"""

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def tally(folder: Path) -> list[Tally]:
    """The counts for each language with articles, then for all. Unreadable articles do not count."""
    articles = [page.article for page in Pages.read(folder).pages]
    groups = [(str(lang), [a for a in articles if a.lang == lang]) for lang in sorted({a.lang for a in articles})]
    return [_tally(lang, group) for lang, group in [*groups, ("all", articles)]]


def _tally(lang: str, articles: Sequence[Article]) -> Tally:
    records = [record for article in articles for record in article.records]
    words = sum(len(WORD.findall(f"{r.symptom}\n{r.cause}\n{r.fix}")) for r in records)
    return Tally(
        lang=lang,
        articles=len(articles),
        issues=len({record.issue for record in records}),
        records=len(records),
        projects=len({record.project.casefold() for record in records if record.project}),
        with_errors=sum(bool(record.errors) for record in records),
        without_errors=sum(not record.errors for record in records),
        with_fix=sum(bool(record.fix) for record in records),
        mean_words=round(words / max(1, len(records)), 1),
        sources=len({source for record in records for source in record.sources}),
    )
