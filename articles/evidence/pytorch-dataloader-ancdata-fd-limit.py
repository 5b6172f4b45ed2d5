"""pytorch-dataloader-ancdata-fd-limit#1: every tensor of a worker holds a file descriptor; the other sharing strategy holds none."""

import resource
import sys

import torch


def keep_batches() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
    data = [torch.zeros(2) for _ in range(300)]
    kept = list(torch.utils.data.DataLoader(data, num_workers=2))
    assert len(kept) == 300


def error() -> None:
    keep_batches()


def cure() -> None:
    torch.multiprocessing.set_sharing_strategy("file_system")
    keep_batches()


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
