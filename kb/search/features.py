"""Here is a question and an index; give me the issues worth a look, and what speaks for each.

Both halves of the index name candidates: records whose views lie near to a line of the question or to all of it, and
records that share its words. All tellings of such an issue then count as one, each kind of evidence by the telling that
has most of it: a Chinese question with English terms in it finds words in both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from kb.arrays import Array
from kb.encoders import Encoder
from kb.index.store import Store
from kb.logs.classify import is_launcher_line
from kb.logs.codes import codes, contradicts
from kb.logs.variables import mask
from kb.records import Query
from kb.search import ranking

__all__ = ["Candidates", "Printed", "question_views", "weigh"]

_CANDIDATES = 60  # from each half; the right record is among them or nowhere
_CLOSE_LOOK = 16  # issues whose error lines are compared word by word
_CONTRADICTED = 0.5  # of what speaks for an issue, what is left when it prints another exit code
_MAX_TERMS = 400  # of a long log, those that tell most


@dataclass(frozen=True, slots=True)
class Printed:
    """The error lines of a record."""

    terms: list[list[str]]
    """of each line, masked"""
    codes: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Issues, in no order."""

    rows: Array
    """(n,) int: the record of each that shares most with the question"""
    features: Array
    """(n, fields of Features) float32 in [0, 1]"""
    terms: tuple[str, ...]
    """what the question says, without frames"""


def weigh(
    store: Store,
    encoder: Encoder,
    query: Query,
    rows: Array | None,
    k: int,
    printed_by: Callable[[int], Printed],
) -> Candidates:
    """At least the k best of `rows`, where there are so many. `printed_by`: what the record of a row prints."""
    printed, prose = _shares(store, "\n".join(query.signatures)), _shares(store, query.prose)
    said = _merged(prose, printed)
    terms = _telling(store, printed, _merged(said, _shares(store, query.context)))
    vectors = np.nan_to_num(encoder.encode(question_views(query), kind="query"), posinf=0, neginf=0)
    most = max(_CANDIDATES, 2 * k)  # both tellings of an issue may be among them
    named = {*store.dense(vectors, most, rows).rows, *store.lexical(terms, most, rows).rows}
    if not named:
        return Candidates(np.zeros(0, np.int64), np.zeros((0, len(ranking.NAMES)), np.float32), tuple(said))
    tellings, issues = store.tellings(sorted(named), rows)
    starts = np.flatnonzero(np.concatenate([[True], issues[1:] != issues[:-1]]))

    by_telling = store.weights(terms, tellings.tolist())
    weights = np.maximum.reduceat(by_telling, starts, axis=0)
    tells = store.information(terms)
    unseen = float(store.information([""])[0])
    # Each line alone finds candidates; of those that print the same line, the circumstances tell: the whole, last.
    cosines = np.maximum.reduceat(store.cosines(vectors[-1:], tellings.tolist()), starts, axis=0).clip(0, 1)
    said_of_each, ahead = ranking.in_words(weights.sum(axis=1), unseen)
    evidence = np.stack(
        [
            (cosines[:, 0] + cosines[:, 2]) / 2,
            (cosines[:, 3] + cosines[:, 4]) / 2,
            said_of_each,
            ahead if query.signatures else np.zeros(len(starts)),
            _covered(weights, tells, terms, said, unseen),
            _covered(weights, tells, terms, printed, unseen),
            np.zeros(len(starts)),
        ],
        axis=1,
        dtype=np.float32,
    )
    best = _best_of_each(by_telling.sum(axis=1), starts)
    # Reading a record costs more than all else here: only what the other evidence already speaks for.
    lines = [store.tokenise(mask(line)) for line in (query.signatures or (query.prose,))]
    promising = np.argsort(-ranking.scores(evidence, pasted=bool(query.signatures)), kind="stable")[:_CLOSE_LOOK]
    asked = _asked_codes(query)
    for i in promising.tolist():
        told = printed_by(int(tellings[best[i]]))
        evidence[i, -1] = ranking.closeness(lines, told.terms)
        if contradicts(asked, told.codes):
            evidence[i] *= _CONTRADICTED
    return Candidates(tellings[best], evidence, tuple(said))


def _asked_codes(query: Query) -> frozenset[tuple[str, str]]:
    """An ordinary exit code says something only where nothing else does: launchers end every failure with one."""
    found = codes("\n".join((*query.signatures, query.prose, query.context)))
    return found if all(map(is_launcher_line, query.signatures)) else found - {("exit", "code")}


def _covered(weights: Array, tells: Array, terms: Sequence[str], part: dict[str, float], unseen: float) -> Array:
    """(issues,): what each issue covers of `part`, terms with the share of a word that each is."""
    share = np.fromiter((part.get(term, 0.0) for term in terms), np.float32, len(terms))
    return ranking.coverage(weights, tells * share, unseen)


def _best_of_each(scores: Array, starts: Array) -> Array:
    """The position of the highest score in every group; `starts` are the groups' first positions."""
    group = np.repeat(np.arange(len(starts)), np.diff([*starts.tolist(), len(scores)]))
    order = np.lexsort((-scores, group))
    return order[np.searchsorted(group, np.arange(len(starts)))]


def _shares(store: Store, text: str) -> dict[str, float]:
    return store.shares(text) if text else {}


def _merged(*parts: dict[str, float]) -> dict[str, float]:
    merged: dict[str, float] = {}
    for part in parts:
        for term, share in part.items():
            merged[term] = max(merged.get(term, 0.0), share)
    return merged


def _telling(store: Store, printed: Collection[str], terms: Collection[str]) -> list[str]:
    """The terms; of a long text those of the error lines, and then those that tell most."""
    if len(terms) <= _MAX_TERMS:
        return list(terms)
    tells = dict(zip(terms, store.information(list(terms)).tolist(), strict=True))
    return sorted(terms, key=lambda term: (term not in printed, -tells[term]))[:_MAX_TERMS]


def question_views(query: Query) -> list[str]:
    """What is encoded: every error line (the first few), the prose, and last both together."""
    views = [*query.signatures[:3], query.prose[:2000]]
    if len(query.signatures) > 1 or (query.signatures and query.prose not in query.signatures):
        views.append("\n".join(views))
    return [view for view in dict.fromkeys(views) if view.strip()]
