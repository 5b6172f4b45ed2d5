"""transformers-head-size-mismatch#1: the head was trained for another number of labels; the same number, or a new head on purpose."""

import sys

from transformers import LlamaConfig, LlamaForSequenceClassification


def config(labels: int) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=64,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_labels=labels,
    )


def error() -> None:
    LlamaForSequenceClassification(config(5)).save_pretrained("model")
    LlamaForSequenceClassification.from_pretrained("model", num_labels=3)


def cure() -> None:
    LlamaForSequenceClassification(config(5)).save_pretrained("model")
    LlamaForSequenceClassification.from_pretrained("model", num_labels=5)


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
