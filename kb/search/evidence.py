"""What speaks for and against the issues that are nearest to a question: by this an answer is verified.

The features that order the candidates (`kb.search.features`) say which issue is nearest. Whether it is the one that was
asked about is another question: in three of four cases the base does not have it, and something is always nearest. So
the first few candidates are looked at closely, field by field and sentence by sentence (`kb.index.profile`): is what
the question says in the symptom, or only in the fix? Does the record know every part of it? Does a number disagree?
`kb.search.verdict` turns the evidence into a probability.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from kb.arrays import Array
from kb.encoders import Encoder, term_table
from kb.index.profile import FRONT, Field, Profile, Sentence, digests
from kb.logs.codes import Codes, particulars
from kb.logs.variables import mask
from kb.records import Evidence, Query
from kb.search.features import Shares
from kb.search.terms import TermInformation
from kb.text import clean, sentences

__all__ = ["NAMES", "RIVALS", "Question", "Subject", "evidence"]

NAMES = tuple(f.name for f in fields(Evidence))
"""of the evidence, in the order of `Evidence`"""

RIVALS = 3
"""of the best issues that each one is compared with, sentence by sentence"""

_MOST_TERMS = 48  # of a question that are aligned by their vectors, the most informative
_MOST_LINES, _MOST_SENTENCES = 4, 12  # of a question's error lines and sentences that are compared
_PROSE_CHARS = 6000  # of a question
_CLOSE = 2.0  # units of information (a term that no issue has is 1) in "Not to be confused with" that count as 1
# Multiplications at once: with twice as many OpenBLAS wakes its other threads, and where both cores are busy a product
# of 0.1 ms then takes up to 14.
_BLAS_WORK = 1 << 18


class Question:
    """A question, prepared once for all issues that are verified."""

    def __init__(
        self,
        query: Query,
        shares: Shares,
        information: TermInformation,
        names: frozenset[str],
        encoder: Encoder,
    ) -> None:
        """`names`: the terms of the names of projects."""
        self.query: Query = query
        self._encoder = encoder
        self.particulars: Codes = particulars("\n".join((*query.signatures, query.prose))[:_PROSE_CHARS])
        said = {
            term: max(shares.errors.get(term, 0.0), shares.prose.get(term, 0.0))
            for term in (*shares.prose, *shares.errors)
            if not term.isdigit()
        }
        main = shares.errors or shares.prose
        self.terms: list[str] = list(said)
        known = information.of(self.terms) / information.unseen
        self.shares: Array = np.fromiter(said.values(), np.float32, len(said))
        self.information: Array = known * self.shares
        """(terms,) of each term of the question that is no number, as a share of that of a term that no issue has"""
        self.main_information: Array = known * np.fromiter(
            (main.get(term, 0.0) for term in said), np.float32, len(said)
        )
        """the same for its error lines, or for all of a description"""
        self.digests: Array = digests(self.terms)
        self.is_name: Array = np.fromiter((term in names for term in self.terms), bool, len(said))
        self.everything: set[int] = {*self.digests.tolist(), *digests(shares.context).tolist()}
        """the digests of all terms, those of stack frames included"""

    @cached_property
    def aligned(self) -> tuple[Array, Array]:
        """(n, dim) the vectors of the most informative terms, and (n,) what each says."""
        top = np.argsort(-self.information, kind="stable")[:_MOST_TERMS]
        vectors, norms = _vectors([self.terms[i] for i in top.tolist()])
        return vectors, norms * self.shares[top]

    @cached_property
    def sentences(self) -> tuple[Array, Array]:
        """(n, dim) the vectors of its error lines and sentences, and (n,) what each says."""
        query = self.query
        found = [*query.signatures[:_MOST_LINES], *sentences(query.prose[:_PROSE_CHARS], _MOST_SENTENCES)]
        distinct = list(dict.fromkeys(mask(clean(one))[:400] for one in found))[:_MOST_SENTENCES]
        distinct = distinct or [query.prose[:400]]
        vectors = np.nan_to_num(self._encoder.encode(distinct, kind="query"), posinf=0, neginf=0)
        return vectors, _vectors(distinct)[1]


@dataclass(eq=False, repr=False)
class Subject:
    """An issue that is verified: all of its translations together."""

    title: Array
    """(t,) uint32: the digests of the terms of its title"""
    title_information: Array
    """(t,) of each, as a share of that of a term that no issue has"""
    digests: Array
    """(n,) uint32, ascending: of its terms"""
    fields: Array
    """(n,) uint8"""
    front: Array
    """(f, dim) float32: the vectors of its front terms"""
    aliases: Array
    """(a,) the rows in `front` of the terms of the aliases, one alias after the other"""
    alias_starts: Array
    """(aliases,) where each begins; none is empty"""
    alias_says: Array
    """(a,) what each of these terms says"""
    told: Array
    """(s, dim) float32: the sentences of its front"""
    confusable: Array
    """(c, dim) float32: those of "Not to be confused with\""""
    particulars: Codes
    products: Array
    """(p,) uint32: the digests of the terms of its projects' names"""

    @classmethod
    def of(cls, profiles: Sequence[Profile], information: TermInformation, products: Sequence[str]) -> Subject:
        """`profiles`: of all translations. `products`: the terms of its projects' names."""
        title = list(dict.fromkeys(term for one in profiles for term in one.title))
        every, bits = np.concatenate([one.terms for one in profiles]), np.concatenate([one.fields for one in profiles])
        order = np.argsort(every, kind="stable")  # not np.unique, which imports numpy.ma: 8 ms of a start
        every, bits = every[order], bits[order]
        first = np.flatnonzero(np.concatenate([[True], every[1:] != every[:-1]])) if len(every) else order
        sizes = [np.diff(one.starts) for one in profiles]
        starts = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
        front, norms = term_table().vectors(np.concatenate([one.tokens for one in profiles]), starts)
        before = np.cumsum([0, *map(len, sizes)]).tolist()
        aliases = np.concatenate([one.aliases + at for one, at in zip(profiles, before, strict=False)])
        size = np.concatenate([np.diff(one.alias_starts) for one in profiles])
        size = size[size > 0]
        told = np.concatenate([one.sentences for one in profiles]).astype(np.float32)
        kinds = np.concatenate([one.kinds for one in profiles])
        return cls(
            digests(title),
            information.of(title) / information.unseen,
            every[first],
            np.bitwise_or.reduceat(bits, first) if len(first) else bits,
            front,
            aliases,
            np.cumsum(size) - size,
            norms[aliases],
            told[kinds == Sentence.FRONT],
            told[kinds == Sentence.CONFUSABLE],
            frozenset().union(*(one.particulars for one in profiles)),
            digests(products),
        )

    def fields_of(self, digests: Array) -> Array:
        """(len(digests),) uint8: the fields in which each term stands, 0 where it does not."""
        at = np.searchsorted(self.digests, digests).clip(0, max(len(self.digests) - 1, 0))
        if not len(self.digests):
            return np.zeros(len(digests), np.uint8)
        return np.where(self.digests[at] == digests, self.fields[at], 0).astype(np.uint8)


