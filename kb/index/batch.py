"""What a build hands to a store: a whole index in memory. A search never imports this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kb.arrays import Array
from kb.index.bm25 import Bag, Postings
from kb.index.store import Views
from kb.records import IssueRecord

__all__ = ["Batch"]


@dataclass(frozen=True)
class Batch:
    """A whole index in memory: what a build made and a store publishes. Row i is `records[i]`."""

    records: Sequence[IssueRecord]
    bags: Sequence[Bag]
    """the terms of each record"""
    postings: Postings
    views: Views
    profiles: Sequence[bytes]
    """of each record, packed (`kb.index.profile`)"""
    surprisal: Array
    """(terms of the postings,) float32: how rare each is in technical text, -ln p"""
    han: dict[str, float]
    """Chinese terms -> log probability, by which questions are segmented as the records were"""
    articles: Sequence[tuple[str, str, int]]
    """path, sha256 of the article's bytes, number of records; sorted by path"""
    manifest: dict[str, Any]
    """what else a reader has to know: encoder, versions"""
