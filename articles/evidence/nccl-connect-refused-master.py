"""nccl-connect-refused-master#1: no process listens at MASTER_ADDR and MASTER_PORT; the first one has to be started there."""

import socket
import sys
import threading
from datetime import timedelta

import torch


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def error() -> None:
    torch.distributed.TCPStore("127.0.0.1", free_port(), 2, is_master=False, timeout=timedelta(seconds=3))


def cure() -> None:
    port = free_port()
    first = threading.Thread(target=torch.distributed.TCPStore, args=("127.0.0.1", port, 2, True))
    first.start()
    torch.distributed.TCPStore("127.0.0.1", port, 2, is_master=False, timeout=timedelta(seconds=30))
    first.join()


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
