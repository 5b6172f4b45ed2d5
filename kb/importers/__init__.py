"""Makes drafts of articles from issue threads and scraped pages. In come GitHub's JSON or pages; out come files with
`status: draft`, which a reviewer checks before `kb build` takes them.

A draft says what its source says. Nothing is summarised; a section without a source gets a placeholder.

    github    GitHub's JSON (gh, REST API) -> threads
    wording   a comment -> what its words say: solved, thanks, try this, same here
    fix       a thread -> its posts, ranked by the chance that they are the fix, with the reasons
    failures  a post -> the lines that a program printed when it failed
    posts     a thread -> the folded part of a draft, and back
    thread    a thread -> a draft: the first post, and the post that is most likely the fix
    body      a post without form templates, dumps of the environment and check boxes
    pages     a page -> a draft of the issues that `kb.scraped.parse` finds in it
    web       the HTML of a page -> its article as markdown (needs the extra `import`)
    mask      keys, tokens and passwords -> `[masked]`; control characters removed
    form      a draft -> the text of an article in our own form
    save      a draft -> `<lang>/<slug>.md`, unless an article has its content already
"""

from __future__ import annotations

from kb.importers.form import DraftArticle, DraftIssue, compose
from kb.importers.github import Thread, find_json, read_threads
from kb.importers.pages import find_pages, page_draft
from kb.importers.save import ArticleFolder, SavedDraft, save_draft
from kb.importers.thread import thread_draft

__all__ = [
    "ArticleFolder",
    "DraftArticle",
    "DraftIssue",
    "SavedDraft",
    "Thread",
    "compose",
    "find_json",
    "find_pages",
    "page_draft",
    "read_threads",
    "save_draft",
    "thread_draft",
]
