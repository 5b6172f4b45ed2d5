"""Here are the nouns: what an article holds, what a question is, what an answer looks like.

Plain frozen values, no behaviour beyond their own form. One definition serves Python, `--json`, HTTP and MCP.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Literal

__all__ = [
    "Article",
    "Features",
    "Hit",
    "IssueRecord",
    "Lang",
    "Problem",
    "Query",
    "Ranking",
    "Remark",
    "SearchResult",
    "Source",
]

Lang = Literal["en", "zh"]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a record stands: POSIX path relative to the articles folder, lines 1-based and inclusive."""

    path: str
    first_line: int
    last_line: int


@dataclass(frozen=True, slots=True)
class IssueRecord:
    """One known problem in one language."""

    id: str
    """`<slug>#<n>/<lang>`, n from 1 in the article's order; a key, never a path"""
    issue: str
    """`<slug>#<n>`, shared by the translations of one problem"""
    lang: Lang
    project: str | None
    title: str
    """one line"""
    symptom: str
    """markdown, verbatim slices of the article; so are cause and fix"""
    cause: str
    """empty when the article names none; never invented"""
    fix: str
    errors: tuple[str, ...]
    """literal error lines"""
    aliases: tuple[str, ...]
    """other phrasings of the problem, by people who have no error line at hand; empty when the article lists none"""
    versions: tuple[str, ...]
    tags: tuple[str, ...]
    sources: tuple[str, ...]
    source: Source

    @property
    def digest(self) -> str:
        """sha256 (64 hex) of the content, without its place: what was embedded."""
        content = [self.issue, self.lang, self.project, self.title, self.symptom, self.cause, self.fix]
        lists = [list(self.errors), list(self.aliases), list(self.versions), list(self.tags), list(self.sources)]
        text = json.dumps([content, lists], ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """The public JSON form (`kb parse --json`, `kb show --json`)."""
        values = {name: getattr(self, name) for name in self.__slots__}
        place = self.source
        return {**values, "source": {"path": place.path, "first_line": place.first_line, "last_line": place.last_line}}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> IssueRecord:
        """The inverse of `as_dict`, lists read back as tuples. Raises KeyError or TypeError on another form."""
        values = {name: data[name] for name in cls.__slots__}
        for name in ("errors", "aliases", "versions", "tags", "sources"):
            values[name] = tuple(values[name])
        values["source"] = Source(**values["source"])
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Remark:
    """What the parser did with a place that is in no record (or what it wants a writer to know)."""

    line: int
    """1-based"""
    kind: str
    """one of `kb.articles.REMARK_KINDS`"""
    text: str


@dataclass(frozen=True, slots=True)
class Article:
    """An article read: its records in order, and a remark for everything that is in none of them."""

    path: str
    slug: str
    lang: Lang
    title: str
    records: tuple[IssueRecord, ...]
    remarks: tuple[Remark, ...]
    draft: bool
    """its front matter says `status: draft`: to be reviewed before it is served"""


@dataclass(frozen=True, slots=True)
class Query:
    """Pasted text, read: the lines that identify the failure, and the words around them."""

    text: str
    lang: Lang
    signatures: tuple[str, ...]
    """error lines without prefixes, most telling first; empty for a plain description"""
    prose: str
    """what is neither error line nor frame nor progress; of a single line, the line"""
    context: str
    """files, functions and source lines of a traceback, and what a launcher says around it; one a line"""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Rows and their scores: score descending, then row ascending; never -1, never NaN."""

    rows: tuple[int, ...]
    scores: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Features:
    """What speaks for one issue as the answer to one question, each in [0, 1]. Of its translations, the best counts."""

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
    """how many of the word pairs of the nearest error line stand in the question, as a share"""

    @property
    def similarity(self) -> float:
        """The higher of its cosines."""
        return max(self.body_sim, self.alias_sim)


@dataclass(frozen=True, slots=True)
class Hit:
    rank: int
    """from 1"""
    issue: str
    record: IssueRecord
    score: float
    confidence: float
    """in [0, 1]: how likely this is the issue asked about"""
    features: Features
    matched: tuple[str, ...]
    """the strings of the query that this record shares, most telling first"""

    def as_dict(self, folder: str, base: str) -> dict[str, Any]:
        """The public JSON form of one result; `folder` is the name of the articles' folder, `base` that of the base."""
        r = self.record
        return {
            "rank": self.rank,
            "issue": self.issue,
            "lang": r.lang,
            "project": r.project,
            "title": r.title,
            "symptom": r.symptom,
            "cause": r.cause,
            "fix": r.fix,
            "errors": list(r.errors),
            "versions": list(r.versions),
            "tags": list(r.tags),
            "sources": list(r.sources),
            "base": base,
            "path": f"{folder}/{r.source.path}",
            "lines": [r.source.first_line, r.source.last_line],
            "score": round(self.score, 4),
            "confidence": round(self.confidence, 4),
            "similarity": round(self.features.similarity, 4),
            "idf_coverage": round(self.features.idf_coverage, 4),
            "matched": list(self.matched),
        }


@dataclass(frozen=True, slots=True)
class SearchResult:
    query: Query
    answered: bool
    """False: nothing reaches the confidence at which the knowledge base is willing to speak"""
    hits: tuple[Hit, ...]
    """nearest first, an issue at most once; listed even when not answered"""
    snapshot: str
    folder: str
    """the name of the articles' folder, below which `record.source.path` lies"""
    base: str
    """which base answered: "bundled", or the absolute path of its articles or index; empty for one in memory"""
    took_ms: float

    def as_dict(self) -> dict[str, Any]:
        """The public JSON form (`kb search --json`, each line of `--batch`, HTTP, MCP)."""
        return {
            "query": self.query.text,
            "lang": self.query.lang,
            "answered": self.answered,
            "took_ms": round(self.took_ms, 3),
            "snapshot": self.snapshot,
            "results": [hit.as_dict(self.folder, self.base) for hit in self.hits],
        }


@dataclass(frozen=True, slots=True)
class Problem:
    path: str
    line: int | None
    level: Literal["error", "warning"]
    message: str
