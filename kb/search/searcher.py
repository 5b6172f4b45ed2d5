"""One opened index and its encoder: what a search asks from its beginning to its end."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from kb.encoders import Encoder
from kb.errors import QueryError
from kb.index.encoded import require_same
from kb.index.store import Store
from kb.logs.codes import codes
from kb.logs.read import read
from kb.logs.variables import mask
from kb.records import Features, Hit, IssueRecord, Lang, Query, SearchResult
from kb.search import ranking
from kb.search.features import Printed, candidates
from kb.search.terms import TermInformation

__all__ = ["MAX_K", "Searcher"]

MAX_K = 100
_MAX_KEPT = 10_000  # records whose error lines are kept as terms
_MATCHED_TERMS = 5
_LEAST_INFORMATIVE = 0.3  # of the most informative shared term: below this a term is not shown as matched


class Searcher:
    """Answers questions from one snapshot. Safe to share between threads."""

    def __init__(self, store: Store, encoder: Encoder, *, base: str = "") -> None:
        """`base`: how answers name the base. Raises IndexMismatch when `encoder` is not the one that made the index."""
        require_same(store, encoder)
        self.store: Store = store
        self.encoder: Encoder = encoder
        self.base: str = base
        header = store.header
        self.snapshot: str = header.snapshot
        self._information = TermInformation(header.vocabulary, header.columns.size)
        self._printed: dict[int, Printed] = {}  # a memo: the same few records are near to many questions

    def records(self) -> list[IssueRecord]:
        """Every issue in each of its languages, in the index's order."""
        return self.store.records(range(self.store.header.columns.size))

    def search(
        self,
        text: str,
        k: int = 5,
        *,
        lang: Lang | None = None,
        project: str | None = None,
        min_confidence: float = ranking.ANSWER_AT,
    ) -> SearchResult:
        """See `KnowledgeBase.search`."""
        started = time.perf_counter()
        if not 1 <= k <= MAX_K:
            raise QueryError(f"k is {k}, it can be 1 to {MAX_K}")
        if lang not in (None, "en", "zh"):
            raise QueryError(f"lang is {lang!r}, it can be 'en' or 'zh'")
        if not 0 <= min_confidence <= 1:
            raise QueryError(f"min_confidence is {min_confidence}, it can be 0 to 1")
        query = read(text)
        columns, manifest = self.store.header.columns, self.store.header.manifest
        rows = columns.rows(lang=lang, project=project)
        if rows is not None and not len(rows) and not self._knows(project):
            known = ", ".join(manifest["projects"][:20])
            raise QueryError(f"no article is about the project {project!r}", hint=f"`kb projects` lists them: {known}")
        hits = self._hits(query, k, rows, lang)
        answered = bool(hits) and hits[0].confidence >= min_confidence
        took_ms = (time.perf_counter() - started) * 1000
        folder = manifest.get("folder", "articles")
        return SearchResult(query, answered, tuple(hits), self.snapshot, folder, self.base, took_ms)

    def _knows(self, project: str | None) -> bool:
        rows = self.store.header.columns.rows(project=project)
        return rows is None or len(rows) > 0

    def _hits(self, query: Query, k: int, rows: np.ndarray | None, lang: Lang | None) -> list[Hit]:
        """The k nearest of `rows` (None: of all), nearest first, in `lang` or in the question's language."""
        columns, fit = self.store.header.columns, ranking.fit_for(pasted=bool(query.signatures))
        found = candidates(self.store, self.encoder, self._information, query, rows, k, self._printed_by)
        scores = ranking.scores(found.features, fit)
        confidences = ranking.confidences(found.features, scores, fit, chinese=query.lang == "zh")
        order = np.lexsort((found.rows, -scores))
        order = order[found.inside[order]][:k]
        chosen = found.rows[order]
        in_language = [columns.translation(row, lang or query.lang) for row in chosen.tolist()]
        if rows is not None:  # a filter holds for what is shown, too
            in_language = [
                other if other in rows else row for other, row in zip(in_language, chosen.tolist(), strict=True)
            ]
        shown = self.store.records(in_language)
        matched = self._matched(query, chosen, shown, found.terms)
        return [
            Hit(
                rank=rank,
                issue=record.issue,
                record=record,
                score=float(scores[at]),
                confidence=float(confidences[at]),
                features=Features(**{name: float(column[at]) for name, column in found.features.items()}),
                matched=strings,
            )
            for rank, (at, record, strings) in enumerate(zip(order.tolist(), shown, matched, strict=True), 1)
        ]

    def _printed_by(self, row: int) -> Printed:
        found = self._printed.get(row)
        if found is None:
            if len(self._printed) >= _MAX_KEPT:
                self._printed.clear()
            lines = self.store.records([row])[0].errors
            terms = [self.store.header.vocabulary.tokenise(mask(line)) for line in lines]
            found = self._printed[row] = Printed(terms, codes("\n".join(lines)))
        return found

    def _matched(
        self, query: Query, rows: np.ndarray, records: Sequence[IssueRecord], terms: Sequence[str]
    ) -> list[tuple[str, ...]]:
        """For each row: the error lines of its issue that the question repeats, then the most informative terms that
        they share."""
        question = _flat("\n".join((*query.signatures, query.prose)))
        matched = []
        for record, weight in zip(
            records, self.store.weights(terms, rows) * self._information.scale(terms), strict=True
        ):
            lines: list[str] = []
            repeated = ""
            for line in sorted(record.errors, key=len, reverse=True):
                words = _flat(line)
                if len(words) > 2 and words in question and words not in repeated:
                    lines.append(line)
                    repeated += words
            least = max(_LEAST_INFORMATIVE * float(weight.max(initial=0)), 1e-6)
            order = [i for i in np.argsort(-weight, kind="stable").tolist() if weight[i] >= least]
            shared = [terms[i] for i in order if not (terms[i].isdigit() or terms[i] in repeated)]
            matched.append((*lines[:2], *shared[:_MATCHED_TERMS]))
        return matched


def _flat(text: str) -> str:
    """The words of a text in lower case, one space before and after each."""
    return f" {' '.join(text.casefold().split())} "
