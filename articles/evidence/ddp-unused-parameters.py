"""ddp-unused-parameters#1: a layer takes no part in the loss, and DDP waits for its gradient; find_unused_parameters looks first."""

import os
import socket
import sys

import torch
from torch.nn.parallel import DistributedDataParallel


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.used(x)


def train(rank: int, port: int, mended: bool) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    net = DistributedDataParallel(Net(), find_unused_parameters=mended)
    for _ in range(2):
        net(torch.ones(1, 2)).sum().backward()
    torch.distributed.barrier()  # who leaves first must not end what the other one still does
    torch.distributed.destroy_process_group()


def run(mended: bool) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(train, (port, mended), 2)


def error() -> None:
    run(mended=False)


def cure() -> None:
    run(mended=True)


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
