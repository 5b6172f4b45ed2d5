"""Writes a draft as an article in our own form.

Markup of a source must not break the structure of the article. So headings in a body become lower headings, and fences
are closed. At the end the article is parsed: a body that does not come back as it was is put into a fence, where
nothing is markup.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from kb.articles.folded import OPENING
from kb.articles.own import OWN_LABELS
from kb.errors import ArticleError
from kb.importers.mask import mask_secrets, tidy
from kb.records import Article, Lang
from kb.scraped import parse
from kb.text import fences

__all__ = ["DraftArticle", "DraftIssue", "compose", "contained", "fenced", "one_line", "slug_from"]

MAX_TITLE = 200
MAX_LINE = 400  # characters of a tag, version or address

_HEADING = re.compile(r"( {0,3}(?:(?:[-*+>]|\d{1,9}[.)])[ \t]{0,4}){0,6})(#{1,6})(?=[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(?:> {0,3}){0,6}(?:={1,200}|-{1,200})[ \t]{0,40}\Z")
_TICKS = re.compile(r"`{3,}")
_NOT_SLUG = re.compile(r"[^a-z0-9]{1,400}")

_NAMES: dict[Lang, tuple[str, str, str, str, str]] = {
    "en": ("Symptom", "Cause", "Fix", "Asked as", "Project"),
    "zh": ("现象", "原因", "解决方案", "常见问法", "项目"),
}
_LEFT: dict[Lang, tuple[str, str]] = {
    "en": ("<to write: what one sees; the source does not say it in words>", "1. <to write: the source names no fix>"),
    "zh": ("<待写：看到了什么；来源没有用文字说明>", "1. <待写：来源没有给出解决办法>"),
}
_TO_WRITE: dict[Lang, str] = {"en": "to write: ", "zh": "待写："}


@dataclass(frozen=True, slots=True)
class DraftIssue:
    """One issue of a draft. Symptom, cause and fix are markdown; empty when the source does not name them."""

    title: str
    symptom: str
    cause: str
    fix: str
    aliases: tuple[str, ...] = ()
    project: str | None = None
    """only when it differs from the article's"""
    open_fix: str = ""
    """what to say in the place of an empty fix, instead of that the source names none"""


@dataclass(frozen=True, slots=True)
class DraftArticle:
    slug: str
    lang: Lang
    title: str
    project: str | None
    tags: tuple[str, ...]
    versions: tuple[str, ...]
    sources: tuple[str, ...]
    updated: str
    """a date as 2026-01-31, or empty"""
    issues: tuple[DraftIssue, ...]
    address: str = ""
    """URL of the page or thread, by which a second import recognises it; empty when unknown"""
    folded: str = ""
    """the folded part (`kb.articles.folded`), written behind the article"""


def compose(draft: DraftArticle) -> str:
    """The text of the article. The parser reads it as one record for each issue, in order, with title, symptom, cause,
    fix and aliases as `contained` returns them. An empty symptom or fix becomes a placeholder of `kb new`.

    Raises ArticleError for a draft without issues.
    """
    if not draft.issues:
        raise ArticleError("the draft has no issue", path=f"{draft.slug}.md")
    for all_fenced in (False, True):
        issues = [_shaped(issue, draft.lang, all_fenced) for issue in draft.issues]
        text = "\n\n".join([_front(draft), f"# {_title(draft.title)}", *(_laid_out(one, draft.lang) for one in issues)])
        if _says(parse(f"{text}\n\n{draft.folded}".encode(), path=f"{draft.lang}/{draft.slug}.md"), issues):
            return f"{text}\n\n{draft.folded}\n" if draft.folded else text + "\n"
    raise ArticleError("cannot be written in this project's form", path=f"{draft.slug}.md")


def contained(markdown: str) -> str:
    """The text with lower headings and closed fences; as a whole in a fence when that is not enough."""
    text = _trimmed("\n".join(_tamed(_plain(markdown))))
    if not text or _is_contained(text):
        return text
    return fenced(text)


def _plain(markdown: str) -> str:
    """Without secrets and control characters, and without the mark of a folded part: that one is the importer's."""
    return tidy(mask_secrets(markdown)).replace(OPENING, OPENING.replace(":", ": "))


def fenced(text: str) -> str:
    longest = max((len(found) for found in _TICKS.findall(text)), default=2)
    ticks = "`" * (longest + 1)
    return f"{ticks}\n{_trimmed(text)}\n{ticks}"


