"""pytorch-mat1-mat2-shapes#1: the first linear layer expects another size than the flattened features have."""

import sys

import torch


def error() -> None:
    features = torch.zeros(32, 16, 5, 5).flatten(1)
    torch.nn.Linear(120, 10)(features)


def cure() -> None:
    features = torch.zeros(32, 16, 5, 5).flatten(1)
    torch.nn.Linear(features.shape[1], 10)(features)


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
