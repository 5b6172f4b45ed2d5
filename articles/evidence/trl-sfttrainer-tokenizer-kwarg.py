"""trl-sfttrainer-tokenizer-kwarg#1: the argument is called processing_class now."""

import sys

from trl import SFTTrainer


def error() -> None:
    SFTTrainer(model=None, tokenizer=None)


def cure() -> None:
    import inspect

    assert "processing_class" in inspect.signature(SFTTrainer.__init__).parameters


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
