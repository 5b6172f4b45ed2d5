"""How long does an answer over HTTP take, and how many are there in a second? Over loopback, one client and two,
against what the same machine does in the same minute: a bare Starlette route, and the search without HTTP. Then one
client's short questions beside others that send logs of 1,500 lines.

    python scripts/bench_server.py [--seconds 5] [--index DIR] [--logs 4]

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


LOG = "".join(f"{{'loss': {2 - n / 900:.4f}, 'grad_norm': 0.71, 'epoch': {n / 500:.3f}}}\n" for n in range(1460))
LOG += "".join(
    f'[rank{n}]: Traceback (most recent call last):\n[rank{n}]:   File "train.py", line {n}, in step\n'
    f"[rank{n}]: RuntimeError: CUDA error: an illegal memory access was encountered\n"
    for n in range(13)
)


def long_over_http(port: int, path: str) -> Callable[[int], None]:
    """A client that sends a log again and again."""
    connection = http.client.HTTPConnection("127.0.0.1", port)

    def ask(number: int) -> None:
        connection.request("POST", path, LOG.encode(), {"content-type": "text/plain"})
        response = connection.getresponse()
        response.read()
        assert response.status == 200, response.status

    return ask


def beside_logs(port: int, short: Callable[[int], None], path: str, clients: int, seconds: float) -> list[float]:
    """The times of short questions while so many clients send logs; prints how many logs were read."""
    stop, logs = threading.Event(), [0]

    def work() -> None:
        ask = long_over_http(port, path)
        while not stop.is_set():
            ask(0)
            logs[0] += 1

    threads = [threading.Thread(target=work) for _ in range(clients)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    logs[0] = 0
    times = timed(short, seconds)
    print(f"    {logs[0] / seconds:.0f} logs/s by {clients} clients at {path}")
    stop.set()
    for thread in threads:
        thread.join()
    return times


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
    parser.add_argument("--logs", type=int, default=4, help="clients that send logs beside the short questions")
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
        quiet = statistics.quantiles(one, n=100)[98]
        for path in ("/api/search", "/api/scan") if given.logs else ():
            busy = beside_logs(port, over_http(port, paths), path, given.logs, given.seconds)
            say(f"kb serve, 1 client beside {given.logs} logs", busy, len(busy) / sum(busy))
            print(f"    p99 {statistics.quantiles(busy, n=100)[98] / quiet:.1f} times that without them")
    print(f"over search and bare route: {statistics.median(one) / (middle + statistics.median(bare)):.2f} times")


def void(value: object) -> None:
    """A question whose answer nobody reads."""


if __name__ == "__main__":
    main()
