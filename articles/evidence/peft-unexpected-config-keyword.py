"""peft-unexpected-config-keyword#1: an adapter of a newer PEFT has settings that this one does not know; without those it loads."""

import sys

from peft import LoraConfig


def error() -> None:
    LoraConfig(r=8, corda_config=None, of_the_next_version=None)


def cure() -> None:
    LoraConfig(r=8)


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
