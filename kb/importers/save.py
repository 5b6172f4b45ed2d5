"""Writes a draft into the folder of articles, unless an article has its content already.

Address and content decide that, never the name alone: two pages may have the same name. The second one gets a number.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from kb.articles.folded import OPENING
from kb.articles.folder import read_article, read_articles
from kb.articles.frontmatter import peek
from kb.articles.scaffold import PLACEHOLDER, is_slug, write_new
from kb.articles.source import slug_of
from kb.errors import ArticleError
from kb.importers.form import DraftArticle, compose

__all__ = ["ArticleFolder", "SavedDraft", "save_draft"]

_SAME = 0.8  # share of a draft's text in an article: a reviewer may have changed the rest
_TRACKING = re.compile(r"(?<=[?&])utm_\w{1,20}=[^&]{0,400}&?")


@dataclass(frozen=True, slots=True)
class SavedDraft:
    """Where a draft was written; with `already`, the article that has its content."""

    path: str
    """relative to the folder of articles, POSIX"""
    already: bool = False


class ArticleFolder:
    """What the folder of articles holds: slugs, the addresses in `sources`, a digest of each text."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._slugs: dict[str, list[str]] = {}
        self._addresses: dict[str, str] = {}
        self._bodies: dict[bytes, str] = {}
        self._sources: dict[str, frozenset[str]] = {}  # of the articles before this import
        for path, data in read_articles(folder) if folder.is_dir() else ():
            sources = peek(data).all("sources", "source") if isinstance(data, bytes) else ()
            self._sources[path] = frozenset(map(_plain, sources))
            self.put(path, data if isinstance(data, bytes) else b"", *sources)

    def put(self, path: str, data: bytes, *addresses: str) -> None:
        with suppress(ArticleError):  # of a name that cannot be a slug, no draft has it
            self._slugs.setdefault(slug_of(path).casefold(), []).append(path)
        if data:
            self._bodies.setdefault(_digest(data), path)
        for address in addresses:
            self._addresses.setdefault(_plain(address), path)

    def at(self, address: str) -> str | None:
        """The article that was made from this address, or None."""
        return self._addresses.get(_plain(address)) if address else None

    def holds(self, draft: DraftArticle, text: str) -> str | None:
        """The article that has the content of the draft, or None.

        It has the same address, the same text, or (when a reviewer has worked on it) most of the text together with the
        same name or a common source.
        """
        if held := self.at(draft.address):
            return held
        if held := self._bodies.get(_digest(text.encode())):
            return held
        cited = frozenset(map(_plain, draft.sources))
        named = {path for slug in self._numbered(draft.slug) for path in self._slugs[slug]}
        for path in sorted(named | {self._addresses[one] for one in cited if one in self._addresses}):
            theirs = self._sources.get(path)
            if theirs is None or (draft.address and theirs):
                continue  # written by this import from another page, or it has another address
            if (path in named and theirs & cited) or self._share(path, text) >= _SAME:
                return path
        return None

    def free(self, slug: str) -> str:
        """The slug, with a number when it is taken."""
        taken = len(list(self._numbered(slug)))
        return f"{slug}-{taken + 1}" if taken else slug

    def _numbered(self, slug: str) -> Iterator[str]:
        """Those of `slug`, `slug-2`, `slug-3` ... that are taken, up to the first free one."""
        number, name = 1, slug
        while name in self._slugs:
            yield name
            number += 1
            name = f"{slug}-{number}"

    def _share(self, path: str, text: str) -> float:
        """The share of a draft's text, in characters of lines, that an article has."""
        try:
            theirs = set(_lines(read_article(self.folder, path)))
        except ArticleError:
            return 0.0
        ours = set(_lines(text.encode()))
        return sum(len(line) for line in ours & theirs) / max(1, sum(map(len, ours)))


def save_draft(draft: DraftArticle, folder: ArticleFolder, *, dry_run: bool = False) -> SavedDraft:
    """Writes `<lang>/<slug>.md`, never over a file. An article that has the content already is left as it is.

    Raises ArticleError for a draft without issues or when another kind of file has its name, and IndexWriteFailed.
    """
    draft = replace(draft, slug=draft.slug if is_slug(draft.slug) else _hashed_slug(draft))
    text = compose(draft)
    if held := folder.holds(draft, text):
        return SavedDraft(held, already=True)
    path = f"{draft.lang}/{folder.free(draft.slug)}.md"
    if os.path.lexists(folder.folder / path):
        raise ArticleError("something that is no article has this name", path=folder.folder / path)
    if not dry_run:
        write_new(folder.folder / path, text.encode())
    folder.put(path, text.encode(), *([draft.address] if draft.address else []))
    return SavedDraft(path)


def _hashed_slug(draft: DraftArticle) -> str:
    """A slug for a title without ASCII words or with the name of a Windows device; the same for the same title."""
    name = hashlib.sha256(f"{draft.sources[:1]}{draft.title}".encode("utf-8", "replace")).hexdigest()[:8]
    return f"{draft.slug}-{name}" if draft.slug else f"draft-{name}"


def _plain(address: str) -> str:
    """An address as it is compared: with its query, without tracking. A comment has the address of its page."""
    page, _, place = address.strip().partition("#")
    page = _TRACKING.sub("", page).rstrip("?&/")
    route = f"#{place}" if place.startswith(("/", "!")) else ""  # a route of a single-page site is a page of its own
    return f"{page}{route}".casefold().replace("http://", "https://", 1)


def _body(data: bytes) -> bytes:
    """The text below the front matter, without a folded part."""
    head, _, rest = data.partition(b"\n---")
    body, _, _ = (rest if head.startswith(b"---") else data).partition(b"\n" + OPENING.encode() + b"\n")
    return body


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(b" ".join(_body(data).split())).digest()


def _lines(data: bytes) -> Iterator[str]:
    """Its own lines: no headings of the form, no placeholders."""
    for line in _body(data).decode("utf-8", "replace").split("\n"):
        line = line.strip()
        if any(map(str.isalnum, line)) and not line.startswith("### ") and not PLACEHOLDER.search(line):
            yield line
