"""transformers5-head-not-tied#1: a config without tie_word_embeddings gets a random head; saying it ties the two."""

import sys

import torch
from transformers import PretrainedConfig, PreTrainedModel


class ToyConfig(PretrainedConfig):
    model_type = "toy"

    def __init__(self, width: int = 8, vocab_size: int = 50, **rest: object) -> None:
        self.width, self.vocab_size = width, vocab_size
        super().__init__(**rest)


class Toy(PreTrainedModel):
    config_class = ToyConfig
    _tied_weights_keys = {"lm_head.weight": "emb.weight"}  # noqa: RUF012

    def __init__(self, config: ToyConfig) -> None:
        super().__init__(config)
        self.emb = torch.nn.Embedding(config.vocab_size, config.width)
        self.lm_head = torch.nn.Linear(config.width, config.vocab_size, bias=False)
        self.post_init()

    def get_input_embeddings(self) -> torch.nn.Module:
        return self.emb

    def get_output_embeddings(self) -> torch.nn.Module:
        return self.lm_head


def loaded(tied: bool) -> Toy:
    Toy(ToyConfig(tie_word_embeddings=True)).save_pretrained("model")
    config = ToyConfig(tie_word_embeddings=True) if tied else ToyConfig()
    return Toy.from_pretrained("model", config=config)


def error() -> None:
    model = loaded(tied=False)
    assert torch.equal(model.lm_head.weight, model.emb.weight), "after the upgrade lm_head is random: not tied"


def cure() -> None:
    model = loaded(tied=True)
    assert model.lm_head.weight is model.emb.weight


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
