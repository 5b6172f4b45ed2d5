"""How long does an answer over HTTP take, and how many are there in a second? Over loopback, one client and two,
against what the same machine does in the same minute: a bare Starlette route, and the search without HTTP.

    python scripts/bench_server.py [--seconds 5] [--index DIR]

Ratios hold on any machine; the milliseconds are of this one, as busy as it was.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests/cases/questions.jsonl"
BARE = """
import sys
sys.path.insert(0, {root!r})
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from kb.serve.listen import configured
body = b"x" * {size}
async def bare(request):
    return Response(body, media_type="application/json")
import socket
with socket.create_server(("127.0.0.1", 0)) as place:
    print(f"http://127.0.0.1:{{place.getsockname()[1]}}/", file=sys.stderr, flush=True)
    uvicorn.Server(configured(Starlette(routes=[Route("/api/search", bare)]))).run(sockets=[place])
"""


class Served:
    """A server in a process of its own; it says on stderr where it is."""

    def __init__(self, *command: str) -> None:
        self._command = command

    def __enter__(self) -> int:
        self._process = subprocess.Popen(self._command, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr
        line = next(line for line in self._process.stderr if "127.0.0.1:" in line)
        return int(line.partition("127.0.0.1:")[2].partition("/")[0])

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(10)


def over_http(port: int, paths: list[str]) -> Callable[[int], None]:
    """A client that keeps its connection, one for each thread."""
    connection = http.client.HTTPConnection("127.0.0.1", port)

    def ask(number: int) -> None:
        connection.request("GET", paths[number % len(paths)])
        response = connection.getresponse()
        response.read()
        assert response.status == 200, response.status

    return ask


def timed(ask: Callable[[int], None], seconds: float) -> list[float]:
    times = []
    end = time.perf_counter() + seconds
    while (started := time.perf_counter()) < end:
        ask(len(times))
        times.append(time.perf_counter() - started)
    return times


def together(asks: list[Callable[[int], None]], seconds: float) -> list[float]:
    found: list[list[float]] = [[] for _ in asks]

    def work(number: int) -> None:
        found[number] = timed(asks[number], seconds)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(asks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [one for times in found for one in times]


def say(name: str, times: list[float], rate: float | None, base: float | None = None) -> None:
    quantiles = statistics.quantiles(times, n=100)
    line = f"{name:<34} p50 {quantiles[49] * 1000:7.2f} ms   p99 {quantiles[98] * 1000:7.2f} ms"
    line += f"   {rate:7.0f}/s" if rate else ""
    print(line + (f"   ({quantiles[49] / base:.2f} times the search alone)" if base else ""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--index", type=Path, help="default: as `kb search` finds one")
    parser.add_argument("--kinds", default="line,description,keywords,mixed", help="kinds of questions; `log` is long")
    given = parser.parse_args()
    cases = map(json.loads, CASES.read_text("utf-8").splitlines())
    questions = [case["query"] for case in cases if case["kind"] in given.kinds.split(",")]
    paths = [f"/api/search?q={quote(question[:3000])}" for question in questions]
    index = [] if given.index is None else ["--index", str(given.index)]

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as `kb serve` does; numpy reads it when it is imported
    from kb import KnowledgeBase

    with KnowledgeBase.open(given.index) as base:
        sizes = [len(json.dumps(base.search(question).as_dict())) for question in questions]
        alone = timed(lambda number: void(base.search(questions[number % len(questions)])), given.seconds)
    middle = statistics.median(alone)
    print(f"{len(questions)} questions ({given.kinds}), answers of {statistics.median(sizes) / 1024:.0f} kB")
    say("search alone, in process", alone, len(alone) / sum(alone))
    with Served(sys.executable, "-c", BARE.format(root=str(ROOT), size=int(statistics.median(sizes)))) as port:
        bare = timed(over_http(port, paths), given.seconds)
        say("bare Starlette route, 1 client", bare, len(bare) / sum(bare))
        bare_two = together([over_http(port, paths) for _ in range(2)], given.seconds)
        say("bare Starlette route, 2 clients", bare_two, len(bare_two) / given.seconds)
    with Served(sys.executable, "-m", "kb", "serve", "--port", "0", *index) as port:
        timed(over_http(port, paths), 1)
        one = timed(over_http(port, paths), given.seconds)
        say("kb serve, 1 client", one, len(one) / sum(one), middle)
        two = together([over_http(port, paths) for _ in range(2)], given.seconds)
        say("kb serve, 2 clients", two, len(two) / given.seconds, middle)
    print(f"over search and bare route: {statistics.median(one) / (middle + statistics.median(bare)):.2f} times")


def void(value: object) -> None:
    """A question whose answer nobody reads."""


if __name__ == "__main__":
    main()
