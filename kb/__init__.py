"""kb: paste an error message, a log or a description, in Chinese or English; get the known issue, its cause and its
fix.

    from kb import KnowledgeBase

    with KnowledgeBase.open() as base:
        result = base.search("IndexError: pop from an empty deque", k=3)
        if result.answered:
            print(result.hits[0].record.fix)

Importing this costs a few milliseconds: what a name needs is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kb.build import BuildReport as BuildReport
    from kb.build import build as build
    from kb.errors import KbError as KbError
    from kb.records import Article as Article
    from kb.records import Hit as Hit
    from kb.records import IssueRecord as IssueRecord
    from kb.records import SearchResult as SearchResult
    from kb.scan import Finding as Finding
    from kb.scan import Scanner as Scanner
    from kb.scan import ScanReport as ScanReport
    from kb.search import KnowledgeBase as KnowledgeBase

__version__ = "0.1.0"
__all__ = [
    "Article",
    "BuildReport",
    "Finding",
    "Hit",
    "IssueRecord",
    "KbError",
    "KnowledgeBase",
    "ScanReport",
    "Scanner",
    "SearchResult",
    "__version__",
    "build",
]

_HOMES = {
    "Article": "kb.records",
    "BuildReport": "kb.build",
    "Finding": "kb.scan",
    "Hit": "kb.records",
    "IssueRecord": "kb.records",
    "KbError": "kb.errors",
    "KnowledgeBase": "kb.search",
    "ScanReport": "kb.scan",
    "Scanner": "kb.scan",
    "SearchResult": "kb.records",
    "build": "kb.build",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        from importlib import import_module

        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'kb' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
