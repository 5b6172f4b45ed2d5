"""The features of the issues that are worth a look for one question.

Both halves of the index name candidates: the records whose vectors are nearest to the question, and those that share
its words. The translations of an issue then count as one issue, each feature by the translation that has most of it: a
Chinese question with English terms in it finds words in both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kb.arrays import Array, finite
from kb.encoders import Encoder
from kb.index.header import Filter, Vocabulary
from kb.index.passages import View
from kb.index.store import Store, Views
from kb.logs.codes import Codes, codes, contradicts
from kb.logs.variables import mask
from kb.records import Branch, Query
from kb.search import ranking
from kb.search.terms import TermInformation

__all__ = ["Candidates", "Printed", "Shares", "candidates", "codes_of", "met_branches", "question_text"]

_CANDIDATES = 20  # records from each half; with 60 nothing changes on 846 questions
_COMPARED = 8  # issues whose error lines are compared word by word; with 4 one more log is missed, with 16 none less
_SAYS_ENOUGH = 2.5  # what a line must say to identify a failure by itself; a term that no issue has says 1
_CONTRADICTED = 0.5  # what is left of every feature when the issue prints another code, or a number excludes it
_AS_MUCH = 0.97  # of the best BM25 sum of a fault: what differs less, differs by the lengths of the pages alone
_MAX_TERMS = 400  # of a long log, the most informative


class Shares(NamedTuple):
    """The terms of a question, each with the share of a word that it is."""

    errors: dict[str, float]
    prose: dict[str, float]
    context: dict[str, float]

    @classmethod
    def of(cls, query: Query, vocabulary: Vocabulary) -> Shares:
        return cls(*map(vocabulary.shares, ("\n".join(query.signatures), query.prose, query.context)))


@dataclass(eq=False, repr=False)
class Printed:
    """The error lines of a record, and what it says about the numbers in them."""

    issue: str
    terms: list[set[str]]
    """of each line, its variable parts masked"""
    pairs: list[ranking.Pairs]
    """of each line, the same in pairs of neighbours"""
    codes: Codes
    conditions: tuple[str, ...]
    branches: tuple[Branch, ...]


@dataclass(eq=False, repr=False)
class Candidates:
    """Issues, in no order."""

    rows: Array
    """(n,) int64: the record of each that shares most with the question"""
    inside: Array
    """(n,) bool: does it pass the filter? The others are here because the best of them makes the rest less sure"""
    features: dict[str, Array]
    """name -> (n,) float32 in [0, 1]"""
    described: Array
    """(n,) float32: the cosine of title and symptom with the question's error lines, or with a description"""
    ruled_out: Array
    """(n,) bool: the question prints a number that the record excludes"""
    repeated: Array
    """(n,) float32: how much of a line of the question one error line of the record repeats, as a share of what the
    line says; 0 for a line that says little"""
    ways_out: Mapping[int, Mapping[int, bool]]
    """position of an issue with many causes (a family) -> those of the issues to which it leads -> does the question
    meet the condition for that?"""
    terms: tuple[str, ...]
    """of the question, without stack frames"""

    def kin(self, position: int) -> set[int]:
        """Candidates that are no rivals of this one: of a family those to which it leads; of others, all families."""
        return set(self.ways_out.get(position, self.ways_out))


