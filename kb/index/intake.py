"""Here are the paths of some articles; give what an index keeps of them.

Articles are taken in by groups: all those with one slug, that is, the two languages of one article. Which issues of
them are the same is decided within the group (`kb.index.twins`), and what a group contributes depends on nothing else;
so groups are read in several processes, and an index takes over every group that did not change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from kb.arrays import Array
from kb.articles import is_draft
from kb.articles.assumed import Assumed
from kb.articles.folder import Skipped, read_article
from kb.articles.scaffold import PLACEHOLDER
from kb.articles.source import is_readme, slug_of
from kb.encoders import Encoder, open_encoder, surprisal, term_table
from kb.errors import ArticleError, KbError
from kb.index.chunk import Chunk
from kb.index.faults import title_key
from kb.index.passages import lexical_text, views
from kb.index.prints import text_of_prints
from kb.index.profile import Sentence, Terms, pack, profile_sentences, terms_of
from kb.index.twins import Unlike, join_twins
from kb.records import Article, IssueRecord
from kb.scraped import parse
from kb.text import Segmenter, clean, dictionary_for

__all__ = ["Intake", "Taken", "groups_of", "key_of"]

_ENCODE_TEXTS = 512
_MOST_COUNTED = np.iinfo(np.uint16).max


@dataclass
class Taken:
    """What came of some groups of articles."""

    chunk: Chunk
    bad: list[ArticleError] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    drafts: list[str] = field(default_factory=list)
    unlike: list[Unlike] = field(default_factory=list)


@lru_cache(maxsize=1 << 18)
def key_of(path: str) -> str:
    """What the articles of one group share: the slug, in any letter case. What cannot be a slug stands alone: reading
    it says why."""
    try:
        return slug_of(path).casefold()
    except ArticleError:
        return f"\0{path}"


def groups_of(paths: Iterable[str]) -> dict[str, list[str]]:
    """The paths of the articles of each group, sorted; by the groups' keys, sorted."""
    found: dict[str, list[str]] = {}
    for path in sorted(paths):
        found.setdefault(key_of(path), []).append(path)
    return {key: found[key] for key in sorted(found)}


class Intake:
    """Reads articles of one folder for one encoder. A process has its own."""

    def __init__(self, folder: Path, encoder: Encoder, assumed: Assumed, *, drafts: bool, many: bool) -> None:
        """`many`: there are so many articles that the whole Chinese dictionary is worth its loading."""
        self._folder, self._encoder, self._assumed, self._drafts, self._many = folder, encoder, assumed, drafts, many

    def __reduce__(self) -> tuple[Callable[..., Intake], tuple[Any, ...]]:
        return _again, (self._folder, self._encoder.name, self._assumed, self._drafts, self._many)

    def take(self, groups: Sequence[Sequence[str]]) -> Taken:
        """Raises KbError when the encoder makes vectors that are no numbers. Articles that cannot be read are told."""
        taken = Taken(chunk=_EMPTY)
        shas: dict[str, str] = {}
        joined: list[Article] = []
        for group in groups:
            found = self._parsed(group, taken, shas)
            records, unlike = join_twins({article.path: article.records for article in found})
            taken.unlike += unlike
            joined += [_with(article, records[article.path]) for article in found]
        taken.chunk = self._chunk(joined, shas)
        return taken

    def is_left_out(self, path: str) -> bool:
        """Is this a draft, or an article that is not written to its end? False for what cannot be read."""
        try:
            data = read_article(self._folder, path)
        except ArticleError:
            return False
        return not self._drafts and (is_draft(data) or bool(PLACEHOLDER.search(data.decode("utf-8", "replace"))))

    def _parsed(self, group: Sequence[str], taken: Taken, shas: dict[str, str]) -> list[Article]:
        found: list[Article] = []
        seen: dict[str, str] = {}
        for path in group:
            try:
                data = read_article(self._folder, path)
                shas[path] = hashlib.sha256(data).hexdigest()
                if not self._drafts and is_draft(data):
                    taken.drafts.append(path)
                elif not self._drafts and (unwritten := PLACEHOLDER.search(data.decode("utf-8", "replace"))):
                    reason = f"{unwritten[0]} is left to write; kb check finds all of it"
                    taken.skipped.append(Skipped(path, reason))
                else:
                    article = parse(data, path=path, **self._assumed.of(path))
                    if is_readme(path) and not article.records:
                        taken.skipped.append(Skipped(path, "a README without an issue"))
                    else:
                        found.append(_unlike_others(article, seen))
            except ArticleError as error:
                taken.bad.append(error)
        return found

    def _chunk(self, articles: Sequence[Article], shas: Mapping[str, str]) -> Chunk:
        records = [record for article in articles for record in article.records]
        han, segmenter = self._words_of(records)
        terms = [terms_of(record, segmenter) for record in records]
        texts = [views(record) for record in records]
        told = [profile_sentences(record) for record in records]
        # Many sentences are views, too: each distinct text is encoded once.
        every = [text for one in texts for _, text in one] + [text for one in told for _, text in one]
        number = {text: i for i, text in enumerate(dict.fromkeys(every))}
        vectors = self._encoded(list(number))
        names, bag_terms, counts = _numbered(terms)
        return Chunk(
            articles=[(article.path, shas[article.path], len(article.records)) for article in articles],
            ids=[record.id for record in records],
            lines=[_line(record.as_dict()) for record in records],
            profiles=_profiles(records, terms, told, [vectors[[number[text] for _, text in one]] for one in told]),
            titles=np.fromiter((title_key(record) for record in records), np.uint64, len(records)),
            subjects=[sorted({name.casefold() for name in (r.project, *r.tags) if name}) for r in records],
            projects=[record.project or "" for record in records],
            views=vectors[[number[text] for one in texts for _, text in one]].astype(np.float16),
            kinds=np.array([kind for one in texts for kind, _ in one], np.int32),
            view_counts=np.array([len(one) for one in texts], np.int64),
            terms=names,
            surprisal=np.array(surprisal(names), np.float32),
            log_p=np.array([han.get(name, 0.0) for name in names], np.float32),
            bag_counts=np.array([len(one.counts) for one in terms], np.int64),
            bag_terms=bag_terms,
            counts=counts,
            prints=[text_of_prints(record) for record in records],
        )

    def _encoded(self, texts: Sequence[str]) -> Array:
        starts = range(0, len(texts), _ENCODE_TEXTS)
        blocks = [self._encoder.encode(texts[at : at + _ENCODE_TEXTS], kind="passage") for at in starts]
        vectors = np.concatenate([np.zeros((0, self._encoder.dim), np.float32), *blocks])
        if not np.isfinite(vectors).all():
            raise KbError(
                f"the encoder {self._encoder.name} made vectors that are no numbers", hint="choose another --encoder"
            )
        return vectors

    def _words_of(self, records: Sequence[IssueRecord]) -> tuple[Mapping[str, float], Segmenter]:
        """The Chinese words of the records. A text is split by the words of its own characters, so that it is split
        alike among whatever other texts."""
        if self._many:
            return self._dictionary
        words = dictionary_for(clean(f"{lexical_text(record)}\n{record.confusable}") for record in records)
        return words, Segmenter(words)

    @cached_property
    def _dictionary(self) -> tuple[Mapping[str, float], Segmenter]:
        words = dictionary_for()
        ordered = sorted(words)
        return words, Segmenter.from_vocabulary([(ordered, [words[word] for word in ordered])])


