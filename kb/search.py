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
from kb.evidence import weigh
from kb.locate import Location, is_fresh, locate
from kb.records import Evidence, Hit, IssueRecord, Lang, Query, SearchResult
from kb.signature import mask, read
from kb.store_faiss import FaissStore

if TYPE_CHECKING:
    from kb.build import BuildReport, Progress
    from kb.store import Store

__all__ = ["MAX_K", "KnowledgeBase"]

MAX_K = 100
_MAX_KEPT = 10_000  # records whose error lines are kept as terms
_MATCHED_TERMS = 5
_TELLING = 0.3  # of the term that tells most: what tells less is not named
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
        rows = self._store.rows(lang=lang, project=project)
        if rows is not None and not len(rows) and not self._knows(project):
            known = ", ".join(self._store.manifest["projects"][:20])
            raise QueryError(f"no article is about the project {project!r}", hint=f"`kb projects` lists them: {known}")
        hits = self._hits(query, k, rows, lang)
        answered = bool(hits) and hits[0].confidence >= min_confidence
        took_ms = (time.perf_counter() - started) * 1000
        folder = self._store.manifest.get("folder", "articles")
        return SearchResult(query, answered, tuple(hits), self.snapshot, folder, took_ms)

    def _knows(self, project: str | None) -> bool:
        rows = self._store.rows(project=project)
        return rows is None or len(rows) > 0

    def _hits(self, query: Query, k: int, rows: Array | None, lang: Lang | None) -> list[Hit]:
        store, pasted = self._store, bool(query.signatures)
        found = weigh(store, self._encoder, query, rows, k, self._error_terms)
        scores = ranking.scores(found.evidence, pasted=pasted)
        order = np.lexsort((found.rows, -scores))
        evidence, scores, rows_ = found.evidence[order], scores[order], found.rows[order]
        confidences = ranking.confidences(evidence, scores, pasted=pasted, chinese=query.lang == "zh")
        chosen = rows_[:k].tolist()
        shown = store.records([store.telling(row, lang or query.lang) for row in chosen])
        matched = self._matched(query, chosen, shown, found.terms)
        return [
            Hit(
                rank=rank + 1,
                issue=record.issue,
                record=record,
                score=float(scores[rank]),
                confidence=float(confidences[rank]),
                evidence=Evidence(*evidence[rank].tolist()),
                matched=matched[rank],
            )
            for rank, record in enumerate(shown)
        ]

    def _error_terms(self, row: int) -> list[list[str]]:
        """The error lines of a record as masked terms; kept, for the same few records are near to many questions."""
        found = self._errors.get(row)
        if found is None:
            if len(self._errors) >= _MAX_KEPT:
                self._errors.clear()
            errors = self._store.records([row])[0].errors
            found = self._errors[row] = [self._store.tokenise(mask(line)) for line in errors]
        return found

    def _matched(
        self, query: Query, rows: Sequence[int], records: Sequence[IssueRecord], terms: Sequence[str]
    ) -> list[tuple[str, ...]]:
        """For each row: the error lines of its issue that the question repeats, then the shared terms that tell
        most."""
        asked = _flat("\n".join((*query.signatures, query.prose)))
        matched = []
        for record, weight in zip(records, self._store.weights(terms, rows), strict=True):
            whole: list[str] = []
            said = ""
            for line in sorted(record.errors, key=len, reverse=True):
                words = _flat(line)
                if len(words) > 2 and words in asked and words not in said:
                    whole.append(line)
                    said += words
            least = max(_TELLING * float(weight.max(initial=0)), 1e-6)
            order = [i for i in np.argsort(-weight, kind="stable").tolist() if weight[i] >= least]
            shared = [terms[i] for i in order if not (terms[i].isdigit() or terms[i] in said)]
            matched.append((*whole[:2], *shared[:_MATCHED_TERMS]))
        return matched


def _flat(text: str) -> str:
    """The words of a text in small letters, one space before and behind each."""
    return f" {' '.join(text.casefold().split())} "


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
