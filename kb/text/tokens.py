"""Here is a piece of text in Chinese, English or code; give me its language and its words.

Chinese is segmented with jieba's dictionary by the most probable path, as `jieba.lcut_for_search(HMM=False)` does (a
test holds the two equal), but over only those dictionary words that the text at hand can contain: jieba's own
start-up reads all 349,046 (0.6 s), this takes 0.05 s at build time and nothing at query time, when the words come
from the index.
"""

from __future__ import annotations

import importlib.util
import math
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from kb.arrays import Array

__all__ = ["HAN_CHAR", "Segmenter", "clean", "detect_lang", "dictionary_for", "shares", "tokenise"]

HAN = "\u4e00-\u9fd5"  # jieba's own range
MAX_TOKEN_CHARS = 64  # longer runs of letters are hashes and base64, not words

HAN_CHAR = re.compile(f"[{HAN}]")
_TOKEN = re.compile(rf"[vV]?[0-9]+(?:\.[0-9]+)+|[{HAN}]+|[^\W{HAN}]+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ALNUM = re.compile(r"[0-9]+|[^\W\d_]+")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+\Z")
_LATIN_WORD = re.compile(r"[A-Za-z]{2,}")

_JIEBA_TOTAL = 60_101_967  # sum of all frequencies in jieba 0.42.1's dict.txt (a test compares)
_UNSEEN = -math.log(_JIEBA_TOTAL)  # jieba counts a character it does not know once

# What carries grammar and no matter. Negations stay: "not found" is not "found".
STOP_WORDS = frozenset(
    (
        "a an and are as at be been but by can could did do does for from had has have how i if in into is it its me "
        "my of on or our she he so some such than that the their them then there these they this those to us was we "
        "were what when where which while who why will with would you your am any also again after before about "
        "during get gets got 的 了 是 在 和 与 就 也 都 还 很 吗 呢 吧 啊 呀 嘛 我 你 他 她 它 这 那 有 把 被 给 让 "
        "请 又 再 才 着 过 得 地 之 其 及 或 而 但 一个 一下 这个 那个 这样 怎么 什么 为什么 如何 怎么办 怎样 我们 "
        "你们 他们 大家 可以 可能 应该 然后 但是 因为 所以 如果 虽然 而且 以及 已经 还是 就是 只是 只有 有没有 "
        "是不是 请问 谢谢 一直 总是 里 上 下 中 时 后 前 从 到 对 于 等 个 些 么 会 能 要 想"
    ).split()
)

# Bidirectional marks and zero-width characters change what a reader sees and nothing that a reader means.
_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\xad]+")


def clean(text: str) -> str:
    """NFKC (full-width forms become ASCII), without invisible characters and lone surrogates."""
    if text.isascii():
        return text
    text = text.encode("utf-8", "replace").decode("utf-8")
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


def detect_lang(text: str) -> Literal["en", "zh"]:
    """ "zh" when Han characters are at least a fifth of the words, counting two characters as one word."""
    han = len(HAN_CHAR.findall(text))
    return "zh" if han >= 2 and han / 2 >= 0.2 * (han / 2 + len(_LATIN_WORD.findall(text))) else "en"


class Segmenter:
    """Splits runs of Han characters into words. Safe to share between threads.

    `log_p` maps each known word to its log probability, below zero. What starts a known word without being one counts
    as unknown.
    """

    def __init__(self, log_p: Mapping[str, float]) -> None:
        by_first: dict[str, dict[str, float]] = {}
        for word, p in log_p.items():
            by_first.setdefault(word[:1], {})[word] = p
        self._by_first = {first: _with_prefixes(words) for first, words in by_first.items()}
        self._terms: Sequence[str] = ()
        self._log_p: Sequence[float] | Array = ()

    @classmethod
    def over(cls, terms: Sequence[str], log_p: Sequence[float] | Array) -> Segmenter:
        """The segmenter over a sorted vocabulary: the words that begin with a character are taken from it when the
        character first comes up."""
        segmenter = cls({})
        segmenter._terms, segmenter._log_p = terms, log_p
        return segmenter

    def _beginning(self, char: str) -> dict[str, float]:
        """The known words that begin with `char`, and their beginnings."""
        found = self._by_first.get(char)
        if found is None:
            first, last = bisect_left(self._terms, char), bisect_left(self._terms, chr(ord(char) + 1))
            found = _with_prefixes({self._terms[i]: float(self._log_p[i]) for i in range(first, last)})
            self._by_first[char] = found
        return found

    def words(self, run: str) -> list[str]:
        """The most probable path through `run` (Han characters only). Ties go to the longer word, as in jieba."""
        size = len(run)
        best = [0.0] * (size + 1)
        after = [0] * size
        for start in range(size - 1, -1, -1):
            log_p = self._beginning(run[start])
            top, cut = -math.inf, start + 1
            for end in range(start + 1, size + 1):
                p = log_p.get(run[start:end])
                if p is None:
                    break
                if p < 0.0 and p + best[end] >= top:
                    top, cut = p + best[end], end
            if top == -math.inf:
                top = _UNSEEN + best[start + 1]
            best[start], after[start] = top, cut
        words, at = [], 0
        while at < size:
            words.append(run[at : after[at]])
            at = after[at]
        return words

    def for_search(self, run: str) -> list[str]:
        """The words of `run`, each long one preceded by the known words of two and three characters inside it."""
        found: list[str] = []
        for word in self.words(run):
            for width in (2, 3):
                if len(word) > width:
                    pieces = (word[i : i + width] for i in range(len(word) - width + 1))
                    found.extend(piece for piece in pieces if self._beginning(piece[0]).get(piece, 0.0) < 0.0)
            found.append(word)
        return found


