"""Some mutants of the code, other ones for each seed: do the tests notice? (`scripts/mutate.py`)

One that survives is told, and nothing wrong: a test may be missing, or the change be none that one could see.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from outcome import Outcome

ROOT = Path(__file__).parent.parent.parent
LAST_S = 200.0  # for the tests of the mutants that were begun last
BROKEN: Mapping[str, str] = {}
"""nothing: each mutant is broken code"""


def run(seconds: float, seed: int, *, broken: str = "") -> Outcome:
    """No mutant is begun after `seconds`; what is told until LAST_S later counts."""
    outcome = Outcome()
    options = ["--minutes", str(seconds / 60), "--sample", "200", "--quick", "--timeout", "120", "--seed", str(seed)]
    command = [sys.executable, str(ROOT / "scripts" / "mutate.py"), *options]
    with tempfile.TemporaryFile("w+") as said:
        with subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=said, text=True) as process:
            try:
                process.wait(seconds + LAST_S)
            except subprocess.TimeoutExpired:
                process.kill()
        said.seek(0)
        text = said.read()
    for line in text.splitlines():
        outcome.tried["mutants killed"] += line.startswith("killed")
        outcome.tried["mutants that survived"] += line.startswith("SURVIVED")
        if line.startswith(("SURVIVED", "left out", "gone")):
            outcome.remarks.append(line)
    if process.returncode:
        outcome.note("hung" if process.returncode < 0 else "wrong", text[-3000:])
    return outcome
