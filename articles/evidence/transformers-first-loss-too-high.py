"""transformers-first-loss-too-high#1: to_empty leaves the rotary table empty; computed anew, the outputs agree."""

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def pair() -> tuple[LlamaForCausalLM, LlamaForCausalLM]:
    config = LlamaConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, vocab_size=64
    )
    good = LlamaForCausalLM(config).eval()
    with torch.device("meta"):
        model = LlamaForCausalLM(config)
    model.to_empty(device="cpu").load_state_dict(good.state_dict())
    model.model.rotary_emb.inv_freq.fill_(7e7)  # whatever the memory held
    return good, model.eval()


def agree(good: LlamaForCausalLM, model: LlamaForCausalLM) -> None:
    ids = torch.arange(40)[None]
    same = torch.allclose(good(ids).logits, model(ids).logits, atol=1e-5)
    assert same, "first loss too high: init_empty_weights, to_empty, load_state_dict gives another loss"


def error() -> None:
    agree(*pair())


def cure() -> None:
    good, model = pair()
    fresh = type(model.model.rotary_emb)(model.config)
    model.model.rotary_emb.inv_freq.copy_(fresh.inv_freq)
    agree(good, model)


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
