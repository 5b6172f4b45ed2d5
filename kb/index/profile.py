"""What a record says, field by field: by this an answer is verified (`kb.search.evidence`).

The lexical half of an index knows which terms a record has, but not where: a word of the title says more than a word of
the fix, and a word that stands only under "Not to be confused with" speaks against the record. The dense half has one
vector for a whole symptom; verification compares sentence with sentence. A profile holds both for one record. It
depends on the record, the encoder and the shipped token table alone, so a build takes the profiles of unchanged
articles over as they are, and a search reads only those of the few issues that it verifies.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag

import numpy as np

from kb.arrays import Array, dump, load
from kb.errors import IndexCorrupt
from kb.index.passages import MAX_ALIASES, lexical_text, plain, without_code
from kb.logs.codes import Codes, particulars
from kb.logs.variables import mask
from kb.records import IssueRecord
from kb.text import Segmenter, clean, sentences, tokenise

__all__ = [
    "FRONT",
    "Field",
    "Profile",
    "Sentence",
    "Terms",
    "digests",
    "pack",
    "profile_sentences",
    "said",
    "terms_of",
    "unpack",
]

MAX_ERRORS, MAX_SYMPTOM, MAX_ALIAS, MAX_CONFUSABLE = 20, 24, 4, 20  # sentences of each kind that are kept
_LARGEST = 127  # of int8


class Field(IntFlag):
    """Where in a record a term stands. The numbers are in the index."""

    TITLE = 1
    SYMPTOM = 2
    """outside of the error lines, too"""
    ERRORS = 4
    ALIASES = 8
    BODY = 16
    """project, tags, cause, fix"""
    CONFUSABLE = 32
    """what the record says of problems that look alike"""
    NUMBER = 64
    """the term is a number"""


FRONT = Field.TITLE | Field.SYMPTOM | Field.ERRORS | Field.ALIASES
"""what a person meets; cause and fix are what only the article knows"""


class Sentence(IntEnum):
    """What a sentence of a profile is. The numbers are in the index."""

    FRONT = 0
    """of title, symptom, error lines or aliases"""
    CONFUSABLE = 1


@dataclass(eq=False, repr=False)
class Profile:
    """One record."""

    title: tuple[str, ...]
    """the terms of the title"""
    terms: Array
    """(n,) uint32, ascending: the digest of each term"""
    fields: Array
    """(n,) uint8: the fields that the term stands in"""
    tokens: Array
    """int32: the tokens of the front terms that are no numbers, in the shipped table, one term after the other"""
    starts: Array
    """(front terms + 1,) int32: where each term's tokens begin"""
    aliases: Array
    """int32: positions among those front terms, one alias after the other"""
    alias_starts: Array
    """(aliases + 1,) int32"""
    sentences: Array
    """(s, dim) float32, rows of norm 1 or 0 but for rounding: the product of two is off by less than 0.01"""
    kinds: Array
    """(s,) uint8: a `Sentence`"""
    particulars: Codes
    """codes, GPUs and libraries that the record names"""


def digests(terms: Iterable[str]) -> Array:
    """(terms,) uint32. Two of a question's and a record's terms have the same digest once in 100,000 questions."""
    return np.fromiter((zlib.crc32(term.encode("utf-8", "replace")) for term in terms), np.uint32)


def profile_sentences(record: IssueRecord) -> list[tuple[Sentence, str]]:
    """The sentences of a record that are encoded."""
    symptom = sentences(plain(without_code(record.symptom)), MAX_SYMPTOM)
    errors = [mask(clean(line))[:300] for line in record.errors[:MAX_ERRORS]]
    aliases = [part for alias in record.aliases[:MAX_ALIASES] for part in (alias, *sentences(alias, MAX_ALIAS))]
    front = dict.fromkeys([record.title, *symptom, *errors, *aliases])
    confusable = sentences(plain(record.confusable), MAX_CONFUSABLE)
    return [*((Sentence.FRONT, one) for one in front), *((Sentence.CONFUSABLE, one) for one in confusable)]


@dataclass(eq=False, repr=False)
class Terms:
    """The terms of one record, on the way into its profile and into the inverted index."""

    counts: Counter[str]
    """how often each occurs; those of "Not to be confused with" do not count"""
    title: list[str]
    aliases: list[list[str]]
    fields: dict[str, int]
    """term -> the fields it stands in, ordered by digest"""

    @property
    def front(self) -> list[str]:
        """Those that a person meets and that are no numbers."""
        front, number = int(FRONT), int(Field.NUMBER)
        return [term for term, field in self.fields.items() if field & front and not field & number]


