"""Averages models of one tokenizer that were trained in different ways; the mean is better than each of them.

    python scripts/encoder/average.py MODEL MODEL [MODEL ...] OUT

Tables that started from the same values differ by what each run learned by heart; the mean keeps what they agree on
(Wortsman et al., "Model soups", 2022).
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

TABLE = "embedding.weight"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    first = args.models[0]
    if any((model / "tokenizer.json").read_bytes() != (first / "tokenizer.json").read_bytes() for model in args.models):
        parser.error("these models do not share a tokenizer: their tables have different rows")
    tables = [load_file(model / "model.safetensors")[TABLE].astype(np.float32) for model in args.models]
    shutil.copytree(first, args.out)
    save_file({TABLE: np.mean(tables, axis=0).astype(np.float16)}, args.out / "model.safetensors")
    return 0


if __name__ == "__main__":
    sys.exit(main())
