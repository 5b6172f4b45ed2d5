"""kb.index.snapshot: a reader sees a whole snapshot or an error that names the file, never a mixture."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import FakeEncoder, Write, article, running

import kb
from kb.base import KnowledgeBase
from kb.errors import IndexBusy, IndexCorrupt, IndexMissing, IndexWriteFailed, KbError
from kb.index import snapshot
from kb.index.build import build
from kb.index.faiss import FaissStore
from kb.index.fsck import check_index

OLD = {"records.jsonl": b"old\n" * 500, "dense.safetensors": b"o" * 100, "articles.jsonl": b"the same\n"}
NEW = {"records.jsonl": b"new!\n" * 500, "dense.safetensors": b"n" * 100, "articles.jsonl": b"the same\n"}

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX files")


def publish(folder: Path, files: dict[str, bytes]) -> str:
    with snapshot.locked(folder):
        return snapshot.publish(folder, files, {"kb": "test"})


def content(folder: Path) -> dict[str, bytes]:
    """What a reader sees."""
    manifest, _ = snapshot.read_manifest(folder)
    return {
        f"{stem}.{entry['name'].rpartition('.')[2]}": snapshot.read_file(folder, entry)
        for stem, entry in manifest["files"].items()
    }


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {".lock"}


def named(folder: Path) -> set[str]:
    """The files that the manifest names, and itself."""
    manifest, _ = snapshot.read_manifest(folder)
    return {entry["name"] for entry in manifest["files"].values()} | {snapshot.MANIFEST}


# commit


def test_what_was_committed_is_read_back(tmp_path: Path) -> None:
    identity = publish(tmp_path / "index", OLD)
    assert content(tmp_path / "index") == OLD
    assert snapshot.read_manifest(tmp_path / "index")[1] == identity
    assert names(tmp_path / "index") == named(tmp_path / "index")


def test_same_content_same_names_and_id(tmp_path: Path) -> None:
    ids = {publish(tmp_path / name, OLD) for name in ("a", "b", "a")}
    assert len(ids) == 1
    assert names(tmp_path / "a") == names(tmp_path / "b")
    assert publish(tmp_path / "a", NEW) not in ids
    assert publish(tmp_path / "a", OLD) in ids


def test_a_commit_leaves_only_its_own_files(tmp_path: Path) -> None:
    publish(tmp_path, OLD)
    before = names(tmp_path)
    publish(tmp_path, NEW)
    assert names(tmp_path) == named(tmp_path) | {"home", "here"}
    assert len(before - names(tmp_path)) == 2  # the third file is the same in both


def test_the_same_file_is_not_written_again(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    publish(folder, OLD)
    same = folder / snapshot.read_manifest(folder)[0]["files"]["articles"]["name"]
    before = same.stat()
    publish(folder, NEW)
    assert (same.stat().st_ino, same.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_damaged_file_of_the_right_name_is_written_again(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    publish(folder, OLD)
    victim = folder / snapshot.read_manifest(folder)[0]["files"]["records"]["name"]
    victim.write_bytes(b"x" * victim.stat().st_size)
    publish(folder, OLD)
    assert content(folder) == OLD


def test_the_sweep_takes_only_files_of_our_own_pattern(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    publish(folder, OLD)
    target = tmp_path / "precious.txt"
    target.write_text("precious")
    foreign = [
        "notes.txt",
        "records.jsonl",
        "records-0123456789AB.jsonl",
        "records-0123456789ab.jsonl.bak",
        ".tmp-notes",
    ]
    for name in foreign:
        (folder / name).write_text("keep me")
    (folder / "subfolder").mkdir()
    (folder / "subfolder" / "records-0123456789ab.jsonl").write_text("keep me")
    (folder / "rows-0123456789ab.safetensors").mkdir()
    left_behind = ["records-0123456789ab.jsonl", "dense-ba9876543210.safetensors", ".tmp-12345-manifest.json"]
    for name in left_behind:
        (folder / name).write_text("an older kb wrote me")
    if sys.platform != "win32":
        (folder / "link").symlink_to(target)
        (folder / "dangling").symlink_to(folder / "nowhere")
        (folder / "dense-000000000000.safetensors").symlink_to(target)
    before = names(folder)
    publish(folder, OLD)
    links = {"dense-000000000000.safetensors"} & before  # a link of our name may go; what it points to may not
    assert before - names(folder) - links == set(left_behind)
    assert target.read_text() == "precious"


@posix
def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    target = tmp_path / "precious.txt"
    target.write_text("precious")
    folder = tmp_path / "index"
    folder.mkdir()
    (folder / snapshot.MANIFEST).symlink_to(target)
    (folder / f".tmp-{os.getpid()}-manifest.json").symlink_to(target)
    publish(folder, OLD)
    assert content(folder) == OLD
    assert target.read_text() == "precious"


@posix
def test_a_lock_that_is_a_link_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "precious.txt"
    target.write_text("precious")
    folder = tmp_path / "index"
    folder.mkdir()
    (folder / ".lock").symlink_to(target)
    with pytest.raises(IndexWriteFailed):
        publish(folder, OLD)
    assert target.read_text() == "precious"


@posix
def test_files_are_synced_before_they_are_named_and_named_before_the_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "index"
    publish(folder, OLD)
    log: list[tuple[str, int, str]] = []  # what, inode, name
    fsync, replace, unlink = os.fsync, Path.replace, Path.unlink

    def note_fsync(fileno: int) -> None:
        fsync(fileno)
        log.append(("fsync", os.fstat(fileno).st_ino, ""))

    def note_replace(self: Path, target: Path) -> Path:
        log.append(("replace", self.stat().st_ino, Path(target).name))
        return replace(self, target)

    def note_unlink(self: Path, missing_ok: bool = False) -> None:
        unlink(self, missing_ok)
        log.append(("unlink", 0, self.name))

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(Path, "replace", note_replace)
    monkeypatch.setattr(Path, "unlink", note_unlink)
    publish(folder, NEW)
    replaced = [i for i, entry in enumerate(log) if entry[0] == "replace"]
    assert len(replaced) == 3
    for i in replaced:
        assert ("fsync", log[i][1], "") in log[:i], f"{log[i][2]} is named before its bytes are safe"
    commit = next(i for i in replaced if log[i][2] == snapshot.MANIFEST)
    assert commit == replaced[-1]
    of_folder = [i for i, entry in enumerate(log) if entry[:2] == ("fsync", folder.stat().st_ino)]
    assert any(replaced[-2] < i < commit for i in of_folder), "the names are not safe before the commit"
    assert any(commit < i for i in of_folder), "the commit itself is not safe"
    removed = [i for i, entry in enumerate(log) if entry[0] == "unlink"]
    assert removed
    assert min(removed) > max(of_folder), "the old files go before the new ones are safe"


# the lock


HOLD = """
import sys, time
from pathlib import Path
from kb.index.snapshot import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@contextlib.contextmanager
def holder(folder: Path) -> Iterator[subprocess.Popen[str]]:
    with running([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        yield child


def test_a_second_writer_is_told_at_once_and_gets_in_when_the_first_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    publish(folder, OLD)
    with holder(folder) as child:
        started = time.monotonic()
        with pytest.raises(IndexBusy, match=str(child.pid)):
            publish(folder, NEW)
        assert time.monotonic() - started < 30  # the other holds it for ever
        assert content(folder) == OLD  # readers are not held up
        child.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))
        child.wait()
        publish(folder, NEW)
    assert content(folder) == NEW


