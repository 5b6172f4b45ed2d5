"""pytorch-inplace-modified-variable#1: an in-place step changes what backward still needs; out of place it does not."""

import sys

import torch


def error() -> None:
    weight = torch.ones(3, requires_grad=True)
    hidden = torch.sigmoid(weight)
    hidden += 1
    hidden.sum().backward()


def cure() -> None:
    weight = torch.ones(3, requires_grad=True)
    hidden = torch.sigmoid(weight)
    hidden = hidden + 1
    hidden.sum().backward()


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
