"""The values that all rooms share: what an article holds, a question that was read, and the answer to it.

They are frozen and have no behaviour except the conversion to and from JSON. Python, `--json`, HTTP and MCP use the
same definition.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

__all__ = [
    "Article",
    "Branch",
    "Evidence",
    "Features",
    "Hit",
    "IssueRecord",
    "Lang",
    "Problem",
    "Query",
    "Ranking",
    "Remark",
    "SearchResult",
    "Silence",
    "Source",
    "Verdict",
    "Voices",
]

Lang = Literal["en", "zh"]

Verdict = Literal["known", "likely", "unknown"]
"""what a base says of its nearest issues: known, the first one is the answer; likely, one of a few may be; unknown, it
has no article about this"""


@dataclass(frozen=True, slots=True)
class Source:
    """The place of a record: POSIX path relative to the articles folder; lines are 1-based and inclusive."""

    path: str
    first_line: int
    last_line: int


class Branch(NamedTuple):
    """One way out of an issue that has many causes."""

    condition: str
    """as in `IssueRecord.conditions`, or empty: the article says it in words only"""
    issue: str
    """where it leads: `<slug>#<n>`"""


@dataclass(frozen=True, slots=True)
class IssueRecord:
    """One known problem in one language."""

    id: str
    """`<slug>#<n>/<lang>`, n counts from 1 in the article's order; a key, never a path"""
    issue: str
    """`<slug>#<n>`, shared by the translations of one problem"""
    lang: Lang
    project: str | None
    title: str
    """one line"""
    summary: str
    """the cause in a sentence and what to try first, markdown in one line; empty when the article has none"""
    symptom: str
    """markdown, verbatim slices of the article; so are cause, fix, triage, only_when and confusable"""
    cause: str
    """empty when the article names none; never invented"""
    fix: str
    triage: str
    """of an issue whose message has many causes: which circumstance leads to which issue; else empty"""
    only_when: str
    """by which numbers of its message one sees that it is this issue; empty when the article names none"""
    confusable: str
    """what looks alike and is another issue; empty when the article names none"""
    errors: tuple[str, ...]
    """literal error lines"""
    conditions: tuple[str, ...]
    """those of `only_when`, as in `unallocated >= 0.5 GiB`: `kb.logs.conditions` evaluates them"""
    branches: tuple[Branch, ...]
    """those of `triage`, in its order"""
    aliases: tuple[str, ...]
    """how people without an error line would describe the problem; empty when the article lists none"""
    versions: tuple[str, ...]
    tags: tuple[str, ...]
    sources: tuple[str, ...]
    updated: str
    """the day on which the article was last gone through, as `2026-01-31`; empty when it does not say"""
    source: Source

    @property
    def digest(self) -> str:
        """sha256 of the content without its place and its day, 64 hex digits. It changes when the record must be
        encoded again."""
        content = {name: getattr(self, name) for name in self.__slots__ if name not in ("id", "updated", "source")}
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """The public JSON form (`kb parse --json`, `kb show --json`)."""
        values = {name: getattr(self, name) for name in self.__slots__}
        place = self.source
        values["branches"] = [branch._asdict() for branch in self.branches]
        return {**values, "source": {"path": place.path, "first_line": place.first_line, "last_line": place.last_line}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> IssueRecord:
        """The inverse of `as_dict`; lists become tuples again. Raises KeyError, TypeError or ValueError for another
        form: an index or a server may be a stranger's."""
        values = {"updated": "", **data}  # an index or a server of kb 0.1 has none
        texts = {name: _text(values[name]) for name in _TEXTS}
        lists = {name: tuple(map(_text, _listed(values[name]))) for name in _LISTS}
        if texts["lang"] not in ("en", "zh"):
            raise ValueError("no language")
        branches = (Branch(_text(one["condition"]), _text(one["issue"])) for one in _listed(values["branches"]))
        place = values["source"]
        lines = [place[name] for name in ("first_line", "last_line")]
        if not all(isinstance(line, int) for line in lines):
            raise TypeError("no line")
        return cls(
            **texts,  # type: ignore[arg-type]
            **lists,  # type: ignore[arg-type]
            project=None if values["project"] is None else _text(values["project"]),
            branches=tuple(branches),
            source=Source(_text(place["path"]), *lines),
        )


_TEXTS = (
    "id", "issue", "lang", "title", "summary", "symptom", "cause", "fix", "triage", "only_when", "confusable",
    "updated",
)  # fmt: skip
_LISTS = ("errors", "conditions", "aliases", "versions", "tags", "sources")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _listed(value: object) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise TypeError("no list")
    return value


@dataclass(frozen=True, slots=True)
class Remark:
    """What the parser did with a place that is in no record, or a notice for the writer."""

    line: int
    """1-based"""
    kind: str
    """one of `kb.articles.REMARK_KINDS`"""
    text: str


@dataclass(frozen=True, slots=True)
class Article:
    """A parsed article: its records in order, and a remark for everything that is in none of them."""

    path: str
    slug: str
    lang: Lang
    title: str
    records: tuple[IssueRecord, ...]
    remarks: tuple[Remark, ...]
    draft: bool
    """its front matter says `status: draft`: not served before it has been reviewed"""
    own_form: bool = True
    """in this project's own form; False: a page as it was found"""


@dataclass(frozen=True, slots=True)
class Query:
    """A pasted text after reading: the lines that identify the failure, and the words around them."""

    text: str
    lang: Lang
    signatures: tuple[str, ...]
    """error lines without prefixes, the most informative first; empty for a plain description"""
    prose: str
    """the text without error lines, stack frames and progress bars; a text of one line is kept whole"""
    context: str
    """files, functions and source lines of a traceback, and what a launcher prints around it; one per line"""
    failures: tuple[str, ...] = ()
    """of a text of several lines: those that say that a program failed, each once, in order; of many the first and the
    last. Where nothing else failed, what launchers say of it"""
    is_log: bool = False
    """a program printed this, and nobody wrote around it"""

    @property
    def says(self) -> tuple[str, ...]:
        """What it is searched by: its error lines, or else its prose; nothing of a text that has neither."""
        return self.signatures or ((self.prose,) if self.prose else ())


@dataclass(frozen=True, slots=True)
class Ranking:
    """Rows and their scores, by descending score, then by ascending row. No row is -1, no score is NaN."""

    rows: tuple[int, ...]
    scores: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Features:
    """The features of one issue as the answer to one question, each in [0, 1]: the maximum over its translations."""

    body_sim: float
    """cosine of the question with the article: mean of title with symptom, and of the whole record"""
    alias_sim: float
    """cosine with the aliases: mean of the nearest one and of all of them together"""
    bm25: float
    """BM25 of the whole question, scaled; from about nine informative words on it is 1"""
    bm25_margin: float
    """of a pasted error: how far its BM25 lies above every other issue's (over 1/2) or below the best one's
    (under 1/2); 0 for a description"""
    idf_coverage: float
    """the share of the question's information (idf, stack frames left out) that the issue's terms cover"""
    error_coverage: float
    """the same for the question's error lines alone"""
    bigram_overlap: float
    """the share of the word pairs of the nearest error line that the question contains"""

    @property
    def similarity(self) -> float:
        """The higher one of the two cosines."""
        return max(self.body_sim, self.alias_sim)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for and against one issue as the answer to one question (`kb.search.evidence`). Shares are shares of
    information: a rare word counts more than a common one."""

    lead: float
    """score above the best other candidate, or below it"""
    lead_over_rest: float
    """score above the mean of the three next candidates"""
    described_lead: float
    """cosine of title and symptom above the best other candidate's"""
    sentence_lead: float
    """mean cosine of the question's sentences, each with the nearest of the issue, above the best other candidate's"""
    confusable_lead: float
    """how much nearer a sentence is to what the issue is not to be confused with than to the issue"""
    own_terms: float
    """ln(1 + how many terms of the question title, symptom, error lines and aliases have, too), without messages that
    any program may print (`kb.logs.everyones`)"""
    own_information: float
    """ln(1 + the information of the same terms); a term that no issue has is 1"""
    title_coverage: float
    """share of the issue's title that the question says"""
    product_unsaid: float
    """1: the question does not name any project of the issue, not in a file of a traceback either"""
    component_share: float
    """share of the projects that the question names which the issue names, too; 0.5 when it names none"""
    confusable_information: float
    """information of terms that stand only in "Not to be confused with", from 0 to 1"""
    aligned_coverage: float
    """share of the question that the issue says in the same or other words, by the vectors of single terms"""
    alias_alignment: float
    """how much of each other the question and the nearest alias say, by the same vectors"""
    particulars_shared: float
    """kinds of codes (exit, Xid, HTTP status ...), GPUs and libraries with one in common; 1 for three or more kinds"""
    particulars_in_conflict: float
    """kinds in which both name different ones; 1 for three or more"""

    @property
    def lists_phrasings(self) -> bool:
        """Does the issue say how people ask ("Asked as")? The question then agrees with that a little in any case."""
        return self.alias_alignment > 0


class Voices(NamedTuple):
    """What people said of an issue, and what that did to the confidence (`kb.feedback.voices`)."""

    helped: float
    """voices, those about other questions as a part of one"""
    did_not_fit: float
    before: float
    """the confidence without them"""


@dataclass(frozen=True, slots=True)
class Hit:
    rank: int
    """from 1"""
    issue: str
    record: IssueRecord
    score: float
    confidence: float
    """in [0, 1]: the probability that this is the issue in question"""
    features: Features
    """by which it was found"""
    evidence: Evidence
    """by which it was verified"""
    ruled_out: bool
    """the question prints a number that the issue excludes (`IssueRecord.conditions`)"""
    leads_to: tuple[str, ...]
    """of an issue with many causes: the issues whose condition (`IssueRecord.branches`) the question meets"""
    matched: tuple[str, ...]
    """the strings of the query that this record contains, the most informative first"""
    base: str
    """the base that it comes from: "bundled", its name in kb.toml, or the absolute path of its articles or index;
    empty for a base in memory"""
    folder: str
    """the name of the articles' folder, below which `record.source.path` lies"""
    voices: Voices | None = None
    """None: people said nothing of it that counts"""

    def as_dict(self) -> dict[str, Any]:
        """The public JSON form of one result."""
        r = self.record
        return {
            "rank": self.rank,
            "issue": self.issue,
            "lang": r.lang,
            "project": r.project,
            "title": r.title,
            "summary": r.summary,
            "symptom": r.symptom,
            "cause": r.cause,
            "fix": r.fix,
            "triage": r.triage,
            "leads_to": list(self.leads_to),
            "only_when": r.only_when,
            "confusable": r.confusable,
            "errors": list(r.errors),
            "versions": list(r.versions),
            "tags": list(r.tags),
            "sources": list(r.sources),
            "updated": r.updated,
            "base": self.base,
            "path": f"{self.folder}/{r.source.path}",
            "lines": [r.source.first_line, r.source.last_line],
            "score": round(self.score, 4),
            "confidence": round(self.confidence, 4),
            "similarity": round(self.features.similarity, 4),
            "idf_coverage": round(self.features.idf_coverage, 4),
            "matched": list(self.matched),
        }


class Silence(NamedTuple):
    """A base that was asked and did not answer."""

    base: str
    why: str


@dataclass(frozen=True, slots=True)
class SearchResult:
    query: Query
    verdict: Verdict
    hits: tuple[Hit, ...]
    """the best first, each issue at most once; listed even when not answered"""
    snapshot: str
    """the sha256 of the index's content that answered; of several bases theirs, with a `+` between them"""
    bases: tuple[str, ...]
    """the bases that answered, in the order in which they are asked, named as in `Hit.base`"""
    took_ms: float
    read_as: Query
    """what the hits answer: `query`, or one line of a log by itself"""
    likely: tuple[str, ...] = ()
    """the issues that are named when the verdict is likely, one to three, the best first"""
    silent: tuple[Silence, ...] = ()
    """the bases that did not answer, or not from what they hold now"""

    @property
    def answered(self) -> bool:
        """The base knows the answer: the first hit."""
        return self.verdict == "known"

    def as_dict(self) -> dict[str, Any]:
        """The public JSON form (`kb search --json`, each line of `--batch`, HTTP, MCP)."""
        return {
            "query": self.query.text,
            "lang": self.query.lang,
            "answered": self.answered,
            "verdict": self.verdict,
            "likely": list(self.likely),
            "took_ms": round(self.took_ms, 3),
            "snapshot": self.snapshot,
            "bases": list(self.bases),
            "silent": [silence._asdict() for silence in self.silent],
            "results": [hit.as_dict() for hit in self.hits],
        }


@dataclass(frozen=True, slots=True)
class Problem:
    path: str
    line: int | None
    level: Literal["error", "warning"]
    message: str
    rule: str
    """the name of what `kb check` looked for (`kb check --rules`), as `dead-link`"""
