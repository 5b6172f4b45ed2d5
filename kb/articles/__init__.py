"""Articles in this project's own form: Markdown files with a symptom, a cause and a fix under fixed headings.

In go the bytes of a file; out come its front matter, its classified lines, and its issues field by field. Nothing is
guessed here. `kb.scraped.parse` turns an article of any form into records and calls this package first.

    source       bytes -> lines; the slug and the language that a path states
    frontmatter  the YAML head: project, tags, versions, sources, status
    lines        what each line is: heading, code, table, html, rule, text; `simple` is the fast reader for most files
    own          the form itself: its labels, its issues
    items        the items of a list
    fields       an issue's lines by field, before they become a record
    errors       the literal error lines of an issue
    mdx          MDX read as Markdown: no imports, no tags of components
    assumed      the project of articles that name none, by their folder
    kinds        the kinds of a remark
    folder       lists and reads the files of an articles folder
    scaffold     the empty form for a new article; `scaffold.scaffold` writes it

A name is imported when it is first used: who lists a folder does not wait for the patterns of an article's form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kb.articles.folder import Skipped as Skipped
    from kb.articles.folder import list_articles as list_articles
    from kb.articles.folder import read_article as read_article
    from kb.articles.folder import read_articles as read_articles
    from kb.articles.frontmatter import is_draft as is_draft
    from kb.articles.frontmatter import peek as peek
    from kb.articles.kinds import REMARK_KINDS as REMARK_KINDS
    from kb.articles.scaffold import PLACEHOLDER as PLACEHOLDER
    from kb.articles.scaffold import is_slug as is_slug
    from kb.articles.scaffold import write_new as write_new
    from kb.articles.source import MAX_BYTES as MAX_BYTES

__all__ = [
    "MAX_BYTES",
    "PLACEHOLDER",
    "REMARK_KINDS",
    "Skipped",
    "is_draft",
    "is_slug",
    "list_articles",
    "peek",
    "read_article",
    "read_articles",
    "write_new",
]

_MODULES = {
    "MAX_BYTES": "source",
    "PLACEHOLDER": "scaffold",
    "REMARK_KINDS": "kinds",
    "Skipped": "folder",
    "is_draft": "frontmatter",
    "is_slug": "scaffold",
    "list_articles": "folder",
    "peek": "frontmatter",
    "read_article": "folder",
    "read_articles": "folder",
    "write_new": "scaffold",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"kb.articles.{_MODULES[name]}"), name)
