"""cuda-deserialize-no-cuda#1: a checkpoint whose tensors say that they lay on a GPU; map_location puts them elsewhere."""

import sys

import torch


def save_as_if_on_a_gpu() -> None:
    torch.serialization.register_package(0, lambda storage: "cuda:0", lambda storage, location: None)
    torch.save({"weight": torch.zeros(2)}, "model.pt")


def error() -> None:
    save_as_if_on_a_gpu()
    torch.load("model.pt")


def cure() -> None:
    save_as_if_on_a_gpu()
    assert torch.load("model.pt", map_location="cpu")["weight"].shape == (2,)


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
