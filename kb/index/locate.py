"""Finds the knowledge base that is meant, from an argument, the environment, or the current folder.

In this order: an index that the caller names; the environment variables `KB_STORE` and `KB_INDEX`; the nearest folder
at or above the current one that holds an `index/` or `articles/` which the user owns and trusts (`kb.index.trust`); the
articles that travel inside the package, in a wheel with their index. Other articles without an index beside them get
one in the user's cache, so that a search never writes into anybody's folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import kb
from kb.errors import IndexMissing
from kb.index.snapshot import MANIFEST, open_plainly, write
from kb.index.user import NOWHERE, cache_folder, is_own
from kb.records import Lang
from kb.text import visible_line

__all__ = [
    "READS_ARTICLES",
    "SETTINGS",
    "SHIPPED",
    "Location",
    "bundled",
    "bundled_articles",
    "here",
    "holds_articles",
    "in_cache",
    "is_address",
    "is_fresh",
    "locate",
    "mark",
    "named",
    "named_by_environment",
    "nearest_base",
    "own_articles",
    "stamp",
    "stamp_of",
    "undecided",
]

STAMP = ".stamp"
"""the file beside an index that says which state of the articles it was made from; no part of the index itself"""

SHIPPED = "shipped.stamp"
"""the same for the index in a wheel"""

SETTINGS = "kb.toml"
"""the file of `kb.config`"""

_MOST_LOOKED_AT = 2000  # files of a folder named articles/ that may be anybody's

READS_ARTICLES = ("text", "logs", "articles", "scraped", "encoders", "index", "model")
"""the rooms of this package that decide what an index of the same articles holds"""


@dataclass(frozen=True, slots=True)
class Location:
    index: Path
    articles: Path | None
    """the articles it is made from, where that is known"""
    kept_fresh: bool
    """the index lies in the cache, and is made anew when the articles' stamp changes"""
    named: bool = False
    """the user named this index, by an argument or KB_INDEX; otherwise kb found it"""
    bundled: bool = False
    """the base that travels with kb"""
    name: str = ""
    """how kb.toml calls it; empty where it has no name there"""
    lang: Lang | None = None
    """of articles that do not state theirs, by kb.toml"""
    projects: Mapping[str, str] = field(default_factory=dict, hash=False)  # a place is a key of caches
    """folder -> the project of the articles there that name none, by kb.toml"""
    store: str = ""
    """the address of a base in Milvus (`kb.index.milvus`); empty for an index in a folder"""
    token_file: Path | None = None
    """holds the token for the address, by kb.toml"""

    @property
    def where(self) -> str:
        """The folder of the articles, or of the index, or the address."""
        return self.store or str(self.articles or self.index)


def locate(index: str | Path | None = None, start: Path | None = None) -> Location:
    """The base for `index`, or the one that is meant in the folder `start` (the current one).

    A base that is found and not named counts only when it is the user's own and trusted (`kb.index.trust`).
    """
    found = index if index is not None else named_by_environment()
    return named(found) if found is not None else here(start) or bundled()


def named_by_environment() -> str | None:
    """The index that the environment names: the address of a store (`KB_STORE`), else a folder (`KB_INDEX`)."""
    return os.environ.get("KB_STORE") or os.environ.get("KB_INDEX") or None


def is_address(place: object) -> bool:
    """Is this meant as the address of a store, and not as a folder?"""
    return isinstance(place, str) and place.startswith(("milvus:", "milvus+"))


def named(place: str | Path) -> Location:
    """The base that the user names by its index, by its articles, by the folder of either, or by the address of a
    store. Raises QueryError for a wrong address."""
    if isinstance(place, str) and is_address(place):
        from kb.index.milvus.address import read_address

        return Location(NOWHERE, None, False, named=True, store=read_address(place).text)
    folder = Path(place)
    if not _is_file(folder / MANIFEST) and _is_file(folder / "index" / MANIFEST):
        folder = folder / "index"
    if not _is_file(folder / MANIFEST):  # articles without an index: one is made in the cache
        for held in (folder / "articles", folder):
            if holds_articles(held):
                return replace(_cached(held), named=True)
    return Location(folder, None, False, named=True)