def terms_of(record: IssueRecord, segmenter: Segmenter) -> Terms:
    def terms(*texts: str | None) -> list[str]:
        return tokenise(clean("\n".join(text for text in texts if text)), segmenter)

    aliases = [terms(alias) for alias in record.aliases[:MAX_ALIASES]]
    parts = {
        Field.TITLE: terms(record.title),
        Field.SYMPTOM: terms(record.symptom),
        Field.ERRORS: terms(*record.errors),
        Field.ALIASES: [term for alias in aliases for term in alias],
        Field.BODY: terms(record.project, *record.tags, record.cause, record.fix),
        Field.CONFUSABLE: terms(record.confusable),
    }
    counts: Counter[str] = Counter()
    fields: dict[str, int] = {}
    for field, found in parts.items():
        bit = int(field)  # a flag's own operators take ten times as long
        if field is not Field.CONFUSABLE:
            counts.update(found)
        for term in set(found):
            fields[term] = fields.get(term, 0) | bit
    for term in filter(str.isdigit, fields):
        fields[term] |= int(Field.NUMBER)
    names = sorted(fields)
    names = [names[i] for i in np.argsort(digests(names), kind="stable").tolist()]
    return Terms(counts, parts[Field.TITLE], aliases, {name: fields[name] for name in names})


def pack(
    record: IssueRecord, terms: Terms, tokens: dict[str, list[int]], vectors: Array, kinds: Sequence[Sentence]
) -> bytes:
    """The profile as bytes. `tokens`: of each front term in the shipped table; `vectors`, `kinds`: of the sentences."""
    front = {term: i for i, term in enumerate(terms.front)}
    aliases = [[front[term] for term in dict.fromkeys(alias) if term in front] for alias in terms.aliases]
    narrow, scales = _narrowed(vectors)
    return dump(
        {
            "title": _bytes(dict.fromkeys(terms.title)),
            "particulars": _bytes(" ".join(pair) for pair in sorted(particulars(lexical_text(record)))),
            "terms": digests(terms.fields),
            "fields": np.fromiter(terms.fields.values(), np.uint8, len(terms.fields)),
            "tokens": np.array([token for term in front for token in tokens[term]], np.int32),
            "starts": np.cumsum([0, *(len(tokens[term]) for term in front)], dtype=np.int32),
            "aliases": np.array([i for alias in aliases for i in alias], np.int32),
            "alias_starts": np.cumsum([0, *map(len, aliases)], dtype=np.int32),
            "sentences": narrow,
            "scales": scales,
            "kinds": np.array(kinds, np.uint8),
        }
    )


def unpack(data: bytes, path: str) -> Profile:
    """Raises IndexCorrupt, which names `path`."""
    found = load(data, path)
    try:
        title, named = _lines(found.pop("title")), _lines(found.pop("particulars"))
        pairs = (line.partition(" ") for line in named)
        found["sentences"] = _widened(found["sentences"], found.pop("scales"))
        profile = Profile(title, particulars=frozenset((kind, name) for kind, _, name in pairs), **found)
        agrees = _agrees(profile)
    except (KeyError, TypeError, ValueError, IndexError):
        agrees = False
    if not agrees:
        raise IndexCorrupt("this profile does not hold what it should", path=path, hint="`kb build` writes it anew")
    return profile


def _narrowed(vectors: Array) -> tuple[Array, Array]:
    """Vectors are most of a base: (s, dim) int8, and (s,) float32, the unit of each row: a 127th of its largest number.
    What a product of two vectors loses by it is less than 0.01."""
    scales = np.abs(vectors).max(axis=1, initial=0).astype(np.float32) / np.float32(_LARGEST)
    return np.rint(vectors / np.where(scales > 0, scales, 1)[:, None]).astype(np.int8), scales


def _widened(narrow: Array, scales: Array) -> Array:
    """(s, dim) float32. Raises ValueError for what `_narrowed` does not make of rows of norm 1 or 0."""
    types = [narrow.dtype.str, scales.dtype.str]
    if types != ["|i1", "<f4"] or narrow.shape[:1] != scales.shape or not ((scales >= 0) & (scales < 0.01)).all():
        raise ValueError
    widened: Array = narrow * scales[:, None]
    return widened


def said(arrays: Mapping[str, Array]) -> frozenset[int]:
    """Of a profile's arrays, the digests of the terms that stand in the record outside of "Not to be confused with"."""
    fields = arrays["fields"] & np.uint8(~(Field.CONFUSABLE | Field.NUMBER) & 0xFF)
    return frozenset(arrays["terms"][fields > 0].tolist())


def _agrees(one: Profile) -> bool:
    """Does what a search goes by stay inside of the arrays?"""
    types = [array.dtype.str for array in (one.terms, one.fields, one.tokens, one.aliases, one.kinds)]
    return (
        types == ["<u4", "|u1", "<i4", "<i4", "|u1"]
        and one.terms.shape == one.fields.shape
        and _starts(one.starts, len(one.tokens))
        and _starts(one.alias_starts, len(one.aliases))
        and bool(((one.aliases >= 0) & (one.aliases < len(one.starts) - 1)).all())
        and one.sentences.ndim == 2
        and one.kinds.shape == (len(one.sentences),)
    )


def _starts(starts: Array, end: int) -> bool:
    return bool(starts[0] == 0 and starts[-1] == end and (np.diff(starts) >= 0).all())


def _bytes(lines: Iterable[str]) -> Array:
    return np.frombuffer("\n".join(lines).encode("utf-8", "replace"), np.uint8)


def _lines(data: Array) -> tuple[str, ...]:
    text = bytes(data).decode("utf-8")
    return tuple(text.split("\n")) if text else ()
