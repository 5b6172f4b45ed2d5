"""pytorch-state-dict-module-prefix#1: DataParallel and DDP save every key behind `module.`; save the inner module, or strip it."""

import sys

import torch


def model() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(2, 2))


def error() -> None:
    saved = torch.nn.DataParallel(model()).state_dict()
    model().load_state_dict(saved)


def cure() -> None:
    saved = torch.nn.DataParallel(model()).state_dict()
    model().load_state_dict({key.removeprefix("module."): value for key, value in saved.items()})


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
