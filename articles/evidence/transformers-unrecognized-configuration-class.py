"""transformers-unrecognized-configuration-class#1: a vision-language model is no AutoModelForCausalLM; the Auto class of its kind takes it."""

import sys

from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, Qwen2VLConfig


def error() -> None:
    AutoModelForCausalLM.from_config(Qwen2VLConfig())


def cure() -> None:
    assert Qwen2VLConfig in AutoModelForImageTextToText._model_mapping


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
