"""transformers5-get-features-output#1: the features come as an object; the tensor is its pooler_output."""

import sys

import torch
from transformers import CLIPConfig, CLIPModel, CLIPTextConfig, CLIPVisionConfig


def features() -> object:
    text = CLIPTextConfig(
        hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, vocab_size=32, eos_token_id=2
    )
    vision = CLIPVisionConfig(
        hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, image_size=32, patch_size=16
    )
    config = CLIPConfig(text_config=text.to_dict(), vision_config=vision.to_dict(), projection_dim=8)
    return CLIPModel(config).get_text_features(torch.tensor([[1, 5, 2]]))


def error() -> None:
    features().norm(dim=-1)


def cure() -> None:
    found = features()
    assert getattr(found, "pooler_output", found).norm(dim=-1).shape == (1,)


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