def candidates(
    store: Store,
    encoder: Encoder,
    information: TermInformation,
    query: Query,
    said: Shares,
    within: Filter,
    k: int,
    printed_by: Callable[[int], Printed],
    around: str,
    absent: Collection[int] = (),
) -> Candidates:
    """At least the k best issues within the filter, where there are so many, and the best ones outside.
    `absent`: rows of issues that are passed over as if the base did not have them.
    `printed_by` gives the error lines of the record in a row. `around`: all that was pasted, of which `query` may be a
    line: conditions of `IssueRecord.branches` are looked for in it."""
    vocabulary, columns = store.header.vocabulary, store.header.columns
    shares = _merged(said.prose, said.errors)
    terms = _most_informative(information, said.errors, _merged(shares, said.context))
    texts = [question_text(query), "\n".join(query.signatures[:3]) or query.prose[:2000]]
    vector, *others = finite(encoder.encode(list(dict.fromkeys(texts)), kind="query"))
    found = _nearest(store, vector, terms, None, k + len(absent))
    passing = columns.passing(within) if any(within) else None
    if passing is not None:
        found |= _nearest(store, vector, terms, within, k)
    found.difference_update(absent)
    translations, issues = columns.tellings(sorted(found))
    if passing is not None:
        # Of an issue that passes the filter only the translations that do.
        passes = passing[translations]
        keep = passes | ~np.isin(issues, issues[passes])
        translations, issues = translations[keep], issues[keep]
    if not len(translations):
        nothing = np.zeros(0, np.float32)
        return Candidates(
            np.zeros(0, np.int64),
            np.zeros(0, bool),
            dict.fromkeys(ranking.NAMES, nothing),
            nothing,
            np.zeros(0, bool),
            nothing,
            {},
            tuple(shares),
        )
    starts = np.flatnonzero(np.concatenate([[True], issues[1:] != issues[:-1]]))

    row_weights = store.weights(terms, translations) * information.scale(terms)
    weights = np.maximum.reduceat(row_weights, starts, axis=0)
    informative = information.of(terms)
    views = store.views(np.sort(translations))
    nearness = _cosines(views, vector, translations)
    cosines = np.maximum.reduceat(nearness, starts, axis=0).clip(0, 1)
    of_main = _cosines(views, others[0], translations) if others else nearness  # a line by itself is both texts
    described = np.maximum.reduceat(of_main[:, View.DESCRIBED], starts)
    bm25, margin = ranking.scaled_bm25(weights.sum(axis=1), information.unseen)
    nothing = np.zeros(len(starts), np.float32)
    table = {
        "body_sim": (cosines[:, View.DESCRIBED] + cosines[:, View.WHOLE]) / 2,
        "alias_sim": (cosines[:, View.ALIAS] + cosines[:, View.ALL_ALIASES]) / 2,
        "bm25": bm25,
        "bm25_margin": margin if query.signatures else nothing,
        "idf_coverage": _covered(weights, informative, terms, shares, information.unseen),
        "error_coverage": _covered(weights, informative, terms, said.errors, information.unseen),
        "bigram_overlap": nothing.copy(),
    }
    table = {name: np.asarray(column, np.float32) for name, column in table.items()}
    best = _best_of_each(row_weights.sum(axis=1), columns.issue[translations], starts)
    chosen = translations[best]
    inside = np.ones(len(chosen), bool) if passing is None else passing[chosen]
    compared = _promising(table, query, inside)
    printed = {i: printed_by(int(chosen[i])) for i in compared}
    ways_out = _ways_out(around, printed)
    if ways_out and query.signatures:
        _without_families(table["bm25_margin"], weights.sum(axis=1), ways_out, information.unseen)
    ruled_out, repeated = _compare_errors(table, query, vocabulary.tokenise, printed, information)
    return Candidates(chosen, inside, table, described, ruled_out, repeated, ways_out, tuple(shares))


def _nearest(store: Store, vector: Array, terms: Sequence[str], within: Filter | None, k: int) -> set[int]:
    most = max(_CANDIDATES, 2 * k)  # both translations of an issue may be among them
    dense, lexical = store.near(vector, terms, most, within)
    return {*dense.rows, *lexical.rows}


def _cosines(views: Views, vector: Array, rows: Array) -> Array:
    """(len(rows), len(View)) float32: the cosine of each row's best view of each kind, 0 where it has none. `rows` in
    any order, `views` theirs."""
    order = np.argsort(rows)
    found = np.zeros((len(rows), len(View)), np.float32)
    # Not `@`: BLAS would wake its threads, which cost more than these few products on a machine that is busy.
    cosines = np.einsum("vd,d->v", views.vectors, vector)
    np.maximum.at(found, (order[np.searchsorted(rows[order], views.rows)], views.kinds), cosines)
    return found


def _promising(table: dict[str, Array], query: Query, inside: Array) -> list[int]:
    """The positions that the features so far favour: reading a record costs more than everything else here, so only
    these are compared."""
    order = np.argsort(-ranking.scores(table, ranking.fit_for(pasted=bool(query.signatures))), kind="stable")
    return sorted({*order[:_COMPARED].tolist(), *order[inside[order]][:_COMPARED].tolist()})


def _compare_errors(
    table: dict[str, Array],
    query: Query,
    tokenise: Callable[[str], list[str]],
    printed: Mapping[int, Printed],
    information: TermInformation,
) -> tuple[Array, Array]:
    """Fills in `bigram_overlap` and lowers what contradicts the question; `Candidates.ruled_out` and `repeated`.
    `printed`: by position, of the issues that are compared."""
    lines = [tokenise(mask(line)) for line in (query.signatures or (query.prose,))]
    codes_asked = codes_of(query)
    asked = list(map(ranking.bigrams, lines))
    telling = [said for line in lines if sum((said := _information_of(line, information)).values()) >= _SAYS_ENOUGH]
    ruled_out, repeated = np.zeros(len(table["bigram_overlap"]), bool), np.zeros(len(table["bigram_overlap"]))
    has_numbers = any(map(str.isdigit, query.text))
    for i, one in printed.items():
        table["bigram_overlap"][i] = ranking.bigram_overlap(asked, one.pairs)
        repeated[i] = _repeated(telling, one.terms)
        ruled_out[i] = bool(one.conditions) and has_numbers and _excluded(query.text, one.conditions)
        if ruled_out[i] or contradicts(codes_asked, one.codes):
            for column in table.values():
                column[i] *= _CONTRADICTED
            repeated[i] = 0.0
    return ruled_out, repeated


