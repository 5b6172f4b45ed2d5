"""transformers-model-type-not-recognized#1: the configuration names a model that this version of transformers does not have."""

import json
import sys
from pathlib import Path

from transformers import AutoConfig


def load(model_type: str) -> None:
    Path("config.json").write_text(json.dumps({"model_type": model_type, "architectures": ["Any"]}))
    AutoConfig.from_pretrained(".")


def error() -> None:
    load("qwen9_vl")


def cure() -> None:
    load("qwen3")


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
