"""What speaks for and against the issues that are nearest to a question: by this an answer is verified.

The features that order the candidates (`kb.search.features`) say which issue is nearest. Whether it is the one that was
asked about is another question: in three of four cases the base does not have it, and something is always nearest. So
the first few candidates are looked at closely, field by field and sentence by sentence (`kb.index.profile`): is what
the question says in the symptom, or only in the fix? Does the record know every part of it? Does a number disagree?
`kb.search.verdict` turns the evidence into a probability.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import islice

import numpy as np

from kb.arrays import Array, finite
from kb.encoders import Encoder, term_table
from kb.index.profile import FRONT, Field, Profile, Sentence, digests
from kb.logs.codes import Codes, particulars
from kb.logs.everyones import own_words
from kb.logs.variables import mask
from kb.logs.words import words_of
from kb.records import Evidence, Query
from kb.search.features import Shares
from kb.search.front import FrontTerms
from kb.search.terms import TermInformation
from kb.text import clean, sentences

__all__ = ["NAMES", "RIVALS", "Question", "Subject", "covers_more", "evidence"]

NAMES = tuple(f.name for f in fields(Evidence))
"""of the evidence, in the order of `Evidence`"""

RIVALS = 3
"""of the best issues that each one is compared with, sentence by sentence"""

_FRONT, _SOMEWHERE = int(FRONT), int(FRONT | Field.BODY)
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
        text = "\n".join((*query.signatures, query.prose))[:_PROSE_CHARS]
        self.particulars: Codes = particulars(text)
        said = {
            term: max(shares.errors.get(term, 0.0), shares.prose.get(term, 0.0))
            for term in (*shares.prose, *shares.errors)
            if not term.isdigit()
        }
        self.terms: list[str] = list(said)
        known = information.of(self.terms) / information.unseen
        self.shares: Array = np.fromiter(said.values(), np.float32, len(said))
        self.information: Array = known * self.shares
        """(terms,) of each term of the question that is no number, as a share of that of a term that no issue has"""
        own = own_words(text)
        self.is_own: Array = np.fromiter((not own.isdisjoint(words_of(term).split()) for term in said), bool, len(said))
        """(terms,) is it more than a part of what any program may print?"""
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
        vectors = finite(self._encoder.encode(distinct, kind="query"))
        return vectors, _vectors(distinct)[1]


@dataclass(eq=False, repr=False)
class Subject:
    """An issue that is verified: all of its translations together."""

    title: list[int]
    """the digests of the terms of its title"""
    title_information: list[float]
    """of each, as a share of that of a term that no issue has"""
    digests: Array
    """(n,) uint32, ascending: of its terms"""
    fields: Array
    """(n,) uint8"""
    front: Array
    """(f,) int32: the rows of its front terms in `FrontTerms`"""
    aliases: Array
    """(a,) the places in `front` of the terms of the aliases, one alias after the other"""
    alias_starts: Array
    """(aliases,) where each begins; none is empty"""
    alias_says: Array
    """(a,) what each of these terms says"""
    sentences: Array
    """(s, dim) float32: those of its front, then those of "Not to be confused with\""""
    told: int
    """how many are of its front"""
    particulars: Codes
    products: Sequence[int] = ()
    """the digests of the terms of its projects' names"""

    @classmethod
    def of(cls, profiles: Sequence[Profile], information: TermInformation, terms: FrontTerms) -> Subject:
        """`profiles`: of all translations."""
        title = list(dict.fromkeys(term for one in profiles for term in one.title))
        every, bits = np.concatenate([one.terms for one in profiles]), np.concatenate([one.fields for one in profiles])
        order = np.argsort(every, kind="stable")  # not np.unique, which imports numpy.ma: 8 ms of a start
        every, bits = every[order], bits[order]
        first = np.flatnonzero(np.concatenate([[True], every[1:] != every[:-1]])) if len(every) else order
        sizes = [np.diff(one.starts) for one in profiles]
        starts = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
        front = terms.rows(np.concatenate([one.tokens for one in profiles]), starts)
        before = np.cumsum([0, *map(len, sizes)]).tolist()
        aliases = np.concatenate([one.aliases + at for one, at in zip(profiles, before, strict=False)])
        size = np.concatenate([np.diff(one.alias_starts) for one in profiles])
        size = size[size > 0]
        confusable = np.concatenate([one.kinds for one in profiles]) == Sentence.CONFUSABLE
        front_first = np.argsort(confusable, kind="stable")
        return cls(
            digests(title).tolist(),
            (information.of(title) / information.unseen).tolist(),
            every[first],
            np.bitwise_or.reduceat(bits, first) if len(first) else bits,
            front,
            aliases,
            np.cumsum(size) - size,
            terms.norms[front[aliases]],
            np.concatenate([one.sentences for one in profiles])[front_first],
            len(confusable) - int(confusable.sum()),
            frozenset().union(*(one.particulars for one in profiles)),
        )


