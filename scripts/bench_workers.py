"""How much more do several workers answer than one? Short questions over loopback with wrk, one server after the other.

    python scripts/bench_workers.py [--workers 2] [--seconds 5] [--rounds 3] [--index DIR]

The client needs a core, too, and so does whatever else runs: of two cores two workers cannot get all. So beside the
requests in a second stand those in a second of the workers' own CPU time, and how many cores the workers had.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests/cases/questions.jsonl"
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """CPU seconds of a process and its children so far."""
    told = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout.split()
    fields = [Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split() for one in (str(pid), *told)]
    return sum(int(one[11]) + int(one[12]) for one in fields) / TICKS


def measure(workers: int, index: Path | None, script: Path, seconds: float, clients: int) -> tuple[float, float]:
    """Requests in a second, and CPU seconds of the workers in a second."""
    command = [sys.executable, "-m", "kb", "serve", "--port", "0", "--workers", str(workers)]
    command += [] if index is None else ["--index", str(index)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr
        line = next(line for line in server.stderr if "127.0.0.1:" in line)
        address = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert address
        wrk = ["wrk", "-t1", f"-c{clients}", "-s", str(script), address[0]]
        subprocess.run([*wrk, "-d2s"], check=True, capture_output=True)  # all workers are up and warm
        before = cpu_s(server.pid)
        told = subprocess.run([*wrk, f"-d{seconds:g}s"], check=True, capture_output=True, text=True).stdout
        used = cpu_s(server.pid) - before
        server.terminate()
    assert "Non-2xx" not in told, told
    rate = re.search(r"Requests/sec: +([\d.]+)", told)
    assert rate, told
    return float(rate[1]), used / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--index", type=Path, help="default: as `kb search` finds one")
    given = parser.parse_args()
    cases = map(json.loads, CASES.read_text("utf-8").splitlines())
    paths = [f"/api/search?k=1&q={quote(case['query'])}" for case in cases if case["kind"] in ("line", "keywords")]
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        listed = ",".join(json.dumps(path) for path in paths)
        script.write(f"local paths = {{{listed}}}\nlocal at = 0\n")
        script.write("request = function() at = at % #paths + 1; return wrk.format('GET', paths[at]) end\n")
        script.flush()
        ratios, efforts = [], []
        for _ in range(given.rounds):
            one, several = (
                measure(workers, given.index, Path(script.name), given.seconds, given.clients)
                for workers in (1, given.workers)
            )
            for workers, (rate, cores) in ((1, one), (given.workers, several)):
                print(f"{workers} workers {rate:7.0f}/s   {cores:4.2f} cores   {rate / cores:6.0f} in a CPU second")
            ratios.append(several[0] / one[0])
            efforts.append((several[0] / several[1]) / (one[0] / one[1]))
    print(f"{given.workers} workers: {statistics.median(ratios):.2f} times the answers of one")
    print(f"of a CPU second they make {statistics.median(efforts):.2f} times as much")


if __name__ == "__main__":
    main()
