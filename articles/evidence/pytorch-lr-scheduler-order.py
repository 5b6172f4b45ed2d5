"""pytorch-lr-scheduler-order#1: the scheduler steps before the optimizer, and the first learning rate is skipped."""

import sys

import torch


def both() -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    optimizer = torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=0.1)
    return optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 1)


def error() -> None:
    optimizer, scheduler = both()
    for _ in range(3):
        scheduler.step()
        optimizer.step()


def cure() -> None:
    optimizer, scheduler = both()
    for _ in range(3):
        optimizer.step()
        scheduler.step()


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
