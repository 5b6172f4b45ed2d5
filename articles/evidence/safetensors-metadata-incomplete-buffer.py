"""safetensors-metadata-incomplete-buffer#1: a weight file that was cut off is shorter than its header says; a whole one is read."""

import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file


def error() -> None:
    save_file({"weight": torch.zeros(1000)}, "model.safetensors")
    whole = Path("model.safetensors").read_bytes()
    Path("model.safetensors").write_bytes(whole[: len(whole) // 2])
    load_file("model.safetensors")


def cure() -> None:
    save_file({"weight": torch.zeros(1000)}, "model.safetensors")
    load_file("model.safetensors")


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
