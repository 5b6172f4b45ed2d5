"""Some mutants of the code, other ones for each seed: do the tests notice? (`scripts/mutate.py`)

One that survives is told, and nothing wrong: a test may be missing, or the change be none that one could see.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from outcome import Outcome

ROOT = Path(__file__).parent.parent.parent
BROKEN: Mapping[str, str] = {}
"""nothing: each mutant is broken code"""


def run(seconds: float, seed: int, *, broken: str = "") -> Outcome:
    outcome = Outcome()
    options = ["--minutes", str(seconds / 60), "--sample", "40", "--quick", "--timeout", "120", "--seed", str(seed)]
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "mutate.py"), *options], cwd=ROOT, capture_output=True, text=True
    )
    for line in done.stdout.splitlines():
        outcome.tried["mutants killed"] += line.startswith("killed")
        outcome.tried["mutants that survived"] += line.startswith("SURVIVED")
        if line.startswith(("SURVIVED", "left out", "gone")):
            outcome.remarks.append(line)
    if done.returncode:
        outcome.note("wrong", f"{done.stdout[-2000:]}{done.stderr[-1000:]}")
    return outcome
