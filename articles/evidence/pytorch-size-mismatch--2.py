"""pytorch-size-mismatch#2: a skip connection joins maps of 624 and 625 pixels, as 625 is no multiple of 2."""

import sys

import torch
import torch.nn.functional as F


def unet_joint(image: torch.Tensor) -> torch.Tensor:
    down = F.max_pool2d(image, 2)
    up = F.interpolate(down, scale_factor=2)
    return torch.cat([image, up], dim=1)


def error() -> None:
    unet_joint(torch.zeros(1, 3, 625, 625))


def cure() -> None:
    image = torch.zeros(1, 3, 625, 625)
    h, w = image.shape[-2:]
    unet_joint(F.pad(image, (0, -w % 32, 0, -h % 32)))


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