def _again(folder: Path, encoder: str, assumed: Assumed, drafts: bool, many: bool) -> Intake:
    """The same in another process, with an encoder of its own."""
    return Intake(folder, open_encoder(encoder), assumed, drafts=drafts, many=many)


def _unlike_others(article: Article, seen: dict[str, str]) -> Article:
    """The article, when no other one before it has an issue of the same name in the same language; ids are compared in
    any letter case. Raises ArticleError."""
    ids = [record.id.casefold() for record in article.records]
    first = next((seen[one] for one in ids if one in seen), None)
    if first is not None:
        record = next(record for record in article.records if record.id.casefold() in seen)
        raise ArticleError(
            f"{record.id} is already in {first}: the two names give the same ids",
            path=article.path,
            hint="rename one of the two files",
        )
    seen.update(dict.fromkeys(ids, article.path))
    return article


def _with(article: Article, records: Sequence[IssueRecord]) -> Article:
    return article if records is article.records else replace(article, records=tuple(records))


def _numbered(terms: Sequence[Terms]) -> tuple[list[str], Array, Array]:
    """The distinct terms, and for each record the positions of its terms among them and how often each occurs."""
    number: dict[str, int] = {}
    places = [number.setdefault(term, len(number)) for one in terms for term in one.counts]
    counts = np.array([count for one in terms for count in one.counts.values()], np.int64)
    return list(number), np.array(places, np.int32), counts.clip(max=_MOST_COUNTED).astype(np.uint16)


def _profiles(
    records: Sequence[IssueRecord],
    terms: Sequence[Terms],
    told: Sequence[Sequence[tuple[Sentence, str]]],
    vectors: Sequence[Array],
) -> list[bytes]:
    """The profile of each record: of its terms, and of its sentences and their vectors."""
    distinct = list({term for one in terms for term in one.front})
    tokens = dict(zip(distinct, term_table().tokens(distinct), strict=True))
    return [
        pack(record, one, tokens, of, [kind for kind, _ in sentences])
        for record, one, sentences, of in zip(records, terms, told, vectors, strict=True)
    ]


def _line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


def _nothing(dtype: type[np.generic], *shape: int) -> Array:
    return np.zeros(shape or (0,), dtype)


_EMPTY = Chunk(
    articles=(),
    ids=(),
    lines=(),
    profiles=(),
    titles=_nothing(np.uint64),
    subjects=(),
    projects=(),
    views=_nothing(np.float16, 0, 0),
    kinds=_nothing(np.int32),
    view_counts=_nothing(np.int64),
    terms=(),
    surprisal=_nothing(np.float32),
    log_p=_nothing(np.float32),
    bag_counts=_nothing(np.int64),
    bag_terms=_nothing(np.int32),
    counts=_nothing(np.uint16),
    prints=(),
)