def evidence(
    question: Question,
    subjects: Sequence[Subject],
    scores: Sequence[float],
    described: Sequence[float],
    kin: Sequence[Set[int]],
    terms: FrontTerms,
) -> list[Evidence]:
    """Of the first `len(kin)` of the `subjects`. The first `RIVALS` + 1 are what each is compared with, so they are the
    best. `scores` and `described`: of all candidates, the subjects first: score, and cosine of title and symptom.
    `kin`: of each, itself and the candidates with which it is not compared. `terms`: those of the subjects."""
    in_sentences = _sentences(question, subjects)
    means = [mean for mean, _ in in_sentences]
    judged = subjects[: len(kin)]
    by_score, by_description = _ranked(scores), _ranked(described)
    return [
        Evidence(
            lead=scores[i] - _best(_first(by_score, kin[i], 1)),
            lead_over_rest=scores[i] - _mean(_first(by_score, kin[i], 3)),
            described_lead=described[i] - _best(_first(by_description, kin[i], 1)),
            sentence_lead=means[i] - _best(_others(means[: RIVALS + 1], kin[i])),
            confusable_lead=in_sentences[i][1],
            **covered,
            **aligned,
            **_particulars(question, subject),
        )
        for i, (subject, covered, aligned) in enumerate(
            zip(judged, _coverage(question, judged), _aligned(question, judged, terms), strict=True)
        )
    ]


def _ranked(values: Sequence[float]) -> list[tuple[float, int]]:
    """Each with its position, the highest first."""
    return sorted(zip(values, range(len(values)), strict=True), reverse=True)


def _first(ranked: Iterable[tuple[float, int]], kin: Set[int], count: int) -> list[float]:
    """The highest values of those that are no kin."""
    return list(islice((value for value, i in ranked if i not in kin), count))


def _others(values: Sequence[float], kin: Set[int]) -> list[float]:
    return [value for i, value in enumerate(values) if i not in kin]


def _best(values: Sequence[float]) -> float:
    """0 when there is none."""
    return max(values, default=0.0)


def _mean(values: Sequence[float]) -> float:
    """0 when there is none."""
    return sum(values) / len(values) if values else 0.0


def _fields_of(question: Question, subjects: Sequence[Subject]) -> Array:
    """(subjects, terms of the question) uint8: the fields in which each term stands, 0 where it does not."""
    sizes = [len(subject.digests) for subject in subjects]
    numbers = np.arange(len(subjects), dtype=np.uint64) << np.uint64(32)
    # The number of the subject before the digest: all subjects are one sorted array, in which all terms are looked up.
    keys = np.concatenate([subject.digests for subject in subjects]) | np.repeat(numbers, sizes)
    asked = numbers[:, None] | question.digests
    if not len(keys):
        return np.zeros(asked.shape, np.uint8)
    at = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
    fields = np.concatenate([subject.fields for subject in subjects])
    return np.where(keys[at] == asked, fields[at], 0).astype(np.uint8)


def _coverage(question: Question, subjects: Sequence[Subject]) -> list[dict[str, float]]:
    """Where the question's terms stand in each record."""
    if not subjects:
        return []
    where = _fields_of(question, subjects)
    said, somewhere = question.information, (where & _SOMEWHERE) > 0
    own = ((where & _FRONT) > 0) & question.is_own
    own_terms, own_information = (np.log1p((own * of_each).sum(axis=1)).tolist() for of_each in (question.shares, said))
    names = (somewhere & question.is_name).sum(axis=1).tolist()
    confused = (((where > 0) & ~somewhere) * said).sum(axis=1).tolist()
    named = int(question.is_name.sum())
    everything = question.everything
    return [
        {
            "own_terms": own_terms[i],
            "own_information": own_information[i],
            "title_coverage": sum(
                says for digest, says in zip(one.title, one.title_information, strict=True) if digest in everything
            )
            / (sum(one.title_information) + 0.5),
            "product_unsaid": float(len(one.products) > 0 and everything.isdisjoint(one.products)),
            "component_share": names[i] / named if named else 0.5,
            "confusable_information": min(confused[i] / _CLOSE, 1.0),
        }
        for i, one in enumerate(subjects)
    ]


