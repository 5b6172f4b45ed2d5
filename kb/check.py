"""Here are articles and an index; tell what a reviewer would send back, and what a fsck would find. Changes nothing."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kb import snapshot
from kb.articles import parse
from kb.build import code, read_articles, scan
from kb.encoders import open_encoder
from kb.errors import ArticleError, KbError
from kb.records import Article, Lang
from kb.search import KnowledgeBase
from kb.store_faiss import FaissStore

__all__ = ["Finding", "check_articles", "check_index"]


@dataclass(frozen=True, slots=True)
class Finding:
    path: str
    line: int | None
    level: Literal["error", "warning"]
    message: str


def check_articles(folder: Path) -> list[Finding]:
    """What is wrong with the articles below `folder`, by path and line."""
    findings: list[Finding] = [Finding(s.path, None, "warning", f"skipped: {s.reason}") for s in scan(folder)[1]]
    twins: dict[str, dict[Lang, Article]] = defaultdict(dict)
    seen: dict[str, str] = {}
    for path, data in read_articles(folder):
        try:
            if isinstance(data, ArticleError):
                raise data
            article = parse(data, path=path)
        except ArticleError as error:
            findings.append(Finding(path, error.line, "error", error.message))
            continue
        twins[article.slug][article.lang] = article
        findings += _within(article)
        for record in article.records:
            first = seen.setdefault(record.id.casefold(), path)
            if first != path:
                findings.append(
                    Finding(path, record.source.first_line, "error", f"{record.id} is told by {first} already")
                )
    for slug in sorted(twins):
        findings += _between(slug, twins[slug])
    return sorted(findings, key=lambda f: (f.path, f.line or 0))


def _within(article: Article) -> Iterator[Finding]:
    if not article.records:
        yield Finding(article.path, None, "warning", "no issue was found here; see `kb parse --explain`")
    for record in article.records:
        at = record.source.first_line
        if not record.symptom and not record.errors:
            yield Finding(article.path, at, "error", f"{record.id} says neither what is seen nor what is printed")
        if not record.fix:
            yield Finding(article.path, at, "warning", f"{record.id} has no fix")
        if not record.cause:
            yield Finding(article.path, at, "warning", f"{record.id} has no cause")
        if not record.project:
            yield Finding(article.path, at, "warning", f"{record.id} names no project")
        for source in record.sources:
            if not source.startswith(("https://", "http://")) or any(c.isspace() for c in source):
                yield Finding(article.path, at, "error", f"the source {source!r} is no URL")


def _between(slug: str, tellings: dict[Lang, Article]) -> Iterator[Finding]:
    for lang, other in (("en", "zh"), ("zh", "en")):
        if lang not in tellings:
            yield Finding(tellings[other].path, None, "warning", f"{slug} has no telling in {lang}")  # type: ignore[index]
    if len(tellings) == 2 and len(tellings["en"].records) != len(tellings["zh"].records):
        yield Finding(
            tellings["zh"].path,
            None,
            "error",
            f"{len(tellings['zh'].records)} issues here, {len(tellings['en'].records)} in {tellings['en'].path}",
        )


def check_index(folder: Path, articles: Path | None = None) -> list[Finding]:
    """What is wrong with the index in `folder`: its manifest, every file's sha256, every record, its encoder; and where
    it lags behind `articles`."""
    findings: list[Finding] = []

    def note(level: Literal["error", "warning"], message: str, path: str | None = None) -> None:
        findings.append(Finding(path or str(folder), None, level, message))

    try:
        manifest, _ = snapshot.read_manifest(folder)
        for entry in manifest["files"].values():
            try:
                snapshot.read_file(folder, entry)
            except FileNotFoundError:
                note("error", "is missing", str(folder / entry["name"]))
            except KbError as error:
                note("error", error.message, error.path)
        if findings:
            return findings
        store = FaissStore(folder)
        store.records(range(store.size))
        KnowledgeBase(store, open_encoder(manifest["encoder"]["name"]))
        if articles is not None:
            _lag(store, articles, note)
        if manifest.get("code") != code():
            note("warning", "was built by another version of kb; `kb build` renews it")
    except KbError as error:
        note("error", error.message, error.path)
    return findings


def _lag(store: FaissStore, articles: Path, note: object) -> None:
    assert callable(note)
    indexed = {path: sha for path, sha, _ in store.articles()}
    present = {p: hashlib.sha256(d).hexdigest() for p, d in read_articles(articles) if isinstance(d, bytes)}
    for path in sorted(indexed.keys() | present.keys()):
        if path not in present:
            note("warning", "is indexed, but no longer there; `kb build` removes it", path)
        elif path not in indexed:
            note("warning", "is not indexed yet; `kb build` adds it", path)
        elif indexed[path] != present[path]:
            note("warning", "was changed after it was indexed; `kb build` renews it", path)
