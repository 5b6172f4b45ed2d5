"""safetensors-header-too-large#1: a pointer of git-lfs lies where the weights should be; the file itself is read."""

import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file


def error() -> None:
    Path("model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    load_file("model.safetensors")


def cure() -> None:
    save_file({"weight": torch.zeros(2)}, "model.safetensors")
    load_file("model.safetensors")


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
