"""Here is an article's bytes; give me its records and remarks."""

from __future__ import annotations

from collections.abc import Sequence

from kb.articles.draft import Draft, Part
from kb.articles.errors import errors_in
from kb.articles.frontmatter import FrontMatter, read_front_matter
from kb.articles.kinds import REMARK_KINDS
from kb.articles.lines import Line, classify
from kb.articles.own import read_own_form
from kb.articles.source import filed_lang, read_lines, slug_of, suffix_lang
from kb.records import Article, IssueRecord, Lang, Source
from kb.scraped.labels import role_of
from kb.scraped.project import name_project
from kb.scraped.reader import page_tags, read_any_form
from kb.text import detect_lang

__all__ = ["REMARK_KINDS", "parse"]


def parse(data: bytes, *, path: str) -> Article:
    """An article's records in order, and a remark for what is in none of them.

    `path` is POSIX and relative to the articles folder. Raises ArticleError when the bytes cannot be an article.
    """
    slug = slug_of(path)
    raw = read_lines(data, path=path)
    front = read_front_matter(raw)
    lines, remarks = classify(raw, front.body)
    remarks = [*front.remarks, *remarks]
    lang = _lang(path, front, lines)
    front_title = front.first("title")
    own = read_own_form(lines, role_of=role_of, titled=bool(front_title))
    if own is not None:
        title, drafts, more = own
        opening: list[str] = []
        whole = ""
    else:
        title, drafts, more, opening = read_any_form(lines, front_title=front_title)
        whole = "\n".join(line.text for line in lines if line.kind not in ("furniture", "code"))[:20_000]
    title = title or front_title
    remarks = sorted([*remarks, *more], key=lambda remark: remark.line)
    tags = [*front.all("tags", "categories"), *page_tags(remarks)]
    stated = front.all("project", "projects", "product", "products", "software", "component", "repo", "repository")
    project = name_project(stated, title, opening, tags, whole)
    records = tuple(
        _record(draft, slug=slug, number=n, lang=lang, path=path, front=front, project=draft.project or project)
        for n, draft in enumerate(drafts, 1)
    )
    return Article(path, slug, lang, title, records, tuple(remarks), front.draft)


def _lang(path: str, front: FrontMatter, lines: Sequence[Line]) -> Lang:
    filed = filed_lang(path)
    if filed:
        return filed
    stated = front.first("lang", "language").lower()[:2]
    if stated == "zh":
        return "zh"
    if stated == "en":
        return "en"
    return suffix_lang(path) or detect_lang(
        "\n".join(line.text for line in lines if line.kind not in ("code", "fence"))
    )


def _record(
    draft: Draft, *, slug: str, number: int, lang: Lang, path: str, front: FrontMatter, project: str | None
) -> IssueRecord:
    issue = f"{slug}#{number}"
    errors = draft.errors or errors_in(draft.title, draft.symptom)
    return IssueRecord(
        id=f"{issue}/{lang}",
        issue=issue,
        lang=lang,
        project=project,
        title=" ".join(draft.title.split()),
        symptom=_join(draft.symptom),
        cause=_join(draft.cause),
        fix=_join(draft.fix),
        errors=tuple(errors),
        aliases=tuple(dict.fromkeys(draft.aliases)),
        versions=front.all("versions", "version"),
        tags=front.all("tags"),
        sources=front.all("sources", "source"),
        source=Source(path, draft.first, draft.last),
    )


def _join(parts: Sequence[Part]) -> str:
    return "\n\n".join(text for part in parts if (text := part.render()))
