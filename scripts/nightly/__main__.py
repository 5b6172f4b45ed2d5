"""What takes too long for every commit: states, bytes, requests and load that nobody thought of, and whether the tests
would notice wrong code.

    python scripts/nightly [--only PART ...] [--minutes 24] [--seed N] [--self-test]

Prints a table: what was tried, how often, how many of each kind of failure; below it, the failures. Exits with 1 when
there is one. Each part runs in a process of its own, so that one that crashes or hangs is a line of the table. The seed
is the day's number, if none is given: each night tries other things. `--self-test` first breaks something on purpose,
in several ways for each part, and demands the right complaint; with `--minutes 0` it does nothing else. With atheris
(`pip install atheris`) the fuzzing is led by branches; without, it changes known good inputs at random. `make nightly`
installs what this needs.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from outcome import KINDS, Outcome

SELF_TEST_S = 20.0  # for each thing broken
START_S = 300  # a part may take so much longer than its share: for its start, and to shorten what it found


@dataclass(frozen=True)
class Part:
    """A module with `run(seconds, seed, broken="")`, and in BROKEN what it can break -> the kinds of which it
    must notice one: "wrong or crashed"."""

    module: str
    share: float
    """of the time"""
    asks: str


PARTS = {
    "growth": Part("growth", 0.15, "does time grow with the text, whatever it holds?"),
    "states": Part("states", 0.22, "edits, builds, kills, damage: does the base say what a dictionary says?"),
    "bytes": Part("fuzz", 0.22, "does any input of any reader raise more than a clear error, or take long?"),
    "contract": Part("contract", 0.09, "do answers over HTTP keep /openapi.json?"),
    "load": Part("load", 0.07, "asked while it is built: is each answer of one state?"),
    "mutants": Part("mutants", 0.25, "do the tests notice wrong code?"),
}


def alone(name: str, seconds: float, seed: int, broken: str = "") -> Outcome:
    """Runs a part in a process of its own, and ends all that it started."""
    with tempfile.TemporaryDirectory(prefix="kb-nightly-", ignore_cleanup_errors=True) as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, __file__, "--report", str(report), "--only", name, "--seed", str(seed)]
        command += ["--minutes", str(seconds / 60), "--broken", broken]
        (Path(folder) / "tmp").mkdir()
        # What a killed part leaves behind goes with the folder; the user's cache stays as it is.
        environment = {**os.environ, "TMPDIR": f"{folder}/tmp", "XDG_CACHE_HOME": f"{folder}/cache"}
        with (Path(folder) / "log").open("w+", errors="replace") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
            try:
                code: int | None = process.wait(seconds + START_S)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                with contextlib.suppress(ProcessLookupError):  # none is left
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            log.seek(0)
            said = log.read()[-3000:]
        if report.exists():
            told = json.loads(report.read_text("utf-8"))
            wrong = [(kind, what) for kind, what in told["wrong"]]
            return Outcome(Counter(told["tried"]), wrong, told["remarks"])
        if code is None:
            return Outcome(wrong=[("hung", f"did not end in {seconds + START_S:.0f} s\n{said}")])
        return Outcome(wrong=[("crashed", f"ended with {code}\n{said}")])


def report(name: str, seconds: float, seed: int, broken: str, to: Path) -> None:
    """What the process of a part does."""
    try:
        outcome = importlib.import_module(PARTS[name].module).run(seconds, seed, broken=broken)
    except Exception:
        outcome = Outcome(wrong=[("crashed", traceback.format_exc())])
    told = {"tried": dict(outcome.tried), "wrong": outcome.wrong, "remarks": outcome.remarks}
    to.write_text(json.dumps(told), "utf-8")


def timed(name: str, seconds: float, seed: int, broken: str = "") -> tuple[Outcome, str]:
    """What a part tells, and its row of the table."""
    started = time.monotonic()
    outcome = alone(name, seconds, seed, broken)
    counts = Counter(kind for kind, _ in outcome.wrong)
    tried = ", ".join(f"{count:,} {what}" for what, count in outcome.tried.items() if what) or "nothing"
    numbers = "".join(f"{counts[kind]:>8}" for kind in KINDS)
    return outcome, f"{broken or name:24}{numbers}{time.monotonic() - started:>9.0f}  {tried}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=[*PARTS], metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--minutes", type=float, default=24, help="for all parts together, without the self-test (24)")
    parser.add_argument("--seed", type=int, default=int(time.time() / 86400), help="the day's number, if none is given")
    parser.add_argument("--self-test", action="store_true", help="first: does each part notice what is broken?")
    parser.add_argument("--report", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--broken", default="", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.report:
        report(args.only[0], args.minutes * 60, args.seed, args.broken, args.report)
        return 0
    led = "led by branches" if importlib.util.find_spec("atheris") else "changed at random (pip install atheris)"
    print(f"seed {args.seed}; bytes are {led}", flush=True)
    failed: list[str] = []
    rows = [f"\n{'':24}" + "".join(f"{kind:>8}" for kind in KINDS) + f"{'seconds':>9}  tried"]
    variants = [
        (name, *one) for name in args.only for one in importlib.import_module(PARTS[name].module).BROKEN.items()
    ]
    for name, variant, kinds in variants if args.self_test else []:
        print(f"{name}, {variant}", flush=True)
        outcome, row = timed(name, SELF_TEST_S, args.seed, variant)
        rows.append(row)
        if {seen for seen, _ in outcome.wrong}.isdisjoint(kinds.split(" or ")):
            failed.append(f"{name}, {variant}: should be {kinds}, and was {outcome.wrong or 'not noticed'}")
    whole = sum(PARTS[name].share for name in args.only)
    for name in args.only if args.minutes else []:
        print(f"{name}: {PARTS[name].asks}", flush=True)
        outcome, row = timed(name, PARTS[name].share / whole * args.minutes * 60, args.seed)
        rows.append(row)
        print(*(f"    {remark}" for remark in outcome.remarks), sep="\n", end="\n" if outcome.remarks else "")
        failed += [f"{name}, {kind}: {what}" for kind, what in outcome.wrong]
        if not sum(outcome.tried.values()):
            failed.append(f"{name}: nothing was tried")
    print(*rows, sep="\n")
    for one in failed:
        print(f"\n--- {one}")
    if not failed:
        print("\nnothing went wrong" + ", and all that was broken was noticed" * args.self_test)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
