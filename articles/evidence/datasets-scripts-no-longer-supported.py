"""datasets-scripts-no-longer-supported#1: datasets 4 runs no loading scripts; the data files are read without one."""

import json
import sys
from pathlib import Path

from datasets import load_dataset


def error() -> None:
    Path("superb").mkdir()
    Path("superb/superb.py").write_text("import datasets\n")
    load_dataset("./superb", cache_dir="cache")


def cure() -> None:
    Path("superb").mkdir()
    Path("superb/train.jsonl").write_text(json.dumps({"text": "hello"}) + "\n")
    load_dataset("./superb", cache_dir="cache")


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
