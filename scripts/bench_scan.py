"""What kb scan finds in a folder of logs, and how fast it reads beside what one would write.

    python scripts/bench_scan.py tests/cases/healthy       # nothing of ours occurs in these: every find is an alarm
    python scripts/bench_scan.py /var/log --megabytes 50

Figures are ratios to a Python loop that looks for one word in each line; `grep -c -i error` is run beside it where
there is a grep. Every log is read from memory, repeated until `--megabytes` are reached.
"""

from __future__ import annotations

import argparse
import gzip
import re
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kb import KnowledgeBase
from kb.scan import Scanner

CHUNK = 1 << 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="logs, also .gz, at any depth")
    parser.add_argument("--index", type=Path)
    parser.add_argument("--megabytes", type=int, default=50, help="how much to read for the figures")
    parser.add_argument("--warnings", action="store_true", help="report what a program warned of, too")
    asked = parser.parse_args()
    logs = {path: _read(path) for path in sorted(asked.folder.rglob("*")) if path.is_file()}
    with KnowledgeBase.open(asked.index) as base:
        start = time.process_time()
        scanner = base.scanner()
        print(f"{base.size} issues compiled in {time.process_time() - start:.2f} s")
        found = 0
        for path, data in logs.items():
            report = scanner.scan([data], warnings=asked.warnings)
            found += len(report.findings)
            for finding in report.findings:
                print(f"{path}:{finding.first_line}: {finding.issue} {finding.confidence:.0%}  {finding.text[:100]}")
        lines = sum(data.count(b"\n") for data in logs.values())
        print(f"{found} issues reported in {len(logs)} logs, {lines:,} lines")
        _measure(scanner, b"\n".join(logs.values()) + b"\n", asked.megabytes << 20)


def _measure(scanner: Scanner, data: bytes, size: int) -> None:
    data *= max(1, -(-size // len(data)))
    pieces = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]
    word = re.compile(rb"error", re.IGNORECASE)
    ours = _seconds(lambda: scanner.scan(pieces))
    loop = _seconds(lambda: sum(word.search(line) is not None for piece in pieces for line in piece.split(b"\n")))
    print(f"kb scan           {len(data) / ours / 1e6:7.1f} MB/s")
    print(f"loop, one word    {len(data) / loop / 1e6:7.1f} MB/s   kb takes {ours / loop:.1f} times as long")
    if shutil.which("grep"):
        with tempfile.NamedTemporaryFile(suffix=".log") as file:
            file.write(data)
            file.flush()
            grep = _seconds(
                lambda: subprocess.run(["grep", "-c", "-i", "error", file.name], capture_output=True), wall=True
            )
        print(f"grep -c -i error  {len(data) / grep / 1e6:7.1f} MB/s   kb takes {ours / grep:.1f} times as long")


def _seconds(work: Callable[[], object], *, wall: bool = False) -> float:
    clock = time.perf_counter if wall else time.process_time
    took = []
    for _ in range(3):
        start = clock()
        work()
        took.append(clock() - start)
    return statistics.median(took)


def _read(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


if __name__ == "__main__":
    main()
