"""Splits text in Chinese, English or code into the terms of the index, and tells its language.

Chinese is segmented with jieba's dictionary (https://github.com/fxsjy/jieba) along the most probable path. The result
equals `jieba.lcut_for_search(HMM=False)`; a test compares them. jieba itself reads all 349,046 words at its start
(0.6 s). Here only the words that the text can contain are read: 0.05 s for a build, and nothing for a query, whose
words come from the index.
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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kb.arrays import Array
    from kb.records import Lang

__all__ = [
    "HAN",
    "HAN_CHAR",
    "STOP_WORDS",
    "Segmenter",
    "clean",
    "detect_lang",
    "dictionary_for",
    "sentences",
    "term_weights",
    "tokenise",
]

HAN = "\u4e00-\u9fd5"
"""Chinese characters, for use within the brackets of a pattern: the range that jieba segments"""
HAN_CHAR = re.compile(f"[{HAN}]")
MAX_TOKEN_CHARS = 64  # longer runs of letters are hashes and base64, not words

_TOKEN = re.compile(rf"[vV]?[0-9]+(?:\.[0-9]+)+|[{HAN}]+|[^\W{HAN}]+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ALNUM = re.compile(r"[0-9]+|[^\W\d_]+")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+\Z")
_LATIN_WORD = re.compile(r"[A-Za-z]{2,40}")

_JIEBA_TOTAL = 60_101_967  # sum of all frequencies in jieba 0.42.1's dict.txt (a test compares)
_UNSEEN = -math.log(_JIEBA_TOTAL)  # jieba counts a character it does not know once

# Words of grammar, without a topic. Negations are no stop words: "not found" is not "found".
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

# Bidirectional marks and zero-width characters change how a text looks, but not what it says.
_LEAST_SENTENCE = 6  # characters
_SENTENCE_END = re.compile(rf"(?<=[.!?;])\s+|。|(?<=[{HAN}])[!?;]|\n+|(?<=,)(?=[^,\n]{{18}})")
_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\xad]+")


def clean(text: str) -> str:
    """NFKC (full-width forms become ASCII), without invisible characters and lone surrogates."""
    if text.isascii():
        return text
    text = text.encode("utf-8", "replace").decode("utf-8")
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


def sentences(text: str, most: int) -> list[str]:
    """The first `most` distinct sentences of `text`, cleaned. A sentence is cut before a long clause, too: in Chinese
    each often tells another thing."""
    found: dict[str, None] = {}
    for piece in _SENTENCE_END.split(clean(text)):
        sentence = piece.strip()
        if len(sentence) >= _LEAST_SENTENCE and len(found) < most:
            found[sentence] = None
    return list(found)


def detect_lang(prose: str) -> Lang:
    """The language of prose without code: "zh" when it has more than one Chinese character for two English words."""
    return "zh" if len(HAN_CHAR.findall(prose)) * 2 > len(_LATIN_WORD.findall(prose)) else "en"


class Segmenter:
    """Splits runs of Chinese characters into words. Threads may share it.

    `log_p` maps each known word to the natural logarithm of its probability, which is below zero.
    """

    def __init__(self, log_p: Mapping[str, float]) -> None:
        by_first: dict[str, dict[str, float]] = {}
        for word, p in log_p.items():
            by_first.setdefault(word[:1], {})[word] = p
        self._by_first = {first: _with_prefixes(words) for first, words in by_first.items()}
        self._parts: Sequence[tuple[Sequence[str], Sequence[float] | Array]] = ()

    @classmethod
    def from_vocabulary(cls, parts: Sequence[tuple[Sequence[str], Sequence[float] | Array]]) -> Segmenter:
        """A segmenter that knows the terms of every part: sorted terms, and the `log_p` of each. It looks up the words
        that begin with a character when it first meets that character, so that its start costs nothing. A term whose
        `log_p` is not below zero is no word."""
        segmenter = cls({})
        segmenter._parts = parts
        return segmenter

    def _words_from(self, char: str) -> dict[str, float]:
        """The known words that begin with `char`, and the prefixes of these words (with 0.0)."""
        found = self._by_first.get(char)
        if found is None:
            words: dict[str, float] = {}
            for terms, log_p in self._parts:
                first, last = bisect_left(terms, char), bisect_left(terms, chr(ord(char) + 1))
                words.update((terms[i], float(log_p[i])) for i in range(first, last))
            found = self._by_first[char] = _with_prefixes(words)
        return found

    def words(self, run: str) -> list[str]:
        """The most probable path through `run` (Chinese characters only). Ties go to the longer word, as in jieba."""
        size = len(run)
        best = [0.0] * (size + 1)
        after = [0] * size
        for start in range(size - 1, -1, -1):
            log_p = self._words_from(run[start])
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
        """The words of `run`; before each longer word, the known words of two and three characters inside it."""
        found: list[str] = []
        for word in self.words(run):
            for width in (2, 3):
                if len(word) > width:
                    pieces = (word[i : i + width] for i in range(len(word) - width + 1))
                    found.extend(piece for piece in pieces if self._words_from(piece[0]).get(piece, 0.0) < 0.0)
            found.append(word)
        return found


def _with_prefixes(words: Mapping[str, float]) -> dict[str, float]:
    """The words and all their prefixes. A prefix that is no word gets 0.0, which is the logarithm of no word. A search
    for words along a text can stop at the first string that is not in here."""
    found: dict[str, float] = {}
    for word in words:
        for end in range(1, len(word)):
            found.setdefault(word[:end], 0.0)
    found.update(words)
    return found


@lru_cache(maxsize=1)
def _dictionary() -> str:
    # Only jieba's data is read: `import jieba` takes 50 ms, and 120 ms more with pkg_resources.
    spec = importlib.util.find_spec("jieba")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("jieba is not installed")
    return (Path(spec.submodule_search_locations[0]) / "dict.txt").read_text(encoding="utf-8")


def dictionary_for(texts: Iterable[str] | None = None) -> dict[str, float]:
    """The words of jieba's dictionary that consist of Chinese characters in `texts` (None: of any), with their log
    probabilities. Raises ModuleNotFoundError when jieba is not installed."""
    chars = None if texts is None else {char for text in texts for char in HAN_CHAR.findall(text)}
    if chars is not None and not chars:
        return {}
    return dict(_words_made_of(HAN if chars is None else "".join(sorted(chars))))


@lru_cache(maxsize=1)  # of one build to the next of the same articles hardly a character changes
def _words_made_of(chars: str) -> dict[str, float]:
    found = re.findall(rf"^([{chars}]+) ([0-9]+)", _dictionary(), re.MULTILINE)
    log_total = math.log(_JIEBA_TOTAL)
    return {word: math.log(int(count) or 1) - log_total for word, count in found}


@lru_cache(maxsize=1 << 16)
def _pieces(word: str) -> tuple[str, ...]:
    """The identifier in lower case, and its parts: `OutOfMemoryError` gives `outofmemoryerror`, `out`, `memory`,
    `error`; `num_generations` and `ZeRO3` are split likewise. Stop words and parts of one letter are left out."""
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
    """The terms of cleaned `text` in order: words in lower case, identifiers whole and in parts, version numbers,
    Chinese segmented. Takes time linear in the length of the text."""
    return [term for word in _words(text, segmenter) for term in word]


def term_weights(text: str, segmenter: Segmenter) -> dict[str, float]:
    """The distinct terms of cleaned `text` in order, each with 1 / the number of terms that its word gives: the three
    terms of `NoneType` (`nonetype`, `none`, `type`) weigh as much together as one word."""
    found: dict[str, float] = {}
    for word in _words(text, segmenter):
        for term in word:
            found[term] = max(found.get(term, 0.0), 1 / len(word))
    return found


def _words(text: str, segmenter: Segmenter) -> Iterator[Sequence[str]]:
    """The words of the text, each as the tuple of its terms."""
    for token in _TOKEN.findall(text):
        if HAN[0] <= token[0] <= HAN[2]:
            yield from ((word,) for word in segmenter.for_search(token) if word not in STOP_WORDS)
        elif "." in token:
            yield (token.lstrip("vV"),)  # v0.6.3 is 0.6.3
        else:
            yield _pieces(token)