def evidence(
    question: Question,
    subjects: Sequence[Subject],
    scores: Sequence[float],
    described: Sequence[float],
    kin: Sequence[Set[int]],
) -> list[Evidence]:
    """Of the first `len(kin)` of the `subjects`. The first `RIVALS` + 1 are what each is compared with, so they are the
    best. `scores` and `described`: of all candidates, the subjects first: score, and cosine of title and symptom.
    `kin`: of each, itself and the candidates with which it is not compared."""
    in_sentences = [_sentences(question, subject) for subject in subjects]
    means = [mean for mean, _ in in_sentences]
    return [
        Evidence(
            lead=scores[i] - _best(_others(scores, kin[i])),
            lead_over_rest=scores[i] - float(np.mean(sorted(_others(scores, kin[i]), reverse=True)[:3] or [0.0])),
            described_lead=described[i] - _best(_others(described, kin[i])),
            sentence_lead=means[i] - _best(_others(means[: RIVALS + 1], kin[i])),
            confusable_lead=in_sentences[i][1],
            **_of_question(question),
            **_coverage(question, subject),
            **_aligned(question, subject),
            **_particulars(question, subject),
        )
        for i, subject in enumerate(subjects[: len(kin)])
    ]


def _others(values: Sequence[float], kin: Set[int]) -> list[float]:
    return [value for i, value in enumerate(values) if i not in kin]


def _best(values: Sequence[float]) -> float:
    """0 when there is none."""
    return max(values, default=0.0)


