"""pytorch-dataloader-worker-killed#1: a worker is killed while it loads, as the kernel does when memory is out; fewer workers need less."""

import os
import signal
import sys

import torch


class Killed(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, at: int) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return at


def error() -> None:
    for _ in torch.utils.data.DataLoader(Killed(), num_workers=1):
        pass


def cure() -> None:
    for _ in torch.utils.data.DataLoader([0, 1], num_workers=1):
        pass


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
