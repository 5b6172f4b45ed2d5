"""Checks an index as fsck checks a disk, and lists where it lags behind its articles. It changes nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from kb.articles.folder import read_articles
from kb.articles.source import is_readme
from kb.encoders import open_encoder, refuse_folder
from kb.errors import KbError
from kb.index import snapshot
from kb.index.build import code
from kb.index.encoded import require_same
from kb.index.faiss import FaissStore
from kb.records import Problem

__all__ = ["RULE", "check_index"]

RULE = "index"
"""the name under which `kb check` lists all of this"""


def check_index(folder: Path, articles: Path | None = None, *, named: bool = True) -> list[Problem]:
    """What is wrong with the index in `folder`: its manifest, every file's sha256, every record, its encoder; and where
    it lags behind `articles`. `named`: the user named this index; if not, no encoder is taken from a folder."""
    findings: list[Problem] = []

    def note(level: Literal["error", "warning"], message: str, path: str | None = None) -> None:
        findings.append(Problem(path or str(folder), None, level, message, RULE))

    try:
        manifest, _ = snapshot.read_manifest(folder)
        for entry in manifest["files"].values():
            try:
                snapshot.verify(folder, entry)
            except FileNotFoundError:
                note("error", "is missing", str(folder / entry["name"]))
            except KbError as error:
                note("error", error.message, error.path)
        if findings:
            return findings
        store = FaissStore(folder)
        for row in store.header.columns.rows().tolist():  # one at a time: all of a large base are many gigabytes
            store.records([row])
            store.profiles([row])
        store.prints()
        if not named:
            refuse_folder(manifest["encoder"]["name"], folder)
        require_same(store, open_encoder(manifest["encoder"]["name"], offline=True))
        if articles is not None:
            _lag(store, articles, note)
        if manifest.get("code") != code():
            note("warning", "was built by another version of kb; `kb build` renews it")
    except KbError as error:
        note("error", error.message, error.path)
    return findings


def _lag(store: FaissStore, articles: Path, note: Callable[[Literal["error", "warning"], str, str], None]) -> None:
    indexed = {path: sha for path, sha, _ in store.articles()}
    present = {p: hashlib.sha256(d).hexdigest() for p, d in read_articles(articles) if isinstance(d, bytes)}
    for path in sorted(indexed.keys() | present.keys()):
        if path not in present:
            note("warning", "is indexed, but no longer there; `kb build` removes it", path)
        elif path not in indexed:
            if not is_readme(path):  # one without an issue stays outside
                note("warning", "is not indexed yet; `kb build` adds it", path)
        elif indexed[path] != present[path]:
            note("warning", "was changed after it was indexed; `kb build` renews it", path)
