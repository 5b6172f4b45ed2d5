"""peft-target-modules-not-found#1: the names of another architecture's layers; `all-linear` finds those of this one."""

import sys

from peft import LoraConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel


def gpt2() -> GPT2LMHeadModel:
    return GPT2LMHeadModel(GPT2Config(vocab_size=64, n_embd=16, n_layer=1, n_head=2))


def error() -> None:
    get_peft_model(gpt2(), LoraConfig(target_modules=["q_proj", "v_proj"]))


def cure() -> None:
    get_peft_model(gpt2(), LoraConfig(target_modules="all-linear", task_type="CAUSAL_LM"))


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
