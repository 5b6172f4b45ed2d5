"""Here are issue threads or scraped pages; give me drafts of articles, to be reviewed before anybody is served them.

    github JSON ── github ──┐   threads: which comment is the fix
                            ├─ body: no templates, dumps, secrets ── form: an article ── keep: <lang>/<slug>.md
    .html ── web ── pages ──┘   pages: what `kb.articles.parse` finds in them

What a draft says is what its source says: nothing is summed up, and what the source leaves out stays to be written.
"""

from __future__ import annotations

from kb.importers.form import DraftArticle, DraftIssue, compose
from kb.importers.github import read_threads
from kb.importers.pages import find_pages, page_draft
from kb.importers.save import ArticleFolder, SavedDraft, save_draft
from kb.importers.thread import thread_draft

__all__ = [
    "ArticleFolder",
    "DraftArticle",
    "DraftIssue",
    "SavedDraft",
    "compose",
    "find_pages",
    "page_draft",
    "read_threads",
    "save_draft",
    "thread_draft",
]
