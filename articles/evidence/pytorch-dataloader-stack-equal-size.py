"""pytorch-dataloader-stack-equal-size#1: samples of different lengths cannot be stacked; a collate_fn pads them."""

import sys

import torch

DATA = [torch.zeros(length) for length in (11, 12, 15)]


def error() -> None:
    for batch in torch.utils.data.DataLoader(DATA, batch_size=3):
        print(batch.shape)


def cure() -> None:
    def pad(samples: list[torch.Tensor]) -> torch.Tensor:
        return torch.nn.utils.rnn.pad_sequence(samples, batch_first=True)

    for batch in torch.utils.data.DataLoader(DATA, batch_size=3, collate_fn=pad):
        assert batch.shape == (3, 15)


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
