"""state-dict-size-mismatch#1: a weight of another shape than the model's; the layer with the checkpoint's shape takes it."""

import sys

import torch


def error() -> None:
    torch.nn.Linear(4, 3).load_state_dict(torch.nn.Linear(4, 5).state_dict())


def cure() -> None:
    torch.nn.Linear(4, 5).load_state_dict(torch.nn.Linear(4, 5).state_dict())


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
