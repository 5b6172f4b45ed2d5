"""A base that lives long: it moves to what is published under it, between two questions and never within one."""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import FakeEncoder, Write, article

from kb import KnowledgeBase
from kb.arrays import Array
from kb.errors import IndexMissing
from kb.index import follow
from kb.index.snapshot import MANIFEST

Publish = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "index"


@pytest.fixture
def publish(write: Write, folder: Path) -> Publish:
    """Publishes a base whose one fix is `fix`; returns the snapshot's id."""

    def put(fix: str, encoder: FakeEncoder | None = None) -> str:
        articles = write({"en/a.md": article("pop from an empty deque", fix=fix)})
        return KnowledgeBase.build(articles, folder, encoder=encoder or FakeEncoder()).snapshot

    return put


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock that the follower looks at."""
    time = [100.0]
    monkeypatch.setattr("kb.index.follow.time.monotonic", lambda: time[0])
    return time


def _fix(base: KnowledgeBase) -> str:
    return base.search("pop from an empty deque").hits[0].record.fix


def test_a_new_snapshot_is_noticed(publish: Publish, folder: Path, now: list[float]) -> None:
    publish("Set it to 1.")
    with KnowledgeBase.open(folder, encoder=FakeEncoder()) as base:
        assert "Set it to 1." in _fix(base)
        newer = publish("Set it to 2.")
        assert "Set it to 1." in _fix(base)  # not before a second is over
        now[0] += 1.5
        assert "Set it to 2." in _fix(base)
        assert base.snapshot == newer
        assert "Set it to 2." in base.show("a#1")[0].fix
        assert "Set it to 2." in base.records()[0].fix


def test_nothing_that_is_kept_outlives_its_snapshot(publish: Publish, folder: Path, now: list[float]) -> None:
    """Records, error lines and what is verified are kept in memory; an answer is that of a base opened anew."""
    question = "pop from an empty deque"
    publish("Set it to 1.")
    with KnowledgeBase.open(folder, encoder=FakeEncoder()) as base:
        old = base.search(question).hits
        assert base.search(question).hits == old
        publish("Set it to 2 where a deque is empty.")
        now[0] += 1.1
        hits = base.search(question).hits
        with KnowledgeBase.open(folder, encoder=FakeEncoder()) as anew:
            assert hits == anew.search(question).hits != old
        assert "Set it to 2" in hits[0].record.fix


@pytest.mark.thorough
def test_one_look_a_second(publish: Publish, folder: Path, now: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    publish("Set it to 1.")
    with KnowledgeBase.open(folder, encoder=FakeEncoder()) as base:
        looks: list[float] = []
        before = os.stat

        def stat(path: object, *rest: object, **named: object) -> object:
            if str(path).endswith(MANIFEST):
                looks.append(now[0])
            return before(path, *rest, **named)  # type: ignore[call-overload]

        monkeypatch.setattr("os.stat", stat)
        for _ in range(100):
            base.search("pop from an empty deque")
            assert base.size == 1
            now[0] += 0.05
        assert 4 <= len(looks) <= 5


def _broken_manifest(folder: Path) -> None:
    (folder / MANIFEST).write_bytes(b"{")


def _broken_file(folder: Path) -> None:
    for path in folder.glob("dense-*"):
        path.write_bytes(path.read_bytes()[:-1] + b"\0\0")


def _gone(folder: Path) -> None:
    shutil.rmtree(folder)


@pytest.mark.parametrize("harm", [_broken_manifest, _broken_file, _gone])
def test_a_broken_index_leaves_the_old_one_in_service(
    harm: Callable[[Path], None],
    publish: Publish,
    folder: Path,
    now: list[float],
    caplog: pytest.LogCaptureFixture,
) -> None:
    publish("Set it to 1.")
    with KnowledgeBase.open(folder, encoder=FakeEncoder()) as base:
        publish("Set it to 2.")
        harm(folder)
        with caplog.at_level(logging.DEBUG, "kb"):
            for _ in range(40):
                now[0] += 1.5
                assert "Set it to 1." in _fix(base)
        assert len(caplog.records) == 1
        assert "last good snapshot" in caplog.text
        publish("Set it to 3.")
        now[0] += follow.TRY_AGAIN_S + 1
        assert "Set it to 3." in _fix(base)


def test_an_index_of_another_encoder_leaves_the_old_one_in_service(
    publish: Publish, folder: Path, now: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    publish("Set it to 1.")
    with KnowledgeBase.open(folder, encoder=FakeEncoder()) as base:
        publish("Set it to 2.", FakeEncoder(8))
        for _ in range(3):
            now[0] += 11
            assert "Set it to 1." in _fix(base)
        assert len(caplog.records) == 1
        assert "8 dimensions" in caplog.text


def test_a_search_ends_on_what_it_began_with(publish: Publish, folder: Path, now: list[float]) -> None:
    class Slow(FakeEncoder):
        hold = False

        def encode(self, texts: object, *, kind: object) -> Array:
            if self.hold:
                self.hold = False
                publish("Set it to 2.")
                now[0] += 2
                assert "Set it to 2." in _fix(base)
            return super().encode(texts, kind=kind)  # type: ignore[arg-type]

    old = publish("Set it to 1.")
    encoder = Slow()
    with KnowledgeBase.open(folder, encoder=encoder) as base:
        encoder.hold = True
        result = base.search("pop from an empty deque")
        assert result.snapshot == old
        assert "Set it to 1." in result.hits[0].record.fix
        assert "Set it to 2." in _fix(base)


@pytest.mark.thorough
def test_eight_threads_while_another_publishes(publish: Publish, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "LOOK_EVERY_S", 0.0)
    snapshots = {publish(f"Set it to {i}."): f"Set it to {i}." for i in (1, 2)}
    wrong: list[str] = []
    seen: set[str] = set()
    ended = threading.Event()

    def ask(base: KnowledgeBase) -> None:
        while not ended.is_set():
            try:
                result = base.search("pop from an empty deque")
                seen.add(result.snapshot)
                if snapshots[result.snapshot] not in result.hits[0].record.fix:
                    wrong.append(result.snapshot)
            except Exception as error:
                wrong.append(repr(error))

    with KnowledgeBase.open(folder, encoder=FakeEncoder()) as base:
        threads = [threading.Thread(target=ask, args=(base,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for i in range(8):
            assert publish(f"Set it to {i % 2 + 1}.") in snapshots
        ended.set()
        for thread in threads:
            thread.join()
    assert not wrong
    assert seen == set(snapshots)


def test_a_closed_base_stays_closed(publish: Publish, folder: Path, now: list[float]) -> None:
    publish("Set it to 1.")
    base = KnowledgeBase.open(folder, encoder=FakeEncoder())
    base.close()
    publish("Set it to 2.")
    now[0] += 5
    with pytest.raises(IndexMissing, match="this base is closed"):
        base.search("pop from an empty deque")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_while_a_thread_looked_follows_too(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text("{}")
    follower = follow.Follower("old", tmp_path, None, lambda: "new")
    follower._look_at = 0
    with follower._lock:
        child = os.fork()
        if not child:
            os._exit(0 if follower.newest == "new" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert follower._value == "old"


def test_a_scan_of_lines(index: Path) -> None:
    with KnowledgeBase.open(index) as base:
        lines = ["step 1 done", "IndexError: pop from an empty deque\n", "step 2 done"]
        report = base.scan(lines)
        assert [finding.issue for finding in report.findings] == ["ms-swift-ovis2-grpo#2"]
        assert (report.lines, report.findings[0].first_line) == (3, 2)
        whole = "\n".join(line.strip() for line in lines)
        for same in (whole, whole.encode(), [whole.encode()[:20], whole.encode()[20:]], iter(lines)):
            assert [finding.first_line for finding in base.scan(same).findings] == [2]
        assert not base.scan([]).findings
