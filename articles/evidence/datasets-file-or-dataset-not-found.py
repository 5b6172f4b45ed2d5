"""datasets-file-or-dataset-not-found#1: the path of the data file is wrong; the right one is read."""

import json
import sys
from pathlib import Path

from datasets import load_dataset


def error() -> None:
    load_dataset("json", data_files="train.jsonl", cache_dir="cache")


def cure() -> None:
    Path("train.jsonl").write_text(json.dumps({"text": "hello"}) + "\n")
    load_dataset("json", data_files="train.jsonl", cache_dir="cache")


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