def test_the_lock_is_free_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), snapshot.locked(tmp_path):
        1 / 0  # noqa: B018
    publish(tmp_path, OLD)


@pytest.mark.thorough
def test_a_second_build_says_who_is_building(tmp_path: Path, write: Write) -> None:
    folder = tmp_path / "index"
    folder.mkdir()
    articles = write({"en/a.md": article("boom")})
    with holder(folder) as child:
        command = [sys.executable, "-m", "kb", "build", "--articles", str(articles), "--index", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == IndexBusy.exit_code
        assert f"process {child.pid}" in done.stderr


# faults while writing


class Faults:
    """Makes the n-th call that touches the disk fail. `hit` tells which it was."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, n: int, code: int) -> None:
        self.left, self.code, self.hit = n, code, ""
        fsync, replace, unlink, iterdir, os_open = os.fsync, Path.replace, Path.unlink, Path.iterdir, os.open
        path_open = Path.open
        faults = self

        class Torn(io.FileIO):
            def write(self, data: Any) -> int:
                faults.step("write", lambda: io.FileIO.write(self, bytes(data)[: len(data) // 2]))
                return super().write(data)

        def open_torn(path: Path, mode: str = "r", *args: Any, **more: Any) -> Any:
            if mode == "xb":
                self.step("open")
                return io.BufferedWriter(Torn(str(path), "xb"))
            return path_open(path, mode, *args, **more)

        def call(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
            def wrapped(*args: Any, **more: Any) -> Any:
                self.step(name)
                return function(*args, **more)

            return wrapped

        monkeypatch.setattr(Path, "open", open_torn)
        monkeypatch.setattr(os, "fsync", call("fsync", fsync))
        monkeypatch.setattr(os, "open", call("open folder", os_open))
        monkeypatch.setattr(Path, "replace", call("replace", replace))
        monkeypatch.setattr(Path, "unlink", call("unlink", unlink))
        monkeypatch.setattr(Path, "iterdir", call("iterdir", iterdir))

    def step(self, name: str, before: Callable[[], Any] = lambda: None) -> None:
        self.left -= 1
        if self.left == 0:
            self.hit = name
            before()
            raise OSError(self.code, os.strerror(self.code))


@posix
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT], ids=errno.errorcode.get)
def test_a_fault_at_any_step_leaves_the_old_snapshot_or_the_new(tmp_path: Path, code: int) -> None:
    failed, survived = [], []
    for n in range(1, 100):
        folder = tmp_path / f"index{n}"
        publish(folder, OLD)
        with snapshot.locked(folder):  # taking the lock is not the commit's affair
            with pytest.MonkeyPatch.context() as monkeypatch:
                faults = Faults(monkeypatch, n, code)
                try:
                    snapshot.publish(folder, NEW, {"kb": "test"})
                    error = None
                except IndexWriteFailed as failure:
                    error = failure
            if not faults.hit:
                break
        found = content(folder)
        assert found in (OLD, NEW), (n, faults.hit)
        if error:
            failed.append(faults.hit)
            assert os.strerror(code) in error.message
            assert error.path is not None
            plain = [Path(file).stem for file in NEW] + ["manifest"]
            assert Path(error.path) == folder or Path(error.path).name.startswith(tuple(plain)), error.path
            assert (Path(error.path) == folder) == (faults.hit == "open folder" or error.path == str(folder)), (
                error.path
            )
            if found == NEW:
                assert "untouched" not in (error.hint or ""), (n, faults.hit)
        else:
            survived.append(faults.hit)
            assert found == NEW, (n, faults.hit)
        assert not error or not [name for name in names(folder) if name.startswith(".tmp-")]
        publish(folder, NEW)
        assert content(folder) == NEW
        assert names(folder) == named(folder), (n, faults.hit)
    assert set(failed) == {"open", "write", "fsync", "replace", "open folder"}
    # What follows the commit may fail without harm, and so may the look at the manifest that is there.
    assert set(survived) == {"unlink", "iterdir", "open folder"}
    assert failed.count("fsync") == 5  # two files, the folder, the manifest, the folder


@posix
@pytest.mark.parametrize("fault", ["write", "fsync", "replace"])
def test_a_failed_write_names_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    named_files = []
    for n in range(1, 30):
        with pytest.MonkeyPatch.context() as patch:
            faults = Faults(patch, n, errno.ENOSPC)
            try:
                snapshot.publish(tmp_path, NEW, {})
            except IndexWriteFailed as error:
                if faults.hit == fault:
                    assert error.path is not None
                    named_files.append(Path(error.path).name.partition("-")[0])
        for path in tmp_path.glob("*-*"):
            path.unlink()
    assert set(named_files) - {tmp_path.name} == {"records", "dense", "articles", "manifest.json"}


@posix
@pytest.mark.parametrize("step", ["unlink", "open"])
@pytest.mark.parametrize("spool", [1, 2, 3, 4])
def test_a_segment_that_cannot_be_begun_is_told(
    step: str, spool: int, tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before there is a file to write to: no inode is left, or what a killed build left cannot be removed."""
    articles = write({"en/a.md": article("boom at 7")})
    publish(tmp_path / "index", OLD)
    if step == "unlink":  # a killed build, whose process had our number
        build(articles, tmp_path / "other", encoder=FakeEncoder())
        for path in (tmp_path / "other").glob("*-*"):
            left_behind = f".tmp-{os.getpid()}-{path.name.partition('-')[0]}{path.suffix}"
            (tmp_path / "index" / left_behind).touch()
    calls = 0
    module, name = (Path, "unlink") if step == "unlink" else (os, "open")
    before = getattr(module, name)

    def fail(path: Any, *rest: Any, **named: Any) -> Any:
        nonlocal calls
        if re.search(r"\.tmp-\d+-(records|profiles|views|rows|lexical|prints|dense)\.", str(path)):
            calls += 1
            if calls == spool:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return before(path, *rest, **named)

    with monkeypatch.context() as patch, pytest.raises(IndexWriteFailed, match="No space left") as caught:
        patch.setattr(module, name, fail)
        build(articles, tmp_path / "index", encoder=FakeEncoder())
    assert calls >= spool and ".tmp-" in str(caught.value.path)
    assert content(tmp_path / "index") == OLD
    assert names(tmp_path / "index") == named(tmp_path / "index")


@posix
def test_a_disk_without_a_byte_to_spare(tmp_path: Path) -> None:
    """Not even the lock's process number can be written."""
    import resource

    folder = tmp_path / "index"
    publish(folder, OLD)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        with pytest.raises(IndexWriteFailed) as caught:
            publish(folder, NEW)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "records" in str(caught.value)
    assert content(folder) == OLD


@posix
def test_an_interrupt_while_writing_leaves_the_old_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "index"
    publish(folder, OLD)

    def interrupt(fileno: int) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "fsync", interrupt)
        publish(folder, NEW)
    assert content(folder) == OLD
    assert names(folder) == named(folder)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that other users can enter, unlike tmp_path."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
    shutil.rmtree(folder)


