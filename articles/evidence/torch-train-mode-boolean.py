"""torch-train-mode-boolean#1: train(0) is refused; eval() does what was meant."""

import sys

import torch


def error() -> None:
    torch.nn.Linear(2, 2).train(0)


def cure() -> None:
    layer = torch.nn.Linear(2, 2).eval()
    assert not layer.training
    assert layer.train(bool(1)).training


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
