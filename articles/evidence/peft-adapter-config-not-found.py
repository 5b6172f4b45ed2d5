"""peft-adapter-config-not-found#1: the folder holds no adapter; the one that save_pretrained wrote does."""

import sys
from pathlib import Path

from peft import LoraConfig, PeftModel, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM


def tiny() -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
    )


def error() -> None:
    Path("checkpoint-400").mkdir()
    PeftModel.from_pretrained(tiny(), "./checkpoint-400")


def cure() -> None:
    get_peft_model(tiny(), LoraConfig(target_modules="all-linear")).save_pretrained("checkpoint-400")
    PeftModel.from_pretrained(tiny(), "./checkpoint-400")


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
