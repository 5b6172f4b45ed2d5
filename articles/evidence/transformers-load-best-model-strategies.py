"""transformers-load-best-model-strategies#1: the best model can only be loaded when it is saved as often as it is evaluated."""

import sys

import accelerate
from transformers import TrainingArguments


def error() -> None:
    assert accelerate
    TrainingArguments("out", load_best_model_at_end=True, save_strategy="steps")


def cure() -> None:
    TrainingArguments("out", load_best_model_at_end=True, save_strategy="steps", eval_strategy="steps", eval_steps=500)


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