def here(start: Path | None = None) -> Location | None:
    """The nearest base at or above `start` that may answer; None when there is none."""
    for folder, has_index, has_articles in _bases(start):
        if not _may_answer(folder):
            continue
        articles = folder / "articles" if has_articles else None
        if has_index:
            return Location(folder / "index", articles, False)
        if articles:
            return _cached(articles)
    return None


def bundled() -> Location:
    """The base that is part of kb. Raises IndexMissing for an installation without one."""
    return _shipped() or _cached(bundled_articles())


def undecided(start: Path | None = None) -> Path | None:
    """The nearest folder at or above `start` with a base of the user's own that they have not decided about yet; None
    when a trusted base comes first, or there is none."""
    from kb.index import trust

    for folder, _, _ in _bases(start):
        if not (_is_bundled(folder / "articles") or _same_as_bundled(folder) or trust.why_not_ours(folder)):
            decided = trust.decision(folder)
            if decided:
                return None
            if decided is None:
                return folder
    return None


def nearest_base(start: Path | None = None) -> Path | None:
    """The nearest folder at or above `start` with an `articles/`, an `index/` or a `kb.toml`, whoever owns it."""
    return next((folder for folder in _folders(start) if _is_file(folder / SETTINGS) or any(_holds(folder))), None)


def own_articles(start: Path | None = None) -> Path | None:
    """The nearest `articles/` of the user's own at or above `start`: what `kb build` and `kb check` work on when
    nothing is named."""
    for folder, _, has_articles in _bases(start):
        if has_articles and _is_ours(folder):
            return folder / "articles"
    return None


def bundled_articles() -> Path:
    """The articles inside the package; in a source checkout, the checkout's own."""
    package = Path(kb.__file__).parent
    for folder in (package / "bundled" / "articles", package.parent / "articles"):
        if folder.is_dir():
            return folder
    raise IndexMissing(
        "this installation carries no articles", path=package, hint="name an index: kb search --index DIR"
    )


def stamp(articles: Path, *, program: bool = False, times: bool = True) -> str:
    """A digest of the names, sizes and times of all articles; it changes when one is added, removed or written to. No
    file is read. With `program` it also changes with the code and the model that make an index; without `times` it is
    the same for a copy."""
    package = os.path.dirname(kb.__file__)
    entries: list[tuple[str, int, int]] = []
    for root in (os.path.realpath(articles), *(os.path.join(package, room) for room in READS_ARTICLES if program)):
        _list(root, "", entries)
    if not times:
        entries = [(name, size, 0) for name, size, _ in entries]
    return hashlib.sha256(repr((kb.__version__, sorted(entries))).encode("utf-8", "replace")).hexdigest()


def stamp_of(place: Location) -> str:
    """The stamp of the articles of a place as its index is made from them."""
    assert place.articles is not None
    found = stamp(place.articles, program=place.kept_fresh)
    if not (place.kept_fresh and (place.lang or place.projects)):
        return found
    assumed = repr((place.lang, sorted(place.projects.items())))
    return hashlib.sha256(f"{found}{assumed}".encode("utf-8", "replace")).hexdigest()


def _list(folder: str, below: str, entries: list[tuple[str, int, int]]) -> None:
    """Adds the relative path, size and time of every file at and below `folder`. What has gone since is left out."""
    with contextlib.suppress(OSError), os.scandir(folder) as found:
        for entry in found:
            with contextlib.suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    _list(entry.path, f"{below}{entry.name}/", entries)
                elif not (entry.name.startswith(".") or entry.name.endswith(".pyc")):
                    stat = entry.stat(follow_symlinks=False)
                    entries.append((below + entry.name, stat.st_size, stat.st_mtime_ns))


def is_fresh(place: Location) -> bool | None:
    """Was the index of this place made from the articles as they are now? None when that is not known."""
    if place.articles is None:
        return None
    if place.bundled and not place.kept_fresh:
        return True  # `locate` has looked
    try:
        with open_plainly(place.index / STAMP) as file:
            return file.read(100).decode("ascii") == stamp_of(place)
    except (OSError, ValueError):
        return None


def mark(index: Path, found: str) -> None:
    """Writes beside the index which stamp its articles had. A folder that cannot be written is no error."""
    with contextlib.suppress(OSError):
        write(index / STAMP, found.encode("ascii"))


def in_cache(place: Location) -> Location:
    """The place of another index of the same articles, which is made and kept in the user's cache."""
    return _cached(place.articles or bundled_articles())


