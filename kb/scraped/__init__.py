"""Articles in any form: those in our own form exactly, and pages as they are found."""

from kb.scraped.parse import REMARK_KINDS, parse

__all__ = ["REMARK_KINDS", "parse"]
