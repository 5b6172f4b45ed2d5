"""Says which known issue explains the output of a command that failed.

The output is read as a person's paste is, but for one thing: nobody wrote around it, so that only lines of failure are
evidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kb.errors import QueryError
from kb.records import IssueRecord, Lang, SearchResult, Verdict
from kb.text.decode import decode_lines

__all__ = ["Asked", "Explanation", "explain"]


class Asked(Protocol):
    """One base, or several that are asked together."""

    def search(self, text: str, k: int, *, lang: Lang | None, printed: bool) -> SearchResult: ...


@dataclass(frozen=True, slots=True)
class Explanation:
    verdict: Verdict
    record: IssueRecord | None
    """the issue; when it is not known, the nearest one; None when the output has no words"""
    confidence: float
    """of `record`, in [0, 1]"""
    base: str
    """where `record` comes from, as in `Hit.base`"""
    result: SearchResult | None
    """all that was found; None when the output has no words"""

    @property
    def answered(self) -> bool:
        return self.verdict == "known"


def explain(base: Asked, output: bytes, *, lang: Lang | None = None) -> Explanation:
    """`output`: what the command printed, or its end. `lang`: as in `KnowledgeBase.search`."""
    try:
        result = base.search(decode_lines(output), 3, lang=lang, printed=True)
    except QueryError:  # no words
        return Explanation("unknown", None, 0.0, "", None)
    if not result.hits:
        return Explanation(result.verdict, None, 0.0, "", result)
    first = result.hits[0]
    return Explanation(result.verdict, first.record, first.confidence, first.base, result)
