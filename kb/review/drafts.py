"""What a reviewer decides about a draft, as changes of its text: which post is the fix, accepted, a duplicate.

Each function takes the text of a draft and gives the new one; nothing is written here but by `keep`.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kb.articles.folded import OPENING, without_fold
from kb.articles.folder import list_articles, read_article
from kb.articles.frontmatter import is_draft, peek, read_front_matter
from kb.articles.lines import classify
from kb.articles.own import OWN_LABELS
from kb.errors import ArticleError, IndexWriteFailed
from kb.importers.form import contained, fenced
from kb.importers.posts import Post, read_posts
from kb.importers.thread import fix_text
from kb.index.snapshot import write
from kb.records import IssueRecord, Problem
from kb.review.lint import review
from kb.scraped import parse

__all__ = ["Draft", "accepted", "as_duplicate", "candidates", "find_drafts", "keep", "missing", "question", "with_fix"]

MAX_CANDIDATES = 9  # as many as there are digits on the keyboard
MAX_QUESTION = 4000  # characters of a question for the nearest issues

_STATUS = re.compile(r"""\s{0,3}['"]?status['"]?\s{0,3}:\s{0,5}['"]?draft['"]?\s{0,9}(?:#.{0,200})?$""", re.IGNORECASE)
_SOURCES = re.compile(r"sources:\s{0,3}(\[.{0,8000}\])\s{0,9}$")
_LINK = re.compile(r"\]\(([\w./+-]{1,300}\.mdx?)")


@dataclass(frozen=True, slots=True)
class Draft:
    path: str
    """relative to the folder of articles, POSIX"""
    text: str
    record: IssueRecord | None
    """its first issue; None when none can be read"""
    issues: int
    posts: tuple[Post, ...]
    """of the thread it was made from; empty for a page"""

    @classmethod
    def read(cls, folder: Path, path: str) -> Draft:
        """Raises ArticleError when it cannot be read."""
        data = read_article(folder, path)
        text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
        records = parse(data, path=path).records
        return cls(path, text, records[0] if records else None, len(records), tuple(read_posts(text)))


def find_drafts(folder: Path) -> list[str]:
    """The paths of the articles that wait for review; a duplicate has been reviewed."""
    found = []
    for path in list_articles(folder)[0]:
        try:
            with (folder / path).open("rb") as file:
                head = file.read(40_000)  # the front matter is no longer
        except OSError:
            continue
        if is_draft(head) and not peek(head).is_duplicate:
            found.append(path)
    return found


def candidates(posts: Sequence[Post]) -> list[Post]:
    """The posts that may be the fix, likeliest first; no bot's, and of the first post only one that tells a fix."""
    ranked = sorted(posts, key=lambda post: (-post.chance, post.number))
    return [post for post in ranked if post.who != "bot" and (post.number or post.chance)][:MAX_CANDIDATES]


def with_fix(draft: Draft, post: Post) -> str:
    """The text with this post as the fix of its one issue, and its address among the sources.

    Raises ArticleError when the draft has no section for the fix, or several issues.
    """
    fix = contained(fix_text(post))
    if not fix:
        raise ArticleError("this post says nothing that could be a fix", path=draft.path)
    lines = draft.text.split("\n")
    span = _fix_section(lines)
    if span is None or draft.issues != 1:
        raise ArticleError("has not exactly one section for the fix", path=draft.path, hint="press e and edit it")
    for body in (fix, fenced(fix)):
        text = "\n".join([*lines[: span[0]], "", body, "", *lines[span[1] :]])
        records = parse(text.encode(), path=draft.path).records
        if len(records) == 1 and records[0].fix == body:
            return _with_source(text, draft.posts, post)
    raise ArticleError("this post cannot be put into the article", path=draft.path, hint="press e and edit it")


def _fix_section(lines: Sequence[str]) -> tuple[int, int] | None:
    """The lines below the only heading of the fix, up to the next heading or the folded part."""
    stop = next((number for number, line in enumerate(lines) if line.rstrip() == OPENING), len(lines))
    front = read_front_matter(list(lines[:stop]))
    headings = [line for line in classify(lines[:stop], front.body)[0] if line.kind == "heading" and line.level <= 3]
    fixes = [line for line in headings if OWN_LABELS.get(line.heading_text.casefold().rstrip(":： ")) == "fix"]
    if len(fixes) != 1:
        return None
    after = [line.no - 1 for line in headings if line.no > fixes[0].no]
    return fixes[0].no, min([*after, stop])


def _with_source(text: str, posts: Sequence[Post], picked: Post) -> str:
    """The address of the picked post in the place of those of other comments."""
    others = {post.url for post in posts if post.number and post.url}
    lines = text.split("\n")
    for number, line in enumerate(lines[: read_front_matter(lines).body]):
        if found := _SOURCES.match(line):
            try:
                listed = json.loads(found[1])
            except ValueError:
                return text  # written by hand, and left so
            kept = [one for one in listed if one not in others]
            kept += [picked.url] if picked.number and picked.url and picked.url not in kept else []
            lines[number] = f"sources: {json.dumps(kept, ensure_ascii=False)}"
    return "\n".join(lines)


def accepted(draft: Draft) -> str:
    """The text as an article: without its status and the folded part. Raises ArticleError when it stays a draft."""
    return _with_status(draft, [])


def as_duplicate(draft: Draft, issue: str) -> str:
    """The text as one that another issue (`slug#n`) says already; it keeps the thread."""
    lines = draft.text.split("\n")
    return _restated(draft, lines, ["status: duplicate", f"duplicate_of: {json.dumps(issue)}"])


def _with_status(draft: Draft, status: list[str]) -> str:
    text = _restated(draft, without_fold(draft.text.split("\n")), status).rstrip("\n") + "\n"
    if is_draft(text.encode()):
        raise ArticleError(
            "its front matter still says that it is a draft", path=draft.path, hint="press e and edit it"
        )
    return text


def _restated(draft: Draft, lines: Sequence[str], status: list[str]) -> str:
    body = read_front_matter(list(lines)).body
    found = [number for number, line in enumerate(lines[:body]) if _STATUS.match(line)]
    if len(found) != 1:
        raise ArticleError("its front matter has no line `status: draft`", path=draft.path, hint="press e and edit it")
    return "\n".join([*lines[: found[0]], *status, *lines[found[0] + 1 :]])


def missing(folder: Path, path: str, text: str) -> list[Problem]:
    """What `kb check` would say of the text as an article; errors first. Its twin and the articles that it links are
    looked at as well, no others."""
    here = PurePosixPath(path)
    beside = {f"{lang}/{here.name}" for lang in ("en", "zh")} - {path}
    beside |= {os.path.normpath(here.parent / link).replace(os.sep, "/") for link in _LINK.findall(text)}
    with tempfile.TemporaryDirectory(prefix="kb-review-") as made:
        place = Path(made)
        for other in sorted(beside & {*list_articles(folder)[0]}):  # a stranger's link leads anywhere
            with suppress(ArticleError):
                _put(place / other, read_article(folder, other))
        _put(place / path, text.encode())
        problems = [problem for problem in review(place) if problem.path == path]
    return sorted(problems, key=lambda problem: (problem.level != "error", problem.line or 0))


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def question(draft: Draft) -> str:
    """What to ask the base for the nearest issues: the error lines, else title and symptom."""
    record = draft.record
    if record is None:
        return draft.path
    return ("\n".join(record.errors[:5]) or f"{record.title}\n{record.symptom}")[:MAX_QUESTION]


def keep(folder: Path, path: str, old: str, new: str) -> None:
    """Writes the new text, whole or not at all. Raises ArticleError when the file is no longer as it was read (`old`),
    and IndexWriteFailed."""
    now = read_article(folder, path).decode("utf-8-sig", "replace").replace("\r\n", "\n")
    if now != old:
        raise ArticleError("was changed by somebody else meanwhile", path=path, hint="it is shown again as it is now")
    try:
        write(folder / path, new.encode())
    except OSError as error:
        raise IndexWriteFailed(f"cannot be written ({error.strerror})", path=folder / path) from None
