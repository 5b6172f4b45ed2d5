"""torch-process-group-twice#1: init_process_group a second time in one process; with a look at is_initialized it runs."""

import os
import socket
import sys

import torch.distributed as dist


def start() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free.getsockname()[1]))
    dist.init_process_group("gloo", rank=0, world_size=1)


def error() -> None:
    start()
    dist.init_process_group("gloo", rank=0, world_size=1)


def cure() -> None:
    start()
    if not dist.is_initialized():
        dist.init_process_group("gloo", rank=0, world_size=1)
    dist.destroy_process_group()
    start()
    dist.destroy_process_group()


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
