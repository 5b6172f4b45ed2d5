"""Here is what a remark may be about: the role of a section that is in no record, or what became of a place."""

from __future__ import annotations

__all__ = ["REMARK_KINDS"]

REMARK_KINDS = (
    # what the article says beside its issues
    "analysis", "background", "confusable", "diagnosis", "environment", "faq", "impact", "prevention", "progress",
    "rejected", "related", "reply", "summary", "theory", "timeline", "toc", "verification",
    # labels without an issue, and titles that are none
    "symptom", "cause", "fix", "answer", "question", "not-an-issue",
    # the page, its head, and what had to be read another way
    "furniture", "front-matter", "recovered", "no-fix", "unread",
)  # fmt: skip
