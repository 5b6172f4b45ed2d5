"""transformers-pad-token-missing#1: the tokenizer has no token to pad with; a token of its own is named."""

import sys

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import PreTrainedTokenizerFast


def tokenizer() -> PreTrainedTokenizerFast:
    words = {"[UNK]": 0, "</s>": 1, "hello": 2, "world": 3}
    model = Tokenizer(WordLevel(words, unk_token="[UNK]"))
    model.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=model, unk_token="[UNK]", eos_token="</s>")


def error() -> None:
    tokenizer()(["hello", "hello world"], padding=True)


def cure() -> None:
    padded = tokenizer()
    padded.pad_token = padded.eos_token
    padded(["hello", "hello world"], padding=True)


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
