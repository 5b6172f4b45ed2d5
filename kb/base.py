"""The knowledge base: opened once, asked often, safe to share between threads.

`KnowledgeBase` is what other programs use. It finds an index and its encoder, keeps them open, moves to a newer
snapshot when one is published, and passes questions to `kb.search` and logs to `kb.scan`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from kb.encoders import Encoder, open_encoder, refuse_folder
from kb.errors import EncoderUnavailable, IndexCorrupt, IndexMissing, QueryError
from kb.index.faiss import FaissStore
from kb.index.follow import Follower, seen
from kb.index.locate import Location, in_cache, is_fresh, locate
from kb.index.store import Store
from kb.records import IssueRecord, Lang, SearchResult
from kb.search.searcher import MAX_K, Searcher
from kb.search.verdict import KNOWN_AT, MOST_LIKELY, SCANNED_FROM, less_sure

if TYPE_CHECKING:
    from kb.index.build import BuildReport, Progress
    from kb.index.milvus.store import MilvusStore
    from kb.scan import Scanner, ScanReport

_MOST_COMPARED = 20_000  # ids, when somebody asks for one that is not there
_MOST_LOOKED_AT = 20_000  # records of a new snapshot, before it takes the place of one that answers

MOST_SCANNED = 100_000
"""records of a base in Milvus whose error lines are looked for in logs: it keeps no prints, and to make them of all
records takes a millisecond each"""

__all__ = ["MAX_K", "MOST_SCANNED", "Catalogue", "KnowledgeBase", "Votes", "catalogue_of", "scan_lines", "with_votes"]


@dataclass(eq=False, repr=False)
class Catalogue:
    """All issues of one snapshot of the index."""

    snapshot: str
    records: Sequence[IssueRecord]
    """every issue in each of its languages, in the index's order"""
    issues: Mapping[str, Sequence[IssueRecord]]
    """the same by `slug#n` in lower case: the translations of each issue"""
    projects: Sequence[tuple[str, int]]
    """every project with the number of its issues; most first, then by name"""


class Votes(Protocol):
    """What people said of the answers (`kb.feedback.voices.Voiced`)."""

    def any(self) -> bool: ...

    def weighed(self, result: SearchResult, k: int, known_at: float) -> SearchResult:
        """The first k hits in the order, and with the verdict, that the votes leave them."""


def with_votes(votes: Votes | None, search: Callable[[int], SearchResult], k: int, known_at: float) -> SearchResult:
    """`search(k)`, weighed by the votes. The first few are looked at also where fewer are wanted: one of them may come
    to the first place."""
    if votes is None or not votes.any():
        return search(k)
    return votes.weighed(search(max(k, MOST_LIKELY) if 0 < k <= MAX_K else k), k, known_at)


