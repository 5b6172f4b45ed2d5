"""ddp-param-ready-twice#1: a shared layer under reentrant checkpointing is ready twice; the newer kind of checkpointing is not."""

import os
import socket
import sys

import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint


class Net(torch.nn.Module):
    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.layer, self.reentrant = torch.nn.Linear(2, 2), reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            x = checkpoint(self.layer, x, use_reentrant=self.reentrant)
        return x


def train(rank: int, port: int, mended: bool) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    net = DistributedDataParallel(Net(reentrant=not mended), find_unused_parameters=True)
    net(torch.ones(1, 2, requires_grad=True)).sum().backward()
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
