"""transformers-weights-newly-initialized#1: a checkpoint without a classifier gets a random one; a checkpoint of the same task has it."""

import sys

from transformers import LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification


def tiny() -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
    )


def error() -> None:
    tiny().save_pretrained("model")
    LlamaForSequenceClassification.from_pretrained("model")


def cure() -> None:
    tiny().save_pretrained("model")
    LlamaForCausalLM.from_pretrained("model")


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
