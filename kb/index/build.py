"""Builds the index of a folder of articles. Only articles that changed since the last build are parsed and encoded.

A base of up to `pieces.ONE_UP_TO` records depends only on the bytes of its articles, not on the order of reading and
not on an earlier index: after adding, editing, renaming and deleting it equals, byte for byte, an index that is built
from nothing (with the default encoder; the last bits of a transformer's vectors depend on its batches). A larger one
answers as if it were; its files are the same again after `compact`.

    list -> what changed (`hashes`, `pieces`) -> read it (`intake`, in several processes) -> write segments (`writer`)
    -> join small ones (`pieces`) -> publish (`snapshot`)
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import kb
from kb.arrays import dump
from kb.articles.assumed import Assumed
from kb.articles.folder import Skipped, list_articles
from kb.encoders import DEFAULT, Encoder, open_encoder
from kb.errors import ArticleError, KbError
from kb.index import mapped, pieces, processes, snapshot, threads
from kb.index.encoded import identity
from kb.index.faiss import named
from kb.index.hashes import Hashes
from kb.index.intake import Intake, Taken, groups_of
from kb.index.interrupts import held_back
from kb.index.locate import READS_ARTICLES
from kb.index.pieces import Piece
from kb.index.same import same_faults
from kb.index.snapshot import Entry
from kb.index.twins import Unlike
from kb.index.writer import SegmentWriter
from kb.records import Lang

__all__ = ["BuildFailed", "BuildReport", "Progress", "build", "code", "publish"]

_AT_ONCE = 64  # articles that are read together: a movement of the progress bar
_WORTH_PROCESSES = 1000  # articles; fewer are read sooner than a process has started
_WORTH_KEEPING = 1000  # records that an interrupted build has read: some seconds of work

Progress = Callable[[str, int, int], None]
"""stage ("read" or "join"), how many are done, of how many"""


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
    """of the articles that were read, the pairs whose issues are not the same ones in the two languages
    (`kb.index.twins`)"""
    segments: int
    recall: float | None
    """of the ten records nearest to a vector, the share that FAISS proposes, in the segment where it is least; None
    where all vectors are compared"""
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
class _Found:
    """What reading the new and changed articles came to."""

    read: int = 0
    parsed: int = 0
    bad: list[ArticleError] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    drafts: list[str] = field(default_factory=list)
    unlike: list[Unlike] = field(default_factory=list)

    def add(self, taken: Taken, hashes: Hashes | None = None) -> None:
        chunk = taken.chunk
        self.read += len(chunk.articles) + len(taken.bad) + len(taken.skipped) + len(taken.drafts)
        self.parsed += len(chunk.articles)
        if hashes is not None:
            for path, digest, _ in chunk.articles:
                hashes.note(path, digest)
        self.bad += taken.bad
        self.skipped += taken.skipped
        self.drafts += taken.drafts
        self.unlike += taken.unlike


def build(
    articles: Path,
    index: Path,
    *,
    encoder: Encoder | str | None = None,
    keep_going: bool = False,
    drafts: bool = False,
    compact: bool = False,
    projects: Mapping[str, str] | None = None,
    lang: Lang | None = None,
    progress: Progress | None = None,
) -> BuildReport:
    """Publishes an index of the articles below `articles` in the folder `index`.

    Drafts are left out unless `drafts`: articles with `status: draft`, and those with a placeholder of `kb new`.
    `compact`: joins all segments of a large base. `projects`: folder or pattern -> the project of the articles there
    that name none (`kb.articles.assumed`); `lang`: of articles that do not state theirs. Raises BuildFailed with every
    article that cannot be read (unless `keep_going` and there is one that can), IndexBusy, IndexWriteFailed,
    EncoderUnavailable. After any error the old index is as it was; what an interrupted build has finished is taken up
    by the next one.
    """
    started = time.perf_counter()
    paths, skipped = list_articles(articles)
    assumed = Assumed(projects or {}, lang)
    engine = open_encoder(encoder) if encoder is None or isinstance(encoder, str) else encoder
    made_by = {"code": code(), "encoder": identity(engine), "assumed": assumed.as_dict()}
    with snapshot.locked(index), _tidy(index):
        held = pieces.last_snapshot(index, made_by)
        had_drafts = not drafts and _has_drafts(index)
        indexed = {path for piece in held for n, (path, _, _) in enumerate(piece.articles) if n not in piece.dead}
        noted = {**made_by, "drafts": drafts}
        begun = pieces.unfinished(index, noted)
        held += begun
        intake = Intake(articles, engine, assumed, drafts=drafts, many=len(paths) >= _WORTH_PROCESSES)
        hashes = Hashes(articles, index, paths)
        found = _Found()
        changed = _changed(paths, held, hashes, intake, found, had_drafts=had_drafts)
        in_pool = isinstance(encoder, str | None) and engine.name == DEFAULT
        workers = threads.cores() if in_pool and sum(map(len, changed)) >= _WORTH_PROCESSES else 1
        writer = SegmentWriter(index, engine.dim)
        taken = processes.taken(intake, _jobs(changed), workers)
        new: list[Piece] = []
        try:
            for one in taken:
                found.add(one, hashes)
                writer.add(one.chunk)
                if progress:
                    progress("read", found.read, sum(map(len, changed)))
                if writer.size >= pieces.SEGMENT:
                    _finish(index, writer, new)
                    pieces.remember(index, noted, [*begun, *new])
                    writer = SegmentWriter(index, engine.dim)
            if writer.articles:
                _finish(index, writer, new)
            kept = sum(len(piece.articles) - len(piece.dead) for piece in (*held, *new))
            if found.bad and not (keep_going and kept):
                raise BuildFailed(sorted(found.bad, key=str), articles)
            held = _joined(index, [*held, *new], compact=compact, progress=progress)
        except (KeyboardInterrupt, processes.ReaderEnded):  # what was read need not be read again
            if writer.size >= _WORTH_KEEPING:
                _finish(index, writer, new)
            if sum(piece.live for piece in new) >= _WORTH_KEEPING:
                pieces.remember(index, noted, [*begun, *new])
            raise
        finally:
            writer.discard()
        held = held or [_empty(index, engine.dim)]
        manifest: dict[str, Any] = {"kb": kb.__version__, "folder": articles.resolve().name, **made_by}
        if drafts:
            manifest["drafts"] = True
        snapshot_id = publish(index, held, manifest)
        hashes.keep()
    there = [one for piece in held for n, one in enumerate(piece.articles) if n not in piece.dead]
    return BuildReport(
        snapshot=snapshot_id,
        articles=len(there),
        issues=sum(piece.issues() for piece in held),
        records=sum(count for _, _, count in there),
        parsed=found.parsed,
        removed=len(indexed - {path for path, _, _ in there} - {one.path for one in found.bad if one.path}),
        skipped=(*skipped, *found.skipped),
        bad=tuple(sorted(found.bad, key=str)),
        without_records=tuple(sorted(path for path, _, count in there if not count)),
        drafts=tuple(sorted(found.drafts)),
        unlike=tuple(found.unlike),
        segments=len(held),
        recall=min(
            (piece.counts["found_of_1000"] / 1000 for piece in held if "found_of_1000" in piece.counts), default=None
        ),
        took_s=time.perf_counter() - started,
    )


@contextmanager
def _tidy(index: Path) -> Iterator[None]:
    """A build that comes to nothing leaves nothing behind, least of all on a full disk."""
    try:
        yield
    except BaseException:
        pieces.tidy(index)
        raise


def _changed(
    paths: Sequence[str],
    held: Sequence[Piece],
    hashes: Hashes,
    intake: Intake,
    found: _Found,
    *,
    had_drafts: bool,
) -> list[list[str]]:
    """The groups of articles that must be read. What the pieces hold of others than the unchanged ones is marked as
    dead. Of a path that several hold, the last one counts. `had_drafts`: the pieces hold drafts, which are not wanted
    now."""
    where: dict[str, tuple[int, int]] = {}
    for number, piece in enumerate(held):
        for place, (path, _, _) in enumerate(piece.articles):
            if place in piece.dead:
                continue
            if path in where:
                held[where[path][0]].dead.add(where[path][1])
            where[path] = number, place
    changed: list[list[str]] = []
    there = groups_of(where)
    for key, group in groups_of(paths).items():
        known = there.pop(key, [])
        unwanted = had_drafts and any(map(intake.is_left_out, known))
        if known and not unwanted and _is_as_it_was(group, known, where, held, hashes, intake, found):
            continue
        changed.append(group)
        _drop(known, where, held)
    for group in there.values():  # what was there and is no more
        _drop(group, where, held)
    return changed


def _is_as_it_was(
    group: Sequence[str],
    known: Sequence[str],
    where: Mapping[str, tuple[int, int]],
    held: Sequence[Piece],
    hashes: Hashes,
    intake: Intake,
    found: _Found,
) -> bool:
    if not set(known) <= set(group):
        return False
    try:
        for path in known:
            number, place = where[path]
            if hashes.of(path) != held[number].articles[place][1]:
                return False
    except ArticleError:
        return False
    others = sorted(set(group) - set(known))
    if not all(map(intake.is_left_out, others)):
        return False
    if others:
        found.add(intake.take([others]))  # which says why they are left out
    return True


def _drop(group: Sequence[str], where: Mapping[str, tuple[int, int]], held: Sequence[Piece]) -> None:
    for path in group:
        number, place = where[path]
        held[number].dead.add(place)


def _has_drafts(index: Path) -> bool:
    with suppress(KbError):
        return bool(snapshot.read_manifest(index)[0].get("drafts"))
    return False


def _jobs(groups: Sequence[Sequence[str]]) -> Iterator[list[Sequence[str]]]:
    """The groups, some `_AT_ONCE` articles at a time."""
    job: list[Sequence[str]] = []
    for group in groups:
        job.append(group)
        if sum(map(len, job)) >= _AT_ONCE:
            yield job
            job = []
    if job:
        yield job


def _finish(index: Path, writer: SegmentWriter, new: list[Piece]) -> None:
    """Adds what was written to `new`. An interrupt in the midst of it would lose all that was read."""
    with held_back() if writer.size >= _WORTH_KEEPING else nullcontext():
        new.append(Piece.of(index, writer.finish()))


def _joined(index: Path, held: Sequence[Piece], *, compact: bool, progress: Progress | None) -> list[Piece]:
    """The pieces that the next snapshot is made of."""
    held = [piece for piece in held if len(piece.dead) < len(piece.articles)]
    chosen = pieces.to_join(held, compact=compact)
    if not chosen:
        return held
    made: list[Piece] = []
    total, done = sum(piece.live for piece in chosen), 0
    for one in pieces.joined(index, chosen):
        made.append(Piece.of(index, one))
        done += one.counts["records"]
        if progress:
            progress("join", done, total)
    return [*(piece for piece in held if piece not in chosen), *made]


def _empty(index: Path, dim: int) -> Piece:
    return Piece.of(index, SegmentWriter(index, dim).finish())


def publish(index: Path, held: Sequence[Piece], manifest: Mapping[str, Any]) -> str:
    """Commits these segments and what the manifest says beside them; returns the snapshot's id."""
    files: dict[str, bytes | Entry] = {}
    starts = np.concatenate([[0], np.cumsum([piece.segment.size for piece in held])]).astype(np.int64)
    for number, piece in enumerate(held):
        files |= {named(stem, number): entry for stem, entry in piece.files.items()}
    dead = [(number, place) for number, piece in enumerate(held) for place in sorted(piece.dead)]
    if dead:
        rows = [start + piece.dead_rows() for start, piece in zip(starts, held, strict=False)]
        arrays = {"articles": np.array(dead, np.int64), "rows": np.concatenate(rows)}
        files["dead"] = snapshot.store(index, "dead.safetensors", dump(arrays))
    if len(same := same_faults([piece.segment for piece in held], [piece.dead_rows() for piece in held])):
        files["same"] = snapshot.store(index, "same.safetensors", dump({"rows": same}))
    counts = {
        "articles": sum(len(piece.articles) - len(piece.dead) for piece in held),
        "issues": sum(piece.issues() for piece in held),
        "records": sum(piece.live for piece in held),
        "views": sum(piece.counts["views"] for piece in held),
        "terms": sum(piece.counts["terms"] for piece in held),
    }
    whole = {
        **manifest,
        "counts": counts,
        "projects": sorted(set().union(*(piece.projects for piece in held))),
        "segments": [piece.as_dict() for piece in held],
    }
    snapshot_id = snapshot.publish(index, files, whole)
    pieces.forget(index)
    for piece in held:
        for entry in piece.files.values():
            mapped.stamp(index, entry)
        piece.segment.close()
    return snapshot_id


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
