"""torchrun-sighup-nohup#1: SIGHUP ends torchrun although nohup ignores it; without SIGHUP in its list it goes on."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import torch

assert torch.distributed.is_available()
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=1", "--standalone"]
TRAIN = "import pathlib, time\npathlib.Path('started').touch()\ntime.sleep(8)\nprint('training is done')\n"


def hang_up(*options: str) -> int:
    """Start torchrun under nohup, and send it what a closed terminal sends."""
    Path("started").unlink(missing_ok=True)
    Path("train.py").write_text(TRAIN)
    process = subprocess.Popen(["nohup", *TORCHRUN, *options, "train.py"])
    while not Path("started").exists() and process.poll() is None:
        time.sleep(0.2)
    process.send_signal(signal.SIGHUP)
    return process.wait()


def error() -> None:
    sys.exit(hang_up())


def cure() -> None:
    sys.exit(hang_up("--signals-to-handle=SIGTERM,SIGINT,SIGQUIT"))


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