@contextlib.contextmanager
def nobody() -> Iterator[None]:
    """Root may write everywhere: be somebody else for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        for module in (os, np, kb):  # what is imported late must be readable too
            if not os.access(str(module.__file__), os.R_OK, effective_ids=True):
                pytest.skip(
                    f"another user cannot read {module.__file__}: Python or the checkout lies in a closed folder"
                )
        yield
    finally:
        os.seteuid(0)


@posix
def test_a_folder_that_cannot_be_written_is_searched_but_not_built(shared: Path, encoder: FakeEncoder) -> None:
    (shared / "articles").mkdir()
    (shared / "articles" / "a.md").write_text(article("boom at 7"))
    build(shared / "articles", shared / "index", encoder=encoder)
    before = {path.name: path.read_bytes() for path in (shared / "index").iterdir()}
    (shared / "index").chmod(0o555)
    shared.chmod(0o555)
    with nobody():
        with KnowledgeBase.open(shared / "index", encoder=encoder) as base:
            assert base.search("boom at 7").hits[0].issue == "a#1"
        for folder in (shared / "index", shared / "new"):
            with pytest.raises(IndexWriteFailed, match="Permission denied") as caught:
                build(shared / "articles", folder, encoder=encoder)
            assert caught.value.path == str(folder)
    assert {path.name: path.read_bytes() for path in (shared / "index").iterdir()} == before


# hostile manifests


def signed(whole: dict[str, Any]) -> bytes:
    """A manifest whose own sha256 is right, so that what else is wrong with it has to be found."""
    whole = {key: value for key, value in whole.items() if key != "sha256"}
    return json.dumps({**whole, "sha256": snapshot._digest(whole)}).encode("utf-8", "surrogatepass")


def manifest(**changes: Any) -> bytes:
    digest = "0" * 64
    entry = {"name": "records-000000000000.jsonl", "bytes": 3, "sha256": digest}
    whole = {"format": 1, "files": {"records": entry}, "encoder": {"dim": 1, "name": "fake"}, "counts": {"records": 1}}
    return signed({**whole, **changes})


def entry(**changes: Any) -> bytes:
    return manifest(
        files={"records": {"name": "records-000000000000.jsonl", "bytes": 3, "sha256": "0" * 64, **changes}}
    )


HOSTILE = {
    "empty": b"",
    "no JSON": b"this is no JSON",
    "cut": manifest()[:-20],
    "not UTF-8": b'{"format": 1, "files": {"\xff": 1}}',
    "UTF-16": manifest().decode().encode("utf-16"),
    "NULs": b"\0" * 300,
    "huge": b'{"format": 1, "files": {}, "x": "' + b"x" * (2 << 20) + b'"}',
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "long number": b'{"format": ' + b"1" * 10_000 + b', "files": {}}',
    "a list": b"[]",
    "a number": b"1",
    "null": b"null",
    "no keys": b"{}",
    "no files": b'{"format": 1}',
    "files a list": b'{"format": 1, "files": ["records"]}',
    "files empty": b'{"format": 1, "files": {}}',
    "entry a string": manifest(files={"records": "records-000000000000.jsonl"}),
    "entry null": manifest(files={"records": None}),
    "no sha256": manifest(files={"records": {"name": "records-000000000000.jsonl", "bytes": 3}}),
    "sha256 null": entry(sha256=None),
    "sha256 short": entry(sha256="00"),
    "sha256 a list": entry(sha256=[0] * 64),
    "bytes a string": entry(bytes="3"),
    "newer format": manifest(format=2),
    "format a string": manifest(format="1"),
    "format null": manifest(format=None),
    "parent": entry(name="../outside.txt"),
    "parent of our form": entry(name="../records-000000000000.jsonl"),
    "absolute": entry(name="/etc/passwd"),
    "subfolder": entry(name="sub/records-000000000000.jsonl"),
    "NUL": entry(name="records-000000000000.jsonl\0"),
    "line break": entry(name="records-000000000000.jsonl\n"),
    "other suffix": entry(name="records-000000000000.pickle"),
    "name a number": entry(name=7),
    "missing file": entry(),
    "encoder null": manifest(encoder=None),
}


_opened: list[str] | None = None


def _listen(event: str, arguments: tuple[Any, ...]) -> None:
    if _opened is not None and event == "open" and not isinstance(arguments[0], int):  # a number was opened before
        _opened.append(os.fsdecode(arguments[0]))


sys.addaudithook(_listen)  # a hook stays until the process ends; it is deaf but in `listening`


@contextlib.contextmanager
def listening() -> Iterator[list[str]]:
    """Every path that Python opens meanwhile."""
    global _opened
    _opened = []
    try:
        yield _opened
    finally:
        _opened = None


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Articles of three issues and their index, made once."""
    root = tmp_path_factory.mktemp("built")
    for lang, text in (("en", article("boom at 7", "crash of rank 3")), ("zh", article("mismatch", project="Other"))):
        (root / "articles" / lang).mkdir(parents=True)
        (root / "articles" / lang / f"{'a' if lang == 'en' else 'b'}.md").write_text(text)
    build(root / "articles", root / "index", encoder=FakeEncoder())
    return root


