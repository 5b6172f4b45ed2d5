"""Makes a draft of each scraped page, with the issues that `kb.scraped.parse` finds in it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from kb.articles import MAX_BYTES
from kb.errors import ArticleError
from kb.importers.form import DraftArticle, DraftIssue, fenced, slug_from
from kb.importers.web import Page, read_html
from kb.logs.errors import error_lines
from kb.records import IssueRecord
from kb.scraped import parse
from kb.text import fences

__all__ = ["find_pages", "page_draft"]

_HTML = (".html", ".htm", ".xhtml")
_TEXT = (".md", ".markdown", ".txt")
_BOILERPLATE = re.compile(
    r"(?i)[ \t>]{0,8}(?:[-*+] )?(?:"
    r"(?:[^\s,，。:：]{1,30} {1,3})?(?:发表于|发布于|回复于|编辑于)[:： ]{0,3}"
    r"\d{2,4}[-/.年]\d{1,2}[-/.月]\d{1,2}日?(?:[ T]{1,3}\d{1,2}:\d\d(?::\d\d)?)?"
    r"(?:[ \t|·]{1,5}(?:只看该作者|只看楼主|倒序浏览|阅读模式|显示全部楼层|来自\S{1,20})){0,5}"
    r"|(?:share|tweet|pin)(?: this)? (?:on|to|via) (?:twitter|x|facebook|linkedin|reddit|whatsapp|telegram|weibo|"
    r"wechat|email|hacker news|pinterest)"
    r"|分享[到至][:： ]{0,3}"
    r"(?:(?:微信|新浪微博|微博|朋友圈|QQ空间|QQ|知乎|豆瓣|Twitter|Facebook)[、,，/| ]{0,3}){1,8}"
    r")[ \t]{0,8}\Z"
)


def find_pages(paths: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Each page's path, and its name relative to the folder it was found in. Links and hidden files are skipped."""
    for path in paths:
        if not path.is_dir():
            yield path, path.name
            continue
        for root, folders, names in os.walk(path):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                file = Path(root, name)
                if (
                    name.lower().endswith((*_HTML, *_TEXT))
                    and name[0] != "."
                    and not file.is_symlink()
                    and file.is_file()
                ):
                    yield file, file.relative_to(path).as_posix()


def page_draft(data: bytes, name: str, project: str | None = None) -> DraftArticle:
    """`name`: the path of the page; its suffix decides between HTML and text.

    Raises ArticleError when the page is unreadable, too large or has no issue, ExtraMissing for HTML without the extra.
    """
    stem = name.rpartition(".")[0] or name
    page = Page("", "", "")
    if name.lower().endswith(_HTML):
        if len(data) > MAX_BYTES:
            raise ArticleError(f"larger than {MAX_BYTES:,} bytes ({len(data):,})", path=name)
        if b"\0" in data and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise ArticleError(
                "not HTML: it has bytes that no text has", path=name, hint="save the page as HTML or text"
            )
        page = read_html(data)
        data = page.markdown.encode()
    data = _without_boilerplate(data)
    try:
        article = parse(data, path="page.md")  # `lang` of HTML is often that of the site's template: the text decides
    except ArticleError as error:
        raise ArticleError(error.message, path=name, line=error.line, hint=error.hint) from None
    if not article.records:
        raise ArticleError("no issue was found in it", path=name, hint="kb parse --explain")
    first = article.records[0]
    owner = project or first.project
    return DraftArticle(
        slug=_slug(stem, f"{article.title} {page.title}"),
        lang=article.lang,
        title=first.title if len(article.records) == 1 else article.title or page.title or first.title,
        project=owner,
        tags=first.tags,
        versions=first.versions,
        sources=tuple(dict.fromkeys((*((page.address,) if page.address else ()), *first.sources))),
        updated="",
        issues=tuple(
            _draft_issue(record, None if project or record.project == owner else record.project)
            for record in article.records
        ),
        address=page.address,
    )


def _without_boilerplate(data: bytes) -> bytes:
    """Blanks the lines that a forum or blog adds to every page, outside of code."""
    lines: list[str] = []
    for block in fences.split(data.decode("utf-8", "surrogateescape")):
        code = isinstance(block, fences.Code)
        lines += ["" if not code and _BOILERPLATE.match(line) else line for line in block.lines]
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def _slug(name: str, title: str) -> str:
    """From the name of the page. A name that is not ASCII gets a hash, so that two such pages differ."""
    if name.isascii():
        return slug_from(name) or slug_from(title)
    words = slug_from(name, most=60) or slug_from(title, most=60) or "page"
    return f"{words}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:6]}"


def _draft_issue(record: IssueRecord, project: str | None) -> DraftIssue:
    """Error lines that the symptom does not show are put above it."""
    shown = error_lines(record.symptom)  # an assertion is told with its statement, which stands a line above it
    lost = [
        line for line in record.errors if line not in shown and line not in record.symptom and line not in record.title
    ]
    symptom = "\n\n".join([*([fenced("\n".join(lost))] if lost else []), *([record.symptom] if record.symptom else [])])
    return DraftIssue(record.title, symptom, record.cause, record.fix, record.aliases, project)
