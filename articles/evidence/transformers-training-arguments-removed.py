"""transformers-training-arguments-removed#1: an argument of an older version; it has another name now."""

import sys

import accelerate
from transformers import TrainingArguments


def error() -> None:
    assert accelerate
    TrainingArguments("out", evaluation_strategy="steps")


def cure() -> None:
    TrainingArguments("out", eval_strategy="steps", eval_steps=1)


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
