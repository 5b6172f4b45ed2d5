"""Fingerprints: the words by which a line of a log is recognised as the error line of a known issue.

Two runs of one failure print the same words around other numbers, paths and names. So an error line becomes a few
fingerprints: runs of words that must stand unbroken and in order, with any words between the runs. Each fingerprint of
a line leaves more open than the one before (`kb.logs.variables.forms`).

In: a record. Out: its prints, which are fingerprints as text: these an index keeps (`kb.index.prints`). In a base a
fingerprint has a weight, and issues that print such a line (`kb.scan.fingerprints`). The weight says how far it can be
trusted alone. It is counted, not listed by hand: a word weighs more the fewer issues use it and the rarer it is in
technical text. Words that the interpreter or the operating system prints around every failure weigh next to nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from kb.encoders import rarity, surprisal
from kb.logs.everyones import python_words, type_names, without_system_messages
from kb.logs.prefix import strip_prefix
from kb.logs.variables import HASH, PATH
from kb.logs.words import words_of
from kb.records import IssueRecord
from kb.text import HAN, STOP_WORDS, clean

__all__ = [
    "MIN_WEIGHT",
    "Fingerprint",
    "anchor_of",
    "fingerprint_of",
    "printed_by",
    "said_by",
    "word_weight",
    "words_in",
]

MAX_LINE_CHARS = 1000  # of an error line; a longer one is a listing
MAX_GAP_CHARS = 600  # between two runs: a path, a list of names
MIN_WEIGHT = 0.5  # a fingerprint below this occurs everywhere and is dropped
MIN_WORD_WEIGHT = 0.15  # of the most common word: its place in the line still says something
TRIVIAL_WEIGHT = 0.05  # of a digit, a single letter, a stop word, the name of a built-in exception
_MAX_STARTS = 8  # the first run of a fingerprint may occur in a line more than once


_BETWEEN = "|"  # two runs of a print
_GAP = "\0"  # stands for a variable part in a form of a line
_PLACEHOLDER = re.compile(r"\.{3}|…|<[^<>\n]{1,40}>|\{\}|\*|%[sd]|\b(?:[NXYZ]|[Xx]{2,4})\b")
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9])[0-9]+(?:[.,:][0-9]+)*(?![A-Za-z0-9])(?: ?(?:[KMGT]i?B|bytes|ms|s|seconds|milliseconds|%)\b)?"
)
_QUOTED = re.compile(r"(?<!\w)(?:'[^'\n]{1,200}'|\"[^\"\n]{1,200}\"|`[^`\n]{1,200}`)(?!\w)")
_OWN_NAME = re.compile(r"(?<![\w.])\w*[0-9][\w.]*|(?<![\w.])\w+(?:\.\w+){2,}")
_SENTENCE_END = re.compile(r"[.!?;。！？；](?=\s|$)|\s\([^()]{1,200}\)$")
_EXCEPTION_HEAD = re.compile(r"(?:\w{1,60}\.){0,9}(\w{0,60}[A-Z]\w{0,60}): ?")


@dataclass(frozen=True, slots=True)
class Fingerprint:
    runs: tuple[str, ...]
    """words with one space between them and a space at either end"""
    words: frozenset[str]
    anchor: str
    """the word by which it is found: its rarest one in technical text, in Latin letters if it has one"""
    weight: float
    """the sum of its words' weights, each from 0 (used everywhere) to 1 (used in one issue only)"""
    issues: frozenset[int]
    """every issue with an error line that it matches, as the row of the first that tells its fault
    (`kb.index.header.Columns.first_telling`)"""

    def matches(self, words: str) -> bool:
        """`words`: a line as `words_of` returns it."""
        first, start = self.runs[0], -1
        for _ in range(_MAX_STARTS):
            start = words.find(first, start + 1)
            if start < 0:
                return False
            if self._rest_matches(words, start + len(first) - 1):
                return True
        return False

    def position_in(self, text: str) -> int:
        """Where in a text that holds the fingerprint its first words stand."""
        return self.span_in(text)[0]

    def span_in(self, text: str) -> tuple[int, int]:
        """From where to where the fingerprint stands in a text that holds it; all of the text if it cannot be found
        there as it is written."""
        first = _pattern(self.runs[0]).search(text)
        if not first:
            return max(0, text.lower().find(self.anchor)), len(text)
        end = first.end()
        for run in self.runs[1:]:
            found = _pattern(run).search(text, end)
            end = found.end() if found else end
        return first.start(), end

    def _rest_matches(self, words: str, at: int) -> bool:
        for run in self.runs[1:]:
            at = words.find(run, at, at + MAX_GAP_CHARS + len(run))
            if at < 0:
                return False
            at += len(run) - 1
        return True


