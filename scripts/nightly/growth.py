"""The laws of how time grows with the text, of every pattern, reader and tokeniser, at their full size."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from outcome import Outcome

ROOT = Path(__file__).parent.parent.parent
LAWS = "time_grows or pattern or long_runs or linear"
BROKEN: Mapping[str, str] = {"a law that takes too long": "hung"}


def run(seconds: float, seed: int, *, broken: str = "") -> Outcome:
    """They take what they take, some minutes: more seconds make them no better, and fewer end them."""
    outcome = Outcome()
    command = [sys.executable, "-m", "pytest", "tests", "-p", "no:cacheprovider", "-k", LAWS]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "KB_TEST_THOROUGH": "1"},
            capture_output=True,
            text=True,
            timeout=1.0 if broken else max(seconds, 600.0),
        )
    except subprocess.TimeoutExpired as late:
        outcome.tried["laws"] = 1
        outcome.note("hung", f"not done in {late.timeout:.0f} s")
        return outcome
    passed = re.findall(r"(\d+) passed", done.stdout)
    outcome.tried["laws"] = int(passed[-1]) if passed else 0
    if done.returncode or not passed:
        outcome.note("wrong", done.stdout[-3000:])
    return outcome
