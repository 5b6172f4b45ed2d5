"""torch-compile-recompile-limit#1: every new shape is compiled anew until the limit; dynamic=True compiles once."""

import sys

import torch


def error() -> None:
    double = torch.compile(lambda x: x * 2, backend="eager", dynamic=False)
    for size in range(2, 14):
        double(torch.zeros(size))


def cure() -> None:
    double = torch.compile(lambda x: x * 2, backend="eager", dynamic=True)
    for size in range(2, 14):
        double(torch.zeros(size))


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
