"""pytorch-loss-no-grad-fn#1: nothing behind the loss is trained; with a parameter that is, it is."""

import sys

import torch


def error() -> None:
    layer = torch.nn.Linear(2, 1).requires_grad_(False)
    layer(torch.zeros(1, 2)).sum().backward()


def cure() -> None:
    layer = torch.nn.Linear(2, 1)
    layer(torch.zeros(1, 2)).sum().backward()


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
