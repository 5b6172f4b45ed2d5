"""tokenizers-parallelism-fork#1: the tokenizer used its threads before the fork; with the variable set it uses none."""

import os
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


def work() -> None:
    one = tokenizer()
    one(["hello world"] * 1000)
    child = os.fork()
    one(["hello world"] * 1000)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def error() -> None:
    work()


def cure() -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    work()


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
