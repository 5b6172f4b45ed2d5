"""The kinds of a remark: why a place of an article is in no record.

A section outside every record has its role as its kind. The other kinds say what the reader did with a place.
`kb parse --explain` prints them.
"""

from __future__ import annotations

__all__ = ["REMARK_KINDS"]

REMARK_KINDS = (
    # sections that belong to no issue; "rejected" holds remedies that the article advises against
    "analysis", "background", "confusable", "diagnosis", "environment", "faq", "impact", "prevention", "progress",
    "rejected", "related", "reply", "summary", "theory", "timeline", "toc", "verification",
    # labels without an issue, and titles that head no issue
    "symptom", "cause", "fix", "answer", "question", "not-an-issue",
    # text of the web page around the article (menus, adverts, copyright)
    "boilerplate",
    # front matter that is not read as it stands
    "front-matter",
    # Markdown that had to be repaired: a fence that is never closed, a list nested too deep
    "recovered",
    # a fix that only says that there is none yet
    "no-fix",
    # any other place that no record holds
    "unread",
)  # fmt: skip
