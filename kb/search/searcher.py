"""Here is an open index and a question that was read; give me its hits: what is near, how sure, and what is shared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kb.arrays import Array
from kb.encoders import Encoder
from kb.index.store import Store
from kb.logs.codes import codes
from kb.logs.variables import mask
from kb.records import Features, Hit, IssueRecord, Lang, Query
from kb.search import ranking
from kb.search.features import Printed, weigh

__all__ = ["Snapshot"]

_MAX_KEPT = 10_000  # records whose error lines are kept as terms
_MATCHED_TERMS = 5
_TELLING = 0.3  # of the term that tells most: what tells less is not named


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An index that was opened, and its encoder: what one search asks from its beginning to its end."""

    store: Store
    encoder: Encoder
    _printed: dict[int, Printed] = field(default_factory=dict)

    def hits(self, query: Query, k: int, rows: Array | None, lang: Lang | None) -> list[Hit]:
        """The k nearest of `rows` (None: of all), nearest first, told in `lang` or in the question's language."""
        store, pasted = self.store, bool(query.signatures)
        found = weigh(store, self.encoder, query, rows, k, self._printed_by)
        scores = ranking.scores(found.features, pasted=pasted)
        beside = self._best_beside(query, rows, found.rows)
        order = np.lexsort((found.rows, -scores))
        evidence, scores, rows_ = found.features[order], scores[order], found.rows[order]
        confidences = ranking.confidences(evidence, scores, beside, pasted=pasted, chinese=query.lang == "zh")
        chosen = rows_[:k].tolist()
        shown = store.records([store.telling(row, lang or query.lang) for row in chosen])
        matched = _matched(store, query, chosen, shown, found.terms)
        return [
            Hit(
                rank=rank + 1,
                issue=record.issue,
                record=record,
                score=float(scores[rank]),
                confidence=float(confidences[rank]),
                features=Features(*evidence[rank].tolist()),
                matched=matched[rank],
            )
            for rank, record in enumerate(shown)
        ]

    def _best_beside(self, query: Query, rows: Array | None, found: Array) -> float:
        """The highest score of an issue that a filter leaves out: it makes those that are left no surer."""
        if rows is None:
            return 0.0
        everywhere = weigh(self.store, self.encoder, query, None, 1, self._printed_by)
        left_out = ~np.isin(self.store.issues(everywhere.rows), self.store.issues(found))
        return float(ranking.scores(everywhere.features[left_out], pasted=bool(query.signatures)).max(initial=0.0))

    def _printed_by(self, row: int) -> Printed:
        """Kept, for the same few records are near to many questions."""
        found = self._printed.get(row)
        if found is None:
            if len(self._printed) >= _MAX_KEPT:
                self._printed.clear()
            lines = self.store.records([row])[0].errors
            terms = [self.store.tokenise(mask(line)) for line in lines]
            found = self._printed[row] = Printed(terms, codes("\n".join(lines)))
        return found


def _matched(
    store: Store, query: Query, rows: Sequence[int], records: Sequence[IssueRecord], terms: Sequence[str]
) -> list[tuple[str, ...]]:
    """For each row: the error lines of its issue that the question repeats, then the shared terms that tell most."""
    asked = _flat("\n".join((*query.signatures, query.prose)))
    matched = []
    for record, weight in zip(records, store.weights(terms, rows), strict=True):
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
