"""Asks all questions of a file in this process, one after the other on one thread, and says how long each took and
whether the right record was found. Used by `ask.py` for kb and by `peers.py` for the others."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from measured import held

Search = Callable[[str, int], Sequence[str]]
"""the k best issues for a text, the best first"""

WARM_UP = 20  # questions before the clock starts


def read(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def asked(search: Search, questions: Sequence[dict[str, str]]) -> dict[str, object]:
    """Milliseconds of a search for 5 issues, the share of the right ones at the first place and among 5, and bytes."""
    for question in questions[:WARM_UP]:
        search(question["query"], 5)
    took: list[float] = []
    ranks: dict[str, list[int]] = {}
    for question in questions:
        started = time.perf_counter()
        found = search(question["query"], 5)
        took.append((time.perf_counter() - started) * 1000)
        rank = found.index(question["issue"]) if question["issue"] in found else 5
        ranks.setdefault(question["kind"], []).append(rank)
    every = [rank for some in ranks.values() for rank in some]
    return {
        "questions": len(questions),
        "warm_p50_ms": float(np.percentile(took, 50)),
        "warm_p99_ms": float(np.percentile(took, 99)),
        "right_at_1": _share(every, 1),
        "right_at_5": _share(every, 5),
        "right_at_1_of": {kind: _share(some, 1) for kind, some in sorted(ranks.items())},
        **held(),
    }


def _share(ranks: Sequence[int], first: int) -> float:
    return sum(rank < first for rank in ranks) / len(ranks) if ranks else 0.0