def one_line(text: str, most: int = MAX_LINE) -> str:
    """The text in one line, without secrets, at most `most` characters."""
    return " ".join(tidy(mask_secrets(text[: most * 8])).split())[:most].strip()


def slug_from(*parts: str, most: int = 72) -> str:
    """Lower-case ASCII words joined by hyphens, at most `most` characters; empty when there are no such words."""
    words = _NOT_SLUG.sub(" ", " ".join(part[:400] for part in parts).lower()).split()
    slug = ""
    for word in words:
        longer = f"{slug}-{word}" if slug else word[:most]
        if len(longer) > most:
            break
        slug = longer
    return slug


def _front(draft: DraftArticle) -> str:
    lists = (("tags", draft.tags), ("versions", draft.versions), ("sources", draft.sources))
    lines = ["---", *([f"project: {_quoted(draft.project)}"] if draft.project else [])]
    for name, values in lists:
        texts = dict.fromkeys(text for value in values if (text := one_line(value)))
        lines.append(f"{name}: [{', '.join(map(_quoted, texts))}]")
    lines += [f"updated: {draft.updated}"] if draft.updated else []
    return "\n".join([*lines, "status: draft", "---"])


def _quoted(text: str) -> str:
    return json.dumps(one_line(text), ensure_ascii=False)  # a JSON string of printable characters is a YAML string


def _title(text: str) -> str:
    text = one_line(text, MAX_TITLE).strip("# >\\")
    return text or "Untitled"


def _shaped(issue: DraftIssue, lang: Lang, all_fenced: bool) -> DraftIssue:
    title = _title(issue.title)
    if title.casefold().rstrip(":： ") in OWN_LABELS:
        title = f"{title} ({issue.project or 'issue'})"
    put = (lambda text: fenced(_plain(text)) if text.strip() else "") if all_fenced else contained
    left = f"1. <{_TO_WRITE[lang]}{issue.open_fix}>" if issue.open_fix else _LEFT[lang][1]
    symptom, fix = put(issue.symptom) or _LEFT[lang][0], put(issue.fix) or left
    asked = tuple(dict.fromkeys(text for way in issue.aliases if (text := one_line(way).strip("-*+•# >"))))
    return DraftIssue(title, symptom, put(issue.cause), fix, asked, one_line(issue.project or "", 80) or None)


def _laid_out(issue: DraftIssue, lang: Lang) -> str:
    symptom, cause, fix, asked, project = _NAMES[lang]
    parts = [f"## {issue.title}", *([f"{project}: {issue.project}"] if issue.project else [])]
    parts += [f"### {symptom}", issue.symptom]
    parts += [f"### {cause}", issue.cause] if issue.cause else []
    parts += [f"### {fix}", issue.fix]
    parts += [f"### {asked}", "\n".join(f"- {way}" for way in issue.aliases)] if issue.aliases else []
    return "\n\n".join(parts)


def _says(article: Article, issues: list[DraftIssue]) -> bool:
    found = [(r.title, r.symptom, r.cause, r.fix) for r in article.records]
    return found == [(one.title, one.symptom, one.cause, one.fix) for one in issues]


def _is_contained(text: str) -> bool:
    """Do the sections around it stay what they are, and it as it is?"""
    after = "```\n# a comment\n```\n\n1. a step"
    probe = f"# T\n\n## I\n\n### Symptom\n\n{text}\n\n### Fix\n\n{after}\n\n## J\n\n### Symptom\n\nx\n"
    found = [(r.title, r.symptom, r.fix) for r in parse(probe.encode(), path="en/probe.md").records]
    return found == [("I", text, after), ("J", "x", "")]


def _tamed(markdown: str) -> list[str]:
    """Its lines: headings below the form's, underlines of headings empty, every fence closed."""
    kept: list[str] = []
    for block in fences.split(markdown):
        if isinstance(block, fences.Code):
            kept += block.lines if block.closed else [*block.lines, block.closing]
            continue
        for line in block.lines:
            if _UNDERLINE.match(line):
                kept.append("")
            elif found := _HEADING.match(line):
                kept.append(f"{found[1]}{'#' * min(6, len(found[2]) + 3)}{line[found.end() :]}")
            else:
                kept.append(line)
    return kept


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")
