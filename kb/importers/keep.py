"""Here is a draft; put it among the articles, unless what it tells is there already."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from kb.articles.frontmatter import peek
from kb.build import read_articles
from kb.importers.form import Draft, compose
from kb.scaffold import is_slug, write_new

__all__ = ["Kept", "Shelf", "keep"]


@dataclass(frozen=True, slots=True)
class Kept:
    """Where a draft went; or, with `already`, the article that was there."""

    path: str
    """below the folder of articles, POSIX"""
    already: bool = False


class Shelf:
    """A folder of articles: which slugs it holds, and which addresses its articles name as their sources."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.paths: dict[str, str] = {}
        self.addresses: dict[str, str] = {}
        for path, data in read_articles(folder) if folder.is_dir() else ():
            self.paths.setdefault(Path(path).stem.casefold(), path)
            for source in peek(data).all("sources", "source") if isinstance(data, bytes) else ():
                self.addresses.setdefault(_plain(source), path)


def keep(draft: Draft, shelf: Shelf, *, dry_run: bool = False) -> Kept:
    """Writes `<lang>/<slug>.md`, never over a file; what an article names as its source already, or was imported
    before, is left as it is there. Raises ArticleError for a draft that tells nothing, IndexWriteFailed.
    """
    draft = replace(draft, slug=draft.slug if is_slug(draft.slug) else _unspoken(draft))
    text = compose(draft)
    path = f"{draft.lang}/{draft.slug}.md"
    held = shelf.paths.get(draft.slug) or (shelf.addresses.get(_plain(draft.sources[0])) if draft.sources else None)
    if held:
        return Kept(held, already=True)
    if not dry_run:
        write_new(shelf.folder / path, text.encode())
    shelf.paths[draft.slug] = path
    if draft.sources:
        shelf.addresses.setdefault(_plain(draft.sources[0]), path)
    return Kept(path)


def _unspoken(draft: Draft) -> str:
    """A slug for what has no ASCII words, or is called like a device of Windows: the same for the same title."""
    name = hashlib.sha256(f"{draft.sources[:1]}{draft.title}".encode("utf-8", "replace")).hexdigest()[:8]
    return f"{draft.slug}-{name}" if draft.slug else f"draft-{name}"


def _plain(address: str) -> str:
    """An address as one compares it: a comment's is its page's."""
    return address.split("#")[0].split("?")[0].rstrip("/").casefold().replace("http://", "https://")
