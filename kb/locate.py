"""Here is where somebody stands; give me the knowledge base that is meant.

An index named outright comes first, then `KB_INDEX`, then the nearest folder at or above this one with an `index/` or
`articles/` of its own, and at last the articles that travel inside the package. Articles without an index beside them
get one in the user's cache, so that asking a question never writes into anybody's folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import kb
from kb.errors import IndexMissing
from kb.snapshot import MANIFEST, write

__all__ = ["Location", "bundled_articles", "cache_folder", "is_fresh", "locate", "mark", "own_articles", "stamp"]

STAMP = ".stamp"
"""the file beside an index that says which state of the articles it was made from; no part of the index itself"""


@dataclass(frozen=True, slots=True)
class Location:
    index: Path
    articles: Path | None
    """the articles it is made from, where that is known"""
    kept_fresh: bool
    """the index lies in the cache, and is made anew when the articles' stamp changes"""


def locate(index: str | Path | None = None, start: Path | None = None) -> Location:
    """The base for `index`, or the one that is meant in the folder `start` (the current one)."""
    named = index if index is not None else os.environ.get("KB_INDEX") or None
    if named is not None:
        folder = Path(named)
        if not (folder / MANIFEST).is_file() and (folder / "index" / MANIFEST).is_file():
            folder = folder / "index"
        return Location(folder, None, False)
    for folder in _upwards(start):
        articles = folder / "articles" if _holds_articles(folder / "articles") else None
        if (folder / "index" / MANIFEST).is_file():
            if _is_ours(folder / "index"):
                return Location(folder / "index", articles, False)
        elif articles and _is_ours(articles):
            return _cached(articles)
    return _cached(bundled_articles())


def own_articles(start: Path | None = None) -> Path | None:
    """The nearest `articles/` at or above `start`: what `kb build` and `kb check` work on when nothing is named."""
    return next((f / "articles" for f in _upwards(start) if _holds_articles(f / "articles")), None)


def bundled_articles() -> Path:
    """The articles inside the package; in a source checkout, the checkout's own."""
    package = Path(__file__).parent
    for folder in (package / "bundled" / "articles", package.parent / "articles"):
        if folder.is_dir():
            return folder
    raise IndexMissing(
        "this installation carries no articles", path=package, hint="name an index: kb search --index DIR"
    )


def cache_folder() -> Path:
    """Where the user's caches lie on this system, for kb."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "kb-issues"


def stamp(articles: Path, *, program: bool = False) -> str:
    """Changes when an article comes, goes or is written to: of names, sizes and times, no bytes read. With `program`,
    also when kb's parser or model does."""
    package = Path(__file__).parent
    entries: list[tuple[str, int, int]] = []
    for root in (articles.resolve(), *((package / "articles", package / "model") if program else ())):
        for folder, _, names in os.walk(root):
            for name in names:
                path = os.path.join(folder, name)
                if name.startswith(".") or name.endswith(".pyc"):
                    continue
                with contextlib.suppress(OSError):  # gone since it was listed
                    found = os.lstat(path)
                    entries.append((os.path.relpath(path, root), found.st_size, found.st_mtime_ns))
    return hashlib.sha256(repr((kb.__version__, sorted(entries))).encode("utf-8", "replace")).hexdigest()


def is_fresh(place: Location) -> bool | None:
    """Was the index of this place made from the articles as they are now? None when there is no telling."""
    if place.articles is None:
        return None
    try:
        return (place.index / STAMP).read_text("ascii") == stamp(place.articles, program=place.kept_fresh)
    except (OSError, ValueError):
        return None


def mark(index: Path, found: str) -> None:
    """Remembers beside the index which stamp its articles had. What cannot be written is done without."""
    with contextlib.suppress(OSError):
        write(index / STAMP, found.encode("ascii"))


def _cached(articles: Path) -> Location:
    name = hashlib.sha256(os.fsencode(articles.resolve())).hexdigest()[:12]
    return Location(cache_folder() / name, articles, True)


def _upwards(start: Path | None) -> tuple[Path, ...]:
    try:
        here = (start or Path.cwd()).resolve()
    except OSError:  # the current folder was deleted
        return ()
    return (here, *here.parents)


def _is_ours(folder: Path) -> bool:
    """Only what the user or root owns is used without being named: a base somebody else put above this folder could
    answer with a command of theirs (the same care as git's safe.directory)."""
    if sys.platform == "win32" or folder.stat().st_uid in (0, os.geteuid()):
        return True
    import logging

    logging.getLogger("kb").warning("%s belongs to somebody else and is not used; --index uses it", folder)
    return False


def _holds_articles(folder: Path) -> bool:
    try:
        return any((folder / lang).is_dir() for lang in ("en", "zh")) or any(folder.glob("*.md"))
    except OSError:
        return False
