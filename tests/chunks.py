"""What tests of the index are made of: chunks and lexicons from bags of terms and a few vectors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from conftest import EMPTY_RECORD

from kb.index.chunk import Chunk
from kb.index.faults import title_key
from kb.index.invert import PostingsBuilder
from kb.index.lexicon import Lexicon
from kb.index.passages import View
from kb.index.prints import text_of_prints
from kb.records import IssueRecord, Lang, Source

DIM = 4


def record(n: int, lang: Lang = "en", project: str | None = "Demo", issue: int | None = None) -> IssueRecord:
    name = f"a#{(n if issue is None else issue) + 1}"
    title, source = f"title {n} 标题", Source("en/a.md", n + 1, n + 1)
    texts = {"title": title, "symptom": "s", "cause": "c", "fix": "f", "errors": (f"E{n}",)}
    return replace(EMPTY_RECORD, id=f"{name}/{lang}", issue=name, lang=lang, project=project, source=source, **texts)


def kind_of(n: int) -> int:
    """What the n-th view of a record is in these tests."""
    return n % len(View)


Bag = dict[str, int]
"""term -> how often it occurs in one record"""


def chunk_of(
    bags: Sequence[Bag],
    groups: Sequence[Sequence[Sequence[float]]] = (),
    records: Sequence[IssueRecord] = (),
    surprisal: float = 20.0,
) -> Chunk:
    """One article with record i, which has the terms `bags[i]` and the vectors `groups[i]`."""
    groups, records = groups or [[] for _ in bags], records or [record(i) for i in range(len(bags))]
    flat = [one for group in groups for one in group]
    terms = list(dict.fromkeys(term for bag in bags for term in bag))
    return Chunk(
        articles=[(f"en/{records[0].id.replace('/', '-')}.md" if records else "en/none.md", "0" * 64, len(records))],
        ids=[one.id for one in records],
        lines=[json.dumps(one.as_dict()).encode() + b"\n" for one in records],
        profiles=[b"profile %d" % i for i in range(len(records))],
        titles=np.array([title_key(one) + i for i, one in enumerate(records)], np.uint64),
        subjects=[sorted({n.casefold() for n in (r.project, *r.tags) if n}) for r in records],
        projects=[one.project or "" for one in records],
        views=np.array(flat, np.float16).reshape(len(flat), DIM),
        kinds=np.array([kind_of(n) for group in groups for n in range(len(group))], np.int32),
        view_counts=np.array([len(group) for group in groups], np.int64),
        terms=terms,
        surprisal=np.full(len(terms), surprisal, np.float32),
        log_p=np.zeros(len(terms), np.float32),
        bag_counts=np.array([len(bag) for bag in bags], np.int64),
        bag_terms=np.array([terms.index(term) for bag in bags for term in bag], np.int32),
        counts=np.array([count for bag in bags for count in bag.values()], np.uint16),
        prints=[text_of_prints(one) for one in records],
    )


def lexicon_of(bags: Sequence[Bag], surprisal: float = 20.0, size: int = 1) -> Lexicon:
    """A segment's, from chunks of `size` records: terms come again."""
    builder = PostingsBuilder()
    for at in range(0, len(bags), size):
        builder.add(chunk_of(bags[at : at + size], surprisal=surprisal))
    return Lexicon(builder.finish())
