"""How a base grows: build, size, opening, first and later searches, an edit, and how near the approximate search is.

    python scripts/bench/scale.py FOLDER [--sizes 1000 10000 100000] [--no-build]

For each size FOLDER/<size> gets made-up articles (`scripts/bench/articles.py`, which says what they are), an index, and
these figures, as a table. A million records take half an hour on two cores, 4 GB of disk for the articles and 7 GB for
the index. `--no-build` measures an index that is there. A search in a fresh process is compared with one over the first
size, run in turn with it. Recall: of the ten records nearest to a question by comparing all vectors, the share of those
that the store names among twenty, as many as a search looks at.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from kb.base import KnowledgeBase
from kb.index.vectors import Vectors

HERE = Path(__file__).parent
OPEN = """
import resource, sys, time
import faiss, numpy, kb.base, kb.search.searcher, kb.index.faiss, kb.encoders.static
from kb.base import KnowledgeBase
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
times = []
for _ in range(5):
    started = time.perf_counter()
    base = KnowledgeBase.open(sys.argv[1])
    times.append(time.perf_counter() - started)
    base.close()
print(sorted(times)[2] * 1000)
"""
BUILD = """
import json, resource, sys, time
from pathlib import Path
from kb.index.build import build
started = time.perf_counter()
report = build(Path(sys.argv[1]), Path(sys.argv[2]))
both = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(json.dumps({"s": time.perf_counter() - started, "records": report.records, "segments": report.segments,
                  "parsed": report.parsed, "own_mb": both[0] // 1024, "child_mb": both[1] // 1024}))
"""


def run(script: str, *arguments: Path) -> str:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def build(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(BUILD, folder / "articles", folder / "index"))
    return found


def edit(folder: Path) -> dict[str, Any]:
    path = next((folder / "articles").rglob("*.md"))
    path.write_text(path.read_text("utf-8") + f"\nWritten at {time.time_ns()}.\n", "utf-8")
    return build(folder)


def cold(index: Path, question: str) -> float:
    """Seconds of `kb search` in a fresh process."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "kb", "search", "--index", str(index), question]
    subprocess.run(command, capture_output=True, check=False)
    return time.perf_counter() - started


def warm(index: Path, questions: list[dict[str, str]]) -> dict[str, float]:
    """Milliseconds of a search in one thread, after a hundred others; how many are right; recall."""
    with KnowledgeBase.open(index) as base:
        searcher = base.searcher
        for one in questions[:100]:
            searcher.search(one["query"], 5)
        took, first, five = [], 0, 0
        for one in questions[100:]:
            started = time.perf_counter()
            found = [hit.issue for hit in searcher.search(one["query"], 5).hits]
            took.append((time.perf_counter() - started) * 1000)
            first += found[:1] == [one["issue"]]
            five += one["issue"] in found
        asked = len(took)
        recall = _recall(base, [one["query"] for one in questions[100:160]])
    took.sort()
    p50, p99 = took[asked // 2], took[int(asked * 0.99)]
    return {"p50_ms": p50, "p99_ms": p99, "first": first / asked, "five": five / asked, "recall": recall}


def _recall(base: KnowledgeBase, questions: list[str]) -> float:
    """Of the ten records that comparing all vectors names, the share that the store names."""
    store, encoder = base.searcher.store, base.searcher.encoder
    segments = store.segments  # type: ignore[attr-defined]
    starts = store.header.columns.starts.tolist()
    found = wanted = 0
    for vector in encoder.encode(questions, kind="query"):
        best: list[tuple[float, int]] = []
        for start, segment in zip(starts, segments, strict=False):
            exact = Vectors(segment._views, segment._view_starts, segment._kinds).nearest(vector, 10)
            best += [(score, start + row) for row, score in zip(exact.rows, exact.scores, strict=True)]
        rows = {row for _, row in sorted(best, reverse=True)[:10]}
        found += len(rows & set(store.dense(np.asarray(vector), 20).rows))
        wanted += len(rows)
    return found / wanted if wanted else 1.0


def size_mb(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file()) >> 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--no-build", action="store_true")
    parser.add_argument("--runs", type=int, default=5, help="of a search in a fresh process")
    args = parser.parse_args()
    print(f"{os.cpu_count()} cores; times in this table are of one machine and one moment")
    head = (
        "records | build s | records/s | peak MB (one child) | index MB | segments | edit s | open ms | cold s (ratio) "
    )
    print(head + "| p50 ms | p99 ms | right first / in five | recall@10")
    print("--- | " * 12 + "---")
    smallest: tuple[Path, str] | None = None
    for size in args.sizes:
        folder = args.folder / str(size)
        if not (folder / "articles").exists():
            making = [sys.executable, str(HERE / "articles.py"), str(folder), "--records", str(size)]
            subprocess.run(making, check=True, capture_output=True)
        questions = [json.loads(line) for line in (folder / "questions.jsonl").read_text("utf-8").splitlines()]
        built = {} if args.no_build else build(folder)
        question = questions[-1]["query"]
        smallest = smallest or (folder / "index", question)
        pairs = [(cold(*smallest), cold(folder / "index", question)) for _ in range(args.runs + 1)][1:]
        ratio = statistics.median(b / a for a, b in pairs)
        told = warm(folder / "index", questions)
        opened = float(run(OPEN, folder / "index"))
        edited = edit(folder)
        rate = f"{built['records'] / built['s']:.0f}" if built else "-"
        print(
            f"{edited['records']} | {built.get('s', float('nan')):.0f} | {rate} | "
            f"{built.get('own_mb', '-')} ({built.get('child_mb', '-')}) | {size_mb(folder / 'index')} | "
            f"{edited['segments']} | {edited['s']:.1f} | {opened:.0f} | "
            f"{statistics.median(b for _, b in pairs):.2f} ({ratio:.2f}) | {told['p50_ms']:.1f} | "
            f"{told['p99_ms']:.1f} | {told['first']:.2f} / {told['five']:.2f} | {told['recall']:.3f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
