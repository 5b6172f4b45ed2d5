"""transformers-local-model-folder#2: the folder has a configuration and no weights; a folder with both is read."""

import sys
from pathlib import Path

from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM


def tiny() -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
    )


def error() -> None:
    tiny().config.save_pretrained("model")
    AutoModelForCausalLM.from_pretrained(str(Path("model").resolve()))


def cure() -> None:
    tiny().save_pretrained("model")
    AutoModelForCausalLM.from_pretrained(str(Path("model").resolve()))


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
