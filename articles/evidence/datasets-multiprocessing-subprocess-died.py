"""datasets-multiprocessing-subprocess-died#1: a process of map is killed; one process with a smaller batch lives."""

import os
import signal
import sys

from datasets import Dataset

ROWS = Dataset.from_dict({"n": [1, 2, 3, 4]})


def killed(row: dict[str, int]) -> dict[str, int]:
    os.kill(os.getpid(), signal.SIGKILL)
    return row


def error() -> None:
    ROWS.map(killed, num_proc=2)


def cure() -> None:
    ROWS.map(lambda row: row, num_proc=1)


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