def _information_of(line: Sequence[str], information: TermInformation) -> dict[str, float]:
    """Of each term of a line that is no number, as a share of that of a term that no issue has."""
    terms = [term for term in dict.fromkeys(line) if not term.isdigit()]
    return dict(zip(terms, (information.of(terms) / information.unseen).tolist(), strict=True))


def _repeated(lines: Sequence[Mapping[str, float]], printed: Sequence[Set[str]]) -> float:
    """How much of the nearest of `lines` (terms and what each says) one printed line repeats."""
    return max(
        (
            sum(says for term, says in line.items() if term in there) / sum(line.values())
            for there in printed
            for line in lines
        ),
        default=0.0,
    )


def _excluded(text: str, conditions: Sequence[str]) -> bool:
    """Does a number that the text prints fail one of the conditions?"""
    from kb.logs.conditions import evaluate  # few issues have conditions: a start need not compile these patterns
    from kb.logs.quantities import quantities

    return evaluate(conditions, quantities(text)) is False


def _ways_out(text: str, printed: Mapping[int, Printed]) -> dict[int, dict[int, bool]]:
    """`Candidates.ways_out`, among the issues that are compared."""
    position = {one.issue: i for i, one in printed.items()}
    found: dict[int, dict[int, bool]] = {}
    for i, one in printed.items():
        if one.branches:
            met = set(met_branches(text, one.branches))
            targets = dict.fromkeys(branch.issue for branch in one.branches)
            found[i] = {position[issue]: issue in met for issue in targets if issue in position}
    return found


def _without_families(margin: Array, sums: Array, ways_out: Mapping[int, Mapping[int, bool]], unseen: float) -> None:
    """Mends the margins: a family prints the same line as each issue to which it leads, and takes none of its lead."""
    alone = np.array([i not in ways_out for i in range(len(sums))])
    margin[alone] = ranking.scaled_bm25(sums[alone], unseen)[1]
    for family, ways in ways_out.items():
        others = [i for i in range(len(sums)) if i != family and i not in ways]
        margin[family] = ranking.scaled_bm25(sums[[family, *others]], unseen)[1][0]


def met_branches(text: str, branches: Sequence[Branch]) -> list[str]:
    """The issues whose condition the text meets, in order; of an issue without branches none."""
    if not any(branch.condition for branch in branches):
        return []
    from kb.logs.conditions import evaluate  # as in `_excluded`
    from kb.logs.quantities import quantities

    found = quantities(text)
    met = [one.issue for one in branches if one.condition and evaluate([one.condition], found, text) is True]
    return list(dict.fromkeys(met))


def codes_of(query: Query) -> Codes:
    """An ordinary exit code counts only where the question says nothing else: launchers end every failure with one."""
    found = codes("\n".join((*query.signatures, query.prose, query.context)))
    return found - {("exit", "code")} if query.signatures else found


def _covered(weights: Array, informative: Array, terms: Sequence[str], part: dict[str, float], unseen: float) -> Array:
    """(issues,): how much of `part` (terms, each with the share of a word that it is) each issue covers."""
    share = np.fromiter((part.get(term, 0.0) for term in terms), np.float32, len(terms))
    return ranking.coverage(weights, informative * share, unseen)


def _best_of_each(scores: Array, issues: Array, starts: Array) -> Array:
    """The position of the highest score in every group; among issues that come near it the last, which is the newest
    version (`issues`: their numbers). `starts` are the groups' first positions."""
    sizes = np.diff([*starts.tolist(), len(scores)])
    group = np.repeat(np.arange(len(starts)), sizes)
    near = scores >= _AS_MUCH * np.repeat(np.maximum.reduceat(scores, starts), sizes)
    order = np.lexsort((-scores, -issues * near, ~near, group))
    return order[np.searchsorted(group, np.arange(len(starts)))]


def _merged(*parts: dict[str, float]) -> dict[str, float]:
    merged: dict[str, float] = {}
    for part in parts:
        for term, share in part.items():
            merged[term] = max(merged.get(term, 0.0), share)
    return merged


def _most_informative(information: TermInformation, error_terms: Collection[str], terms: Collection[str]) -> list[str]:
    """The terms; of a long text those of the error lines, and then the most informative."""
    if len(terms) <= _MAX_TERMS:
        return list(terms)
    of = dict(zip(terms, information.of(list(terms)).tolist(), strict=True))
    return sorted(terms, key=lambda term: (term not in error_terms, -of[term]))[:_MAX_TERMS]


def question_text(query: Query) -> str:
    """What is encoded: the first error lines and the prose."""
    return "\n".join(dict.fromkeys(part for part in (*query.signatures[:3], query.prose[:2000]) if part.strip()))
