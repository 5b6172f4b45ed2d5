"""Here is an article's bytes; give me its issues.

    bytes ── source ── frontmatter ── lines ──┬─ own      our own form, read exactly
                                              └─ reader   the articles people really have
                                                          └── record: drafts become IssueRecords

`parse` is a pure function. Nothing is lost without a word: a heading is in a record or in a remark.
"""

from __future__ import annotations

from ..records import Article
from .frontmatter import is_draft
from .reading import REMARK_KINDS, parse
from .source import MAX_BYTES

__all__ = ["MAX_BYTES", "REMARK_KINDS", "Article", "is_draft", "parse"]
