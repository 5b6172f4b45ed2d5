"""What some articles contribute to an index: their records, and all that is kept beside them.

In: articles that were read (`kb.index.intake`), or those of a segment (`kb.index.segment`). Out: rows for a segment
(`kb.index.writer`). Whichever it came from, a record contributes the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kb.arrays import Array

__all__ = ["Chunk"]


@dataclass(eq=False, repr=False)
class Chunk:
    """Articles, one after the other; n records, v vectors, t terms, p pairs of a record and a term of it."""

    articles: Sequence[tuple[str, str, int]]
    """path, sha256 of the article's bytes, number of records"""
    ids: Sequence[str]
    """(n,): `slug#n/lang`"""
    lines: Sequence[bytes]
    """(n,): the records as JSON, each with its line feed"""
    profiles: Sequence[bytes]
    """(n,): see `kb.index.profile`"""
    titles: Array
    """(n,) uint64: a digest of language and plain title; records of one fault have the same (`kb.index.faults`)"""
    subjects: Sequence[Sequence[str]]
    """(n,): project and tags in lower case, sorted"""
    projects: Sequence[str]
    """(n,): as the article writes it; empty when it names none"""
    views: Array
    """(v, dim) float16, rows of norm 1 or 0, in the order of the records"""
    kinds: Array
    """(v,) int32: of each a `kb.index.passages.View`"""
    view_counts: Array
    """(n,) int64: how many are of each record"""
    terms: Sequence[str]
    """(t,): distinct, in any order"""
    surprisal: Array
    """(t,) float32: -ln p in technical text"""
    log_p: Array
    """(t,) float32: log probability of a Chinese word, 0 for other terms"""
    bag_counts: Array
    """(n,) int64: how many terms each record has"""
    bag_terms: Array
    """(p,) int32: positions in `terms`, record by record"""
    counts: Array
    """(p,) uint16: how often each stands there"""
    prints: Sequence[tuple[str, str, str]]
    """(n,): what each says and prints (`kb.index.prints.text_of_prints`)"""