@pytest.fixture
def index(tmp_path: Path, built: Path) -> Path:
    """A copy of that index, its articles beside it, and a file that is none of its business."""
    for name in ("articles", "index"):
        shutil.copytree(built / name, tmp_path / name)
    (tmp_path / "outside.txt").write_text("outside")
    return tmp_path / "index"


def ask(folder: Path) -> Any:
    """What a search answers: everything that a reader would see."""
    with KnowledgeBase.open(folder, encoder=FakeEncoder()) as base:
        result = base.search("RuntimeError: boom at 7", k=10)
    return [(hit.record, hit.score, hit.matched) for hit in result.hits]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_manifest_is_refused_and_leads_nowhere(index: Path, name: str) -> None:
    (index / snapshot.MANIFEST).write_bytes(HOSTILE[name])
    with listening() as opened, pytest.raises(IndexCorrupt) as caught:
        FaissStore(index)
    opened = [path for path in opened if not path.startswith((sys.prefix, sys.base_prefix))]  # Python's own
    assert {Path(path).parent for path in opened} <= {index}, opened
    assert str(index) in str(caught.value)
    assert len(str(caught.value)) < 500
    with pytest.raises(IndexCorrupt):
        ask(index)


@pytest.mark.parametrize("stem", ["records", "rows", "dense", "lexical", "prints"])
@pytest.mark.parametrize("where", ["../{name}", "sub/{name}", "{folder}/{name}", "other.txt", "{name}\n", "{name}\0"])
def test_a_name_that_leads_elsewhere_is_refused_though_the_file_is_right(index: Path, stem: str, where: str) -> None:
    path = index / snapshot.MANIFEST
    whole = json.loads(path.read_text())
    name = whole["files"][stem]["name"]
    (index / "sub").mkdir()
    for copy in (index.parent / name, index / "sub" / name, index / "other.txt"):
        shutil.copy(index / name, copy)
    whole["files"][stem]["name"] = where.format(name=name, folder=index.parent)
    path.write_bytes(signed(whole))
    with listening() as opened, pytest.raises(IndexCorrupt, match="manifest"):
        FaissStore(index)
    assert [Path(file).name for file in opened] == [snapshot.MANIFEST]