class KnowledgeBase:
    """An open index and its encoder, safe to share between threads.

    A base opened from a folder moves to a new snapshot within a second or two of its being published, between two
    calls and never within one. While the folder holds none that can be used, the last one stays in service.
    """

    def __init__(self, store: Store, encoder: Encoder, *, place: Location | None = None) -> None:
        """`place`: where the index was found. Raises IndexMismatch when `encoder` is not the one that made it."""
        self.bundled: bool = place is not None and place.bundled
        """is it the base that travels with kb?"""
        self.where: str = "" if place is None else place.where
        """the folder of its articles or its index, or its address; empty for a base that was made from a store"""
        called = "bundled" if self.bundled else (place.name or place.store) if place else ""
        self.name: str = called or (str(Path(self.where).absolute()) if self.where else "")
        """how answers name this base: "bundled", its name in kb.toml, its address, or the absolute path of its
        articles or index"""
        self.votes: Votes | None = None
        """what people said of the answers; they count as soon as this is set"""
        self._opened = Searcher(store, encoder, base=self.name)
        self._follower: Follower[Searcher] | None = None
        self._catalogue: tuple[Searcher, Catalogue] | None = None
        self._scanners: dict[str | None, Scanner] = {}

    @classmethod
    def open(cls, index: str | Path | None = None, *, encoder: Encoder | str | None = None) -> KnowledgeBase:
        """The base in the folder or at the address `index`; without one, `KB_STORE`, `KB_INDEX`, the base of the
        current folder, or the one that travels inside the package; where its index does not travel with it, in a
        source checkout, that is made in the user's cache at first use.

        Raises IndexMissing, IndexCorrupt, IndexMismatch, EncoderUnavailable, and BaseUnreachable for an address.
        """
        return cls.at(locate(index), encoder=encoder)

    @classmethod
    def at(
        cls, place: Location, *, encoder: Encoder | str | None = None, progress: Progress | None = None
    ) -> KnowledgeBase:
        """The base that `locate` found; `progress` is told of an index that must be made. Raises as `open` does."""
        state = seen(place.index)
        store = _opened(place, progress)
        made_by = store.header.manifest.get("encoder", {}).get("name")
        if encoder is None and (not place.named or place.kept_fresh):
            refuse_folder(made_by, place.index)
        try:
            engine = open_encoder(encoder or made_by, offline=True) if isinstance(encoder, str | None) else encoder
        except EncoderUnavailable as error:
            raise EncoderUnavailable(
                f"this index was made with the encoder {made_by!r}: {error.message}",
                path=place.store or place.index,
                hint=error.hint,
            ) from None
        base = cls(store, engine, place=place)
        if not isinstance(store, FaissStore):

            def published() -> Searcher:
                return Searcher(store.again(), engine, base=base.name)

            base._follower = Follower(base._opened, place.store, store.collection, published, look=store.named_now)
        elif store.folder == place.index:  # not one that lies in a temporary folder and is gone already

            def renewed() -> Searcher:
                store = FaissStore(place.index)
                if store.size <= _MOST_LOOKED_AT:  # a question that met what is no record would come too late
                    store.records(store.header.columns.rows().tolist())
                return Searcher(store, engine, base=base.name)

            base._follower = Follower(base._opened, place.index, state, renewed)
        return base

    @staticmethod
    def build(
        articles: str | Path,
        index: str | Path,
        *,
        encoder: Encoder | str | None = None,
        keep_going: bool = False,
        projects: Mapping[str, str] | None = None,
        lang: Lang | None = None,
        progress: Progress | None = None,
    ) -> BuildReport:
        """Makes or renews the index of a folder of articles; see `kb.index.build.build`."""
        from kb.index.build import build

        return build(
            Path(articles),
            Path(index),
            encoder=encoder,
            keep_going=keep_going,
            projects=projects,
            lang=lang,
            progress=progress,
        )

    def __enter__(self) -> KnowledgeBase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._opened, self._follower = self.searcher, None
        close = getattr(self._opened.store, "close", None)
        if close is not None:
            close()

    @property
    def searcher(self) -> Searcher:
        """The newest snapshot, opened. It stays as it is; ask again for a later one."""
        follower = self._follower
        return self._opened if follower is None else follower.newest

    @property
    def snapshot(self) -> str:
        return self.searcher.snapshot

    @property
    def stale(self) -> str:
        """Why the index on the disk cannot be used, and an older snapshot answers; empty: all is well. Names no
        file."""
        _, follower = self.searcher, self._follower
        return "" if follower is None else follower.stale

    @property
    def size(self) -> int:
        """How many issues the base knows."""
        return int(self.searcher.store.header.manifest["counts"]["issues"])

    def records(self) -> list[IssueRecord]:
        """Every issue in each of its languages, in the index's order."""
        return self.searcher.records()

    def catalogue(self) -> Catalogue:
        """The issues of the newest snapshot; read once for each snapshot, then kept."""
        searcher, kept = self.searcher, self._catalogue
        if kept is None or kept[0] is not searcher:
            kept = self._catalogue = searcher, catalogue_of(searcher.snapshot, searcher.records())
        return kept[1]

    def projects(self) -> list[tuple[str, int]]:
        """Every project with the number of its issues; most first, then by name."""
        return list(self.catalogue().projects)

    def show(self, issue: str) -> list[IssueRecord]:
        """All translations of `issue` (`slug#n`, `slug#n/lang`, or a slug for all its issues), in the index's order.

        Raises IndexMissing for an id that is not in the index. Ids are looked up, never used as paths.
        """
        store, wanted = self.searcher.store, issue.strip().casefold()
        found = next((rows for end in ("/", "", "#") if (rows := store.header.columns.find(wanted, end))), [])
        if not found:
            near = self.near(wanted, cutoff=0.5)
            hint = f"did you mean {', '.join(near)}?" if near else "`kb search` finds ids"
            raise IndexMissing(f"there is no issue {issue!r} in this base", hint=hint)
        return store.records(found)

    def issue(self, issue: str) -> list[IssueRecord]:
        """All translations of `issue` (`slug#n`, in any letter case); empty when the base has no such issue."""
        store = self.searcher.store
        return store.records(store.header.columns.find(issue.casefold(), "/"))

    def near(self, issue: str, cutoff: float = 0.6) -> list[str]:
        """Up to three ids that are spelled like `issue`, nearest first; `cutoff` is `difflib`'s ratio, 0 to 1."""
        from difflib import get_close_matches

        columns = self.searcher.store.header.columns
        ids = columns.ids_near(issue.casefold(), _MOST_COMPARED) if len(issue) < 200 else []
        keys = get_close_matches(issue.casefold(), dict.fromkeys(one.rpartition("/")[0] for one in ids), 3, cutoff)
        return [self.issue(key)[0].issue for key in keys]

    def search(
        self,
        text: str,
        k: int = 5,
        *,
        lang: Lang | None = None,
        only: Lang | None = None,
        project: str | None = None,
        min_confidence: float = KNOWN_AT,
        printed: bool = False,
    ) -> SearchResult:
        """The k issues nearest to `text` (an error line, a whole log, a description), nearest first.

        An issue is listed once, whichever language matched, and told in `lang`, else in the question's language, where
        it has an article in it. `only`: nothing but articles in this language is searched and shown. It counts as
        answered from `min_confidence` on. `printed`: the text is the output of a program, and nobody wrote around it.
        Raises QueryError for a question with no words, an unknown project, k outside 1..MAX_K, or a confidence outside
        0..1.
        """

        def ask(text: str, k: int = k) -> SearchResult:
            return self.searcher.search(
                text, k, lang=lang, only=only, project=project, min_confidence=min_confidence, printed=printed
            )

        def search(k: int) -> SearchResult:
            result = ask(text, k)
            is_short = text.count("\n") + 1 < SCANNED_FROM
            if result.query.is_log and not (is_short and result.answered) and not self._is_too_large_to_scan:
                from kb.scan.whole import as_scanned

                result = as_scanned(result, self.scanner(project), min_confidence, ask)
            # Of what a program printed, who asks looks himself whether the issue's software takes part (`kb run`).
            if result.answered and not printed and min_confidence >= KNOWN_AT:
                from kb.components import may_be_anyones

                if may_be_anyones(result.hits[0].record, result.read_as.says, text):
                    return less_sure(result)
            return result

        return with_votes(self.votes, search, k, min_confidence)

    @property
    def _is_too_large_to_scan(self) -> bool:
        store = self.searcher.store
        return not isinstance(store, FaissStore) and store.header.columns.size > MOST_SCANNED

    def scanner(self, project: str | None = None) -> Scanner:
        """What finds the issues of the newest snapshot in logs; `project`: only those of this project or tag. Raises
        QueryError for a base in Milvus of more than `MOST_SCANNED` records."""
        from kb.scan import Scanner

        if self._is_too_large_to_scan:
            raise QueryError(
                f"a scan reads the error lines of every issue, and this Milvus has more than {MOST_SCANNED:,} records",
                path=self.where,
                hint="kb search takes the lines of the failure",
            )
        searcher, project = self.searcher, project and project.casefold()
        kept = self._scanners.get(project)
        if kept is None or kept.searcher is not searcher:
            kept = Scanner(searcher) if project is None else self.scanner().about(project)
            self._scanners[project] = kept
        return kept

    def scanners(self, project: str | None = None) -> tuple[Scanner, ...]:
        """The same, as `kb.scan.Scans` takes them."""
        return (self.scanner(project),)

    def scan(
        self, lines: Iterable[str] | Iterable[bytes], *, lang: Lang | None = None, warnings: bool = False
    ) -> ScanReport:
        """Every known issue in a log, in `lang` or in the log's language: an open file, or any lines with or without
        their line ends (bytes are taken as they come, in pieces of any size). With `warnings` also those a program
        warned of. The whole log is judged by one snapshot."""
        return scan_lines(self.scanners(), lines, lang=lang, warnings=warnings)


