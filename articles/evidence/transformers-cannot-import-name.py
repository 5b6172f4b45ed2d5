"""transformers-cannot-import-name#1: the class has gone from this version of transformers; it lives on elsewhere."""

import sys

import torch
import transformers


def error() -> None:
    from transformers import AdamW

    assert AdamW


def cure() -> None:
    assert transformers.__version__
    torch.optim.AdamW(torch.nn.Linear(2, 2).parameters())


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
