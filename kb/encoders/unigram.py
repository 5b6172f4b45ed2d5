"""The tokenizer of the shipped encoder, ready 115 ms sooner than the `tokenizers` library.

Loading a 3 MB tokenizer.json takes longer than everything else in a search, so the shipped model carries its
vocabulary a second time, packed (`tokens.safetensors`, 0.7 MB, read in 10 ms). This module walks the same Unigram
lattice over it (Kudo, "Subword Regularization", 2018; Viterbi as in the tokenizers crate's `encode_optimized`) for
text of ASCII, Han characters and the punctuation around them. It declines any other text, and the caller uses
`tokenizers`. A test holds both equal.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

from kb.arrays import Array, dump, open_arrays

__all__ = ["FILE_NAME", "UnigramTokenizer", "pack"]

FILE_NAME = "tokens.safetensors"

# Part of the model, so not kb.text.HAN: its vocabulary was made with this range (all of it letters of one script).
_HAN = "\u4e00-\u9fa5"
_WIDE_PUNCTUATION = "、。《》【】“”‘’—·•「」『』〈〉"  # categories Pd, Pi, Pf, Po, Ps, Pe: each a token of its own
_SYMBOLS = "\u2190-\u21ff\u2500-\u259f"  # arrows, box drawing, progress bars: category S, runs stay together
_KNOWN = re.compile(rf"[\t\n\r -~{_HAN}{_WIDE_PUNCTUATION}{_SYMBOLS}]*\Z")
_SPECIAL = re.compile(r"\[(?:PAD|UNK)\]")  # written out in a text these are control tokens to `tokenizers`
_CAMEL = re.compile(r"(?=[A-Z])(?:(?<=[a-z])|(?<=[A-Z])(?=.[a-z]{2}))")
_PRE_TOKEN = re.compile(rf"[a-z]+|[0-9]+|[{_HAN}]+|[{_SYMBOLS}]+|[^\s]")
MAX_MEMO = 1 << 16  # words
_UNKNOWN_PENALTY = 10.0  # tokenizers' K_UNK_PENALTY


def normalise(text: str) -> str:
    """The normalizer of kb/model/tokenizer.json."""
    text = unicodedata.normalize("NFKC", text).replace("NaN", "nan").replace("vLLM", "vllm")
    return _CAMEL.sub(" ", text).lower()


class UnigramTokenizer:
    """The packed vocabulary of one model folder. Immutable but for a memo of words."""

    def __init__(self, folder: Path) -> None:
        arrays = open_arrays(folder / FILE_NAME)
        pieces = bytes(arrays["pieces"]).decode("utf-8").split("\n")
        self._scores = arrays["scores"].data  # a memoryview: an item is a float, and nothing is copied
        self._ids = dict(zip(pieces, range(len(pieces)), strict=True))
        self._unknown = int(arrays["unknown"][0])
        self._unknown_score = float(arrays["scores"].min()) - _UNKNOWN_PENALTY
        self._longest, self._longest_han = arrays["longest"].tolist()
        self._memo: dict[str, list[int]] = {}

    def encode(self, text: str) -> list[int] | None:
        """Token numbers, or None for text beyond what this class knows to split as `tokenizers` does."""
        text = normalise(text)
        if not _KNOWN.match(text) or _SPECIAL.search(text.upper()):
            return None
        ids: list[int] = []
        for word in _PRE_TOKEN.findall(text):
            known = self._memo.get(word)
            if known is None:
                if len(self._memo) >= MAX_MEMO:
                    self._memo.clear()
                known = self._memo[word] = self._best(word)
            ids += known
        return ids

    def surprisal(self, word: str) -> float:
        """How rare the word is in technical text: the mean of -ln p over its pieces, about 3 ("the") to 18."""
        ids = self.encode(word) or [self._unknown]
        return -sum(self._scores[i] if i != self._unknown else self._unknown_score for i in ids) / len(ids)

    def _best(self, word: str) -> list[int]:
        """The most probable split of one pre-token; neighbouring unknown characters are one unknown token."""
        ids, scores, size = self._ids, self._scores, len(word)
        longest = self._longest_han if word[0] >= _HAN[0] else self._longest
        best: list[float | None] = [0.0] + [None] * size
        origin = [(0, 0)] * (size + 1)  # where the best piece that ends here starts, and its number
        for start in range(size):
            base = best[start]
            if base is None:
                continue  # cannot happen: every single character has at least the unknown token
            alone = False
            for end in range(start + 1, min(size, start + longest) + 1):
                number = ids.get(word[start:end])
                if number is None:
                    continue
                alone |= end == start + 1
                score, so_far = base + scores[number], best[end]
                if so_far is None or score > so_far:
                    best[end], origin[end] = score, (start, number)
            if not alone:
                score, so_far = base + self._unknown_score, best[start + 1]
                if so_far is None or score > so_far:
                    best[start + 1], origin[start + 1] = score, (start, self._unknown)
        found: list[int] = []
        end = size
        while end > 0:
            end, number = origin[end]
            if not (number == self._unknown and found and found[-1] == self._unknown):
                found.append(number)
        return found[::-1]


def pack(tokenizer_json: bytes) -> bytes:
    """The bytes of tokens.safetensors for a Unigram tokenizer.json. Raises ValueError for another kind of model."""
    import json

    import numpy as np

    model = json.loads(tokenizer_json)["model"]
    if model["type"] != "Unigram" or model.get("byte_fallback"):
        raise ValueError("only a Unigram model without byte fallback can be packed")
    pieces = [piece for piece, _ in model["vocab"]]
    if any("\n" in piece for piece in pieces):
        raise ValueError("a piece holds a line break")
    arrays: dict[str, Array] = {
        "pieces": np.frombuffer("\n".join(pieces).encode("utf-8"), np.uint8),
        "scores": np.array([score for _, score in model["vocab"]], np.float64),
        "unknown": np.array([model["unk_id"]], np.int32),
        # No piece is longer, nor, second, one that begins with a Han character: how far the lattice need be looked at.
        "longest": np.array(
            [max(map(len, pieces)), max((len(p) for p in pieces if p >= _HAN[0]), default=1)], np.int32
        ),
    }
    return dump(arrays)
