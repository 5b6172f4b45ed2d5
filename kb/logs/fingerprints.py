"""Fingerprints: the words by which a line of a log is recognised as the error line of a known issue.

Two runs of one failure print the same words around other numbers, paths and names. So an error line becomes a few
fingerprints: runs of words that must stand unbroken and in order, with any words between the runs. Each fingerprint of
a line leaves more open than the one before (`kb.logs.variables.forms`).

In: the records of a base. Out: for a line, the fingerprints that match it, each with a weight and with the issues that
print such a line. The weight says how far a fingerprint can be trusted alone. It is counted, not listed by hand: a word
weighs more the fewer issues use it and the rarer it is in technical text. Words that the interpreter or the operating
system prints around every failure weigh next to nothing.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kb.encoders import rarity, surprisal
from kb.logs.everyones import python_words, system_messages, type_names
from kb.logs.prefix import strip_prefix
from kb.logs.variables import HASH, PATH
from kb.logs.words import words_of
from kb.records import IssueRecord
from kb.text import HAN, STOP_WORDS, clean

__all__ = ["Fingerprint", "Fingerprints"]

MAX_LINE_CHARS = 1000  # of an error line; a longer one is a listing
MAX_GAP_CHARS = 600  # between two runs: a path, a list of names
MIN_WEIGHT = 0.5  # a fingerprint below this occurs everywhere and is dropped
MIN_WORD_WEIGHT = 0.15  # of the most common word: its place in the line still says something
TRIVIAL_WEIGHT = 0.05  # of a digit, a single letter, a stop word, the name of a built-in exception
_MAX_STARTS = 8  # the first run of a fingerprint may occur in a line more than once


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
    """its most informative word, in Latin letters if it has one"""
    weight: float
    """the sum of its words' weights, each from 0 (used everywhere) to 1 (used in one issue only)"""
    issues: frozenset[str]
    """every issue with an error line that it matches"""

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


class Fingerprints:
    """The fingerprints of a base, by anchor: a line is compared only with those whose anchor it holds."""

    def __init__(self, records: Sequence[IssueRecord]) -> None:
        printed: dict[str, set[str]] = defaultdict(set)
        for record in records:
            for line in record.errors:
                printed[strip_prefix(clean(line)[:MAX_LINE_CHARS]).strip()].add(record.issue)
        found = {runs: None for line in printed for runs in _runs_of(line)}
        weights = _word_weights({word for runs in found for run in runs for word in run.split()}, records)
        drafts: dict[str, list[Fingerprint]] = defaultdict(list)
        for runs in found:
            words = frozenset(word for run in runs for word in run.split())
            weight = sum(map(weights.__getitem__, _without_system_words(runs)))
            if weight >= MIN_WEIGHT:
                anchor = max(sorted(words), key=lambda word: (not word.isdigit(), word.isascii(), weights[word]))
                drafts[anchor].append(Fingerprint(runs, words, anchor, weight, frozenset()))
        issues: dict[tuple[str, ...], set[str]] = defaultdict(set)
        for line, of in printed.items():
            for fingerprint in _matching(drafts, words_of(line)):
                issues[fingerprint.runs] |= of
        self._by_anchor = {
            anchor: [replace(m, issues=frozenset(issues[m.runs])) for m in fingerprints]
            for anchor, fingerprints in drafts.items()
        }

    def __iter__(self) -> Iterator[Fingerprint]:
        for fingerprints in self._by_anchor.values():
            yield from fingerprints

    def matching(self, words: str) -> list[Fingerprint]:
        """Those that match the line, as `words_of` returns it; the highest weight first."""
        return sorted(
            _matching(self._by_anchor, words), key=lambda fingerprint: (-fingerprint.weight, fingerprint.runs)
        )


def _matching(by_anchor: Mapping[str, list[Fingerprint]], words: str) -> Iterator[Fingerprint]:
    present = set(words.split())
    for anchor in present & by_anchor.keys():
        for fingerprint in by_anchor[anchor]:
            if fingerprint.words <= present and fingerprint.matches(words):
                yield fingerprint


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


def _word_weights(words: Iterable[str], records: Sequence[IssueRecord]) -> dict[str, float]:
    """The weight of each word, 0 to 1: its idf over the issues of this base as a share of the highest possible one,
    times its rarity in technical text (`kb.encoders.surprisal`)."""
    texts: dict[str, set[str]] = defaultdict(set)
    for record in records:
        text = "\n".join((record.title, record.symptom, record.cause, record.fix))
        texts[record.issue].update(words_of(clean(text)).split())
    spread = Counter(word for text in texts.values() for word in text)
    most = math.log((len(texts) + 1) / 1.5)
    ordered = sorted(words)
    weights = {}
    rarities = rarity(np.array(surprisal(ordered)))
    for word, rare in zip(ordered, rarities.tolist(), strict=True):
        idf = math.log((len(texts) + 1) / (spread[word] + 0.5)) / most
        usual = MIN_WORD_WEIGHT if word in python_words() else max(MIN_WORD_WEIGHT, rare * min(1.0, idf))
        weights[word] = TRIVIAL_WEIGHT if _is_trivial(word) else usual
    return weights


def _without_system_words(runs: tuple[str, ...]) -> set[str]:
    return {word for run in runs for word in system_messages().sub("", run).split()}


def _is_trivial(word: str) -> bool:
    single = len(word) == 1 and not HAN[0] <= word <= HAN[2]
    return single or word.isdigit() or word in STOP_WORDS or word in type_names()
