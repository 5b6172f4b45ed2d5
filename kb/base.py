"""Here is a question; give me the known issues that are nearest, and whether any of them is near enough to speak of."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import kb
from kb.encoders import Encoder, open_encoder, refuse_folder
from kb.errors import EncoderUnavailable, IndexCorrupt, IndexMissing, QueryError
from kb.index.encoded import require_same
from kb.index.faiss import FaissStore
from kb.index.follow import Follower, seen
from kb.index.locate import Location, is_fresh, locate
from kb.logs.read import read
from kb.records import IssueRecord, Lang, SearchResult
from kb.search import ranking
from kb.search.searcher import Snapshot

if TYPE_CHECKING:
    from kb.index.build import BuildReport, Progress
    from kb.index.store import Store

__all__ = ["MAX_K", "Catalogue", "KnowledgeBase"]

MAX_K = 100


@dataclass(frozen=True)
class Catalogue:
    """All issues of one snapshot of the index."""

    snapshot: str
    records: Sequence[IssueRecord]
    """every issue in each of its languages, in the index's order"""
    issues: Mapping[str, Sequence[IssueRecord]]
    """the same by `slug#n` in lower case: the translations of each issue"""
    projects: Sequence[tuple[str, int]]
    """every project with the number of its issues; most first, then by name"""

    def near(self, issue: str, cutoff: float = 0.6) -> list[str]:
        """Up to three ids that are spelled like `issue`, nearest first; `cutoff` is `difflib`'s ratio, 0 to 1."""
        from difflib import get_close_matches

        keys = get_close_matches(issue.casefold(), self.issues, n=3, cutoff=cutoff) if len(issue) < 200 else []
        return [self.issues[key][0].issue for key in keys]


