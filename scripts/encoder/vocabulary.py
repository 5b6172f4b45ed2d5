"""Makes a tokenizer from texts, whose tokens are whole words.

Unigram (Kudo, "Subword Regularization", 2018) over a vocabulary counted, not learned: lower-cased ASCII words, jieba's
words, single characters, and short pieces of rare words as a fallback. A learned vocabulary cuts 显存, 超时 and 检查点
in two.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import jieba
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from kb.encoders.unigram import normalise

_PIECE = re.compile(r"[a-z]+|[0-9]+|[\u4e00-\u9fa5]+|[^\sa-z0-9\u4e00-\u9fa5]")
_HAN = re.compile(r"[\u4e00-\u9fa5]")
UNKNOWN = 1


def count(texts: Iterable[str]) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """How often each ASCII word or number, each Chinese word, and each single character occurs."""
    jieba.setLogLevel(logging.ERROR)
    latin: Counter[str] = Counter()
    runs: Counter[str] = Counter()
    chars: Counter[str] = Counter()
    for text in texts:
        for piece in _PIECE.findall(normalise(text)):
            if _HAN.match(piece):
                runs[piece] += 1
            elif piece.isascii() and piece.isalnum():
                latin[piece] += 1
            else:
                chars[piece] += 1
    han: Counter[str] = Counter()
    for run, n in runs.items():
        for char in run:
            chars[char] += n
        for word in jieba.cut(run):
            if len(word) > 1:
                han[word] += n
    return latin, han, chars


def _fragments(latin: Counter[str], known: set[str], wanted: int) -> Counter[str]:
    """Pieces of two to five letters by how much of the words outside the vocabulary they would write."""
    pieces: Counter[str] = Counter()
    for word, n in latin.items():
        if word not in known and word.isalpha() and len(word) <= 24:
            for size in range(2, 6):
                for at in range(len(word) - size + 1):
                    pieces[word[at : at + size]] += n * size
    return Counter(dict(pieces.most_common(wanted)))


def build(texts: Iterable[str], size: int, *, latin_share: float = 0.6, fragments: int = 3000) -> Tokenizer:
    """A tokenizer of at most `size` tokens, [PAD] and [UNK] first."""
    latin, han, chars = count(texts)
    letters = [chr(c) for c in range(33, 127)] + [chr(c) for c in range(0x30, 0x3A)]
    singles = Counter({char: n for char, n in chars.items() if n >= 3 or ord(char) < 128})
    singles.update(dict.fromkeys((c for c in letters if c == c.lower()), 1))
    room = size - 2 - len(singles) - fragments
    words = Counter({word: n for word, n in latin.items() if n >= 3 and 1 < len(word) <= 24})
    words = Counter(dict(words.most_common(int(room * latin_share))))
    chinese = Counter({word: n for word, n in han.items() if n >= 3 and len(word) <= 6})
    chinese = Counter(dict(chinese.most_common(room - len(words))))
    pieces = _fragments(latin, set(words), fragments)
    total = sum(words.values()) + sum(chinese.values()) + sum(singles.values())
    scores = {word: math.log(n / total) for word, n in (words + chinese + singles).items()}
    floor = math.log(1 / total)
    for number, piece in enumerate(pieces):  # below every word, so that a known word is never cut
        scores.setdefault(piece, floor - 1 - number / max(1, len(pieces)))
    ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    tokenizer = Tokenizer(models.Unigram([("[PAD]", 0.0), ("[UNK]", 0.0), *ranked], unk_id=UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFKC(),
            normalizers.Replace(Regex("NaN"), "nan"),
            normalizers.Replace(Regex("vLLM"), "vllm"),
            normalizers.Replace(Regex("(?<=[a-z])(?=[A-Z])"), " "),
            normalizers.Replace(Regex("(?<=[A-Z])(?=[A-Z][a-z]{2})"), " "),
            normalizers.Lowercase(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Whitespace(),
            pre_tokenizers.Punctuation("isolated"),
            pre_tokenizers.Digits(individual_digits=False),
            pre_tokenizers.UnicodeScripts(),
        ]
    )
    tokenizer.add_special_tokens(["[PAD]", "[UNK]"])
    return tokenizer


def same_form(tokenizer: Tokenizer, shipped: Path) -> bool:
    """Whether it normalises and splits as the shipped one, which `kb.encoders.unigram` walks without `tokenizers`."""
    one, two = json.loads(tokenizer.to_str()), json.loads(shipped.read_text("utf-8"))
    return all(one[part] == two[part] for part in ("normalizer", "pre_tokenizer", "added_tokens", "post_processor"))
