"""The articles of a folder as the rules of `kb check` see them, and what a rule says of one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from kb.articles import is_draft, peek
from kb.articles.assumed import Assumed
from kb.articles.folded import has_fold, without_fold
from kb.articles.folder import Skipped, list_articles, read_article
from kb.errors import ArticleError
from kb.index.twins import join_twins
from kb.records import Article, IssueRecord, Lang
from kb.scraped import parse

__all__ = ["Found", "Page", "Pages", "Unread", "at"]

Level = Literal["error", "warning"]


class Found(NamedTuple):
    """What a rule found."""

    path: str
    line: int | None
    level: Level
    message: str


def at(record: IssueRecord, level: Level, message: str) -> Found:
    return Found(record.source.path, record.source.first_line, level, message)


_OUR_KEYS = ("project", "versions", "sources", "updated")


class Page(NamedTuple):
    article: Article
    text: str
    """without the thread that the draft of an import carries at its end"""
    house: bool
    """written for kb: the rules of the house count"""
    folded: bool = False
    """it carries such a thread"""

    @classmethod
    def of(cls, article: Article, text: str) -> Page:
        """Many a page has headings Symptom, Cause and Fix. One that was written for kb also has a section that only our
        form has, or our front matter."""
        ours = any(r.summary or r.aliases or r.triage or r.only_when or r.confusable for r in article.records)
        house = article.own_form and (ours or bool(peek(text.encode("utf-8", "replace")).first(*_OUR_KEYS)))
        return cls(article, "\n".join(without_fold(text.split("\n"))), house, has_fold(text))

    @property
    def path(self) -> str:
        return self.article.path

    @property
    def duplicate(self) -> bool:
        """A draft that tells what another article tells already: nothing else is looked for in it."""
        return self.article.draft and peek(self.text.encode("utf-8", "replace")).is_duplicate

    @property
    def duplicate_of(self) -> str:
        return peek(self.text.encode("utf-8", "replace")).duplicate_of


class Unread(NamedTuple):
    """An article that cannot be read."""

    error: ArticleError
    path: str
    draft: bool


@dataclass
class Pages:
    """All articles of a folder, with the ids that their issues have in an index."""

    pages: list[Page]
    """by path, drafts last: of two that clash, the draft gets the problem"""
    unread: list[Unread]
    skipped: list[Skipped]

    @classmethod
    def read(cls, folder: Path, assumed: Assumed | None = None) -> Pages:
        """Raises ArticleError when `folder` is no folder."""
        assumed = assumed or Assumed()
        paths, skipped = list_articles(folder)
        pages: list[Page] = []
        unread: list[Unread] = []
        for path in paths:
            data = b""
            try:
                data = read_article(folder, path)
                text = data.decode("utf-8-sig", "replace")
                pages.append(Page.of(parse(data, path=path, **assumed.of(path)), text))
            except ArticleError as error:
                unread.append(Unread(error, path, is_draft(data)))
        pages.sort(key=lambda page: page.article.draft)
        return cls(_as_in_an_index(pages), unread, skipped)

    @cached_property
    def records(self) -> list[IssueRecord]:
        return [record for page in self.pages for record in page.article.records]

    @cached_property
    def house(self) -> frozenset[str]:
        """The paths of the articles that were written for kb."""
        return frozenset(page.path for page in self.pages if page.house)

    @cached_property
    def twins(self) -> Mapping[str, Mapping[Lang, Article]]:
        """slug -> its articles by language; of several in one language the first"""
        twins: dict[str, dict[Lang, Article]] = defaultdict(dict)
        for page in self.pages:
            twins[page.article.slug].setdefault(page.article.lang, page.article)
        return twins


def _as_in_an_index(pages: list[Page]) -> list[Page]:
    served: dict[tuple[str, Lang], Article] = {}
    for page in pages:
        if not page.article.draft:
            served.setdefault((page.article.slug.casefold(), page.article.lang), page.article)
    joined, _ = join_twins({article.path: article.records for article in served.values()})
    return [
        page._replace(article=replace(page.article, records=tuple(joined.get(page.path, page.article.records))))
        for page in pages
    ]
