"""What takes too long for every commit: states, bytes, requests and load that nobody thought of, and whether the tests
would notice wrong code.

    python scripts/nightly [--only PART ...] [--minutes 28] [--self-test]

Prints a table: what was tried, how often, what went wrong (below it, whole). Exits with 1 when anything did.
`--self-test` gives each part something broken, and demands that it complains. With atheris (`pip install atheris`) the
fuzzing is led by branches; without, it changes known good inputs at random. `make nightly` installs what this needs.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import contract
import fuzz
import load
import states
from outcome import Outcome

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True)
class Part:
    run: Callable[..., Outcome]
    share: float
    """of the time; growth takes what it takes"""
    asks: str
    can_break: bool = True


def growth(seconds: float) -> Outcome:
    """The tests of how time grows, of every pattern and reader, at their full size."""
    command = [sys.executable, "-m", "pytest", "tests", "-p", "no:cacheprovider", "-k", GROWTH]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "KB_TEST_THOROUGH": "1"}, capture_output=True, text=True, timeout=900
    )
    passed = re.findall(r"(\d+) passed", done.stdout)
    outcome = Outcome()
    outcome.tried["laws"] = int(passed[-1]) if passed else 0
    if done.returncode or not passed:
        outcome.wrong.append(done.stdout[-3000:])
    return outcome


def mutants(seconds: float) -> Outcome:
    """Some mutants, other ones each day. One that survives is told and nothing wrong, but for those that once did."""
    sample, seed = str(max(int(seconds / 25), 1)), str(int(time.time() / 86400))
    command = [sys.executable, str(ROOT / "scripts" / "mutate.py"), "--sample", sample, "--seed", seed]
    outcome = Outcome()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        for line in process.stdout:
            outcome.tried["mutants killed"] += line.startswith("killed")
            if line.startswith("SURVIVED"):
                outcome.tried["mutants that survived"] += 1
                print(line, end="", flush=True)
    if process.returncode:
        outcome.wrong.append("a mutant survived that tests once killed: scripts/mutate.py --sample 0")
    return outcome


GROWTH = "time_grows or pattern or long_runs"
PARTS = {
    "growth": Part(growth, 0.05, "does time grow with the text, whatever it holds?", can_break=False),
    "states": Part(states.run, 0.25, "edits, builds, kills, damage: does the base say what a dictionary says?"),
    "bytes": Part(fuzz.run, 0.15, "does any input of any reader raise more than a clear error, or take long?"),
    "contract": Part(contract.run, 0.1, "do answers over HTTP keep /openapi.json?"),
    "load": Part(load.run, 0.1, "asked while it is built: is each answer of one state?"),
    "mutants": Part(mutants, 0.25, "do the tests notice wrong code?", can_break=False),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=[*PARTS], metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--minutes", type=float, default=28, help="for all parts together (28)")
    parser.add_argument("--self-test", action="store_true", help="does each part notice what is broken?")
    args = parser.parse_args()
    if not importlib.util.find_spec("atheris"):
        print("atheris is not here: inputs are changed at random (pip install atheris)\n")
    wrong: list[str] = []
    print(f"{'part':10}{'seconds':>9}{'wrong':>7}  tried")
    for name in args.only:
        part = PARTS[name]
        if args.self_test and not part.can_break:
            continue
        started = time.monotonic()
        try:
            found = part.run(10.0, broken=True) if args.self_test else part.run(part.share * args.minutes * 60)
        except Exception:
            found = Outcome(wrong=[traceback.format_exc()])
        tried = ", ".join(f"{count:,} {what}" for what, count in found.tried.items() if what) or "nothing"
        print(f"{name:10}{time.monotonic() - started:>9.0f}{len(found.wrong):>7}  {tried}", flush=True)
        if args.self_test:
            wrong += [] if found.wrong else [f"{name} noticed nothing"]
        else:
            wrong += [f"{name}: {one}" for one in found.wrong]
    for one in wrong:
        print(f"\n--- {one}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
