"""Several bases asked together: the one that is part of kb, the user's own, a team's over HTTP.

Which ones: those that the caller names, else `KB_BASES`, else those of kb.toml in its order, else the base at or above
the current folder and the one that is part of kb. Each base answers by itself, as if it were asked alone, and its
answers say that they are its. Confidence means the same in every base, so the answers are put in order by it. A fault
that two bases know is one answer. A base that cannot answer is named, and the others answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from kb.base import Catalogue, KnowledgeBase, catalogue_of, scan_lines
from kb.config import BaseSettings, settings
from kb.errors import BaseUnreachable, IndexMissing, KbError, QueryError
from kb.index import locate
from kb.index.locate import Location
from kb.records import Hit, IssueRecord, Lang, SearchResult, Silence
from kb.search.same import same_fault
from kb.search.verdict import KNOWN_AT, LIKELY_AT, MOST_LIKELY

if TYPE_CHECKING:
    from kb.remote import Asking, RemoteBase
    from kb.scan import Scanner, ScanReport

__all__ = ["Bases", "Place", "open_bases", "places"]

Place = Location | BaseSettings
"""where a base is: a folder, or an address"""


_T = TypeVar("_T")


def places(names: Sequence[str] = (), *, start: Path | None = None) -> list[Place]:
    """The bases that are asked, in order. `names`: of kb.toml, `bundled`, `here` (the base at or above `start`, the
    current folder), folders, or addresses. Raises IndexMissing for a name that is none of these, SettingsError."""
    known = settings()
    names = (
        [*names] or [name for name in os.environ.get("KB_BASES", "").split(",") if name.strip()] or known.order or ()
    )
    if names:
        return _distinct(_place(name.strip(), start) for name in names)
    found: list[Place] = [place] if (place := locate.here(start)) else []
    return _distinct([*found, *map(_configured, known.bases.values()), locate.bundled()])


def open_bases(names: Sequence[str] = (), *, index: str | Path | None = None) -> KnowledgeBase | Bases:
    """The bases that `places` names, ready to be asked; one alone as a `KnowledgeBase`. `index`, or `KB_INDEX` when no
    bases are named: that index and no other. Of several, those that cannot be opened are left out, and every answer
    names them. Raises what opening raises when none is left."""
    alone = index if index is not None or names or os.environ.get("KB_BASES") else os.environ.get("KB_INDEX") or None
    if index is not None and names:
        raise QueryError("an index and bases are named, and only one of both can be", hint="--index or --base")
    return KnowledgeBase.open(alone) if alone is not None else opened(places(names))


def opened(found: Sequence[Place]) -> KnowledgeBase | Bases:
    """The bases at these places; see `open_bases`."""
    bases: list[KnowledgeBase | RemoteBase] = []
    silent: list[Silence] = []
    errors: list[KbError] = []
    for place in found:
        try:
            bases.append(_opened(place))
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
        project: str | None = None,
        min_confidence: float = KNOWN_AT,
        printed: bool = False,
    ) -> SearchResult:
        """See `KnowledgeBase.search`; the best of all bases. A project that only some of them have is looked for in
        these; QueryError is raised when none of them has it."""
        asking = self._ask_remote(text, k, lang, project, min_confidence)
        results, refused = _each(
            self.local,
            lambda base: base.search(
                text, k, lang=lang, project=project, min_confidence=min_confidence, printed=printed
            ),
        )
        silent = list(self.silent)
        for one in asking:
            answer, silence = one.answer()
            results += [answer] if answer else []
            silent += [silence] if silence else []
        if not results:
            raise refused[0] if refused else BaseUnreachable("no base answers", hint="; ".join(map(": ".join, silent)))
        results.sort(key=lambda result: self._order.index(result.bases[0]))
        return _merged(results, k, silent)

    def _ask_remote(
        self, text: str, k: int, lang: Lang | None, project: str | None, min_confidence: float
    ) -> list[Asking]:
        """They are asked first and answer while the others search."""
        if not self.remote:
            return []
        from kb.logs.read import read

        query = read(text)
        wanted = {"k": k, "lang": lang, "project": project, "min_confidence": min_confidence}
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
        """See `KnowledgeBase.show`: of the first base that has the issue."""
        found, refused = _each(self.local, lambda base: base.show(issue))
        for base in self.remote if not found else ():
            with suppress(BaseUnreachable):
                found += [records] if (records := base.show(issue)) else []
        if not found:
            raise next(iter(refused), IndexMissing(f"there is no issue {issue!r} in these bases"))
        return found[0]

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
        """See `KnowledgeBase.projects`; of the bases on this machine."""
        return list(self.catalogue().projects)


def _each(bases: Iterable[KnowledgeBase], ask: Callable[[KnowledgeBase], _T]) -> tuple[list[_T], list[KbError]]:
    """What each base answers; and why some do not: they have no such project, or no such issue."""
    answers: list[_T] = []
    refused: list[KbError] = []
    for base in bases:
        try:
            answers.append(ask(base))
        except (QueryError, IndexMissing) as error:
            refused.append(error)
    return answers, refused


def _merged(results: Sequence[SearchResult], k: int, silent: Sequence[Silence]) -> SearchResult:
    """One answer: the verdict is that of the surest hit, in the base that it comes from."""
    first = max(results, key=lambda result: (_RANK[result.verdict], result.hits[0].confidence if result.hits else 0.0))
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
    return hit.ruled_out, -hit.confidence


def _place(name: str, start: Path | None) -> Place:
    known = settings().bases
    if name in known:
        return _configured(known[name])
    if name == "bundled":
        return locate.bundled()
    if name == "here":
        if place := locate.here(start):
            return place
        raise IndexMissing("there is no base at or above this folder", path=start or Path.cwd())
    if name.startswith(("http://", "https://")):
        return BaseSettings(name, url=name.rstrip("/"))
    if Path(name).exists():
        return locate.named(Path(name))
    from difflib import get_close_matches

    names = [*known, "bundled", "here"]
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"a folder, an address, or one of: {', '.join(names)}"
    raise IndexMissing(f"there is no base {name!r}", hint=hint)


def _configured(base: BaseSettings) -> Place:
    return base if base.folder is None else replace(locate.named(base.folder), name=base.name)


def _distinct(found: Iterable[Place]) -> list[Place]:
    """Each place once: the base of a checkout of kb is also the one that is part of kb."""
    kept: dict[str, Place] = {}
    for place in found:
        kept.setdefault(_identity(place), place)
    return list(kept.values())


def _identity(place: Place) -> str:
    if isinstance(place, BaseSettings):
        return place.url or ""
    return os.path.realpath(place.articles or place.index)


def _name_of(place: Place) -> str:
    if place.name:
        return place.name
    assert isinstance(place, Location)
    return "bundled" if place.bundled else str(place.articles or place.index)


def _opened(place: Place) -> KnowledgeBase | RemoteBase:
    if isinstance(place, Location):
        return KnowledgeBase.at(place)
    from kb.remote import RemoteBase

    return RemoteBase(place)
