"""Rules about a file: can it be read, is it finished, do its links lead somewhere, is it still true?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from pathlib import PurePosixPath

from kb.articles import peek
from kb.articles.scaffold import PLACEHOLDER
from kb.review.pages import Found, Page, Pages, at
from kb.text import HIDDEN
from kb.text.fences import prose_lines
from kb.text.steps import steps

__all__ = [
    "HAS_FOLD",
    "IS_DRAFT",
    "dead_issue",
    "dead_link",
    "draft",
    "duplicate_draft",
    "folded",
    "hidden_text",
    "left_out",
    "stale",
    "to_write",
    "unfinished",
    "unreadable",
]

IS_DRAFT = "is a draft; remove `status: draft` after the review"
"""the message of the problem that every draft has"""

HAS_FOLD = "still holds the thread of its draft; remove the comment at its end (`kb review` does when it accepts)"
"""the message for an article whose status was removed by hand"""

_LINK = re.compile(r"(?:\]\(|^\s{0,3}\[[^\]\n]{1,100}\]:[ ]?)<?([^()\s:<>#]{1,200}\.mdx?)(?=[#>)\s]|$)", re.IGNORECASE)
_CODE = re.compile(r"`[^`\n]{0,300}`")
_ISSUE = re.compile(r"`([\w-]{1,100})#(\d{1,4})(?:/\w\w)?`")

_YEAR = 366  # days
_DATE = re.compile(r"\b(20\d\d)-(\d\d)(?:-(\d\d))?\b")
_THEIRS = re.compile(
    r"(?<![\w-])--[a-z][a-z0-9]*(?:-[a-z0-9]+){0,6}|(?<![\w./:])/(?:[\w.-]{1,60}/){1,8}[\w.-]{1,60}|\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+){1,6}="
)
"""in code: a flag, an absolute path, an environment variable that is set; whose they are may have changed them"""
_SPAN = re.compile(r"`([^`\n]{1,300})`")


def unreadable(pages: Pages) -> Iterator[Found]:
    for error, path, is_draft in pages.unread:
        yield Found(path, error.line, "warning" if is_draft else "error", error.message)


def left_out(pages: Pages) -> Iterator[Found]:
    for one in pages.skipped:
        yield Found(one.path, None, "warning", f"skipped: {one.reason}")


def draft(pages: Pages) -> Iterator[Found]:
    for page in pages.pages:
        if page.article.draft and not page.duplicate:
            yield Found(page.path, None, "warning", IS_DRAFT)


def duplicate_draft(pages: Pages) -> Iterator[Found]:
    """Drafts that `kb review` marked as a duplicate of an issue that is not there."""
    issues = {record.issue for record in pages.records}
    for page in pages.pages:
        if page.duplicate and page.duplicate_of not in issues:
            what = page.duplicate_of or "no issue"
            yield Found(page.path, None, "warning", f"is a duplicate of {what}, which is not there")


def folded(pages: Pages) -> Iterator[Found]:
    for page in pages.pages:
        if page.folded and not page.article.draft:
            yield Found(page.path, None, "error", HAS_FOLD)


def to_write(pages: Pages) -> Iterator[Found]:
    for page in pages.pages:
        for number, line in enumerate(page.text.splitlines(), 1):
            if left := PLACEHOLDER.search(line):
                yield Found(page.path, number, "error", f"is left to write: {left[0]}")


def hidden_text(pages: Pages) -> Iterator[Found]:
    """The first line of a page that says to a machine what no person sees."""
    for page in pages.pages:
        if found := HIDDEN.search(page.text):
            line = page.text.count("\n", 0, found.start()) + 1
            yield Found(page.path, line, "warning", f"holds characters that nobody sees (U+{ord(found[0]):04X})")


def unfinished(page: Page) -> bool:
    return PLACEHOLDER.search(page.text) is not None


def dead_link(pages: Pages) -> Iterator[Found]:
    """Links to articles that are not there."""
    known = {page.path for page in pages.pages} | {one.path for one in pages.unread}
    for page in pages.pages:
        here = PurePosixPath(page.path).parent
        for number, line in enumerate(prose_lines(page.text), 1):
            for link in _LINK.finditer(_CODE.sub("``", line)):
                parts: list[str] = []
                for part in (here / link[1]).parts:
                    if part == "..":
                        parts = parts[:-1]
                    else:
                        parts.append(part)
                if "/".join(parts) not in known:
                    yield Found(page.path, number, "error", f"the link to {link[1]} leads nowhere")


def dead_issue(pages: Pages) -> Iterator[Found]:
    """Ids of issues that their article does not have."""
    issues = {record.issue for record in pages.records}
    for page in pages.pages:
        for number, line in enumerate(prose_lines(page.text), 1):
            for name in _ISSUE.finditer(line):
                if name[1] in pages.twins and f"{name[1]}#{int(name[2])}" not in issues:
                    yield Found(page.path, number, "error", f"{name[1]} has no issue {name[2]}")


def stale(pages: Pages, today: date | None = None) -> Iterator[Found]:
    """Steps with a flag, a path or a variable of somebody's program that nobody has looked at for a year."""
    for page in pages.pages:
        front = peek(page.text.encode("utf-8", "replace"))
        checked = max(map(_day, _dates(" ".join((*front.all("updated"), *front.all("versions"))))), default=None)
        if checked is None or ((today or date.today()) - checked).days < _YEAR:
            continue
        for record in page.article.records:
            for number, step in enumerate(steps(record.fix), 1):
                code = [*_SPAN.findall(step.text), *_fenced(step.text)]
                if found := next((hit for text in code if (hit := _THEIRS.search(text))), None):
                    what = found[0].rstrip("=")
                    yield at(record, "warning", f"{record.id}: step {number} names `{what}`, last checked {checked}")
                    break  # one look at an issue finds the others


def _fenced(text: str) -> list[str]:
    return [line for line, prose in zip(text.split("\n"), prose_lines(text), strict=True) if line and not prose]


def _dates(text: str) -> list[tuple[str, ...]]:
    return [found.groups(default="28") for found in _DATE.finditer(text)]


def _day(parts: tuple[str, ...]) -> date:
    year, month, day = (int(part) for part in parts)
    return date(year, min(max(month, 1), 12), min(max(day, 1), 28))
