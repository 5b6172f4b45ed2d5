"""transformers-chat-template-not-set#1: a base model's tokenizer has no chat template; it is given one."""

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
    tokenizer().apply_chat_template([{"role": "user", "content": "hello"}])


def cure() -> None:
    chat = tokenizer()
    chat.chat_template = "{% for message in messages %}{{ message.content }}{% endfor %}"
    chat.apply_chat_template([{"role": "user", "content": "hello"}])


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
