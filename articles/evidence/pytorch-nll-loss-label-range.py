"""pytorch-nll-loss-label-range#1: a label outside of the classes; on a CPU the message says which."""

import sys

import torch


def error() -> None:
    torch.nn.CrossEntropyLoss()(torch.zeros(4, 3), torch.tensor([0, 1, 2, 3]))


def cure() -> None:
    torch.nn.CrossEntropyLoss()(torch.zeros(4, 4), torch.tensor([0, 1, 2, 3]))


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
