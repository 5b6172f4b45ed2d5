"""datasets-generation-cast-error#1: two files with different columns are one table; read apart they are two."""

import json
import sys
from pathlib import Path

from datasets import load_dataset


def files() -> None:
    for name, column in (("a.jsonl", "answer"), ("b.jsonl", "output")):
        Path(name).write_text(json.dumps({"question": "?", column: "!"}) + "\n")


def error() -> None:
    files()
    load_dataset("json", data_files=["a.jsonl", "b.jsonl"], cache_dir="cache")


def cure() -> None:
    files()
    for name in ("a.jsonl", "b.jsonl"):
        load_dataset("json", data_files=name, cache_dir="cache")


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
