"""Runs what stands below articles/evidence: each script makes the error of an issue, and then applies its cure.

    python scripts/evidence.py                 all of them, two at a time
    python scripts/evidence.py pytorch-amp     those whose name begins so
    python scripts/evidence.py --each 6        only each sixth, as CI does

A script `<slug>.py` (`<slug>--2.py` for the article's second issue) has `error`, which fails or prints as the article
says, and `cure`, which does the same work without the failure. Both run on a CPU within two minutes, without a network.
Judged is not only that one fails and the other does not: what `error` prints is asked of kb, and the article's issue
must come first. A script that needs a package which is not installed is skipped by name. Exits with 1 when one does not
hold.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from kb import KnowledgeBase
from kb.search.explain import explain

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "articles" / "evidence"
SECONDS = 120  # for each half; a machine may be busy
NEEDS = re.compile(r"^(?:import|from) (\w+)", re.MULTILINE)


class Verdict(NamedTuple):
    name: str
    said: str
    """ok, skipped or failed"""
    why: str
    seconds: float


def issue_of(path: Path) -> str:
    """`a-b.py` -> a-b#1, `a-b--2.py` -> a-b#2"""
    slug, _, number = path.stem.partition("--")
    return f"{slug}#{number or 1}"


def missing(path: Path) -> list[str]:
    """The packages that the script imports and that are not here."""
    names = dict.fromkeys(NEEDS.findall(path.read_text("utf-8")))
    return [name for name in names if importlib.util.find_spec(name) is None]


def run(path: Path, half: str) -> tuple[int, str]:
    """The exit code, and what was printed; 124 when it took too long."""
    with tempfile.TemporaryDirectory() as here:
        env = os.environ | {
            "HF_HUB_OFFLINE": "1",
            "CUDA_VISIBLE_DEVICES": "",
            "PYTHONWARNINGS": "default",
            "TMPDIR": here,
        }
        try:
            done = subprocess.run(
                [sys.executable, str(path), half],
                cwd=here, env=env, timeout=SECONDS, capture_output=True, text=True, errors="replace", check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return 124, ""
    return done.returncode, done.stdout + done.stderr


def asked(base: KnowledgeBase, printed: str) -> tuple[str, bool]:
    """The first issue for what a program printed, and whether it is known."""
    explained = explain(base.searcher, printed.encode())
    return (explained.record.issue if explained.record else "nothing"), explained.answered


def judge(path: Path, base: KnowledgeBase) -> Verdict:
    started, issue = time.perf_counter(), issue_of(path)

    def verdict(why: str, said: str = "failed") -> Verdict:
        return Verdict(path.stem, said, why, time.perf_counter() - started)

    if lacking := missing(path):
        return verdict(f"needs {', '.join(lacking)}", "skipped")
    if not base.show(issue):
        return verdict(f"there is no issue {issue}")
    code, printed = run(path, "error")
    if code == 124:
        return verdict(f"error took longer than {SECONDS} s")
    if not printed.strip():
        return verdict("error prints nothing")
    if (first := asked(base, printed)[0]) != issue:
        return verdict(f"what error prints leads to {first}: {last_line(printed)}")
    code, printed = run(path, "cure")
    if code != 0:  # processes that talk to each other may lose each other once on a busy machine
        code, printed = run(path, "cure")
    if code != 0:
        return verdict(f"cure ends with {code}: {last_line(printed)}")
    if asked(base, printed) == (issue, True):
        return verdict(f"cure prints the failure, too: {last_line(printed)}")
    return verdict("", "ok")


def last_line(text: str) -> str:
    return ([line for line in text.splitlines() if line.strip()] or ["nothing"])[-1].strip()[:200]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="how the scripts' names begin; all without one")
    parser.add_argument("--each", type=int, default=1, metavar="N", help="only each Nth of them (default: all)")
    parser.add_argument("--jobs", type=int, default=2, help="at the same time (default 2)")
    chosen = parser.parse_args()
    paths = [path for path in sorted(FOLDER.glob("*.py")) if path.stem.startswith(tuple(chosen.names) or "")]
    paths = paths[:: max(chosen.each, 1)]
    if not paths:
        parser.error(f"no script in {FOLDER} has such a name")
    with tempfile.TemporaryDirectory() as index, ThreadPoolExecutor(chosen.jobs) as pool:
        KnowledgeBase.build(ROOT / "articles", Path(index))
        with KnowledgeBase.open(Path(index)) as base:
            verdicts = []
            for one in pool.map(lambda path: judge(path, base), paths):
                print(f"{one.said:8} {one.seconds:6.1f} s  {one.name}  {one.why}".rstrip(), flush=True)
                verdicts.append(one)
    counts = {said: sum(one.said == said for one in verdicts) for said in ("ok", "skipped", "failed")}
    print(", ".join(f"{count} {said}" for said, count in counts.items()))
    return int(counts["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
