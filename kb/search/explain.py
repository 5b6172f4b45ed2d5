"""Says which known issue explains the output of a command that failed.

The output is read as a person's paste is, but for one thing: nobody wrote around it, so that only lines of failure are
evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

from kb.errors import QueryError
from kb.records import IssueRecord, Lang, SearchResult, Verdict
from kb.search.searcher import Searcher
from kb.text.decode import decode_lines

__all__ = ["Explanation", "explain"]


@dataclass(frozen=True, slots=True)
class Explanation:
    verdict: Verdict
    record: IssueRecord | None
    """the issue; when it is not known, the nearest one; None when the output has no words"""
    confidence: float
    """of `record`, in [0, 1]"""
    base: str
    """the name of the base that was asked, as in `SearchResult.base`"""
    result: SearchResult | None
    """all that was found; None when the output has no words"""

    @property
    def answered(self) -> bool:
        return self.verdict == "known"


def explain(searcher: Searcher, output: bytes, *, lang: Lang | None = None) -> Explanation:
    """`output`: what the command printed, or its end. `lang`: searches and shows one language only."""
    try:
        result = searcher.search(decode_lines(output), 3, lang=lang, printed=True)
    except QueryError:  # no words
        return Explanation("unknown", None, 0.0, searcher.base, None)
    first = result.hits[0] if result.hits else None
    record, confidence = (first.record, first.confidence) if first else (None, 0.0)
    return Explanation(result.verdict, record, confidence, searcher.base, result)