def test_the_audit_hears_a_reader(index: Path) -> None:
    """The test above can fail: what is opened is heard."""
    with listening() as opened:
        FaissStore(index)
    assert {Path(path).name for path in opened} >= {
        "manifest.json",
        *(n for n in named(index) if n[:3] in ("row", "rec")),
    }


def test_an_unknown_format_is_named_with_the_command_that_helps(index: Path) -> None:
    (index / snapshot.MANIFEST).write_bytes(manifest(format=99))
    with pytest.raises(IndexCorrupt, match="format 99") as caught:
        FaissStore(index)
    assert "kb build" in (caught.value.hint or "")


def test_unknown_keys_are_ignored(index: Path) -> None:
    path = index / snapshot.MANIFEST
    right = ask(index)
    path.write_bytes(signed({**json.loads(path.read_text()), "a later kb": {"wrote": "this"}}))
    assert ask(index) == right


@pytest.mark.parametrize("key", ["encoder", "counts", "files"])
def test_a_missing_key_is_an_error(index: Path, key: str) -> None:
    path = index / snapshot.MANIFEST
    whole = json.loads(path.read_text())
    del whole[key]
    path.write_bytes(signed(whole))
    with pytest.raises(IndexCorrupt):
        ask(index)


@pytest.mark.parametrize("key", ["probe", "dim", "name"])
@pytest.mark.parametrize("value", [None, [], {}, 0, [["x"]], [[1, 2], [3]]], ids=repr)
def test_a_wrong_encoder_entry_is_one_of_our_errors(index: Path, key: str, value: Any) -> None:
    path = index / snapshot.MANIFEST
    whole = json.loads(path.read_text())
    whole["encoder"][key] = value
    path.write_bytes(signed(whole))
    if key == "name":
        with pytest.raises(KbError):
            KnowledgeBase.open(index)
    else:
        with pytest.raises(KbError):
            ask(index)


