"""The nightly run reaches into kb, and nobody looks at it by day: does it still start?"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

NIGHTLY = Path(__file__).parents[1] / "scripts/nightly"


@pytest.mark.thorough
def test_builds_are_killed_and_damaged_and_nothing_is_found() -> None:
    command = [sys.executable, str(NIGHTLY), "--only", "states", "--minutes", "0.02"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    assert "nothing went wrong" in done.stdout
