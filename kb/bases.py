"""Several bases asked together: the one that is part of kb, the user's own, a team's over HTTP.

Each base answers by itself, as if it were asked alone, and its
answers say that they are its. Confidence means the same in every base, so the answers are put in order by it. A fault
that two bases know is one answer. A base that cannot answer is named, and the others answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from kb.base import Catalogue, KnowledgeBase, Votes, catalogue_of, scan_lines, with_votes
from kb.errors import BaseUnreachable, IndexCorrupt, IndexMissing, KbError, QueryError
from kb.index.locate import Location
from kb.places import Place, places
from kb.records import Hit, IssueRecord, Lang, SearchResult, Silence
from kb.search.same import same_fault
from kb.search.verdict import KNOWN_AT, LIKELY_AT, MOST_LIKELY

if TYPE_CHECKING:
    from kb.index.build import Progress
    from kb.remote import Asking, RemoteBase
    from kb.scan import Scanner, ScanReport

__all__ = ["AnyBase", "Bases", "open_bases", "opened"]


_T = TypeVar("_T")


def open_bases(
    names: Sequence[str] = (), *, index: str | Path | None = None, progress: Progress | None = None
) -> AnyBase:
    """The bases that `places` names, ready to be asked. Raises as `places` and `opened` do."""
    return opened(places(names, index=index), progress)


def opened(found: Sequence[Place], progress: Progress | None = None) -> AnyBase:
    """The bases at these places; one alone as a `KnowledgeBase`. Of several, those that cannot be opened are left out,
    and every answer names them; when none is left, raises what opening the first one raised."""
    bases: list[KnowledgeBase | RemoteBase] = []
    silent: list[Silence] = []
    errors: list[KbError] = []
    for place in found:
        try:
            bases.append(_opened(place, progress))
        except KbError as error:
            errors.append(error)
            silent.append(Silence(_name_of(place), str(error)))
    if not bases:
        raise errors[0]
    if len(bases) == 1 and not silent and isinstance(bases[0], KnowledgeBase):
        return bases[0]
    return Bases(bases, silent)


class Bases:
    """Bases that are asked together, with the face of a `KnowledgeBase`. Safe to share between threads."""

    bundled = False

    def __init__(self, bases: Sequence[KnowledgeBase | RemoteBase], silent: Sequence[Silence] = ()) -> None:
        """`bases`: in the order in which they are asked; one at least. `silent`: those that cannot be opened."""
        self.local: list[KnowledgeBase] = [base for base in bases if isinstance(base, KnowledgeBase)]
        self.remote: list[RemoteBase] = [base for base in bases if not isinstance(base, KnowledgeBase)]
        self.silent: tuple[Silence, ...] = tuple(silent)
        self.votes: Votes | None = None
        """what people said of the answers of all these bases; they count as soon as this is set"""
        self._order = [base.name for base in bases]
        self._catalogue: Catalogue | None = None

    @property
    def name(self) -> str:
        return ", ".join(self._order)

    @property
    def where(self) -> str:
        """The names or folders of the bases, for a person."""
        return self.name

    @property
    def size(self) -> int:
        """How many issues the bases on this machine know."""
        return sum(base.size for base in self.local)

    @property
    def snapshot(self) -> str:
        return "+".join(base.snapshot for base in self.local)

    @property
    def stale(self) -> str:
        """See `KnowledgeBase.stale`; of the bases on this machine."""
        return "; ".join(filter(None, (base.stale for base in self.local)))

    def __enter__(self) -> Bases:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for base in self.local:
            base.close()

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
        """See `KnowledgeBase.search`; the best of all bases. A project that only some of them have is looked for in
        these; QueryError is raised when none of them has it."""

        def search(k: int) -> SearchResult:
            return self._search(text, k, lang, only, project, min_confidence, printed)

        return with_votes(self.votes, search, k, min_confidence)

    def _search(
        self,
        text: str,
        k: int,
        lang: Lang | None,
        only: Lang | None,
        project: str | None,
        min_confidence: float,
        printed: bool,
    ) -> SearchResult:
        wanted = {"k": k, "lang": lang, "only": only, "project": project, "min_confidence": min_confidence}
        asking = self._ask_remote(text, wanted)
        silent = list(self.silent)
        results, refused = _each(
            self.local,
            lambda base: base.search(
                text, k, lang=lang, only=only, project=project, min_confidence=min_confidence, printed=printed
            ),
            silent,
        )
        for one in asking:
            answer, silence = one.answer()
            results += [answer] if answer else []
            silent += [silence] if silence else []
        if not results:
            refused.sort(key=lambda error: not (error.hint or "").startswith("did you mean"))
            raise refused[0] if refused else BaseUnreachable("no base answers", hint="; ".join(map(": ".join, silent)))
        results.sort(key=lambda result: self._order.index(result.bases[0]))
        return _merged(results, k, silent)

    def _ask_remote(self, text: str, wanted: dict[str, Any]) -> list[Asking]:
        """They are asked first and answer while the others search."""
        if not self.remote:
            return []
        from kb.logs.read import read

        query = read(text)
        return [base.ask(query, wanted) for base in self.remote]

    def scanners(self, project: str | None = None) -> tuple[Scanner, ...]:
        """See `KnowledgeBase.scanner`: one for each base on this machine. A log is not sent to others."""
        return tuple(base.scanner(project) for base in self.local)

    def scan(
        self, lines: Iterable[str] | Iterable[bytes], *, lang: Lang | None = None, warnings: bool = False
    ) -> ScanReport:
        """See `KnowledgeBase.scan`."""
        return scan_lines(self.scanners(), lines, lang=lang, warnings=warnings)

    def show(self, issue: str) -> list[IssueRecord]:
        """See `KnowledgeBase.show`: of the first base that has the issue. Raises BaseUnreachable where none of those
        that answer has it and another one does not answer: that one may."""
        silent = list(self.silent)
        found, refused = _each(self.local, lambda base: base.show(issue), silent)
        for base in self.remote if not found else ():
            try:
                found += [records] if (records := base.show(issue)) else []
            except BaseUnreachable as error:
                silent.append(Silence(base.name, error.message))
        if found:
            return found[0]
        if silent:
            raise BaseUnreachable(
                f"no base that answers has the issue {issue!r}", hint="; ".join(map(": ".join, silent))
            )
        raise next(iter(refused), IndexMissing(f"there is no issue {issue!r} in these bases"))

    def issue(self, issue: str) -> list[IssueRecord]:
        """See `KnowledgeBase.issue`: of the first base on this machine that has the issue."""
        return next((found for base in self.local if (found := base.issue(issue))), [])

    def near(self, issue: str, cutoff: float = 0.6) -> list[str]:
        """See `KnowledgeBase.near`; of the bases on this machine."""
        return list(dict.fromkeys(name for base in self.local for name in base.near(issue, cutoff)))[:3]

    def records(self) -> list[IssueRecord]:
        """Every issue of the bases on this machine in each of its languages; of an id that two have, the first's."""
        return [*self.catalogue().records]

    def catalogue(self) -> Catalogue:
        """The issues of the newest snapshots of the bases on this machine; of an id that two have, the first's."""
        snapshot, kept = self.snapshot, self._catalogue
        if kept is None or kept.snapshot != snapshot:
            seen: set[str] = set()
            records: list[IssueRecord] = []
            for base in self.local:
                own = [record for record in base.records() if record.issue not in seen]
                seen.update(record.issue for record in own)
                records += own
            kept = self._catalogue = catalogue_of(snapshot, records)
        return kept

    def projects(self) -> list[tuple[str, int]]:
        """See `KnowledgeBase.projects`; of all bases. One that does not answer is left out, with a warning; raises
        BaseUnreachable where that leaves none."""
        import logging  # both late: a start has no use for them
        from collections import Counter

        counts, silent = Counter(dict(self.catalogue().projects)), list[BaseUnreachable]()
        for base in self.remote:
            try:
                counts.update(dict(base.projects()))
            except BaseUnreachable as error:
                silent.append(error)
        if silent and len(silent) == len(self._order):
            raise silent[0]
        for one in silent:
            logging.getLogger("kb").warning("%s; its projects are left out", one)
        return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0].casefold()))