@pytest.mark.parametrize("value", [None, "x", 7, {"a": 1}, [1]], ids=repr)
@pytest.mark.parametrize("key", ["projects", "folder"])
def test_wrong_plain_entries_are_one_of_our_errors_or_do_no_harm(index: Path, key: str, value: Any) -> None:
    path = index / snapshot.MANIFEST
    whole = json.loads(path.read_text())
    whole[key] = value
    path.write_bytes(signed(whole))
    with contextlib.suppress(KbError), KnowledgeBase.open(index, encoder=FakeEncoder()) as base:
        json.dumps(base.search("boom at 7", project="Demo").as_dict())


def test_no_manifest_no_index(tmp_path: Path) -> None:
    for folder in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(IndexMissing):
            FaissStore(folder)


# damaged files


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def swap(path: Path) -> None:
    other = next(p for p in sorted(path.parent.glob(f"*{path.suffix}")) if p != path)
    data = path.read_bytes()
    path.write_bytes(other.read_bytes())
    other.write_bytes(data)


def link(path: Path) -> None:
    """To the very same bytes elsewhere."""
    target = path.parent.parent / "outside.txt"
    path.replace(target)
    path.symlink_to(target)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder_instead(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "removed": Path.unlink,
    "emptied": lambda path: path.write_bytes(b""),
    "cut by a byte": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "halved": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "zeroed": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "random": lambda path: path.write_bytes((b"\x9e\x37\x79\xb9" * path.stat().st_size)[: path.stat().st_size]),
    "a bit flipped": flip,
    "appended to": lambda path: path.write_bytes(path.read_bytes() + b"\n"),
    "swapped": swap,
    "a folder": folder_instead,
    "a link": link,
    "a pipe": pipe,
}
if sys.platform == "win32":
    del DAMAGE["a link"], DAMAGE["a pipe"]


