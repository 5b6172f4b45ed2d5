"""The measurement of large bases, at a small size."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCALE = Path(__file__).parents[1] / "scripts/bench/scale.py"


@pytest.mark.thorough
def test_an_index_is_measured_again_as_it_is(tmp_path: Path) -> None:
    """What is measured leaves it as it was, so that a changed kb can be measured on it."""
    command = [sys.executable, str(SCALE), "--folder", str(tmp_path), "--sizes", "100", "--cold", "1"]
    command += ["--peers", "--questions", "10"]
    kept = []
    for more in ([], ["--no-build"]):
        done = subprocess.run([*command, *more], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert "index of 100 records: 2 MB; 1 segment\n" in done.stdout
        kept.append((tmp_path / "100/index/manifest.json").read_bytes())
        figures = json.loads((tmp_path / "figures.json").read_text())
        assert figures["tools"]["kb"]["100"]["edit_s"] > 0
        (tmp_path / "figures.json").write_text(json.dumps({**figures, "tools": {}}))
    assert kept[0] == kept[1]
    assert sorted(path.name for path in (tmp_path / "100").iterdir()) == ["articles", "index", "questions.jsonl"]
