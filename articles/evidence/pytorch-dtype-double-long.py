"""pytorch-dtype-double-long#1: whole numbers as target of a loss that wants floats."""

import sys

import torch


def error() -> None:
    torch.nn.BCEWithLogitsLoss()(torch.zeros(4), torch.tensor([0, 1, 1, 0]))


def cure() -> None:
    torch.nn.BCEWithLogitsLoss()(torch.zeros(4), torch.tensor([0, 1, 1, 0]).float())


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