def file_of(index: Path, stem: str) -> Path:
    return index / snapshot.read_manifest(index)[0]["files"][stem]["name"]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("stem", ["records", "rows", "dense", "lexical"])
def test_a_damaged_file_is_named_and_nothing_is_answered(index: Path, stem: str, damage: str) -> None:
    path = file_of(index, stem)
    if damage == "a pipe" and not hasattr(signal, "alarm"):
        pytest.skip("no alarm here")
    DAMAGE[damage](path)
    with deadline(5), pytest.raises(IndexCorrupt) as caught:
        ask(index)
    with deadline(5):
        found = check_index(index)
    if damage == "swapped":  # two are damaged, and the first one met is named
        assert Path(caught.value.path or "").name in {file.name for file in index.glob(f"*{path.suffix}")}
    else:
        assert caught.value.path == str(path)
        assert [finding.path for finding in found if finding.level == "error"] == [str(path)]
    assert caught.value.exit_code == 65
    assert caught.value.hint


@pytest.mark.parametrize("damage", DAMAGE)
def test_the_list_of_articles_is_no_part_of_an_answer_but_is_checked(index: Path, damage: str) -> None:
    right = ask(index)
    path = file_of(index, "articles")
    DAMAGE[damage](path)
    if damage != "swapped":  # with the records
        assert ask(index) == right
    with deadline(5):
        assert str(path) in [finding.path for finding in check_index(index) if finding.level == "error"]


@pytest.mark.thorough
def test_a_check_holds_one_record_at_a_time(write: Write, tmp_path: Path) -> None:
    """Of a million records all of them would be many gigabytes."""
    articles = write({f"en/a{n}.md": article(f"boom {n}", fix=f"Set it to {n}. " * 10_000) for n in range(40)})
    build(articles, tmp_path / "index")
    check_index(tmp_path / "index")  # loads what a process loads once
    tracemalloc.start()
    try:
        check_index(tmp_path / "index")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert file_of(tmp_path / "index", "records").stat().st_size > 5_000_000
    assert most < 3_000_000


@pytest.mark.parametrize("damage", [*DAMAGE, "manifest cut", "manifest removed"])
@pytest.mark.parametrize("stem", ["records", "rows", "dense", "lexical", "prints", "articles"])
def test_a_build_mends_what_is_damaged(
    index: Path, tmp_path: Path, encoder: FakeEncoder, stem: str, damage: str
) -> None:
    before = {name: (index / name).read_bytes() for name in named(index)}
    path = file_of(index, stem)
    if damage == "manifest cut":
        (index / snapshot.MANIFEST).write_bytes(before[snapshot.MANIFEST][:-7])
    elif damage == "manifest removed":
        (index / snapshot.MANIFEST).unlink()
    else:
        DAMAGE[damage](path)
    if damage == "a folder":  # not ours to remove: the build says so
        with pytest.raises(IndexWriteFailed) as caught:
            build(tmp_path / "articles", index, encoder=encoder)
        assert path.name in str(caught.value)
        return
    with deadline(5):
        build(tmp_path / "articles", index, encoder=encoder)
    assert {name: (index / name).read_bytes() for name in named(index)} == before
    assert not path.is_symlink()