def _with_prefixes(words: Mapping[str, float]) -> dict[str, float]:
    """Prefixes get 0.0, which no probability has: a walk along the text can stop at the first miss."""
    found: dict[str, float] = {}
    for word in words:
        for end in range(1, len(word)):
            found.setdefault(word[:end], 0.0)
    found.update(words)
    return found


@lru_cache(maxsize=1)
def _dictionary() -> str:
    spec = importlib.util.find_spec(
        "jieba"
    )  # its data only: `import jieba` costs 50 ms, and 120 more with pkg_resources
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("jieba is not installed")
    return (Path(spec.submodule_search_locations[0]) / "dict.txt").read_text(encoding="utf-8")


def dictionary_for(texts: Iterable[str]) -> dict[str, float]:
    """Words of jieba's dictionary made only of Han characters found in `texts`, with their log probabilities."""
    chars = {char for text in texts for char in HAN_CHAR.findall(text)}
    if not chars:
        return {}
    found = re.findall(rf"^([{''.join(sorted(chars))}]+) ([0-9]+)", _dictionary(), re.MULTILINE)
    log_total = math.log(_JIEBA_TOTAL)
    return {word: math.log(int(count) or 1) - log_total for word, count in found}


@lru_cache(maxsize=1 << 16)
def _pieces(word: str) -> tuple[str, ...]:
    """An identifier whole and split: `num_generations`, `num`, `generations`; `OutOfMemoryError`, `out`, `memory`,
    `error`; `ZeRO3`, `zero`, `3`. Function words go, and single letters that a split leaves."""
    if len(word) > MAX_TOKEN_CHARS or _ADDRESS.match(word):
        return ()
    whole = word.strip("_").lower()
    found = dict.fromkeys([whole])
    humps = [hump.lower() for hump in _CAMEL.findall(word) if len(hump) > 2] if word.isascii() else []
    for part in (*_ALNUM.findall(whole), *humps):
        if len(part) > 1 or part.isdigit():
            found[part] = None
    return tuple(part for part in found if part and part not in STOP_WORDS)


def tokenise(text: str, segmenter: Segmenter) -> list[str]:
    """The terms of cleaned `text` in order: Latin words lower-cased, identifiers and versions whole and split, Chinese
    segmented. Time is linear in the text."""
    return [term for word in _words(text, segmenter) for term in word]


def shares(text: str, segmenter: Segmenter) -> dict[str, float]:
    """The distinct terms of cleaned `text` in order, each with the share of a word that it is: the pieces of
    `NoneType` (whole, `none`, `type`) are one word together, not three."""
    found: dict[str, float] = {}
    for word in _words(text, segmenter):
        for term in word:
            found[term] = max(found.get(term, 0.0), 1 / len(word))
    return found


def _words(text: str, segmenter: Segmenter) -> Iterator[Sequence[str]]:
    """The words of the text, each as the terms by which it can be found."""
    for token in _TOKEN.findall(text):
        if HAN[0] <= token[0] <= HAN[2]:
            yield from ((word,) for word in segmenter.for_search(token) if word not in STOP_WORDS)
        elif "." in token:
            yield (token.lstrip("vV"),)  # v0.6.3 is 0.6.3
        else:
            yield _pieces(token)
