"""transformers-training-arguments-removed#1: an argument of an older version; it has another name now."""

import sys

from transformers import TrainingArguments
import accelerate


def error() -> None:
    assert accelerate
    TrainingArguments("out", evaluation_strategy="steps")


def cure() -> None:
    TrainingArguments("out", eval_strategy="steps", eval_steps=1)


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