def scan_lines(
    scanners: Sequence[Scanner], lines: Iterable[str] | Iterable[bytes], *, lang: Lang | None, warnings: bool
) -> ScanReport:
    """See `KnowledgeBase.scan`."""
    from kb.scan import Scans

    one = Scans(scanners, lang=lang, warnings=warnings)
    for piece in [lines] if isinstance(lines, str | bytes) else lines:
        one.feed(_bytes_of(piece))
    return one.finish()


def catalogue_of(snapshot: str, all_records: Sequence[IssueRecord]) -> Catalogue:
    from collections import Counter

    issues = dict[str, list[IssueRecord]]()
    for record in all_records:
        issues.setdefault(record.issue.casefold(), []).append(record)
    counts = Counter(project for records in issues.values() for project in {r.project for r in records if r.project})
    projects = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0].casefold()))
    return Catalogue(snapshot, all_records, issues, projects)


def _bytes_of(line: str | bytes) -> bytes:
    """Text gets the line end that it lacks; bytes may be any piece of a log."""
    if isinstance(line, bytes):
        return line
    return line.encode("utf-8", "replace") + (b"" if line.endswith("\n") else b"\n")


def _opened(place: Location, progress: Progress | None) -> FaissStore | MilvusStore:
    """The index of a place; one in the cache that is missing, stale or damaged is made first, with a line on stderr."""
    if place.store:
        from kb.index.milvus.address import token_for
        from kb.index.milvus.store import MilvusStore

        # The token of the environment is for the address that was given with it, and not for those of kb.toml.
        return MilvusStore(place.store, token_for(place.token_file) if place.token_file or not place.name else "")
    if place.bundled and not place.kept_fresh:
        with suppress(IndexMissing, IndexCorrupt):
            return FaissStore(place.index)
        place = in_cache(place)  # the installed one is damaged
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

    with renewed(place, progress) as folder:
        return FaissStore(folder)
