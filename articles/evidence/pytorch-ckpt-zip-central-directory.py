"""pytorch-ckpt-zip-central-directory#1: a checkpoint that was cut off has no directory at its end; written whole and renamed, it has."""

import os
import sys
from pathlib import Path

import torch


def error() -> None:
    torch.save({"weight": torch.zeros(1000)}, "model.pt")
    whole = Path("model.pt").read_bytes()
    Path("model.pt").write_bytes(whole[: len(whole) // 2])
    torch.load("model.pt")


def cure() -> None:
    torch.save({"weight": torch.zeros(1000)}, "model.pt.tmp")
    os.replace("model.pt.tmp", "model.pt")
    torch.load("model.pt")


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
