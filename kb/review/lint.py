"""Finds problems in a folder of articles by the rules of `kb.review.rules`. Changes nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path

from kb.articles.assumed import Assumed
from kb.records import Problem
from kb.review.files import HAS_FOLD, IS_DRAFT, stale
from kb.review.pages import Pages
from kb.review.rules import RULES, Choice

__all__ = ["HAS_FOLD", "IS_DRAFT", "Problem", "review"]


def review(
    folder: Path, choice: Choice | None = None, *, assumed: Assumed | None = None, today: date | None = None
) -> list[Problem]:
    """The problems of the articles below `folder`, by path and line. Problems of drafts are warnings.

    `choice`: which rules count; `assumed`: project and language of articles that do not say them; `today`: the day by
    which an article is stale. Raises ArticleError when `folder` is no folder.
    """
    choice = choice or Choice()
    pages = Pages.read(folder, assumed)
    drafts = {page.path for page in pages.pages if page.article.draft}
    duplicates = {page.path for page in pages.pages if page.duplicate}
    problems: list[Problem] = []
    for rule in RULES.values():
        if rule.find is None or not choice.counts(rule):
            continue
        find = partial(stale, today=today) if rule.find is stale else rule.find
        for path, line, level, message in find(pages):
            if path in duplicates and rule.name != "duplicate-draft":
                continue
            if choice.counts(rule, house=path in pages.house):
                problems.append(Problem(path, line, level, message, rule.name))
    problems = [replace(one, level="warning") if one.path in drafts else one for one in problems]
    return sorted(problems, key=lambda one: (one.path, one.line or 0))
