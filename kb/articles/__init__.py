"""An article in this project's own form: its bytes, its front matter, its lines, its issues."""

from kb.articles.frontmatter import is_draft
from kb.articles.source import MAX_BYTES

__all__ = ["MAX_BYTES", "is_draft"]
