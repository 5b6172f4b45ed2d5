"""Parses one article, in this project's own form or in any other, into records and remarks.

An article in our own form is read exactly, by `kb.articles.own`. Only a page in another form needs `kb.scraped.reader`
and what it stands on; these modules are imported when such a page comes, so that own articles do not pay for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kb.articles.errors import errors_in
from kb.articles.fields import IssueFields, Part
from kb.articles.folded import without_fold
from kb.articles.frontmatter import FrontMatter, read_front_matter
from kb.articles.lines import Line, classify
from kb.articles.mdx import without_jsx
from kb.articles.own import read_own_form
from kb.articles.source import filed_lang, read_lines, slug_of, suffix_lang
from kb.articles.underlined import without_tildes
from kb.records import Article, IssueRecord, Lang, Source
from kb.text import detect_lang

if TYPE_CHECKING:
    from kb.scraped.reader import Reading

__all__ = ["parse", "parse_and_tell"]

_PROJECT_KEYS = ("project", "projects", "product", "products", "software", "component", "repo", "repository")


def parse(
    data: bytes, *, path: str, every_question: bool = False, project: str | None = None, lang: Lang | None = None
) -> Article:
    """The records of an article in its order, and a remark for every place that is in none of them.

    `path` is POSIX and relative to the articles folder; slug and language come from it. `every_question`: on a page in
    another form than ours, a question about no failure makes a record, too. `project` and `lang`: of an article that
    does not state its own. Raises ArticleError when the bytes cannot be an article (not UTF-8, binary, empty, larger
    than 2 MB) or the file name cannot be a slug.
    """
    return parse_and_tell(data, path=path, every_question=every_question, project=project, lang=lang)[0]


def parse_and_tell(
    data: bytes, *, path: str, every_question: bool = False, project: str | None = None, lang: Lang | None = None
) -> tuple[Article, Reading | None]:
    """As `parse`, and how the page was read; None for an article in our own form."""
    slug = slug_of(path)
    raw = without_fold(read_lines(data, path=path))
    if path.lower().endswith(".mdx"):
        raw = without_jsx(raw)
    front = read_front_matter(raw)
    lines, remarks = classify(raw, front.body)
    lang = _stated_lang(path, front) or lang or _detected_lang(lines)
    project = next((name.strip() for name in front.all(*_PROJECT_KEYS) if name.strip()), project)
    own = read_own_form(lines, role_of=_role_of, titled=bool(front.first("title")))
    reading = None
    if own is not None:
        title, issues, more = own
        title = title or front.first("title")
        for issue in issues:
            issue.errors = issue.errors or errors_in(issue.title, issue.symptom)
        if project is None and not all(issue.project for issue in issues):
            project = _guess_project(front, title, [], path)
    else:
        from kb.scraped.reader import read_page, texts_of

        if (plain := without_tildes(raw)) != raw:
            lines, remarks = classify(plain, front.body)
        reading = read_page(lines, front_title=front.first("title"), every_question=every_question)
        title, issues, more = reading.title, reading.fields(), reading.remarks()
        project = project or _guess_project(front, title, texts_of(reading.blocks, reading.tags), path)
    records = tuple(
        _record(issue, slug=slug, number=n, lang=lang, path=path, front=front, project=issue.project or project)
        for n, issue in enumerate(issues, 1)
    )
    remarks = sorted([*front.remarks, *remarks, *more], key=lambda remark: remark.line)
    return Article(path, slug, lang, title, records, tuple(remarks), front.draft, own_form=own is not None), reading


def _role_of(heading: str) -> str:
    """The role of a heading that is no label of our own form."""
    from kb.scraped.labels import role_of

    return role_of(heading)


def _guess_project(front: FrontMatter, title: str, texts: Sequence[str], path: str) -> str | None:
    from kb.scraped.project import guess_project

    return guess_project(title, texts, front.all("tags", "categories"), path)


def _stated_lang(path: str, front: FrontMatter) -> Lang | None:
    stated = front.first("lang", "language").lower()[:2]
    in_front: Lang | None = "zh" if stated == "zh" else "en" if stated == "en" else None
    return filed_lang(path) or in_front or suffix_lang(path)


def _detected_lang(lines: Sequence[Line]) -> Lang:
    return detect_lang("\n".join(line.text for line in lines if line.kind not in ("code", "fence")))


def _record(
    fields: IssueFields, *, slug: str, number: int, lang: Lang, path: str, front: FrontMatter, project: str | None
) -> IssueRecord:
    issue = f"{slug}#{number}"
    return IssueRecord(
        id=f"{issue}/{lang}",
        issue=issue,
        lang=lang,
        project=project,
        title=" ".join(fields.title.split()),
        summary=" ".join(_join(fields.summary).split()),
        symptom=_join(fields.symptom),
        cause=_join(fields.cause),
        fix=_join(fields.fix),
        triage=_join(fields.triage),
        only_when=_join(fields.only_when),
        confusable=_join(fields.confusable),
        errors=tuple(fields.errors),
        conditions=tuple(fields.conditions),
        branches=tuple(fields.branches),
        aliases=tuple(dict.fromkeys(fields.aliases)),
        versions=front.all("versions", "version"),
        tags=front.all("tags"),
        sources=front.all("sources", "source"),
        updated=front.updated,
        source=Source(path, fields.first, fields.last),
    )


def _join(parts: Sequence[Part]) -> str:
    return "\n\n".join(text for part in parts if (text := part.render()))
