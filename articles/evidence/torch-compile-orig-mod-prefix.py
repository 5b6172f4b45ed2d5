"""torch-compile-orig-mod-prefix#1: a compiled model saves its keys behind `_orig_mod.`; save the model that was compiled."""

import sys

import torch


def model() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(2, 2))


def error() -> None:
    saved = torch.compile(model()).state_dict()
    model().load_state_dict(saved)


def cure() -> None:
    saved = getattr(compiled := torch.compile(model()), "_orig_mod", compiled).state_dict()
    model().load_state_dict(saved)


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
