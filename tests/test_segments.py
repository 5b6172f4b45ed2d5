"""A base of several segments answers as one that was written at once: after edits, interrupts, on mapped files."""

from __future__ import annotations

import logging
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import FakeEncoder, Write, article, examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kb.base import KnowledgeBase
from kb.errors import IndexCorrupt, KbError
from kb.index import mapped, pieces, processes, vectors
from kb.index.build import BuildReport, build
from kb.index.faiss import FaissStore
from kb.index.snapshot import read_manifest
from kb.index.threads import side_by_side
from kb.index.user import cache_folder
from kb.index.vectors import Approximate

NAMES = [f"a{n}" for n in range(6)]
ERRORS = ["boom at 7", "the disk is full", "队列为空", "no route to host", "rank 3 hangs"]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every base were large: segments of three records, joined when there are four."""
    monkeypatch.setattr(pieces, "ONE_UP_TO", 0)
    monkeypatch.setattr(pieces, "SEGMENT", 3)
    monkeypatch.setattr(pieces, "MOST_OF_A_TIER", 4)


def told(index: Path) -> dict[str, str]:
    with KnowledgeBase.open(index, encoder=FakeEncoder()) as base:
        return {record.id: record.fix + record.source.path for record in base.records()}


def answers(index: Path) -> list[Any]:
    with KnowledgeBase.open(index, encoder=FakeEncoder()) as base:
        return [[hit.issue for hit in base.search(f"RuntimeError: {error}", 1).hits] for error in ERRORS]


edit = st.tuples(st.sampled_from(NAMES), st.sampled_from(["en", "zh"]), st.sampled_from([None, *ERRORS]))


@pytest.mark.thorough
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rounds=st.lists(st.lists(edit, min_size=1, max_size=5), min_size=1, max_size=5))
def test_edits_lead_to_what_a_build_from_nothing_has(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[tuple[str, str, str | None]]]
) -> None:
    folder = tmp_path_factory.mktemp("edits")
    encoder = FakeEncoder()
    for edits in rounds:
        for name, lang, error in edits:
            path = folder / "articles" / lang / f"{name}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink() if error is None and path.exists() else None
            if error is not None:
                path.write_text(article(error, f"{error} {name}"), "utf-8")
        report = build(folder / "articles", folder / "grown", encoder=encoder)
        shutil.rmtree(folder / "whole", ignore_errors=True)
        whole = build(folder / "articles", folder / "whole", encoder=encoder)
        counted: list[tuple[int, ...]] = [(one.articles, one.issues, one.records) for one in (report, whole)]
        assert counted[0] == counted[1]
        assert told(folder / "grown") == told(folder / "whole")
        assert report.segments <= 10
        files = {entry["name"] for entry in read_manifest(folder / "grown")[0]["files"].values()}
        assert {path.name for path in (folder / "grown").iterdir() if "-" in path.name} == files
    build(folder / "articles", folder / "grown", encoder=encoder, compact=True)
    assert told(folder / "grown") == told(folder / "whole")
    assert answers(folder / "grown") == answers(folder / "whole")


@pytest.fixture
def grown(tmp_path: Path, write: Write) -> Iterator[tuple[Path, Path]]:
    """Articles and an index of three segments."""
    articles = write({f"en/a{n}.md": article(f"{ERRORS[n]} again", f"other {n}") for n in range(5)})
    report = build(articles, tmp_path / "index", encoder=FakeEncoder())
    assert report.segments == 1  # so few articles are read at once
    for n in range(2):
        write({f"en/b{n}.md": article(f"later {n}")})
        report = build(articles, tmp_path / "index", encoder=FakeEncoder())
    assert report.segments == 3
    yield articles, tmp_path / "index"


def test_an_edit_writes_what_changed(grown: tuple[Path, Path], write: Write) -> None:
    articles, index = grown
    before = {path.name for path in index.iterdir()}
    write({"en/a1.md": article("quite another failure")})
    report = build(articles, index, encoder=FakeEncoder())
    assert (report.parsed, report.removed) == (1, 0)
    assert len({path.name for path in index.iterdir() if "records" in path.name} - before) == 1
    with KnowledgeBase.open(index, encoder=FakeEncoder()) as base:
        assert base.search("RuntimeError: quite another failure").hits[0].issue == "a1#1"
        assert not [record for record in base.records() if "disk is full" in "".join(record.errors)]
        assert [record.issue for record in base.show("a1")] == ["a1#1"]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("k", [1, 2, 4, 30])
def test_segments_side_by_side_answer_as_each_by_itself(grown: tuple[Path, Path], threads: int, k: int) -> None:
    encoder = FakeEncoder()
    store = FaissStore(grown[1])
    store._threads = threads
    for text in [*ERRORS, "later RuntimeError other again"]:
        vector, terms = encoder.encode([text], kind="query")[0], store.header.vocabulary.tokenise(text)
        alone = [([], []), ([], [])]
        starts = store.header.columns.starts.tolist()
        for only, (start, segment) in enumerate(zip(starts, store.segments, strict=False)):
            facts = [(fact.numbers[only], weight) for fact, weight in store._weighed(terms)]
            for found, (rows, scores) in zip(
                (segment.vectors.nearest(vector, 99), segment.lexicon.postings.best(facts, store._mean, 99)),
                alone,
                strict=True,
            ):
                rows += [start + row for row in found.rows]
                scores += found.scores
        expected = [sorted(zip(*one, strict=True), key=lambda found: (-found[1], found[0]))[:k] for one in alone]
        for ranked in ([store.dense(vector, k), store.lexical(terms, k)], store.near(vector, terms, k)):
            assert [list(zip(one.rows, one.scores, strict=True)) for one in ranked] == expected
    store.close()


@pytest.mark.parametrize("threads", [1, 2, 9])
def test_what_is_asked_side_by_side(threads: int) -> None:
    def ask(task: int) -> int:
        time.sleep(0.002 * (task % 3))
        return 100 // task

    assert side_by_side(ask, [5, 4, 3, 2, 1], threads) == [20, 25, 33, 50, 100]
    assert side_by_side(ask, [], threads) == []
    with pytest.raises(ZeroDivisionError):
        side_by_side(ask, [1, 0, 2, 3], threads)
    assert "kb-segment" not in [one.name for one in threading.enumerate()]


def test_the_only_two_articles_tell_one_fault(tmp_path: Path, write: Write) -> None:
    for n in range(2):
        articles = write({f"en/a{n}.md": article("boom at 7", "the disk is full")})
        assert build(articles, tmp_path / "index", encoder=FakeEncoder()).segments == n + 1
    with KnowledgeBase.open(tmp_path / "index", encoder=FakeEncoder()) as base:
        assert set(base.searcher.first_telling.values()) == {"a0#1", "a0#2"}


def test_one_fault_in_two_segments_is_listed_once(grown: tuple[Path, Path], write: Write) -> None:
    articles, index = grown
    write({"en/copy.md": (articles / "en" / "a0.md").read_text("utf-8")})
    build(articles, index, encoder=FakeEncoder())
    with KnowledgeBase.open(index, encoder=FakeEncoder()) as base:
        found = [hit.issue for hit in base.search(f"RuntimeError: {ERRORS[0]} again", 5).hits]
        assert len({"a0#1", "copy#1"} & set(found)) == 1
        telling = base.searcher.first_telling
        assert telling["a0#1"] == telling["copy#1"]


@pytest.mark.parametrize(
    ("what", "segment"),
    [(KeyboardInterrupt, 3), (MemoryError, 3), (KeyboardInterrupt, 99), (processes.ReaderEnded, 99)],
)
def test_what_an_interrupted_build_had_finished_is_taken_up(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch, what: type[BaseException], segment: int
) -> None:
    """Also when a process that reads is killed, as a system does that runs out of memory."""
    articles = write({f"en/a{n}.md": article(f"boom {n}", f"crash {n}") for n in range(8)})
    monkeypatch.setattr(pieces, "SEGMENT", segment)
    monkeypatch.setattr("kb.index.build._WORTH_KEEPING", 1)
    monkeypatch.setattr("kb.index.build._AT_ONCE", 2)
    encoder = FakeEncoder()
    take, taken = processes.Intake.take, 0

    def stop(self: Any, groups: Any) -> Any:
        nonlocal taken
        taken += 1
        if taken == 3:
            raise what("it ended")
        return take(self, groups)

    with monkeypatch.context() as patch, pytest.raises(what):
        patch.setattr(processes.Intake, "take", stop)
        build(articles, tmp_path / "index", encoder=encoder)
    assert not (tmp_path / "index" / "manifest.json").exists()
    encoder.texts.clear()
    report: BuildReport = build(articles, tmp_path / "index", encoder=encoder)
    assert (report.articles, report.parsed) == (8, 4)
    assert not [text for text in encoder.texts if "boom 0" in text or "boom 3" in text]
    assert not (tmp_path / "index" / ".unfinished").exists()
    build(articles, tmp_path / "whole", encoder=encoder)
    assert told(tmp_path / "index") == told(tmp_path / "whole")


def test_a_note_of_what_was_unfinished_counts_only_when_it_is_whole(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says how many records the finished segments have: a damaged one would make a wrong manifest, or no build."""
    articles = write({f"en/a{n}.md": article(f"boom {n}", f"crash {n}") for n in range(8)})
    monkeypatch.setattr("kb.index.build._AT_ONCE", 2)
    encoder, index = FakeEncoder(), tmp_path / "index"

    def stop(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("kb.index.build._joined", stop)
        build(articles, index, encoder=encoder)
    note = index / ".unfinished"
    whole, files = note.read_bytes(), {path.name: path.read_bytes() for path in index.iterdir()}
    counted: list[Any] = []
    for damaged in (whole, *(whole.replace(*pair) for pair in ((b'"records": ', b'"secords": '), (b": 4", b": 5")))):
        shutil.rmtree(index)
        index.mkdir()
        for name, data in files.items():
            (index / name).write_bytes(data)
        note.write_bytes(damaged)
        report = build(articles, index, encoder=encoder)
        assert report.parsed == (0 if damaged == whole else 8)  # what is not believed is read again
        counted.append((report.records, [one["counts"] for one in read_manifest(index)[0]["segments"]]))
    assert counted[0] == counted[1] == counted[2]


def test_a_large_file_is_verified_once_and_again_when_it_changed(
    grown: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, index = grown
    monkeypatch.setattr(mapped, "MAPPED_FROM", 1)
    before = answers(index)
    hashed: list[Path] = []
    opened = mapped.snapshot.open_file

    def count(folder: Path, entry: Any) -> Any:
        hashed.append(folder / entry["name"])
        return opened(folder, entry)

    monkeypatch.setattr(mapped.snapshot, "open_file", count)
    assert answers(index) == before
    once = len(hashed)
    path = next(index.glob("lexical-*"))
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(IndexCorrupt, match="sha256"):
        FaissStore(index)
    assert once


def test_stamps_that_nobody_uses_are_removed(grown: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    _, index = grown
    monkeypatch.setattr(mapped, "MAPPED_FROM", 1)
    FaissStore(index).close()
    stamps = cache_folder() / "verified"
    used = {path.name for path in stamps.iterdir()}
    for name in ("0" * 32, "1" * 32):
        (stamps / name).touch()
    old = time.time() - 40 * 86_400
    for name in (*used, "0" * 32):
        os.utime(stamps / name, (old, old))
    FaissStore(index).close()  # which uses its own
    shutil.copytree(index, index.with_name("other"))
    FaissStore(index.with_name("other")).close()  # which leaves new ones
    left = {path.name for path in stamps.iterdir()}
    assert used < left
    assert "1" * 32 in left
    assert "0" * 32 not in left


def test_a_strangers_faiss_file_is_not_parsed(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def propose(views: Any, starts: Any) -> Any:
        return Approximate(np.frombuffer(b"what FAISS would parse", np.uint8), 0.991)

    def parse(self: Any) -> Any:
        raise AssertionError("parsed")

    monkeypatch.setattr("kb.index.writer.approximate", propose)
    monkeypatch.setattr(vectors, "_PROPOSED", 1)  # as of many views: not all are compared
    monkeypatch.setattr(vectors, "_FOR_EACH", 0)
    articles = write({"en/a.md": article("boom at 7")})
    assert build(articles, tmp_path / "index", encoder=FakeEncoder()).recall == 0.991
    assert next((tmp_path / "index").glob("near-*"))
    with pytest.raises((KbError, RuntimeError)):  # it was made here, and is no FAISS file
        answers(tmp_path / "index")
    shutil.rmtree(mapped.cache_folder() / "made")
    with caplog.at_level(logging.WARNING):
        assert answers(tmp_path / "index")[0] == ["a#1"]
    assert "without its FAISS file" in caplog.text


@pytest.mark.thorough
def test_several_processes_read_what_one_reads(tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    articles = write({f"{lang}/a{n}.md": article(f"boom {n}") for n in range(9) for lang in ("en", "zh")})
    write({"en/broken.md": b"\xff\xfe\x00"})
    monkeypatch.setattr("kb.index.build._AT_ONCE", 3)
    one = build(articles, tmp_path / "one", keep_going=True)
    monkeypatch.setattr("kb.index.build._WORTH_PROCESSES", 2)
    monkeypatch.setattr("kb.index.threads.cores", lambda: 2)
    two = build(articles, tmp_path / "two", keep_going=True)
    assert one.snapshot == two.snapshot
    assert [str(error) for error in one.bad] == [str(error) for error in two.bad]
    assert len(one.bad) == 1
