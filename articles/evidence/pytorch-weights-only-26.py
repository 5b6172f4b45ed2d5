"""pytorch-weights-only-26#1: torch.load unpickles nothing but tensors since 2.6; a class of one's own must be allowed by name."""

import sys
from dataclasses import dataclass

import torch


@dataclass
class Config:
    rank: int = 8


def error() -> None:
    torch.save({"config": Config(), "weight": torch.zeros(2)}, "model.pt")
    torch.load("model.pt")


def cure() -> None:
    torch.save({"config": Config(), "weight": torch.zeros(2)}, "model.pt")
    with torch.serialization.safe_globals([Config]):
        assert torch.load("model.pt")["config"].rank == 8


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
