"""One opened index and its encoder: what a search asks from its beginning to its end."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from kb.encoders import Encoder
from kb.errors import QueryError
from kb.index.encoded import require_same
from kb.index.header import Filter
from kb.index.profile import digests
from kb.index.store import Store
from kb.logs.codes import codes
from kb.logs.read import read
from kb.logs.variables import mask
from kb.records import Evidence, Features, Hit, IssueRecord, Lang, Query, SearchResult
from kb.search import ranking
from kb.search.evidence import RIVALS, Question, Subject, covers_more, evidence
from kb.search.features import Candidates, Printed, Shares, candidates, met_branches
from kb.search.front import FrontTerms
from kb.search.terms import TermInformation
from kb.search.verdict import (
    KNOWN_AT,
    LIKELY_AT,
    MOST_LIKELY,
    confidence,
    curve_for,
    of_a_bare_question,
    of_a_repeated_line,
    verdict,
)

__all__ = ["MAX_K", "Searcher"]

MAX_K = 100
_MAX_KEPT = 10_000  # records, some 10 kB each, that are kept as they were parsed; as many have their error lines kept
_MAX_SUBJECTS = 1024  # issues, some 70 kB each, that are kept ready for verification
_MAX_TERMS = 1 << 16  # of these issues, 1 kB each
_MATCHED_TERMS = 5
_TELLS_NOTHING = re.compile(r".{0,120}?\b(?:INFO|DEBUG)\b|\s{0,40}[\w.-]{1,60} ?= ?\S{1,80}$")
_LEAST_INFORMATIVE = 0.3  # of the most informative shared term: below this a term is not shown as matched


class _Ready:
    """Issues that are ready for verification, and the terms that they share: a memo, forgotten as a whole."""

    def __init__(self) -> None:
        self.subjects: dict[int, Subject] = {}
        """by the row of a record"""
        self.terms: FrontTerms = FrontTerms()


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
        self._parsed: dict[int, IssueRecord] = {}  # the same
        self._ready = _Ready()

    @cached_property
    def first_telling(self) -> dict[str, str]:
        """Of each issue the first that tells the same fault (`kb.index.faults`): such issues count as one."""
        first: dict[int, str] = {}
        columns = self.store.header.columns
        numbers = columns.fault[columns.rows()].tolist()
        return {
            record.issue: first.setdefault(number, record.issue)
            for number, record in zip(numbers, self.records(), strict=True)
        }

    def records(self) -> list[IssueRecord]:
        """Every issue in each of its languages, in the index's order."""
        return self.store.records(self.store.header.columns.rows().tolist())

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
        absent: Collection[int] = (),
    ) -> SearchResult:
        """See `KnowledgeBase.search`. `absent`: rows of issues that are passed over as if the base had none of them."""
        started = time.perf_counter()
        if not 1 <= k <= MAX_K:
            raise QueryError(f"k is {k}, it can be 1 to {MAX_K}")
        for name, value in (("lang", lang), ("only", only)):
            if value not in (None, "en", "zh"):
                raise QueryError(f"{name} is {value!r}, it can be 'en' or 'zh'")
        if not 0 <= min_confidence <= 1:
            raise QueryError(f"min_confidence is {min_confidence}, it can be 0 to 1")
        query = read(text, printed=printed)
        within = Filter(only, project)
        if project is not None and not self._knows(project):
            raise QueryError(f"no article is about the project {project!r}", hint=self._projects_like(project))
        read_as, hits = self._of_readings(query, k, within, lang, min_confidence, absent)
        said = verdict(hits[0].confidence, min_confidence) if hits and not hits[0].ruled_out else "unknown"
        if query.is_log and not query.failures:
            said = "unknown"  # what a healthy program prints is no evidence
        likely = [hit.issue for hit in hits if hit.confidence >= LIKELY_AT][:MOST_LIKELY] if said == "likely" else []
        took_ms = (time.perf_counter() - started) * 1000
        return SearchResult(query, said, tuple(hits), self.snapshot, (self.base,), took_ms, read_as, tuple(likely))

    def _knows(self, project: str) -> bool:
        return bool(self.store.header.columns.passing(Filter(project=project)).any())

    def _projects_like(self, name: str | None) -> str:
        """What to try in the place of a project that is not there."""
        from difflib import get_close_matches

        header = self.store.header
        names = {one.casefold(): one for one in [*header.columns.subjects(), *header.manifest["projects"]]}
        near = [names[one] for one in get_close_matches((name or "").casefold()[:100], names, n=3)]
        if near:
            return f"did you mean {' or '.join(near)}?"
        known = header.manifest["projects"]
        more = f" and {len(known) - 10} more" if len(known) > 10 else ""
        return f"`kb projects` lists them: {', '.join(known[:10])}{more}"

    def _of_readings(
        self,
        query: Query,
        k: int,
        within: Filter,
        lang: Lang | None,
        known_at: float,
        absent: Collection[int],
    ) -> tuple[Query, list[Hit]]:
        """The hits of one line of a log that failed, by itself, where such a line is known: the rest of a log drowns
        it. Of several the surest, and of equally sure ones the one that says most. Else those of the whole text."""
        around = _telling(query.text) if query.is_log else query.text
        known: list[tuple[Query, list[Hit]]] = []
        for line in map(read, query.failures if query.is_log else ()):
            hits = self._hits(line, k, within, lang or query.lang, around, absent)
            if hits and hits[0].confidence >= known_at and not hits[0].ruled_out:
                known.append((replace(line, lang=query.lang), hits))
        # Of a message with many causes the rest of the log may say which one it is.
        if with_one_cause := [one for one in known if not one[1][0].record.branches]:
            return max(with_one_cause, key=_sureness)
        whole = self._hits(query, k, within, lang, around, absent)
        says_more = (
            whole and whole[0].confidence >= known_at and not whole[0].ruled_out and not whole[0].record.branches
        )
        return max(known, key=_sureness) if known and not says_more else (query, whole)

    def _hits(
        self,
        query: Query,
        k: int,
        within: Filter,
        lang: Lang | None,
        around: str,
        absent: Collection[int],
    ) -> list[Hit]:
        """The k nearest within the filter, the first few by confidence, the others by score; told in `lang`
        or in the question's language. `around`: all that was pasted, of which `query` may be a line."""
        columns, weights = self.store.header.columns, ranking.fit_for(pasted=bool(query.signatures))
        shares = Shares.of(query, self.store.header.vocabulary)
        found = candidates(
            self.store, self.encoder, self._information, query, shares, within, k, self._printed_by, around, absent
        )
        scores = ranking.scores(found.features, weights)
        every = np.lexsort((found.rows, -scores, found.ruled_out))  # what a number rules out comes last
        order = every[found.inside[every]]
        # Families take no place, and one that narrower issues outrank may be what a short question is about.
        first = order[: MOST_LIKELY + 1].tolist()
        families = [at for at in first if at in found.ways_out]
        others = [at for at in first if at not in found.ways_out]
        close = min(len(others), MOST_LIKELY) + len(families)
        near = [*others[:MOST_LIKELY], *families, *others[MOST_LIKELY:]]
        order = np.array([*near, *order[len(first) :]], order.dtype)[: max(k, close)]
        question = Question(query, shares, self._information, self._names, self.encoder)
        verified = self._verified(question, found, scores, every, order)
        # The first few are ordered by the closer look.
        surest = self._surest_first(question, found, order[:close].tolist(), verified)
        kept = [*surest, *range(len(surest), len(order))][:k]
        order, verified = order[kept], [verified[n] for n in kept]
        chosen = found.rows[order]
        in_language = [columns.translation(row, lang or query.lang) for row in chosen.tolist()]
        if any(within):  # a filter holds for what is shown, too
            passing = columns.passing(within)
            in_language = [other if passing[other] else row for other, row in zip(in_language, chosen, strict=True)]
        shown = [self._record(row) for row in in_language]
        matched = self._matched(query, chosen, shown, found.terms)
        folder = self.store.header.manifest.get("folder", "articles")
        return [
            Hit(
                rank=rank,
                issue=record.issue,
                record=record,
                score=float(scores[at]),
                confidence=confidence,
                features=Features(**{name: float(column[at]) for name, column in found.features.items()}),
                evidence=evidence,
                ruled_out=bool(found.ruled_out[at]),
                leads_to=tuple(met_branches(around, record.branches)),
                matched=strings,
                base=self.base,
                folder=folder,
            )
            for rank, (at, record, strings, (confidence, evidence)) in enumerate(
                zip(order.tolist(), shown, matched, verified, strict=True), 1
            )
        ]

    def _verified(
        self, question: Question, found: Candidates, scores: np.ndarray, every: np.ndarray, order: np.ndarray
    ) -> list[tuple[float, Evidence]]:
        """The confidence in each of `order`, and the evidence for it. `every`: all candidates, best first, among which
        its rivals are."""
        pasted = bool(question.query.signatures)
        curves = [curve_for(pasted=pasted, phrasings=phrasings) for phrasings in (False, True)]
        rivals = [at for at in every[: RIVALS + 1].tolist() if at not in order]
        looked_at = [*order.tolist(), *rivals]
        seen = set(looked_at)
        everyone = [*looked_at, *(at for at in range(len(scores)) if at not in seen)]
        place = {at: n for n, at in enumerate(everyone)}
        ready = self._ready
        told = evidence(
            question,
            [self._subject(int(found.rows[at]), ready) for at in looked_at],
            scores[everyone].tolist(),
            found.described[everyone].tolist(),
            [{place[at], *(place[other] for other in found.kin(at))} for at in order.tolist()],
            ready.terms,
        )
        if len(ready.subjects) > _MAX_SUBJECTS or len(ready.terms) > _MAX_TERMS:
            self._ready = _Ready()  # other threads end with the old one
        verified: list[tuple[float, Evidence]] = []
        for at, one in zip(order.tolist(), told, strict=True):
            sure = confidence(one, curves[one.lists_phrasings])
            if not one.lists_phrasings:
                others = np.delete(found.repeated, [at, *found.kin(at)]).tolist()
                sure = of_a_repeated_line(sure, float(found.repeated[at]), others)
            if at in found.ways_out:
                sure = of_a_bare_question(sure, one)
            verified.append((0.0 if found.ruled_out[at] else sure, one))
        return verified

    def _surest_first(
        self, question: Question, found: Candidates, order: list[int], verified: list[tuple[float, Evidence]]
    ) -> list[int]:
        """The places in `order` by confidence. An issue is as sure as the family that leads to it, where the question
        meets the condition for that (`verified` is changed). A family stands behind an issue that is known and covers
        more of the question."""
        place = {at: n for n, at in enumerate(order)}
        families = [family for family in found.ways_out if family in place]
        for family in families:
            for way, is_met in found.ways_out[family].items():
                if is_met and way in place and not found.ruled_out[way]:
                    sure = max(verified[place[way]][0], verified[place[family]][0])
                    verified[place[way]] = sure, verified[place[way]][1]
        known = [n for n, at in enumerate(order) if at not in families and verified[n][0] >= KNOWN_AT]
        behind = {
            place[family]
            for family in families
            for n in known
            if covers_more(question, *(self._subject(int(found.rows[at]), self._ready) for at in (order[n], family)))
        }
        return sorted(range(len(order)), key=lambda n: (n in behind, -verified[n][0], order[n] in families))

    @cached_property
    def _names(self) -> frozenset[str]:
        """The terms of the names of projects."""
        header = self.store.header
        return frozenset(header.vocabulary.tokenise("\n".join(header.manifest["projects"])))

    @cached_property
    def _projects(self) -> frozenset[str]:
        """The names of all projects in lower case."""
        return frozenset(name.casefold() for name in self.store.header.manifest["projects"])

    def _products(self, row: int) -> list[str]:
        """The terms of the names of the projects that a record is about."""
        header = self.store.header
        return header.vocabulary.tokenise("\n".join(self._projects.intersection(header.columns.subjects_of(row))))

    def _subject(self, row: int, ready: _Ready) -> Subject:
        """The issue of a record, with the projects of that record."""
        found = ready.subjects.get(row)
        if found is None:
            rows = self.store.header.columns.tellings([row])[0].tolist()
            twin = next((ready.subjects[other] for other in rows if other in ready.subjects), None)
            products = digests(self._products(row)).tolist()
            twin = twin or Subject.of(self.store.profiles(rows), self._information, ready.terms)
            found = ready.subjects[row] = replace(twin, products=products)
        return found

    def _record(self, row: int) -> IssueRecord:
        found = self._parsed.get(row)
        if found is None:
            if len(self._parsed) >= _MAX_KEPT:
                self._parsed.clear()
            found = self._parsed[row] = self.store.records([row])[0]
        return found

    def _printed_by(self, row: int) -> Printed:
        found = self._printed.get(row)
        if found is None:
            if len(self._printed) >= _MAX_KEPT:
                self._printed.clear()
            record = self._record(row)
            terms = [self.store.header.vocabulary.tokenise(mask(line)) for line in record.errors]
            found = self._printed[row] = Printed(
                record.issue,
                list(map(set, terms)),
                list(map(ranking.bigrams, terms)),
                codes("\n".join(record.errors)),
                record.conditions,
                record.branches,
            )
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


def _telling(log: str) -> str:
    """The log without settings and lines of the level INFO: they say nothing about how it ended."""
    return "\n".join(line for line in log.split("\n") if not _TELLS_NOTHING.match(line))


def _sureness(reading: tuple[Query, list[Hit]]) -> tuple[float, float]:
    _, (first, *_) = reading
    return round(first.confidence, 1), first.evidence.own_information


def _flat(text: str) -> str:
    """The words of a text in lower case, one space before and after each."""
    return f" {' '.join(text.casefold().split())} "
