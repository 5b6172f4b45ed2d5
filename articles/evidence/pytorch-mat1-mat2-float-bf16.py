"""pytorch-mat1-mat2-float-bf16#1: a bfloat16 layer gets float32 input; autocast or a cast gives both one type."""

import sys

import torch


def error() -> None:
    layer = torch.nn.Linear(4, 4, dtype=torch.bfloat16)
    layer(torch.zeros(2, 4))


def cure() -> None:
    layer = torch.nn.Linear(4, 4, dtype=torch.bfloat16)
    layer(torch.zeros(2, 4).to(layer.weight.dtype))


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
