"""torch-process-group-not-initialized#1: a collective is called before init_process_group; with a group of one it runs."""

import os
import socket
import sys

import torch


def error() -> None:
    torch.distributed.all_reduce(torch.zeros(1))


def cure() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free.getsockname()[1]))
    torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    torch.distributed.all_reduce(torch.zeros(1))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