@contextlib.contextmanager
def deadline(seconds: int) -> Iterator[None]:
    """Ends what hangs with an error."""
    if not hasattr(signal, "alarm"):
        yield
        return

    def ring(*_: object) -> None:
        raise TimeoutError(f"still busy after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_every_single_bit_counts(index: Path) -> None:
    """A flipped bit anywhere in a file is found when the file is read."""
    for stem in ("rows", "dense", "lexical"):
        path = file_of(index, stem)
        whole = path.read_bytes()
        for at in range(0, len(whole) * 8, len(whole) * 8 // 40 + 1):
            damaged = bytearray(whole)
            damaged[at // 8] ^= 1 << at % 8
            path.write_bytes(damaged)
            with pytest.raises(IndexCorrupt, match=path.name):
                FaissStore(index)
        path.write_bytes(whole)


def test_a_damaged_record_is_not_shown(index: Path) -> None:
    path = file_of(index, "records")
    whole = path.read_bytes()
    for at in range(0, len(whole), 97):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        store = FaissStore(index)
        with pytest.raises(IndexCorrupt, match=path.name):
            store.records(range(store.size))
        store.close()


def test_a_flipped_bit_in_the_manifest_is_noticed(index: Path) -> None:
    path = index / snapshot.MANIFEST
    whole = path.read_bytes()
    meant = json.loads(whole)
    for at in range(0, len(whole) * 8, 131):
        damaged = bytearray(whole)
        damaged[at // 8] ^= 1 << at % 8
        with contextlib.suppress(ValueError):
            if json.loads(bytes(damaged)) == meant:  # white space
                continue
        path.write_bytes(damaged)
        with pytest.raises(IndexCorrupt):
            FaissStore(index)


def test_whole_files_that_do_not_belong_together_are_refused(
    index: Path, tmp_path: Path, write: Write, encoder: FakeEncoder
) -> None:
    """Ids off by one with confident answers: mem0 #7117."""
    build(write({"a.md": article("boom at 7")}, "others"), tmp_path / "other", encoder=encoder)
    theirs, _ = snapshot.read_manifest(tmp_path / "other")
    ours, _ = snapshot.read_manifest(index)
    for path in (tmp_path / "other").glob("*-*"):
        shutil.copy(path, index)
    for stem in ("records", "rows", "dense", "lexical", "prints"):
        mixed = {**ours, "files": {**ours["files"], stem: theirs["files"][stem]}}
        (index / snapshot.MANIFEST).write_bytes(signed(mixed))
        with pytest.raises(IndexCorrupt):
            _ = FaissStore(index).prints() if stem == "prints" else ask(index)


# readers while somebody builds


def test_an_open_reader_outlives_the_sweep(index: Path, tmp_path: Path, write: Write, encoder: FakeEncoder) -> None:
    with KnowledgeBase.open(index, encoder=encoder) as base:
        before = base.search("boom at 7").as_dict()
        files = named(index)
        for error in ("another", "a third"):
            build(write({"en/a.md": article(error), "zh/b.md": article(error)}), index, encoder=encoder)
        assert not any((index / name).exists() for name in files - {snapshot.MANIFEST})
        after = base.search("boom at 7").as_dict()
    assert {**after, "took_ms": 0} == {**before, "took_ms": 0}


def test_a_reader_starts_again_when_the_index_is_replaced_under_it(
    index: Path, tmp_path: Path, write: Write, encoder: FakeEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_manifest, rounds = snapshot.read_manifest, iter(["second", "third"])

    def read_and_lose_the_race(folder: Path) -> Any:
        found = read_manifest(folder)
        if error := next(rounds, None):
            build(write({"en/a.md": article(error), "zh/b.md": article(error)}), index, encoder=encoder)
        return found

    articles = tmp_path / "articles"
    monkeypatch.setattr("kb.index.pieces.FaissStore", lambda folder: (_ for _ in ()).throw(IndexMissing("not now")))
    with monkeypatch.context() as patch:
        patch.setattr(snapshot, "read_manifest", read_and_lose_the_race)
        store = FaissStore(index)
    assert {record.errors for record in store.records(range(store.size))} == {("RuntimeError: third",)}
    assert articles.exists()


@pytest.mark.thorough
def test_open_and_search_run_no_code_from_data(index: Path) -> None:
    script = """
import sys
from pathlib import Path
import kb.base, kb.components, kb.encoders.static, kb.index.faiss, faiss, faiss.contrib, json
from conftest import FakeEncoder
import numpy.random
FakeEncoder().encode(["warm"], kind="query")
def forbid(event, arguments):
    if event in ("pickle.find_class", "marshal.loads", "marshal.load", "exec", "socket.connect", "subprocess.Popen"):
        raise SystemExit(f"{event} {arguments}")
sys.addaudithook(forbid)
with kb.base.KnowledgeBase.open(sys.argv[1], encoder=FakeEncoder()) as base:
    assert base.search("boom at 7").hits
"""
    here = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(here), str(here.parent)))}
    subprocess.run([sys.executable, "-c", script, str(index)], check=True, env=environment)
