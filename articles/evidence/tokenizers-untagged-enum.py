"""tokenizers-untagged-enum#1: a tokenizer.json of a newer format than the library knows; one of its own version is read."""

import sys
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordLevel


def error() -> None:
    Tokenizer(WordLevel({"a": 0}, unk_token="a")).save("tokenizer.json")
    text = Path("tokenizer.json").read_text()
    Path("tokenizer.json").write_text(text.replace('"type": "WordLevel"', '"type": "OfTheNextVersion"'))
    Tokenizer.from_file("tokenizer.json")


def cure() -> None:
    Tokenizer(WordLevel({"a": 0}, unk_token="a")).save("tokenizer.json")
    Tokenizer.from_file("tokenizer.json")


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
