"""Rules about an article and its translation. Both belong to one slug; `kb.index.twins` says which issues are one."""

from __future__ import annotations

from collections.abc import Iterator

from kb.articles.source import slug_of
from kb.errors import ArticleError
from kb.records import Article, IssueRecord
from kb.review.pages import Found, Pages, at
from kb.text.steps import steps

__all__ = ["no_translation", "twins_differ", "twins_errors", "twins_fields"]

_MOST_NAMED = 3


def no_translation(pages: Pages) -> Iterator[Found]:
    unread = _unread(pages)
    for slug, twins in pages.twins.items():
        if len(twins) == 1 and slug not in unread:
            (article,) = twins.values()
            other = "zh" if article.lang == "en" else "en"
            yield Found(article.path, None, "warning", f"{slug} has no translation in {other}")


def twins_differ(pages: Pages) -> Iterator[Found]:
    """Articles of one slug that do not tell the same issues in the same order."""
    for en, zh in _pairs(pages):
        house = {en.path, zh.path} & pages.house
        told = [record.issue for record in en.records], [record.issue for record in zh.records]
        if told[0] == told[1] or (not house and not (told[0] and told[1])):  # no-issue says enough
            continue
        message = f"{len(zh.records)} issues here, {len(en.records)} in {en.path}"
        if en.records and zh.records:
            message += f": {len(set(told[0]) & set(told[1]))} are the same"
        if alone := [record for record in zh.records if record.issue not in told[0]]:
            message += f"; only here {_named(alone)}"
        if alone := [record for record in en.records if record.issue not in told[1]]:
            message += f"; only there {_named(alone)}"
        yield Found(zh.path, None, "error" if house else "warning", message)


def twins_fields(pages: Pages) -> Iterator[Found]:
    """What both tellings of an issue must have alike: the same project, conditions, ways out and marks."""
    for one, two in _tellings(pages):
        if one.project != two.project:
            yield at(two, "warning", f"the project is {two.project} here, {one.project} in {one.source.path}")
        if one.branches != two.branches:
            yield at(two, "error", f"{two.id} and {one.id} lead to different issues, or on different conditions")
        if bool(one.summary) != bool(two.summary):
            yield at(two if one.summary else one, "warning", f"only one language of {one.issue} has In short (一句话)")
        if one.summary and [step.basis for step in steps(one.fix)] != [step.basis for step in steps(two.fix)]:
            yield at(
                two, "warning", f"the steps of {two.id} and {one.id} have different marks of what stands behind them"
            )
        if set(one.conditions) != set(two.conditions):
            yield at(two, "error", f"{two.id} and {one.id} have different conditions")


def twins_errors(pages: Pages) -> Iterator[Found]:
    for one, two in _tellings(pages):
        if bool(one.errors) != bool(two.errors):
            bare, full = (one, two) if two.errors else (two, one)
            yield at(bare, "warning", f"{bare.id} has no error line, {full.id} has")
        elif one.errors and not {*map(str.strip, one.errors)} & {*map(str.strip, two.errors)}:
            yield at(two, "warning", f"{two.id} shares no error line with {one.id}; are the issues in the same order?")


def _pairs(pages: Pages) -> Iterator[tuple[Article, Article]]:
    """English and Chinese; not a draft with a finished one, and none of which a further file cannot be read."""
    unread = _unread(pages)
    for slug, twins in sorted(pages.twins.items()):
        if len(twins) == 2 and slug not in unread and twins["en"].draft == twins["zh"].draft:
            yield twins["en"], twins["zh"]


def _tellings(pages: Pages) -> Iterator[tuple[IssueRecord, IssueRecord]]:
    """The English and the Chinese record of each issue that both have."""
    for en, zh in _pairs(pages):
        chinese = {record.issue: record for record in zh.records}
        for record in en.records:
            if record.issue in chinese:
                yield record, chinese[record.issue]


def _unread(pages: Pages) -> set[str]:
    slugs = set()
    for one in pages.unread:
        try:
            slugs.add(slug_of(one.path))
        except ArticleError:
            continue
    return slugs


def _named(records: list[IssueRecord]) -> str:
    more = len(records) - _MOST_NAMED
    names = (f"#{record.issue.rpartition('#')[2]} ({record.title[:60]})" for record in records[:_MOST_NAMED])
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")
