"""Pairs symptoms with fixes where a page lists first all symptoms and then all fixes.

By shared words where they decide, else by order. Titles need not agree: the fix of 图像标记不一致 may stand under
数据准备规范.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import permutations

from kb.text import HAN

__all__ = ["pair", "words_of"]

_ENOUGH = 2.0
"""shared words, weighted, by which another order must beat the order of the page"""
_TRY_ALL = 6

_ASCII_WORD = re.compile(r"[a-z][a-z0-9_]{2,40}")
_HAN_RUN = re.compile(rf"[{HAN}]{{2,200}}")
_COMMON = frozenset(
    "the and for with not that this from are was can error issue problem fix solution cause when you".split()
)


def words_of(text: str) -> set[str]:
    """English words and pairs of Chinese characters."""
    lowered = text[:4000].lower()
    words = {word.rstrip("s") for word in _ASCII_WORD.findall(lowered) if word not in _COMMON}
    for run in _HAN_RUN.findall(lowered):
        words.update(run[n : n + 2] for n in range(len(run) - 1))
    return words


def pair(left: Sequence[str], right: Sequence[str]) -> list[int | None]:
    """For each text of `right` the index of its text in `left`, each at most once; None for one too many."""
    bags = [words_of(text) for text in left]
    seen = Counter(word for bag in bags for word in bag)
    scores = [
        [sum(1.0 / seen[word] for word in words_of(text) & bag if seen[word] < max(2, len(bags))) for bag in bags]
        for text in right
    ]
    in_order: list[int | None] = [n if n < len(left) else None for n in range(len(right))]
    if len(right) > len(left):
        return in_order
    best = _best(scores, len(left))
    gained, ordered = _total(scores, best), _total(scores, in_order)
    return list(best) if gained >= ordered + _ENOUGH and gained >= 2 * ordered else in_order


def _best(scores: Sequence[Sequence[float]], width: int) -> Sequence[int]:
    """The assignment with most shared words; for more than six texts a greedy one."""
    if width <= _TRY_ALL:
        return max(permutations(range(width), len(scores)), key=lambda places: _total(scores, places))
    left = set(range(width))
    chosen = []
    for row in scores:
        place = max(left, key=lambda n: (row[n], -n))
        left.discard(place)
        chosen.append(place)
    return chosen


def _total(scores: Sequence[Sequence[float]], places: Sequence[int | None]) -> float:
    return sum(row[place] for row, place in zip(scores, places, strict=True) if place is not None)
