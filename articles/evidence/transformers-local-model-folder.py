"""transformers-local-model-folder#1: a folder that is not there is taken for a name on the Hub; the one that is there is read."""

import sys
from pathlib import Path

from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM


def tiny() -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
    )


def error() -> None:
    AutoModelForCausalLM.from_pretrained("/data/models/Qwen2.5-7B")


def cure() -> None:
    tiny().save_pretrained("model")
    AutoModelForCausalLM.from_pretrained(str(Path("model").resolve()))


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
