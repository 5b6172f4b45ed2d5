"""Opens an index of kb and asks it the questions of a file; prints a JSON object.

    python scripts/bench/ask.py INDEX QUESTIONS.jsonl [--small INDEX]

How long opening takes in a process that has imported everything (`--small` is opened and asked first for that), how
long the first answer after it takes, what `asking.asked` measures, and of what an exact search finds first the share
that this one finds among its first ten.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

from asking import asked, read

from kb import KnowledgeBase
from kb.index.faiss import FaissStore
from kb.index.vectors import Vectors

OPENED = 5  # times
COMPARED = 100  # questions that are asked of the exact search, too


def make_exact(base: KnowledgeBase) -> bool:
    """From here on `base` compares all vectors; False: it does so already. Its lexical half always finds the best."""
    store = base.searcher.store
    assert isinstance(store, FaissStore)
    approximate = [segment for segment in store.segments if segment.vectors._near is not None]
    for segment in approximate:
        segment.vectors = Vectors(segment._views, segment._view_starts, segment._kinds)
    return bool(approximate)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--small", type=Path, help="an index that is opened and asked before the clock starts")
    args = parser.parse_args()
    questions = read(args.questions)
    with KnowledgeBase.open(args.small or args.index) as small:
        small.search(questions[0]["query"])

    opened, first = [], []
    for question in questions[-OPENED:]:
        started = time.perf_counter()
        base = KnowledgeBase.open(args.index)
        opened.append((time.perf_counter() - started) * 1000)
        base.search(question["query"])
        first.append((time.perf_counter() - started) * 1000)
        base.close()

    def search(text: str, k: int) -> list[str]:
        return [hit.issue for hit in base.search(text, k).hits]

    with KnowledgeBase.open(args.index) as base:
        figures = asked(search, questions)
        compared = [question["query"] for question in questions[:COMPARED]]
        found = [search(text, 10) for text in compared]
        recall = 1.0
        approximate = make_exact(base)
        if approximate:
            shares = []
            for text, ours in zip(compared, found, strict=True):
                exact = search(text, 10)
                shares.append(len(set(exact) & set(ours)) / len(exact) if exact else 1.0)
            recall = statistics.mean(shares)
    figures |= {
        "open_ms": statistics.median(opened),
        "open_and_search_ms": statistics.median(first),
        "approximate": approximate,
        "recall_at_10": recall,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
