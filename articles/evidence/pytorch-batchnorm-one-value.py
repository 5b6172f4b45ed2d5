"""pytorch-batchnorm-one-value#1: batch norm cannot normalise a last batch of one sample; drop_last leaves that batch out."""

import sys

import torch

DATA = torch.utils.data.TensorDataset(torch.zeros(9, 4))


def error() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8))
    for (batch,) in torch.utils.data.DataLoader(DATA, batch_size=4):
        net(batch)


def cure() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8))
    for (batch,) in torch.utils.data.DataLoader(DATA, batch_size=4, drop_last=True):
        net(batch)


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
