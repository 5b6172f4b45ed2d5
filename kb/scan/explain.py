"""Says which known issue explains the output of a command that failed.

The whole output is searched for first, as a person would paste it. If that finds no answer, the output is scanned line
by line: a line that names an issue counts, however much noise surrounds it. Of several such lines the last one wins,
because what ended the command comes last.
"""

from __future__ import annotations

from dataclasses import dataclass

from kb.errors import QueryError
from kb.records import IssueRecord, Lang
from kb.scan.scanner import Scanner
from kb.search.searcher import Searcher
from kb.text.decode import decode_lines

__all__ = ["Explanation", "explain"]


@dataclass(frozen=True, slots=True)
class Explanation:
    answered: bool
    """False: nothing reaches the confidence at which the base is willing to speak"""
    record: IssueRecord | None
    """the issue; when not answered, the nearest one; None when the output has no words"""
    confidence: float
    """of `record`, in [0, 1]"""
    base: str
    """the name of the base that was asked, as in `SearchResult.base`"""


def explain(searcher: Searcher, output: bytes, *, lang: Lang | None = None) -> Explanation:
    """`output`: what the command printed, or its end. `lang`: searches and shows one language only."""
    try:
        result = searcher.search(decode_lines(output), 1, lang=lang)
    except QueryError:  # no words
        return Explanation(False, None, 0.0, searcher.base)
    if result.answered:
        return Explanation(True, result.hits[0].record, result.hits[0].confidence, searcher.base)
    findings = Scanner(searcher).scan([output], lang=lang).findings
    if findings:
        last = max(findings, key=lambda finding: finding.last_line)
        return Explanation(True, last.record, last.confidence, searcher.base)
    if result.hits:
        return Explanation(False, result.hits[0].record, result.hits[0].confidence, searcher.base)
    return Explanation(False, None, 0.0, searcher.base)
