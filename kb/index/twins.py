"""Decides which issues of an English and a Chinese article of one name are the same, and numbers them so.

Both files may tell the same issues in the same order, as ours do. Pages of others often do not: one has more issues, or
another order. Then `pod#3` would be one issue in English and another in Chinese, and an answer would be found by the
one and shown from the other.

So issues are compared: their titles and their texts by the shipped encoder (it is bilingual), and the words that no
translation changes, commands, names and numbers, by how rare they are. The pair that is most alike is joined first;
below `_SAME` nothing is joined, but for two in the same place of articles with as many issues, where less is enough.

An English issue keeps the number of its place. A Chinese one has the number of the English issue that it is joined to,
or else the next free one, in its own order. What is decided depends on the two articles alone, and not on the encoder
that the index is made with.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kb.arrays import Array
from kb.encoders import rarity, surprisal, term_table
from kb.records import IssueRecord, Lang

__all__ = ["Unlike", "counterparts", "join_twins", "numbered_by_place"]

_SAME = 0.42  # of 0 to 1. The least alike of our own pairs has 0.62, two issues of one project seldom have 0.4
_SAME_IN_PLACE = 0.3  # where both articles have as many issues, and these the same place,
_SHARE = 0.5  # and they have so much of the likeness of those joined before: in a near translation all are very alike
_PLAIN_SAME, _PLAIN_OTHER = 0.8, 0.65  # shared words from which, and to which, there is no need to encode anything
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]+|\d{2,}")
_MOST = 1000  # characters of a text that are compared
_COMMON = 0.05  # what a common word counts; a rare one counts 1


@dataclass(frozen=True, slots=True)
class Unlike:
    """Two articles of one name whose issues do not correspond one to one, in order."""

    en: str
    """path of the English article"""
    zh: str
    joined: int
    """issues that both tell"""
    only_en: int
    only_zh: int
    moved: int
    """joined issues that have another place in the Chinese article"""


def numbered_by_place(records: Sequence[IssueRecord]) -> Sequence[IssueRecord]:
    """The records of one article with the ids that it gives them by itself: numbered from 1, in its order."""
    return [_numbered(record, number) for number, record in enumerate(records, 1)]


def join_twins(articles: Mapping[str, Sequence[IssueRecord]]) -> tuple[dict[str, Sequence[IssueRecord]], list[Unlike]]:
    """`articles`: path -> the records of one article, numbered by place; no slug twice in one language.

    Returns the same with the ids of the Chinese records as they are in the index, and the pairs that are unlike.
    """
    joined = dict(articles)
    pairs: dict[str, dict[Lang, str]] = defaultdict(dict)
    for path, records in sorted(articles.items()):
        if records:
            pairs[_slug(records[0])][records[0].lang] = path
    unlike: list[Unlike] = []
    for paths in pairs.values():
        if len(paths) < 2:
            continue
        en, zh = articles[paths["en"]], articles[paths["zh"]]
        found = counterparts(en, zh)
        if found != list(range(len(en))):
            free = iter(range(len(en) + 1, len(en) + len(zh) + 1))
            numbers = [next(free) if place is None else place + 1 for place in found]
            joined[paths["zh"]] = [_numbered(record, n) for record, n in zip(zh, numbers, strict=True)]
            both = [place for place in found if place is not None]
            unlike.append(
                Unlike(
                    paths["en"],
                    paths["zh"],
                    joined=len(both),
                    only_en=len(en) - len(both),
                    only_zh=len(zh) - len(both),
                    moved=sum(a != b for a, b in zip(both, sorted(both), strict=True)),
                )
            )
    return joined, unlike


def counterparts(en: Sequence[IssueRecord], zh: Sequence[IssueRecord]) -> list[int | None]:
    """For each record of `zh` the place in `en`, from 0, of the one that tells the same issue."""
    shared = _shared_words(en, zh)
    if len(en) == len(zh):
        along = shared.diagonal()
        across = shared - np.diag(np.full(len(en), 2.0))
        if (along >= _PLAIN_SAME).all() and (across <= _PLAIN_OTHER).all():
            return list(range(len(en)))
    titles, texts = _cosines(en, zh, title_only=True), _cosines(en, zh)
    likeness = ((titles + ((texts - 0.6) / 0.4).clip(0, 1) + shared) / 3).round(5)
    found: list[int | None] = [None] * len(zh)
    joined: list[float] = []
    for at in np.argsort(-likeness, axis=None, kind="stable").tolist():
        one, other = divmod(at, len(zh))
        enough = _SAME
        if one == other and len(en) == len(zh):
            enough = min(_SAME, max(_SAME_IN_PLACE, _SHARE * sum(joined) / max(1, len(joined))))
        if likeness[one, other] >= enough and found[other] is None and one not in found:
            found[other] = one
            joined.append(float(likeness[one, other]))
    return found


def _shared_words(en: Sequence[IssueRecord], zh: Sequence[IssueRecord]) -> Array:
    """(en, zh) in [0, 1]: how much of the one with fewer words, by their rarity, both have."""
    said = [{word.lower() for word in _WORD.findall(_whole(record))} for record in (*en, *zh)]
    words = sorted(set().union(*said))
    weights = rarity(np.array(surprisal(words), np.float32)) + _COMMON
    weight = dict(zip(words, weights.tolist(), strict=True))
    total = [_sum(weight, one) for one in said]
    sides = [(said[i], total[i]) for i in range(len(said))]
    shares = [[_sum(weight, one & two) / (min(a, b) + 1) for two, b in sides[len(en) :]] for one, a in sides[: len(en)]]
    return np.array(shares, np.float32).reshape(len(en), len(zh))


def _sum(weight: Mapping[str, float], words: Iterable[str]) -> float:
    return sum(weight[word] for word in sorted(words))  # in one order: the last bit of a sum depends on it


def _cosines(en: Sequence[IssueRecord], zh: Sequence[IssueRecord], *, title_only: bool = False) -> Array:
    """(en, zh)"""
    texts = [record.title if title_only else _whole(record)[:_MOST] for record in (*en, *zh)]
    vectors = term_table().encode(texts, kind="passage")
    return vectors[: len(en)] @ vectors[len(en) :].T


def _whole(record: IssueRecord) -> str:
    return "\n".join((record.title, record.symptom, record.cause, record.fix))


def _numbered(record: IssueRecord, number: int) -> IssueRecord:
    issue = f"{_slug(record)}#{number}"
    return record if record.issue == issue else replace(record, issue=issue, id=f"{issue}/{record.lang}")


def _slug(record: IssueRecord) -> str:
    return record.issue.rpartition("#")[0]