def _shipped() -> Location | None:
    """The index that travels in the wheel beside the bundled articles; None where there is none (a source checkout), or
    somebody has changed these articles. Installing gives files new times, so that only names and sizes tell."""
    articles = bundled_articles()
    index = articles.parent / "index"
    with contextlib.suppress(OSError, ValueError), open_plainly(index / SHIPPED) as file:
        if file.read(100).decode("ascii") == stamp(articles, times=False):
            return Location(index, articles, False, bundled=True)
    return None


def _cached(articles: Path) -> Location:
    """An index in the cache; in no folder, if what is there is somebody else's: then a temporary one is made."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(articles))).hexdigest()[:12]
    root = cache_folder()
    index = root / name
    if not is_own(root, index, index / MANIFEST, index / STAMP):
        _warn("%s belongs to somebody else and is not used", index)
        index = NOWHERE / name
    return Location(index, articles, True, bundled=_is_bundled(articles))


def _folders(start: Path | None) -> Sequence[Path]:
    """`start` and all above it."""
    try:
        here = (start or Path.cwd()).resolve()
    except OSError:  # the current folder was deleted
        return ()
    return (here, *here.parents)


def _bases(start: Path | None) -> Iterator[tuple[Path, bool, bool]]:
    """Every folder at or above `start` that holds a base: has it an index, has it articles?"""
    for folder in _folders(start):
        has_index, has_articles = _holds(folder)
        if has_index or has_articles:
            yield folder, has_index, has_articles


def _holds(folder: Path) -> tuple[bool, bool]:
    """An index, articles?"""
    return _is_file(folder / "index" / MANIFEST), holds_articles(folder / "articles")


def _may_answer(folder: Path) -> bool:
    """May the base in this folder answer without being named? If not, a warning says what would let it."""
    if _is_bundled(folder / "articles") and not _is_file(folder / "index" / MANIFEST):
        return True
    if not _is_ours(folder):
        return False
    from kb.index import trust

    decided = trust.decision(folder)
    if decided is None and not _same_as_bundled(folder):
        _warn(
            "%s has a knowledge base of its own, which is ignored until you trust it: run `kb trust`, "
            "or name it with --index",
            folder,
        )
    return decided is True


def _is_ours(folder: Path) -> bool:
    from kb.index import trust  # late: with --index, KB_INDEX or no base around it is not needed

    theirs = trust.why_not_ours(folder)
    if theirs:
        _warn("%s belongs to somebody else and is not used; --index or --articles uses it", theirs)
    return not theirs


def _warn(message: str, folder: Path | str) -> None:
    import logging  # late: a start has no use for it

    logging.getLogger("kb").warning(message, visible_line(str(folder)))


def _is_bundled(articles: Path) -> bool:
    with contextlib.suppress(OSError, IndexMissing):
        return os.path.realpath(articles) == os.path.realpath(bundled_articles())
    return False


def _same_as_bundled(folder: Path) -> bool:
    """True for a checkout of kb itself under an installed kb: its articles are the bundled ones."""
    if _is_file(folder / "index" / MANIFEST):
        return False
    with contextlib.suppress(OSError, IndexMissing):
        return _sizes(folder / "articles") == _sizes(bundled_articles())
    return False


def _sizes(articles: Path) -> set[tuple[str, int]]:
    return {(path.relative_to(articles).as_posix(), path.stat().st_size) for path in articles.glob("*/*.md")}


def _is_file(path: Path) -> bool:
    """False also where the user may not look: a closed folder above the current one is no base, and no error."""
    try:
        return path.is_file()
    except OSError:
        return False


def holds_articles(folder: Path, *, readmes: bool = True) -> bool:
    """Does it look like a folder of articles: a language folder in it, or Markdown somewhere among its first files?
    `readmes`: do READMEs count?"""
    try:
        if any((folder / lang).is_dir() for lang in ("en", "zh")):
            return True
        from kb.articles.source import SUFFIXES  # late: most bases have these folders

        names = (name.lower() for name in islice(_files(folder), _MOST_LOOKED_AT))
        return any(name.endswith(SUFFIXES) and (readmes or not name.startswith("readme")) for name in names)
    except OSError:
        return False


def _files(folder: Path) -> Iterator[str]:
    for _, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from names