def _each(
    bases: Iterable[KnowledgeBase], ask: Callable[[KnowledgeBase], _T], silent: list[Silence] | None = None
) -> tuple[list[_T], list[KbError]]:
    """What each base answers; and why some do not: they have no such project, or no such issue, or are in a store that
    is away, of which `silent` is told."""
    answers: list[_T] = []
    refused: list[KbError] = []
    for base in bases:
        try:
            answers.append(ask(base))
        except (QueryError, IndexMissing) as error:
            refused.append(error)
        except (BaseUnreachable, IndexCorrupt) as error:
            refused.append(error)
            if silent is not None:
                silent.append(Silence(base.name, error.message))
    return answers, refused


def _merged(results: Sequence[SearchResult], k: int, silent: Sequence[Silence]) -> SearchResult:
    """One answer: the verdict is that of the surest hit, in the base that it comes from."""
    first = max(results, key=lambda result: (_RANK[result.verdict], *map(_sureness, result.hits[:1])))
    others = [hit for result in results if result is not first for hit in result.hits]
    # The leading base has ordered its own hits by more than their confidence, so its first stays first.
    hits: list[Hit] = []
    for hit in [*first.hits[:1], *sorted([*first.hits[1:], *others], key=_worst_last)]:
        if len(hits) < k and not any(hit.base != one.base and same_fault(hit.record, one.record) for one in hits):
            hits.append(hit)
    likely = [hit.issue for hit in hits if hit.confidence >= LIKELY_AT and not hit.ruled_out][:MOST_LIKELY]
    return replace(
        first,
        hits=tuple(replace(hit, rank=rank) for rank, hit in enumerate(hits, 1)),
        snapshot="+".join(result.snapshot for result in results),
        bases=tuple(base for result in results for base in result.bases),
        took_ms=sum(result.took_ms for result in results),
        likely=tuple(likely) if first.verdict == "likely" else (),
        silent=tuple(silent),
    )


_RANK = {"known": 2, "likely": 1, "unknown": 0}


def _worst_last(hit: Hit) -> tuple[bool, float]:
    return hit.ruled_out, -_sureness(hit)


def _sureness(hit: Hit) -> float:
    """As exact as it comes over HTTP: of two equal ones the base that is asked first wins."""
    return round(hit.confidence, 4)


def _name_of(place: Place) -> str:
    if place.name:
        return place.name
    assert isinstance(place, Location)
    return "bundled" if place.bundled else place.where


def _opened(place: Place, progress: Progress | None) -> KnowledgeBase | RemoteBase:
    if isinstance(place, Location):
        return KnowledgeBase.at(place, progress=progress)
    from kb.remote import RemoteBase

    return RemoteBase(place)


AnyBase = KnowledgeBase | Bases
"""one base, or several that are asked together"""
