"""trl-grpo-batch-not-divisible#1: the batch cannot be divided into groups; a multiple of num_generations can."""

import sys

from trl import GRPOConfig


def error() -> None:
    GRPOConfig(
        "out", use_cpu=True, bf16=False, per_device_train_batch_size=2, gradient_accumulation_steps=1, num_generations=6
    )


def cure() -> None:
    GRPOConfig(
        "out", use_cpu=True, bf16=False, per_device_train_batch_size=6, gradient_accumulation_steps=1, num_generations=6
    )


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
