"""datasets-name-shadowed#2: a folder of that name is imported when the library is absent; without it, nothing is."""

import sys
from pathlib import Path


def error() -> None:
    Path("datasets").mkdir()
    sys.path = [str(Path.cwd())]  # this folder and nothing else: the library counts as absent
    from datasets import load_dataset

    assert load_dataset


def cure() -> None:
    sys.path = [str(Path.cwd())]
    try:
        import datasets
    except ModuleNotFoundError:
        return
    raise AssertionError(datasets)


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
