"""torchrun-childfailederror-no-traceback#1: torchrun shows no traceback of its workers; @record keeps it."""

import os
import subprocess
import sys
from pathlib import Path

import torch

assert torch.distributed.is_available()
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=1"]
RECORDED = """
from torch.distributed.elastic.multiprocessing.errors import record

@record
def main():
    raise ValueError("the real reason")

main()
"""


def run(script: str) -> None:
    Path("train.py").write_text(script)
    sys.exit(
        subprocess.run([*TORCHRUN, "train.py"], env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False).returncode
    )


def error() -> None:
    run("raise SystemExit(1)")


def cure() -> None:
    Path("train.py").write_text(RECORDED)
    done = subprocess.run([*TORCHRUN, "train.py"], capture_output=True, text=True, check=False)
    assert "the real reason" in done.stderr.partition("ChildFailedError")[2]


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
