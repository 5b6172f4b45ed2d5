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
"""

from kb.articles.folder import Skipped, list_articles, read_article, read_articles
from kb.articles.frontmatter import is_draft, peek
from kb.articles.kinds import REMARK_KINDS
from kb.articles.scaffold import PLACEHOLDER, is_slug, write_new
from kb.articles.source import MAX_BYTES

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
