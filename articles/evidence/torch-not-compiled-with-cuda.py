"""torch-not-compiled-with-cuda#1: a build of PyTorch for the CPU is asked for a GPU; code that asks first runs on either."""

import sys

import torch


def error() -> None:
    torch.zeros(1).cuda()


def cure() -> None:
    torch.zeros(1).to("cuda" if torch.cuda.is_available() else "cpu")


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