def covers_more(question: Question, one: Subject, other: Subject) -> bool:
    """Whether `one` has more of the question's information that the other lacks than the reverse."""
    here, there = _fields_of(question, [one, other]) & _SOMEWHERE > 0
    return float(question.information[here & ~there].sum()) > float(question.information[there & ~here].sum())


def _aligned(question: Question, subjects: Sequence[Subject], terms: FrontTerms) -> list[dict[str, float]]:
    """Each informative term with the nearest one of each record: other words for the same thing, in both languages."""
    vectors, says = question.aligned
    total = float(says.sum())
    covered, alignment = [0.0] * len(subjects), [0.0] * len(subjects)
    with_front = [i for i, subject in enumerate(subjects) if len(subject.front)]
    if total > 0 and with_front:
        front = np.concatenate([subjects[i].front for i in with_front])
        starts = _starts([len(subjects[i].front) for i in with_front])
        # A term that several of the records have is compared once, at the place where it comes first: in an order that
        # does not depend on earlier questions, as the rows of `terms` do. The last bits of a product hang on its place.
        first_place = np.empty(len(terms.vectors), np.int64)
        first_place[front[::-1]] = np.arange(len(front))[::-1]
        is_first = first_place[front] == np.arange(len(front))
        column = (np.cumsum(is_first) - 1)[first_place[front]]
        cosines = _products(vectors, terms.vectors[front[is_first]]).clip(0, 1)[:, column]
        nearest = np.maximum.reduceat(cosines, starts, axis=1)
        for i, value in zip(with_front, (says @ nearest**3 / total).tolist(), strict=True):
            covered[i] = value
        with_aliases = [(i, at) for i, at in zip(with_front, starts.tolist(), strict=True) if len(subjects[i].aliases)]
        if with_aliases:
            aliases = np.concatenate([subjects[i].aliases + at for i, at in with_aliases])
            before = _starts([len(subjects[i].aliases) for i, _ in with_aliases]).tolist()
            each = zip(with_aliases, before, strict=True)
            alias_starts = np.concatenate([subjects[i].alias_starts + at for (i, _), at in each])
            alias_says = np.concatenate([subjects[i].alias_says for i, _ in with_aliases])
            squares = cosines[:, aliases] ** 2
            there = says @ np.maximum.reduceat(squares, alias_starts, axis=1) / total
            back = np.add.reduceat(squares.max(axis=0) * alias_says, alias_starts)
            back /= np.add.reduceat(alias_says, alias_starts) + 1e-6
            both = 2 * there * back / (there + back + 1e-6)
            best = np.maximum.reduceat(both, _starts([len(subjects[i].alias_starts) for i, _ in with_aliases]))
            for (i, _), value in zip(with_aliases, best.tolist(), strict=True):
                alignment[i] = value
    return [{"aligned_coverage": one, "alias_alignment": other} for one, other in zip(covered, alignment, strict=True)]


def _starts(sizes: Sequence[int]) -> Array:
    """(len(sizes),) where each part begins, when all are put one after the other."""
    return np.cumsum([0, *sizes[:-1]])


def _sentences(question: Question, subjects: Sequence[Subject]) -> list[tuple[float, float]]:
    """How near the question's sentences come to those of each record, each weighed by what it says, and how much nearer
    one of them is to what the record says of other issues."""
    vectors, says = question.sentences
    total = float(says.sum())
    found: list[tuple[float, float]] = []
    every = _products(vectors, np.concatenate([subject.sentences for subject in subjects])) if subjects else vectors
    at = 0
    for subject in subjects:
        front, end = at + subject.told, at + len(subject.sentences)
        if subject.told and total > 0:
            nearest = every[:, at:front].max(axis=1)
            other = every[:, front:end].max(axis=1) if front < end else 0.0
            found.append((float(nearest @ says) / total, float((other - nearest).max())))
        else:
            found.append((0.0, 0.0))
        at = end
    return found


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
    if not len(b):
        return np.zeros((len(a), 0), np.float32)
    width = max(_BLAS_WORK // max(a.size, 1), 1)
    return np.concatenate([a @ b[at : at + width].T for at in range(0, len(b), width)], axis=1)
