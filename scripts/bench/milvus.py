"""Publishes a made-up base in Milvus and asks it, beside the same base in a folder.

    python scripts/bench/milvus.py FOLDER [--store milvus://host:19530/bench] [--questions 50]

FOLDER is what scripts/bench/articles.py wrote: `articles` and `questions.jsonl`. Without --store a Milvus Lite of its
own answers, a server in FOLDER/milvus.data on 127.0.0.1. For a hundred thousand records:

    python scripts/bench/articles.py /tmp/made --records 100000 && python scripts/bench/milvus.py /tmp/made
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from kb.base import KnowledgeBase
from kb.index.milvus.address import token_for
from kb.index.milvus.publish import publish


def lite(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    """A server that only this machine can reach, and the address of a base in it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-W", "ignore", "-m", "milvus_lite", "server", "--data-dir", str(folder)]
    server = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while server.poll() is None:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return server, f"milvus://127.0.0.1:{port}/bench"
        time.sleep(0.1)
    raise SystemExit("Milvus Lite does not start")


def rss_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


def asked(base: KnowledgeBase, questions: list[str]) -> tuple[list[list[str]], list[float]]:
    answers, took = [], []
    for question in questions:
        start = time.perf_counter()
        hits = base.search(question).hits
        took.append((time.perf_counter() - start) * 1000)
        answers.append([hit.issue for hit in hits])
    return answers, took


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--store")
    parser.add_argument("--questions", type=int, default=50)
    given = parser.parse_args()
    os.environ["XDG_CACHE_HOME"] = str(given.folder / "cache")
    lines = (given.folder / "questions.jsonl").read_text("utf-8").splitlines()[: given.questions]
    questions = [json.loads(line)["query"] for line in lines]
    index = given.folder / "index"
    start = time.perf_counter()
    report = KnowledgeBase.build(given.folder / "articles", index)
    print(f"{report.records} records; build {time.perf_counter() - start:.1f} s")
    server, store = (None, given.store) if given.store else lite(given.folder / "milvus.data")
    try:
        done = publish(index, store, token_for())
        print(f"published {done.rows} rows in {done.took_s:.1f} s ({done.rows / done.took_s:.0f} rows/s)")
        print(f"peak of the publisher {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
        found = {}
        for name, place in (("folder", index), ("milvus", store)):
            for turn in ("first opening", "opening"):
                start = time.perf_counter()
                base = KnowledgeBase.open(place)
                print(f"{name}: {turn} {(time.perf_counter() - start) * 1000:.0f} ms")
                if turn == "first opening":
                    base.close()
            found[name], cold = asked(base, questions)
            _, warm = asked(base, questions)
            for turn, took in (("first asked", cold), ("asked again", warm)):
                p50, p95 = np.percentile(took, [50, 95])
                print(f"{name}: {turn}: p50 {p50:.1f} ms, p95 {p95:.1f} ms")
            base.close()
        same = sum(one == other for one, other in zip(found["folder"], found["milvus"], strict=True))
        print(f"the same hits in the same order: {same} of {len(questions)} questions")
        if server:
            print(f"peak of Milvus Lite {rss_mb(server.pid):.0f} MB")
    finally:
        if server:
            server.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
