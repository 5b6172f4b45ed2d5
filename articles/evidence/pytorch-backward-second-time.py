"""pytorch-backward-second-time#1: the graph is freed by the first backward; computing the loss anew is the cure."""

import sys

import torch


def error() -> None:
    weight = torch.ones(3, requires_grad=True)
    loss = (weight**2).sum()
    loss.backward()
    loss.backward()


def cure() -> None:
    weight = torch.ones(3, requires_grad=True)
    for _ in range(2):
        loss = (weight**2).sum()
        loss.backward()


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
