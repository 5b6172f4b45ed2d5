"""numpy-no-attribute-float#1: NumPy 1.24 removed its aliases of Python's types; the types themselves are meant."""

import sys

import numpy as np


def error() -> None:
    np.zeros(3, dtype=np.float)


def cure() -> None:
    np.zeros(3, dtype=float)


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
