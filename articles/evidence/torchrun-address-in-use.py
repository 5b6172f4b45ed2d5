"""torchrun-address-in-use#1: the port of another job is still taken; with --standalone torchrun chooses a free one."""

import socket
import subprocess
import sys
from pathlib import Path

import torch

assert torch.distributed.is_available()
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]


def error() -> None:
    Path("train.py").write_text("print('training')")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = ["--nproc_per_node=1", "--master_addr=127.0.0.1", f"--master_port={port}", "train.py"]
        sys.exit(subprocess.run([*TORCHRUN, *command], check=False).returncode)


def cure() -> None:
    Path("train.py").write_text("print('training')")
    with socket.create_server(("127.0.0.1", 0)):
        subprocess.run([*TORCHRUN, "--standalone", "--nproc_per_node=1", "train.py"], check=True)


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
