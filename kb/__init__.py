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

TYPE_CHECKING = False  # what type checkers take for true; to import it would cost more than all the rest here

if TYPE_CHECKING:
    from kb.base import KnowledgeBase as KnowledgeBase
    from kb.bases import Bases as Bases
    from kb.bases import open_bases as open_bases
    from kb.errors import KbError as KbError
    from kb.hooks.excepthook import install_excepthook as install_excepthook
    from kb.hooks.excepthook import uninstall_excepthook as uninstall_excepthook
    from kb.hooks.ipython import load_ipython_extension as load_ipython_extension
    from kb.hooks.ipython import unload_ipython_extension as unload_ipython_extension
    from kb.hooks.logs import KbHandler as KbHandler
    from kb.index.build import BuildReport as BuildReport
    from kb.index.build import build as build
    from kb.records import Article as Article
    from kb.records import Hit as Hit
    from kb.records import IssueRecord as IssueRecord
    from kb.records import SearchResult as SearchResult
    from kb.scan import Finding as Finding
    from kb.scan import Scanner as Scanner
    from kb.scan import ScanReport as ScanReport

__version__ = "0.1.0"
__all__ = [
    "Article",
    "Bases",
    "BuildReport",
    "Finding",
    "Hit",
    "IssueRecord",
    "KbError",
    "KbHandler",
    "KnowledgeBase",
    "ScanReport",
    "Scanner",
    "SearchResult",
    "__version__",
    "build",
    "install_excepthook",
    "load_ipython_extension",
    "open_bases",
    "uninstall_excepthook",
    "unload_ipython_extension",
]

_HOMES = {
    "Article": "kb.records",
    "Bases": "kb.bases",
    "BuildReport": "kb.index.build",
    "Finding": "kb.scan",
    "Hit": "kb.records",
    "IssueRecord": "kb.records",
    "KbError": "kb.errors",
    "KbHandler": "kb.hooks.logs",
    "KnowledgeBase": "kb.base",
    "ScanReport": "kb.scan",
    "Scanner": "kb.scan",
    "SearchResult": "kb.records",
    "build": "kb.index.build",
    "install_excepthook": "kb.hooks.excepthook",
    "load_ipython_extension": "kb.hooks.ipython",
    "open_bases": "kb.bases",
    "uninstall_excepthook": "kb.hooks.excepthook",
    "unload_ipython_extension": "kb.hooks.ipython",
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
