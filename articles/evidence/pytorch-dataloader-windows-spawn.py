"""pytorch-dataloader-windows-spawn#1: where processes are spawned, the script runs again in each worker; the guard keeps it from that."""

import subprocess
import sys
from pathlib import Path

import torch

assert torch.utils.data
SCRIPT = """
import torch
{guard}
{indent}loader = torch.utils.data.DataLoader([1, 2], num_workers=1, multiprocessing_context="spawn")
{indent}print(list(loader))
"""


def error() -> None:
    Path("train.py").write_text(SCRIPT.format(indent="", guard=""))
    sys.exit(subprocess.run([sys.executable, "train.py"], check=False).returncode)


def cure() -> None:
    Path("train.py").write_text(SCRIPT.format(indent="    ", guard='if __name__ == "__main__":'))
    subprocess.run([sys.executable, "train.py"], check=True)


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
