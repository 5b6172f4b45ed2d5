"""Here is a question; give me the known issues that are nearest, and whether any of them is near enough to speak of."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from kb import ranking
from kb.arrays import Array
from kb.encoders import Encoder, open_encoder, probe
from kb.errors import EncoderUnavailable, IndexCorrupt, IndexMismatch, IndexMissing, QueryError
from kb.locate import Location, is_fresh, locate
from kb.records import Evidence, Hit, IssueRecord, Lang, Query, SearchResult
from kb.signature import mask, read
from kb.store_faiss import FaissStore

if TYPE_CHECKING:
    from kb.build import BuildReport, Progress
    from kb.store import Store

__all__ = ["MAX_K", "KnowledgeBase"]

MAX_K = 100
_CANDIDATES = 60  # from each half; the right record is among them or nowhere
_MAX_KEPT = 10_000  # records whose error lines are kept as terms
_CLOSE_LOOK = 20  # of these, how many have their error lines compared
_MAX_TERMS = 400  # of a long log, those that tell most
_MATCHED_TERMS = 5
_PROBE_COSINE = 0.999


class KnowledgeBase:
    """An open index and its encoder. Immutable once open, and safe to share between threads."""

    def __init__(self, store: Store, encoder: Encoder) -> None:
        """Raises IndexMismatch when `encoder` is not the one that made the index."""
        self._store = store
        self._encoder = encoder
        self._errors: dict[int, list[list[str]]] = {}
        self._where = ""
        _require_same(store, encoder)

    @classmethod
    def open(cls, index: str | Path | None = None, *, encoder: Encoder | str | None = None) -> KnowledgeBase:
        """The base in the folder `index`; without one, `KB_INDEX`, the base of the current folder, or the one that
        travels inside the package, whose index is made in the user's cache at first use.

        Raises IndexMissing, IndexCorrupt, IndexMismatch, EncoderUnavailable.
        """
        place = locate(index)
        store = _opened(place)
        made_by = store.manifest.get("encoder", {}).get("name")
        try:
            engine = open_encoder(encoder or made_by, offline=True) if isinstance(encoder, str | None) else encoder
        except EncoderUnavailable as error:
            raise EncoderUnavailable(
                f"this index was made with the encoder {made_by!r}: {error.message}", path=place.index, hint=error.hint
            ) from None
        base = cls(store, engine)
        base._where = str(place.articles or place.index)
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
        """Makes or renews the index of a folder of articles; see `kb.build.build`."""
        from kb.build import build

        return build(Path(articles), Path(index), encoder=encoder, keep_going=keep_going, progress=progress)

    def __enter__(self) -> KnowledgeBase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        close = getattr(self._store, "close", None)
        if close is not None:
            close()

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

    def records(self) -> list[IssueRecord]:
        """Every issue in each language it is told in, in the index's order."""
        return self._store.records(range(self._store.size))

    def projects(self) -> list[tuple[str, int]]:
        """Every project with how many issues it has; most first, then by name."""
        from collections import Counter

        counts = Counter(project for project, _ in {(r.project, r.issue) for r in self.records() if r.project})
        return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0].casefold()))

    def show(self, issue: str) -> list[IssueRecord]:
        """All tellings of `issue` (`slug#n`, `slug#n/lang`, or a slug for all its issues), in the index's order.

        Raises IndexMissing for an id that is not in the index. Ids are looked up, never used as paths.
        """
        records = self.records()
        wanted = issue.strip().casefold()
        found = [r for r in records if wanted in (r.id.casefold(), r.issue.casefold())]
        found = found or [r for r in records if r.issue.casefold().rpartition("#")[0] == wanted]
        if not found:
            from difflib import get_close_matches

            near = get_close_matches(wanted, sorted({r.issue for r in records}), n=3, cutoff=0.4)
            hint = f"did you mean {', '.join(near)}?" if near else "`kb search` finds ids"
            raise IndexMissing(f"there is no issue {issue!r} in this base", hint=hint)
        return found

    def search(self, text: str, k: int = 5, *, lang: Lang | None = None, project: str | None = None) -> SearchResult:
        """The k issues nearest to `text` (an error line, a whole log, a description), nearest first.

        An issue is listed once, whichever language matched, told in the question's language where it can be; `lang`
        searches and shows one language only. Raises QueryError for a question with no words, an unknown project, or k
        outside 1..MAX_K.
        """
        started = time.perf_counter()
        if not 1 <= k <= MAX_K:
            raise QueryError(f"k is {k}, it can be 1 to {MAX_K}")
        if lang not in (None, "en", "zh"):
            raise QueryError(f"lang is {lang!r}, it can be 'en' or 'zh'")
        query = read(text)
        rows = self._store.rows(lang=lang, project=project)
        if rows is not None and not len(rows) and not self._knows(project):
            known = ", ".join(self._store.manifest["projects"][:20])
            raise QueryError(f"no article is about the project {project!r}", hint=f"`kb projects` lists them: {known}")
        hits = self._hits(query, k, rows, lang)
        answered = bool(hits) and hits[0].confidence >= ranking.ANSWER_AT
        took_ms = (time.perf_counter() - started) * 1000
        folder = self._store.manifest.get("folder", "articles")
        return SearchResult(query, answered, tuple(hits), self.snapshot, folder, took_ms)

    def _knows(self, project: str | None) -> bool:
        rows = self._store.rows(project=project)
        return rows is None or len(rows) > 0

    def _hits(self, query: Query, k: int, rows: Array | None, lang: Lang | None) -> list[Hit]:
        store = self._store
        parts = dict.fromkeys(("\n".join((*query.signatures, query.prose)), "\n".join(query.signatures)))
        said = [_telling(store, part) for part in parts if part] or [{}]
        terms, frames = list(said[0]), list(_telling(store, query.context))
        vectors = np.nan_to_num(self._encoder.encode(_question_views(query), kind="query"), posinf=0, neginf=0)
        most = max(_CANDIDATES, 2 * k)  # both tellings of an issue may be among them
        near = store.dense(vectors, most, rows)
        alike = store.lexical([*terms, *(term for term in frames if term not in set(terms))], most, rows)
        candidates = sorted({*near.rows, *alike.rows})
        if not candidates:
            return []
        evidence = self._evidence(query, candidates, vectors, said, frames)
        scores = [ranking.score(one) for one in evidence]
        best: dict[int, int] = {}  # issue number -> its best candidate
        numbers = store.issue_of(candidates)
        for i in sorted(range(len(candidates)), key=lambda i: (-scores[i], candidates[i])):
            best.setdefault(numbers[i], i)
        leads = _leads([scores[i] for i in best.values()])
        chosen = list(best.values())[:k]
        shown = [store.telling(candidates[i], lang or query.lang) for i in chosen]
        hits = []
        for rank, (i, record) in enumerate(zip(chosen, store.records(shown), strict=True), 1):
            one = evidence[i]
            hits.append(
                Hit(
                    rank=rank,
                    issue=record.issue,
                    record=record,
                    score=scores[i],
                    confidence=ranking.confidence(one, leads[rank - 1]),
                    evidence=one,
                    matched=self._matched(query, candidates[i], terms),
                )
            )
        return hits

    def _evidence(
        self,
        query: Query,
        rows: Sequence[int],
        vectors: Array,
        said: Sequence[dict[str, float]],
        frames: Sequence[str],
    ) -> list[Evidence]:
        """`said`: terms and shares of the whole question, then of its error lines alone: the better of the two counts,
        for a log holds lines that have nothing to do with its failure."""
        store = self._store
        # Each line alone finds candidates; of those that print the same line, the circumstances tell.
        dense = np.clip(store.cosines(vectors[-1:], rows), 0, 1)
        terms = list(said[0])
        column = {term: i for i, term in enumerate(terms)}
        weights, tells = store.weights(terms, rows), store.information(terms)
        unseen = float(store.information([""])[0])
        covered = lexical = np.zeros(len(rows), np.float32)
        for part in said:
            columns = [column[term] for term in part if term in column]
            share = np.fromiter((part[terms[i]] for i in columns), np.float32, len(columns))
            covered = np.maximum(covered, ranking.coverage(weights[:, columns], tells[columns] * share, unseen))
            total = float((tells[columns] * share).sum()) + unseen
            lexical = np.maximum(lexical, (weights[:, columns] * share).sum(axis=1) / total)
        context = ranking.coverage(store.weights(frames, rows), store.information(frames), unseen)
        lines = [store.tokenise(mask(line)) for line in (query.signatures or (query.prose,))]
        # Reading a record costs more than all else here: only what the other evidence already speaks for.
        promising = np.argsort(-(dense + covered), kind="stable")[:_CLOSE_LOOK].tolist()
        close = [0.0] * len(rows)
        for i in promising:
            close[i] = ranking.closeness(lines, self._error_terms(rows[i]))
        each = zip(dense.tolist(), lexical.tolist(), covered.tolist(), context.tolist(), close, strict=True)
        return [Evidence(*one) for one in each]

    def _error_terms(self, row: int) -> list[list[str]]:
        """The error lines of a record as masked terms; kept, for the same few records are near to many questions."""
        found = self._errors.get(row)
        if found is None:
            if len(self._errors) >= _MAX_KEPT:
                self._errors.clear()
            errors = self._store.records([row])[0].errors
            found = self._errors[row] = [self._store.tokenise(mask(line)) for line in errors]
        return found

    def _matched(self, query: Query, row: int, terms: Sequence[str]) -> tuple[str, ...]:
        """The record's error lines that the question repeats, then the shared terms that tell most."""
        store = self._store
        asked = _spaced(store.tokenise("\n".join((*query.signatures, query.prose))))
        whole: list[str] = []
        said = ""
        for line in sorted(store.records([row])[0].errors, key=len, reverse=True):
            words = _spaced(store.tokenise(line))
            if words.strip() and words in asked and words not in said:
                whole.append(line)
                said += words
        weights = store.weights(terms, [row])[0]
        order = np.argsort(-weights, kind="stable")
        shared = [terms[i] for i in order if weights[i] > 0 and _spaced([terms[i]]) not in said]
        return (*whole[:2], *shared[:_MATCHED_TERMS])


