"""Here are symptoms told first and remedies told later; tell me which remedy belongs to which symptom.

By shared words where they decide, else by order. Titles need not agree: 图像标记不一致 may be cured under 数据准备规范.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

__all__ = ["pair", "words_of"]

_ASCII_WORD = re.compile(r"[a-z][a-z0-9_]{2,40}")
_CJK_RUN = re.compile(r"[\u4e00-\u9fff]{2,200}")
_COMMON = frozenset(
    [
        "the",
        "and",
        "for",
        "with",
        "not",
        "that",
        "this",
        "from",
        "are",
        "was",
        "can",
        "error",
        "issue",
        "problem",
        "fix",
        "solution",
        "cause",
        "when",
        "you",
    ]
)


def words_of(text: str) -> set[str]:
    """English words and pairs of Chinese characters."""
    lowered = text[:4000].lower()
    words = {word for word in _ASCII_WORD.findall(lowered) if word not in _COMMON}
    for run in _CJK_RUN.findall(lowered):
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
    best = [max(range(len(left)), key=lambda n, row=row: (row[n], -n)) if row else 0 for row in scores]  # type: ignore[misc]
    clear = [
        row[n] >= 2.0 and all(row[n] >= 1.5 * row[k] for k in range(len(row)) if k != n)
        for row, n in zip(scores, best, strict=True)
    ]
    if all(clear) and len(set(best)) == len(best):
        return list(best)
    return [n if n < len(left) else None for n in range(len(right))]
