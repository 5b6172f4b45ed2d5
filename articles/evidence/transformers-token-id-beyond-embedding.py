"""transformers-token-id-beyond-embedding#1: a token id beyond the embedding table; resize_token_embeddings makes room."""

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def tiny() -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
    )


def error() -> None:
    tiny()(torch.tensor([[70]]))


def cure() -> None:
    model = tiny()
    model.resize_token_embeddings(80)
    model(torch.tensor([[70]]))


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