class KnowledgeBase:
    """An open index and its encoder, safe to share between threads.

    A base opened from a folder moves to a new snapshot within a second or two of its being published, between two
    calls and never within one. While the folder holds none that can be used, the last one stays in service.
    """

    def __init__(self, store: Store, encoder: Encoder) -> None:
        """Raises IndexMismatch when `encoder` is not the one that made the index."""
        require_same(store, encoder)
        self._opened = Snapshot(store, encoder)
        self._follower: Follower[Snapshot] | None = None
        self._scanner: tuple[Snapshot, kb.Scanner] | None = None
        self._catalogue: tuple[Snapshot, Catalogue] | None = None
        self._where = ""
        self._bundled = False

    @classmethod
    def open(cls, index: str | Path | None = None, *, encoder: Encoder | str | None = None) -> KnowledgeBase:
        """The base in the folder `index`; without one, `KB_INDEX`, the base of the current folder, or the one that
        travels inside the package, whose index is made in the user's cache at first use.

        Raises IndexMissing, IndexCorrupt, IndexMismatch, EncoderUnavailable.
        """
        return cls.at(locate(index), encoder=encoder)

    @classmethod
    def at(cls, place: Location, *, encoder: Encoder | str | None = None) -> KnowledgeBase:
        """The base that `locate` found. Raises as `open` does."""
        state = seen(place.index)
        store = _opened(place)
        made_by = store.manifest.get("encoder", {}).get("name")
        if encoder is None and not place.named:
            refuse_folder(made_by, place.index)
        try:
            engine = open_encoder(encoder or made_by, offline=True) if isinstance(encoder, str | None) else encoder
        except EncoderUnavailable as error:
            raise EncoderUnavailable(
                f"this index was made with the encoder {made_by!r}: {error.message}", path=place.index, hint=error.hint
            ) from None
        base = cls(store, engine)
        base._where = str(place.articles or place.index)
        base._bundled = place.bundled
        if store.folder == place.index:  # not one that lies in a temporary folder and is gone already
            base._follower = Follower(base._opened, place.index, state, lambda: _reopened(place.index, engine))
        return base

    @staticmethod
    def build(
        articles: str | Path,
        index: str | Path,
        *,
        encoder: Encoder | str | None = None,
        keep_going: bool = False,
        progress: Progress | None = None,
    ) -> BuildReport:
        """Makes or renews the index of a folder of articles; see `kb.index.build.build`."""
        from kb.index.build import build

        return build(Path(articles), Path(index), encoder=encoder, keep_going=keep_going, progress=progress)

    def __enter__(self) -> KnowledgeBase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._opened, self._follower = self._now, None
        close = getattr(self._opened.store, "close", None)
        if close is not None:
            close()

    @property
    def _now(self) -> Snapshot:
        follower = self._follower
        return self._opened if follower is None else follower.newest

    @property
    def _store(self) -> Store:
        return self._now.store

    @property
    def _encoder(self) -> Encoder:
        return self._now.encoder

    @property
    def snapshot(self) -> str:
        return self._store.snapshot

    @property
    def size(self) -> int:
        """How many issues the base knows."""
        return int(self._store.manifest["counts"]["issues"])

    @property
    def where(self) -> str:
        """The folder of its articles, or of its index; empty for a base that was not opened from a folder."""
        return self._where

    @property
    def bundled(self) -> bool:
        """Is it the base that travels with kb?"""
        return self._bundled

    @property
    def name(self) -> str:
        """How answers name this base: "bundled", or the absolute path of its articles or index."""
        return "bundled" if self._bundled else str(Path(self._where).absolute()) if self._where else ""

    def records(self) -> list[IssueRecord]:
        """Every issue in each of its languages, in the index's order."""
        store = self._store
        return store.records(range(store.size))

    def catalogue(self) -> Catalogue:
        """The issues of the newest snapshot; read once for each snapshot, then kept."""
        now, kept = self._now, self._catalogue
        if kept is None or kept[0] is not now:
            kept = self._catalogue = now, _catalogue_of(now.store)
        return kept[1]

    def projects(self) -> list[tuple[str, int]]:
        """Every project with the number of its issues; most first, then by name."""
        return list(self.catalogue().projects)

    def show(self, issue: str) -> list[IssueRecord]:
        """All translations of `issue` (`slug#n`, `slug#n/lang`, or a slug for all its issues), in the index's order.

        Raises IndexMissing for an id that is not in the index. Ids are looked up, never used as paths.
        """
        catalogue = self.catalogue()
        wanted = issue.strip().casefold()
        found = list(catalogue.issues.get(wanted, ()))
        found = found or [r for r in catalogue.records if r.id.casefold() == wanted]
        found = found or [r for r in catalogue.records if r.issue.casefold().rpartition("#")[0] == wanted]
        if not found:
            near = catalogue.near(wanted, cutoff=0.4)
            hint = f"did you mean {', '.join(near)}?" if near else "`kb search` finds ids"
            raise IndexMissing(f"there is no issue {issue!r} in this base", hint=hint)
        return found

    def search(
        self,
        text: str,
        k: int = 5,
        *,
        lang: Lang | None = None,
        project: str | None = None,
        min_confidence: float = ranking.ANSWER_AT,
    ) -> SearchResult:
        """The k issues nearest to `text` (an error line, a whole log, a description), nearest first.

        An issue is listed once, whichever language matched, told in the question's language where it can be; `lang`
        searches and shows one language only. It counts as answered from `min_confidence` on. Raises QueryError for a
        question with no words, an unknown project, k outside 1..MAX_K, or a confidence outside 0..1.
        """
        started = time.perf_counter()
        if not 1 <= k <= MAX_K:
            raise QueryError(f"k is {k}, it can be 1 to {MAX_K}")
        if lang not in (None, "en", "zh"):
            raise QueryError(f"lang is {lang!r}, it can be 'en' or 'zh'")
        if not 0 <= min_confidence <= 1:
            raise QueryError(f"min_confidence is {min_confidence}, it can be 0 to 1")
        query = read(text)
        now = self._now
        store = now.store
        rows = store.rows(lang=lang, project=project)
        if rows is not None and not len(rows) and not _knows(store, project):
            known = ", ".join(store.manifest["projects"][:20])
            raise QueryError(f"no article is about the project {project!r}", hint=f"`kb projects` lists them: {known}")
        hits = now.hits(query, k, rows, lang)
        answered = bool(hits) and hits[0].confidence >= min_confidence
        took_ms = (time.perf_counter() - started) * 1000
        folder = store.manifest.get("folder", "articles")
        return SearchResult(query, answered, tuple(hits), store.snapshot, folder, self.name, took_ms)

    def scan(
        self, lines: Iterable[str] | Iterable[bytes], *, lang: Lang | None = None, warnings: bool = False
    ) -> kb.ScanReport:
        """Every known issue in a log, told in `lang` or in the log's language: an open file, or any lines with or
        without their line ends (bytes are taken as they come, in pieces of any size). With `warnings` also those a
        program warned of."""
        now, kept = self._now, self._scanner
        if kept is None or kept[0] is not now:
            kept = self._scanner = now, kb.Scanner(self)
        pieces = [lines] if isinstance(lines, str | bytes) else lines
        return kept[1].scan(map(_bytes_of, pieces), lang=lang, warnings=warnings)


def _catalogue_of(store: Store) -> Catalogue:
    from collections import Counter

    all_records = store.records(range(store.size))
    issues = dict[str, list[IssueRecord]]()
    for record in all_records:
        issues.setdefault(record.issue.casefold(), []).append(record)
    counts = Counter(project for records in issues.values() for project in {r.project for r in records if r.project})
    projects = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0].casefold()))
    return Catalogue(store.snapshot, all_records, issues, projects)


def _knows(store: Store, project: str | None) -> bool:
    rows = store.rows(project=project)
    return rows is None or len(rows) > 0


def _bytes_of(line: str | bytes) -> bytes:
    """Text gets the line end that it lacks; bytes may be any piece of a log."""
    if isinstance(line, bytes):
        return line
    return line.encode("utf-8", "replace") + (b"" if line.endswith("\n") else b"\n")


def _opened(place: Location) -> FaissStore:
    """The index of a place; one in the cache that is missing, stale or damaged is made first, with a line on stderr."""
    fresh = is_fresh(place)
    if not place.kept_fresh:
        if fresh is False:
            import logging

            logging.getLogger("kb").warning("%s was written to after its index; `kb build` renews it", place.articles)
        return FaissStore(place.index)
    if fresh:
        with suppress(IndexMissing, IndexCorrupt):
            return FaissStore(place.index)
    from kb.index.cache import renewed

    with renewed(place) as folder:
        return FaissStore(folder)


def _reopened(folder: Path, encoder: Encoder) -> Snapshot:
    """Raises as opening does, and IndexMismatch."""
    store = FaissStore(folder)
    require_same(store, encoder)
    return Snapshot(store, encoder)
