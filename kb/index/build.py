"""Builds the index of a folder of articles. Only articles that changed since the last build are parsed and encoded.

The index depends only on the bytes of the articles, not on the order of reading and not on an earlier index: after
adding, editing, renaming and deleting it equals, byte for byte, an index that is built from nothing (with the default
encoder; the last bits of a transformer's vectors depend on its batches).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import kb
from kb.arrays import Array
from kb.articles import is_draft
from kb.articles.assumed import Assumed
from kb.articles.folder import Skipped, list_articles, read_article
from kb.articles.scaffold import PLACEHOLDER
from kb.articles.source import is_readme
from kb.encoders import Encoder, open_encoder, surprisal, term_table
from kb.errors import ArticleError, IndexCorrupt, IndexMissing, KbError
from kb.index import faiss as store_faiss
from kb.index import snapshot
from kb.index.batch import Batch
from kb.index.bm25 import Bag, postings_of
from kb.index.encoded import identity
from kb.index.locate import READS_ARTICLES
from kb.index.passages import lexical_text, views
from kb.index.profile import Sentence, Terms, pack, profile_sentences, terms_of
from kb.index.store import Views
from kb.index.twins import Unlike, join_twins, numbered_by_place
from kb.records import Article, IssueRecord, Lang
from kb.scraped import parse
from kb.text import Segmenter, clean, dictionary_for

__all__ = ["BuildFailed", "BuildReport", "Progress", "build", "code"]

_ENCODE_TEXTS = 512  # texts between two movements of the progress bar

Progress = Callable[[str, int, int], None]
"""stage ("parse" or "encode"), how many are done, of how many"""


@dataclass(frozen=True, slots=True)
class BuildReport:
    snapshot: str
    articles: int
    issues: int
    records: int
    parsed: int
    """articles that were new or changed; the others were taken over from the old index"""
    removed: int
    skipped: tuple[Skipped, ...]
    bad: tuple[ArticleError, ...]
    """articles that cannot be read; empty unless `keep_going`"""
    without_records: tuple[str, ...]
    """articles in which no issue was found"""
    drafts: tuple[str, ...]
    """articles left out because their front matter says `status: draft`"""
    unlike: tuple[Unlike, ...]
    """pairs of articles whose issues are not the same ones in the two languages (`kb.index.twins`)"""
    took_s: float


class BuildFailed(ArticleError):
    """Some articles cannot be read; `bad` lists all of them. The old index is untouched."""

    def __init__(self, bad: Sequence[ArticleError], folder: Path) -> None:
        super().__init__(
            f"{len(bad)} article{'s' * (len(bad) > 1)} cannot be read; the index is as it was",
            path=folder,
            hint="mend them; kb build without --no-keep-going leaves them out",
        )
        self.bad: tuple[ArticleError, ...] = tuple(bad)


@dataclass
class _Part:
    """What one article contributes."""

    records: Sequence[IssueRecord] = ()
    bags: Sequence[Bag] = ()
    views: list[tuple[Array, Array]] = field(default_factory=list)
    """for each record (views, dim) float32, and of which kind each is"""
    profiles: Sequence[bytes] = ()


def build(
    articles: Path,
    index: Path,
    *,
    encoder: Encoder | str | None = None,
    keep_going: bool = False,
    drafts: bool = False,
    projects: Mapping[str, str] | None = None,
    lang: Lang | None = None,
    progress: Progress | None = None,
) -> BuildReport:
    """Publishes an index of the articles below `articles` in the folder `index`.

    Drafts are left out unless `drafts`: articles with `status: draft`, and those with a placeholder of `kb new`.
    `projects`: folder or pattern -> the project of the articles there that name none (`kb.articles.assumed`); `lang`:
    of articles that do not state theirs. Raises BuildFailed with every article that cannot be read (unless `keep_going`
    and there is one that can), IndexBusy, IndexWriteFailed, EncoderUnavailable. After any error the old index is as it
    was.
    """
    started = time.perf_counter()
    paths, skipped = list_articles(articles)
    assumed = Assumed(projects or {}, lang)
    engine = open_encoder(encoder) if encoder is None or isinstance(encoder, str) else encoder
    with snapshot.locked(index):
        old = _old_parts(index, engine, assumed)
        parts: dict[str, _Part] = {}
        shas: dict[str, str] = {}
        fresh: list[Article] = []
        bad: list[ArticleError] = []
        left: list[str] = []
        left_open: list[Skipped] = []
        readmes: list[Skipped] = []
        for number, path in enumerate(paths):
            try:
                data = read_article(articles, path)
                shas[path] = hashlib.sha256(data).hexdigest()
                if not drafts and is_draft(data):
                    left.append(path)
                elif not drafts and (unwritten := PLACEHOLDER.search(data.decode("utf-8", "replace"))):
                    left_open.append(Skipped(path, f"{unwritten[0]} is left to write; kb check finds all of it"))
                elif path in old.parts and old.shas[path] == shas[path]:
                    parts[path] = old.parts[path]
                else:
                    article = parse(data, path=path, **assumed.of(path))
                    if is_readme(path) and not article.records:
                        readmes.append(Skipped(path, "a README without an issue"))
                    else:
                        fresh.append(article)
            except ArticleError as error:
                bad.append(error)
            if progress:
                progress("parse", number + 1, len(paths))
        parts.update(_contributions(fresh, engine, progress))
        unreadable = {one.path for one in bad}
        for twin in _duplicates(parts):
            bad.append(twin)
            unreadable.add(twin.path)
        kept = [path for path in sorted(parts) if path not in unreadable]
        if bad and not (keep_going and kept):
            raise BuildFailed(bad, articles)
        joined, unlike = join_twins({path: parts[path].records for path in kept})
        for path in kept:
            parts[path].records = joined[path]
        han = {**old.han, **dictionary_for(_text(record) for article in fresh for record in article.records)}
        manifest = {"folder": articles.resolve().name, "encoder": identity(engine), "assumed": assumed.as_dict()}
        batch = _batch([(path, shas[path], parts[path]) for path in kept], han, manifest, engine.dim)
        snapshot_id = store_faiss.publish(index, batch)
    return BuildReport(
        snapshot=snapshot_id,
        articles=len(kept),
        issues=len({record.issue for record in batch.records}),
        records=len(batch.records),
        parsed=len(fresh),
        removed=len(set(old.shas) - (set(paths) - set(left) - {one.path for one in (*left_open, *readmes)})),
        skipped=(*skipped, *left_open, *readmes),
        bad=tuple(bad),
        without_records=tuple(path for path in kept if not parts[path].records),
        drafts=tuple(left),
        unlike=tuple(unlike),
        took_s=time.perf_counter() - started,
    )


@dataclass
class _Old:
    parts: dict[str, _Part] = field(default_factory=dict)
    shas: dict[str, str] = field(default_factory=dict)
    han: dict[str, float] = field(default_factory=dict)


def _old_parts(index: Path, encoder: Encoder, assumed: Assumed) -> _Old:
    """What the present index holds, by article; nothing when there is none, or another program or encoder made it, or
    something else was assumed."""
    old = _Old()
    try:
        store = store_faiss.FaissStore(index)
        manifest = store.header.manifest
        made = (manifest.get("code"), manifest.get("encoder"), manifest.get("assumed"))
        if made != (code(), identity(encoder), assumed.as_dict()):
            return old
        contents = store.contents()
        views, old.han = contents.views, contents.han
        bounds = np.searchsorted(views.rows, np.arange(len(contents.records) + 1)).tolist()
        row = 0
        for path, sha, count in store.articles():
            rows = slice(row, row + count)
            spans = [slice(*span) for span in pairwise(bounds[row : row + count + 1])]
            views_of = [(views.vectors[span], views.kinds[span]) for span in spans]
            records = numbered_by_place(contents.records[rows])  # the twin may be another one now
            old.parts[path] = _Part(records, contents.bags[rows], views_of, contents.profiles[rows])
            old.shas[path] = sha
            row += count
    except (IndexMissing, IndexCorrupt, FileNotFoundError):
        return _Old()  # derived data: built anew from the articles
    return old


def _contributions(fresh: Sequence[Article], encoder: Encoder, progress: Progress | None) -> dict[str, _Part]:
    records = [record for article in fresh for record in article.records]
    # A text is split by the words of its own characters, so that it is split alike among whatever other texts.
    segmenter = Segmenter(dictionary_for(f"{_text(record)}\n{clean(record.confusable)}" for record in records))
    texts = [views(record) for record in records]
    told = [profile_sentences(record) for record in records]
    # Many sentences are views, too: each distinct text is encoded once.
    distinct = list(
        dict.fromkeys([text for one in texts for _, text in one] + [text for one in told for _, text in one])
    )
    number = {text: i for i, text in enumerate(distinct)}
    chunks: list[Array] = []
    for at in range(0, len(distinct), _ENCODE_TEXTS):
        chunks.append(encoder.encode(distinct[at : at + _ENCODE_TEXTS], kind="passage"))
        if progress:
            progress("encode", min(at + _ENCODE_TEXTS, len(distinct)), len(distinct))
    vectors = np.concatenate(chunks) if chunks else np.zeros((0, encoder.dim), np.float32)
    if not np.isfinite(vectors).all():
        raise KbError(f"the encoder {encoder.name} made vectors that are no numbers", hint="choose another --encoder")
    terms = [terms_of(record, segmenter) for record in records]
    packed = _profiles(records, terms, told, [vectors[[number[text] for _, text in group]] for group in told])
    parts: dict[str, _Part] = {}
    row = 0
    for article in fresh:
        rows = slice(row, row + len(article.records))
        parts[article.path] = _Part(
            article.records,
            [dict(one.counts) for one in terms[rows]],
            [
                (vectors[[number[text] for _, text in group]], np.array([kind for kind, _ in group], np.int32))
                for group in texts[rows]
            ],
            packed[rows],
        )
        row += len(article.records)
    return parts


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


def _text(record: IssueRecord) -> str:
    return clean(lexical_text(record))


def _duplicates(parts: dict[str, _Part]) -> Iterator[ArticleError]:
    """Articles with an issue that another one has in the same language. Ids are compared in any letter case. The first
    path in order is the one that is kept."""
    seen: dict[str, str] = {}
    for path in sorted(parts):
        for record in parts[path].records:
            first = seen.setdefault(record.id.casefold(), path)
            if first != path:
                yield ArticleError(
                    f"{record.id} is already in {first}: the two names give the same ids",
                    path=path,
                    hint="rename one of the two files",
                )
                break


def _batch(
    kept: Sequence[tuple[str, str, _Part]], han: dict[str, float], manifest: Mapping[str, Any], dim: int
) -> Batch:
    records = [record for _, _, part in kept for record in part.records]
    groups = [group for _, _, part in kept for group in part.views]
    bags = [one for _, _, part in kept for one in part.bags]
    postings = postings_of(bags)
    views = Views(
        np.concatenate([vectors for vectors, _ in groups] or [np.zeros((0, dim), np.float32)]),
        np.repeat(np.arange(len(records), dtype=np.int32), [len(kinds) for _, kinds in groups]),
        np.concatenate([kinds for _, kinds in groups] or [np.zeros(0, np.int32)]),
    )
    return Batch(
        records=records,
        bags=bags,
        postings=postings,
        views=views,
        profiles=[one for _, _, part in kept for one in part.profiles],
        surprisal=np.array(surprisal(postings.terms), np.float32),
        han=han,
        articles=[(path, sha, len(part.records)) for path, sha, part in kept],
        manifest={"kb": kb.__version__, "code": code(), **manifest},
    )


@lru_cache(maxsize=1)
def code() -> str:
    """Identifies the program that turns articles into an index: a digest of its sources and of the versions of its
    parsers. An index by another program is not reused but built from nothing."""
    root = Path(kb.__file__).parent
    rooms = [file for room in READS_ARTICLES for file in sorted((root / room).glob("*.py"))]
    data = [root / "scraped" / name for name in ("words.json", "tagger.safetensors")]
    files = [root / "arrays.py", root / "records.py", *rooms, *data]
    digest = hashlib.sha256(repr([(name, version(name)) for name in ("jieba", "markdown-it-py", "pyyaml")]).encode())
    for file in files:
        digest.update(file.read_bytes() if file.exists() else kb.__version__.encode())
    return digest.hexdigest()[:16]