def _of_question(question: Question) -> dict[str, float]:
    return {
        "information": float(np.log1p(question.information.sum())),
        "chinese": float(question.query.lang == "zh"),
    }


def _coverage(question: Question, subject: Subject) -> dict[str, float]:
    """Where the question's terms stand in the record."""
    where = subject.fields_of(question.digests)
    said, main = question.information, question.main_information
    front = (where & FRONT) > 0
    somewhere = (where & (FRONT | Field.BODY)) > 0
    found = float(said[front].sum())
    named = int(question.is_name.sum())
    titled = subject.title_information
    repeated = [digest in question.everything for digest in subject.title.tolist()]
    return {
        "front_coverage": float(main[front].sum()) / (float(main.sum()) + 0.5),
        "title_coverage": float(titled[repeated].sum()) / (float(titled.sum()) + 0.5),
        "name_share": float(said[front & question.is_name].sum()) / found if found > 0 else 1.0,
        "product_unsaid": float(
            len(subject.products) > 0 and question.everything.isdisjoint(subject.products.tolist())
        ),
        "component_share": float((somewhere & question.is_name).sum()) / named if named else 0.5,
        "confusable_information": min(float(said[(where > 0) & ~somewhere].sum()) / _CLOSE, 1.0),
    }


def covers_more(question: Question, one: Subject, other: Subject) -> bool:
    """Whether `one` has more of the question's information that the other lacks than the reverse."""
    here, there = (subject.fields_of(question.digests) & (FRONT | Field.BODY) > 0 for subject in (one, other))
    return float(question.information[here & ~there].sum()) > float(question.information[there & ~here].sum())


def _aligned(question: Question, subject: Subject) -> dict[str, float]:
    """Each informative term with the nearest one of the record: other words for the same thing, in both languages."""
    vectors, says = question.aligned
    total = float(says.sum())
    if total <= 0 or not len(subject.front):
        return {"aligned_coverage": 0.0, "alias_alignment": 0.0}
    cosines = _products(vectors, subject.front).clip(0, 1)
    covered = float((cosines.max(axis=1) ** 3) @ says) / total
    if not len(subject.alias_starts):
        return {"aligned_coverage": covered, "alias_alignment": 0.0}
    squares = cosines[:, subject.aliases] ** 2
    there = says @ np.maximum.reduceat(squares, subject.alias_starts, axis=1) / total
    back = np.add.reduceat(squares.max(axis=0) * subject.alias_says, subject.alias_starts)
    back /= np.add.reduceat(subject.alias_says, subject.alias_starts) + 1e-6
    return {"aligned_coverage": covered, "alias_alignment": float((2 * there * back / (there + back + 1e-6)).max())}


def _sentences(question: Question, subject: Subject) -> tuple[float, float]:
    """How near the question's sentences come to the record's, each weighed by what it says, and how much nearer one of
    them is to what the record says of other issues."""
    vectors, says = question.sentences
    if not len(subject.told) or says.sum() <= 0:
        return 0.0, 0.0
    nearest = _products(vectors, subject.told).max(axis=1)
    other = _products(vectors, subject.confusable).max(axis=1) if len(subject.confusable) else np.zeros(len(nearest))
    return float(nearest @ says) / float(says.sum()), float((other - nearest).max())


def _particulars(question: Question, subject: Subject) -> dict[str, float]:
    kinds = {kind for kind, _ in question.particulars}
    others = {kind for kind, _ in subject.particulars}
    agreeing = {kind for kind, _ in question.particulars & subject.particulars}
    return {
        "particulars_shared": min(len(agreeing), 3) / 3,
        "particulars_in_conflict": min(len((kinds & others) - agreeing), 3) / 3,
    }


def _vectors(texts: Sequence[str]) -> tuple[Array, Array]:
    table = term_table()
    tokens = table.tokens(texts)
    starts = np.cumsum([0, *map(len, tokens)])
    return table.vectors(np.array([token for one in tokens for token in one], np.int32), starts)


def _products(a: Array, b: Array) -> Array:
    """(len(a), len(b)): all inner products, in blocks so small that no thread of BLAS is woken: on a busy machine that
    takes longer than the products."""
    width = max(_BLAS_WORK // max(a.size, 1), 1)
    return np.concatenate([a @ b[at : at + width].T for at in range(0, len(b), width)], axis=1)
