"""peft-no-grad-fn-checkpointing#1: checkpointing cuts the graph at frozen embeddings; enable_input_require_grads mends it."""

import sys

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM


def tiny() -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
    )


def lora() -> torch.nn.Module:
    model = tiny()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": True})
    return get_peft_model(model, LoraConfig(target_modules="all-linear", task_type="CAUSAL_LM")).train()


def train(model: torch.nn.Module) -> None:
    ids = torch.ones(1, 4, dtype=torch.long)
    model(input_ids=ids, labels=ids).loss.backward()


def error() -> None:
    train(lora())


def cure() -> None:
    model = lora()
    model.enable_input_require_grads()
    train(model)


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