def _pattern(run: str) -> re.Pattern[str]:
    """Finds a run of words in text as it was written: any case, a few other characters between words."""
    return re.compile(r"(?:\\[nt]|[\W_]){0,20}".join(map(re.escape, run.split())), re.IGNORECASE)


def fingerprint_of(text: str, weight_of: Callable[[str], float]) -> Fingerprint:
    """What a print, as `printed_by` gives it, is in a base where the words have these weights; its issues are left
    open."""
    runs = tuple(f" {run} " for run in text.split(_BETWEEN))
    words = words_in(text)
    weight = math.fsum(map(weight_of, _without_system_words(runs)))
    return Fingerprint(runs, words, _anchor(words), weight, frozenset())


def printed_by(record: IssueRecord) -> dict[str, set[str]]:
    """The words of each error line of a record, and the prints that are made of it: runs of words with "|" between
    them. Those that weigh too little in any base are left out."""
    printed: dict[str, set[str]] = {}
    for error in record.errors:
        line = strip_prefix(clean(error)[:MAX_LINE_CHARS]).strip()
        if words := words_of(line).strip():
            prints = {_BETWEEN.join(run.strip() for run in runs) for runs in _runs_of(line) if runs}
            printed.setdefault(words, set()).update(one for one in prints if _may_weigh_enough(one))
    return printed


def said_by(record: IssueRecord) -> set[str]:
    """The words of a record's text, by which it is counted how many issues use a word."""
    return set(words_of(clean("\n".join((record.title, record.symptom, record.cause, record.fix)))).split())


def word_weight(word: str, spread: int, issues: int) -> float:
    """0 to 1: the word's idf over the issues of the base, of which `spread` use it, as a share of the highest possible
    one, times its rarity in technical text (`kb.encoders.surprisal`)."""
    idf = math.log((issues + 1) / (spread + 0.5)) / math.log((issues + 1) / 1.5)
    return _weight(word, min(1.0, idf))


def words_in(text: str) -> frozenset[str]:
    """The words of a print."""
    return frozenset(text.replace(_BETWEEN, " ").split())


def anchor_of(text: str) -> str:
    """The word of a print by which it is found."""
    return _anchor(words_in(text))


def _anchor(words: frozenset[str]) -> str:
    def key(word: str) -> tuple[bool, bool, bool, float]:
        return not word.isdigit(), word.isascii(), not _is_trivial(word), _nats(word)

    return max(sorted(words), key=key, default="")


def _runs_of(line: str) -> Iterator[tuple[str, ...]]:
    """The runs of words of each fingerprint of the line, the strictest fingerprint first."""
    for form in _forms(line):
        yield tuple(run for part in form.split(_GAP) if (run := words_of(part)).strip())


def _forms(line: str) -> Iterator[str]:
    """The line with _GAP for its variable parts, the strictest form first. The first form has no placeholders, paths
    and hashes; the second also no free-standing numbers with their units; the others also no quoted text and no names
    with a digit or dots in them. Those others exist for the whole line and for its first sentence, because what
    follows is often advice that changes between versions, and with and without the name of the exception that the line
    opens with (its module is always cut)."""
    for pattern in (_PLACEHOLDER, PATH, HASH):
        line = pattern.sub(_GAP, line)
    yield line
    line = _NUMBER.sub(_GAP, line)
    yield line
    first = _SENTENCE_END.split(line, maxsplit=1)[0]
    for part in dict.fromkeys((line, first)):
        part = _QUOTED.sub(_GAP, part)
        head = _EXCEPTION_HEAD.match(part)
        tail = _OWN_NAME.sub(_GAP, part[head.end() :] if head else part)
        yield f"{head[1]}: {tail}" if head else tail
        if head:
            yield tail


def _may_weigh_enough(text: str) -> bool:
    runs = tuple(f" {run} " for run in text.split(_BETWEEN))
    return math.fsum(_weight(word, 1.0) for word in _without_system_words(runs)) >= MIN_WEIGHT


def _weight(word: str, idf: float) -> float:
    if _is_trivial(word):
        return TRIVIAL_WEIGHT
    if word in python_words():
        return MIN_WORD_WEIGHT
    return max(MIN_WORD_WEIGHT, _rarity(word) * idf)


def _rarity(word: str) -> float:
    return float(rarity(np.array([_nats(word)]))[0])


@lru_cache(maxsize=1 << 17)
def _nats(word: str) -> float:
    return surprisal([word])[0]


def _without_system_words(runs: tuple[str, ...]) -> set[str]:
    return {word for run in runs for word in without_system_messages(run.split())}


def _is_trivial(word: str) -> bool:
    single = len(word) == 1 and not HAN[0] <= word <= HAN[2]
    return single or word.isdigit() or word in STOP_WORDS or word in type_names()
