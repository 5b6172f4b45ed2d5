"""transformers-safetensors-shared-tensors#1: two names of one tensor cannot be stored as two; save_model keeps one of them."""

import sys

import torch
from safetensors.torch import save_file, save_model


def tied() -> torch.nn.Module:
    net = torch.nn.ModuleDict({"embed": torch.nn.Embedding(4, 2), "lm_head": torch.nn.Linear(2, 4, bias=False)})
    net["lm_head"].weight = net["embed"].weight
    return net


def error() -> None:
    save_file(tied().state_dict(), "model.safetensors")


def cure() -> None:
    save_model(tied(), "model.safetensors")


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
