"""Requests that schemathesis makes of /openapi.json, as many as there is time for: do the answers keep the contract?"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from outcome import Outcome

from kb.index.build import build

CORPUS = Path(__file__).parent.parent.parent / "tests" / "corpus"
EXAMPLES = 60  # of an operation, for each seed
_JSON = {"200": {"description": "", "content": {"application/json": {}}}}
BROKEN: Mapping[str, str] = {"another contract": "wrong"}
NOT_OURS = {"openapi": "3.1.0", "info": {"title": "", "version": ""}, "paths": {"/": {"get": {"responses": _JSON}}}}


def run(seconds: float, seed: int, *, broken: str = "") -> Outcome:
    """Broken, it is another contract, which says of the page that it is JSON."""
    outcome = Outcome()
    with tempfile.TemporaryDirectory(prefix="kb-contract-") as name:
        folder = Path(name)
        build(CORPUS, folder / "index")
        options = ["--port", "0", "--index", str(folder / "index"), "--feedback", str(folder / "feedback.db")]
        command = [sys.executable, "-m", "kb", "serve", *options]
        with (folder / "log").open("w") as log:
            server = subprocess.Popen(command, stderr=log)
        try:
            address = _address(folder / "log")
            asks = [sys.executable, "-m", "schemathesis.cli", "run", f"{address}openapi.json", "--no-color"]
            if broken:
                (folder / "bad.json").write_text(json.dumps(NOT_OURS))
                asks[4:5] = [str(folder / "bad.json"), "--url", address]
            asks += ["--phases", "coverage,fuzzing", "--exclude-checks", "positive_data_acceptance"]
            until, turn = time.monotonic() + seconds, 0
            while time.monotonic() < until and not outcome.wrong:
                more = ["--max-examples", str(EXAMPLES), "--seed", str(seed * 1000 + turn)]
                done = subprocess.run([*asks, *more], capture_output=True, text=True, cwd=folder)
                made = re.search(r"(\d+) generated", done.stdout)
                outcome.tried["requests"] += int(made[1]) if made else 0
                if server.poll() is not None:
                    outcome.note(
                        "crashed", f"the server ended with {server.returncode}: {(folder / 'log').read_text()}"
                    )
                elif done.returncode or not made:
                    outcome.note("wrong", f"turn {turn}: {done.stdout[-3000:]}{done.stderr[-1000:]}")
                turn += 1
        finally:
            server.terminate()
            server.wait(30)
    return outcome


def _address(log: Path) -> str:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if found := re.search(r"http://127\.0\.0\.1:\d+/", log.read_text()):
            return found[0]
        time.sleep(0.1)
    raise RuntimeError(f"the server did not start: {log.read_text()}")
