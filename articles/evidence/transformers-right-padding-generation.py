"""transformers-right-padding-generation#1: a decoder continues what stands last, and that is padding; padded on the left it is the text."""

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def tiny() -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
    )


def generate(ids: list[list[int]]) -> None:
    model = tiny()
    model.generation_config.pad_token_id = 0
    mask = torch.tensor(ids) != 0
    model.generate(torch.tensor(ids), attention_mask=mask.long(), max_new_tokens=2, do_sample=False)


def error() -> None:
    generate([[5, 6, 7], [5, 0, 0]])


def cure() -> None:
    generate([[5, 6, 7], [0, 0, 5]])


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
