"""transformers-meta-tensor-no-data#1: a model on the meta device has no weights to move; to_empty makes room, and loading fills it."""

import sys

import torch


def error() -> None:
    with torch.device("meta"):
        model = torch.nn.Linear(2, 2)
    model.to("cpu")


def cure() -> None:
    with torch.device("meta"):
        model = torch.nn.Linear(2, 2)
    model.to_empty(device="cpu").load_state_dict(torch.nn.Linear(2, 2).state_dict())


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
