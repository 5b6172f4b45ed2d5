"""States of a folder of articles, and what a reader sees of an index: all records, and what twenty questions find."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from kb.base import KnowledgeBase
from kb.encoders import open_encoder
from kb.index import pieces
from kb.records import SearchResult

ENCODER = open_encoder()
QUESTIONS = [f"RuntimeError: failure {n} at stage {n % 3}" for n in range(20)]


def of_segments() -> None:
    """As if every base were large: segments of a dozen records, joined when there are three of a size."""
    pieces.ONE_UP_TO, pieces.SEGMENT, pieces.MOST_OF_A_TIER = 0, 12, 3
    vars(importlib.import_module("kb.index.build"))["_AT_ONCE"] = 5  # one build closes several segments, and notes each


State = Mapping[str, Sequence[str]]
"""name of an article -> the errors it is about"""


def old(count: int) -> State:
    return {f"a{n}": [f"failure {n} at stage {stage}" for stage in range(3)] for n in range(count)}


def new(count: int) -> State:
    """Some are edited, some gone, some have another name."""
    state = {f"b{n}" if n % 4 == 0 else f"a{n}": old(count)[f"a{n}"] for n in range(count) if n % 5}
    return {name: [*errors, f"another {name}"] if int(name[1:]) % 3 == 0 else errors for name, errors in state.items()}


def edited(count: int, times: int) -> State:
    """The old state after so many edits: with each, one article is written anew and one comes."""
    state = dict(old(count))
    for n in range(times):
        state[f"a{n}"] = [*state[f"a{n}"], f"edit {n}"]
        state[f"c{n}"] = [f"failure {n} at a late stage"]
    return state


def write(folder: Path, state: State) -> Path:
    """Makes `folder` hold these articles and no others; what is as it should be is not touched. Returns it."""
    (folder / "en").mkdir(parents=True, exist_ok=True)
    wanted = {f"{name}.md": _article(errors) for name, errors in state.items()}
    for path in (folder / "en").iterdir():
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        path = folder / "en" / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
    return folder


def _article(errors: Sequence[str]) -> str:
    issues = [
        f"## Training stops with {e}\n\n### Symptom\n\nRuntimeError: {e}\n\n### Fix\n\nSet {e} to 1. 训练恢复。\n"
        for e in errors
    ]
    return "# Notes\n\n" + "\n".join(issues)


def signature(index: Path) -> str:
    """Of what a reader sees: every record, and what twenty questions find, each by itself and all as a log. Raises
    KbError."""
    with KnowledgeBase.open(index, encoder=ENCODER) as base:
        # Scores of an index of several segments count dead records until these are joined.
        found = [(str(one.verdict), [hit.issue for hit in one.hits[:1]]) for one in map(base.search, QUESTIONS)]
        scanned = [finding.issue for finding in base.scan(QUESTIONS).findings]
        return hashlib.sha256((records(base) + repr((found, scanned))).encode()).hexdigest()[:12]


def records(base: KnowledgeBase) -> str:
    """A digest of all records."""
    every = sorted((record.as_dict() for record in base.records()), key=lambda record: str(record["id"]))
    return hashlib.sha256(json.dumps(every).encode()).hexdigest()[:12]


def answer(found: SearchResult) -> str:
    """A digest of an answer, to its last digit."""
    hits = [(hit.issue, hit.score, hit.record.as_dict()) for hit in found.hits]
    return hashlib.sha256(repr((str(found.verdict), hits)).encode()).hexdigest()[:12]


def content(index: Path) -> dict[str, bytes]:
    """The index's bytes; the lock and the stamp hold a process number and a time."""
    return {path.name: path.read_bytes() for path in index.iterdir() if path.name not in (".lock", ".stamp")}