def _leads(scores: Sequence[float]) -> list[float]:
    """Of scores, highest first: each less the best of the others (0 where there is none)."""
    first, second = (*scores, 0.0, 0.0)[:2]
    return [first - second, *(one - first for one in scores[1:])]


def _spaced(terms: Sequence[str]) -> str:
    """Terms as one string in which a run of terms is a substring."""
    return "".join(f" {term} " for term in terms)


def _telling(store: Store, text: str) -> dict[str, float]:
    """The distinct terms of `text` and their shares; of a long one those that tell most."""
    terms = store.shares(text) if text else {}
    if len(terms) > _MAX_TERMS:
        tells = store.information(list(terms))
        keep = set(np.argsort(-tells, kind="stable")[:_MAX_TERMS].tolist())
        terms = {term: share for i, (term, share) in enumerate(terms.items()) if i in keep}
    return terms


def _question_views(query: Query) -> list[str]:
    """What is encoded: every error line (the first few), the prose, and last both together."""
    views = [*query.signatures[:3], query.prose[:2000]]
    if len(query.signatures) > 1 or (query.signatures and query.prose not in query.signatures):
        views.append("\n".join(views))
    return [view for view in dict.fromkeys(views) if view.strip()]


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
    from kb.cache import renewed

    with renewed(place) as folder:
        return FaissStore(folder)


def _require_same(store: Store, encoder: Encoder) -> None:
    made = store.manifest.get("encoder", {})
    same = made.get("dim") == encoder.dim
    if same:
        now = probe(encoder)
        try:
            then = np.asarray(made.get("probe", []), np.float32)
        except (TypeError, ValueError):
            then = np.zeros(0, np.float32)
        same = then.shape == now.shape and bool(((then * now).sum(axis=1) > _PROBE_COSINE).all())
    if not same:
        raise IndexMismatch(
            f"this index was made with the encoder {made.get('name')!r} ({made.get('dim')} dimensions), "
            f"not with {encoder.name!r} ({encoder.dim}) as it is here",
            hint=f"build it again: kb build --encoder {encoder.name}",
        )
