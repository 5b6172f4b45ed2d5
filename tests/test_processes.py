"""Several processes, other users, another machine: what a build and a search do, seen from outside.

What strace writes down is compared with what kb promises: bytes are safe before they are named, names before the
manifest; nobody is called. Without strace, or where namespaces are not allowed, a test says that it is skipped."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import THOROUGH, FakeEncoder, Write, article

from kb import KnowledgeBase
from kb.errors import ArticleError, IndexBusy
from kb.index.build import BuildFailed, build

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX files and processes")
needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
ERROR, DEQUE = "IndexError: pop from an empty deque", "ms-swift-ovis2-grpo#2"


def kb(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "kb", *arguments]


def traced(command: list[str], log: Path, calls: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Runs the command and writes the calls down, with the paths of descriptors."""
    strace = ["strace", "-f", "-y", "-s", "0", "-o", str(log), "-e", f"trace={calls}"]
    try:
        return subprocess.run([*strace, *command], capture_output=True, env={**os.environ, **environment}, timeout=120)
    except subprocess.TimeoutExpired:
        pytest.skip("this machine is too busy to be traced")


# the order of writing

_CALL = re.compile(r"^\d+ +(\w+)\((.*)\) += (\d+)", re.MULTILINE)
_QUOTED = re.compile(r'"([^"]*)"')
_OF_DESCRIPTOR = re.compile(r"^\d+<([^>]*)>")
ORDER = "?write,?pwrite64,?writev,?pwritev,?ftruncate,?fsync,?fdatasync,?rename,?renameat,?renameat2,?unlink,?unlinkat"


def wrong_order(log: str, index: str) -> list[str]:
    """What a power failure could tear: a name before its bytes, the manifest before the names, a removal too early."""
    wrong: list[str] = []
    dirty: set[str] = set()  # files whose last bytes may be lost
    unsafe: list[str] = []  # names that may be lost
    committed = False
    for call, arguments, _ in _CALL.findall(log):
        file = found[1] if (found := _OF_DESCRIPTOR.match(arguments)) else ""
        if call in ("fsync", "fdatasync"):
            dirty.discard(file)
            if file == index:
                unsafe.clear()
        elif call.startswith("rename"):
            source, target = _QUOTED.findall(arguments)
            name = os.path.basename(target)
            if os.path.dirname(target) != index or name.startswith("."):  # `.stamp` and the like are hints
                continue
            if source in dirty:
                wrong.append(f"{name} is named before its bytes are safe")
            if name == "manifest.json":
                if unsafe:
                    wrong.append(f"the commit comes before the names of {unsafe} are safe")
                committed = True
            elif committed:
                wrong.append(f"{name} is named after the commit")
            unsafe.append(name)
        elif call.startswith("unlink"):
            name = os.path.basename(_QUOTED.findall(arguments)[-1])
            if re.match(r"[a-z]+-[0-9a-f]{12}\.", name) and (unsafe or not committed):
                wrong.append(f"{name} is removed before the commit is safe")
        elif file.startswith(f"{index}/"):
            dirty.add(file)
    if not committed:
        wrong.append("nothing was committed")
    if unsafe:
        wrong.append(f"the names of {unsafe} are not safe at the end")
    return wrong


@pytest.mark.thorough
@posix
@needs_strace
def test_bytes_are_safe_before_they_are_named_and_names_before_the_manifest(tmp_path: Path, write: Write) -> None:
    """Of a whole `kb build` over an older index, as the kernel saw it."""
    index = Path(os.path.realpath(tmp_path)) / "index"
    KnowledgeBase.build(write({"en/a.md": article("boom")}), index)
    articles = write({"en/a.md": article("boom at 7", "crash of rank 3")})
    log = tmp_path / "log"
    done = traced(kb("build", "--articles", str(articles), "--index", str(index)), log, ORDER)
    if b"ptrace" in done.stderr.lower() and done.returncode:
        pytest.skip("tracing is not allowed here")
    assert done.returncode == 0, done.stderr
    text = log.read_text(errors="replace")
    assert wrong_order(text, str(index)) == []
    removals = [line for line in text.splitlines() if re.search(r'unlink(at)?\(.*[/"][a-z]+-[0-9a-f]{12}\.', line)]
    assert len(removals) > 1, "the old files were swept"
    # Without any one of its syncs, and with the old files removed at once, the same build would have been torn.
    lines = text.splitlines()
    hint = re.compile(r"/\.(?!tmp-\d+-[a-z])")
    ours = [at for at, line in enumerate(lines) if "sync(" in line and f"<{index}" in line and not hint.search(line)]
    assert len(ours) >= 4
    for at in ours:
        assert wrong_order("\n".join([*lines[:at], *lines[at + 1 :]]), str(index)), lines[at]
    assert wrong_order("\n".join([removals[0], *lines]), str(index))


# builders beside each other

BUILD_AT_ONCE = """
import os, sys, time
from pathlib import Path
from types import SimpleNamespace
from conftest import FakeEncoder
from kb.errors import IndexBusy
from kb.index.build import build
class Slow(FakeEncoder):
    def encode(self, texts, *, kind):
        time.sleep(0.1)
        return super().encode(texts, kind=kind)
begin, end = os.pipe()
children = []
for n in range(int(sys.argv[3])):
    child = os.fork()
    if not child:
        os.close(end)
        os.read(begin, 1)
        try:
            build(Path(sys.argv[1]), Path(sys.argv[2]), encoder=Slow())
        except IndexBusy as error:
            os.write(1, (error.message + os.linesep).encode())  # whole, beside the others
            os._exit(error.exit_code)
        os._exit(0)
    children.append(child)
os.close(end)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
print("codes", *codes)
"""


@pytest.mark.thorough
@posix
@pytest.mark.parametrize("count", [2, 8])
def test_of_builds_at_once_one_works_and_the_others_say_who(count: int, tmp_path: Path, write: Write) -> None:
    articles = write({"en/a.md": article("boom at 7"), "zh/b.md": article("mismatch")})
    build(write({"en/a.md": article("older")}, "older"), tmp_path / "index", encoder=FakeEncoder())
    here = Path(__file__).parent
    ended = subprocess.run(
        [sys.executable, "-c", BUILD_AT_ONCE, str(articles), str(tmp_path / "index"), str(count)],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join((str(here), str(here.parent)))}
    )  # fmt: skip
    *said, codes = ended.stdout.splitlines()
    found = [int(code) for code in codes.split()[1:]]
    assert len(found) == count
    assert set(found) <= {0, IndexBusy.exit_code}, ended.stderr
    assert found.count(0) >= 1  # the last one may begin when the first is done
    assert len(said) == count - found.count(0)
    for line in said:
        assert "already running" in line and re.search(r"process (\d+|unknown)\)", line), said
    build(articles, tmp_path / "alone", encoder=FakeEncoder())
    assert contents(tmp_path / "index") == contents(tmp_path / "alone")


def contents(index: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in index.iterdir() if not path.name.startswith(".")}


# what else lies there


def test_a_build_leaves_what_is_not_its_own(tmp_path: Path, write: Write, encoder: FakeEncoder) -> None:
    index = tmp_path / "index"
    build(write({"en/a.md": article("boom")}), index, encoder=encoder)
    (tmp_path / "precious").write_text("precious")
    (index / "notes.txt").write_text("mine")
    (index / "model").mkdir()
    (index / "model" / "records-0123456789ab.jsonl").write_text("mine")
    (index / ".git").mkdir()
    if sys.platform != "win32":
        (index / "link").symlink_to(tmp_path / "precious")
        (index / "away").symlink_to(tmp_path)
    before = {path: path.lstat().st_mtime_ns for path in foreign(index)}
    for error in ("another", "a third"):
        build(write({"en/a.md": article(error)}), index, encoder=encoder)
    assert {path: path.lstat().st_mtime_ns for path in foreign(index)} == before
    assert (tmp_path / "precious").read_text() == "precious"


def foreign(index: Path) -> Iterator[Path]:
    yield from (index / name for name in ("notes.txt", "model", "model/records-0123456789ab.jsonl", ".git"))
    yield from (path for path in (index / "link", index / "away") if path.is_symlink())


@posix
@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077])
def test_what_is_written_is_as_open_as_the_user_wants(
    mask: int, tmp_path: Path, write: Write, encoder: FakeEncoder
) -> None:
    before = os.umask(mask)
    try:
        build(write({"en/a.md": article("boom")}), tmp_path / "index", encoder=encoder)
    finally:
        os.umask(before)
    for path in [tmp_path / "index", *(tmp_path / "index").iterdir()]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode & mask == 0, f"{path.name} is {mode:o}"
        assert mode & 0o111 == 0 or path.is_dir()


def test_a_file_of_ten_gigabytes_is_named_and_not_read(tmp_path: Path, write: Write, encoder: FakeEncoder) -> None:
    articles = write({"en/a.md": article("boom")})
    with (articles / "en" / "huge.md").open("wb") as file:
        file.truncate(10 << 30)
    with pytest.raises(BuildFailed) as caught:
        build(articles, tmp_path / "index", encoder=encoder)
    (error,) = caught.value.bad
    assert isinstance(error, ArticleError)
    assert (error.path, "2,000,000" in str(error)) == ("en/huge.md", True)


# without a network


@pytest.mark.thorough
@posix
@needs_strace
@pytest.mark.parametrize("command", ["search", *(["check", "scan", "show", "build", "run"] if THOROUGH else [])])
def test_nobody_is_called(command: str, index: Path, tmp_path: Path, write: Write) -> None:
    """Without the variable that forbids it to a model's library, in a network that has nothing but itself."""
    articles = write({"en/a.md": article("boom at 7")})
    asked = tmp_path / "index" if command == "build" else index
    (tmp_path / "train.log").write_text(f"start\n{ERROR}\n")
    more = {
        "check": [], "scan": [str(tmp_path / "train.log")], "show": [DEQUE], "search": [ERROR],
        "build": ["--articles", str(articles)], "run": ["--", "sh", "-c", f"echo '{ERROR}' >&2; exit 3"],
    }[command]  # fmt: skip
    whole = kb(command, *(["--index", str(asked)] if command != "check" else []), *more)
    alone = ["unshare", "-n"] if allowed(["unshare", "-n", "true"]) else []
    log = tmp_path / "log"
    environment = {"KB_INDEX": str(asked), "HF_HUB_OFFLINE": ""}
    done = traced([*alone, *whole], log, "?connect,?sendto,?sendmsg,?bind,?socket", **environment)
    text = log.read_text(errors="replace")
    if not re.search(r"exited with \d", text):
        pytest.skip("tracing is not allowed here")
    assert done.returncode in ((3,) if command == "run" else (0, 1)), done.stderr  # known or likely, as may be
    said = {"check": b"", "build": b"", "run": b"kb: exit code 3"}.get(command, DEQUE.encode())
    assert said in done.stdout + done.stderr
    assert not [line for line in text.splitlines() if re.search(r"\b(connect|sendto|sendmsg|bind)\(", line)]


def allowed(command: list[str]) -> bool:
    return shutil.which(command[0]) is not None and subprocess.run(command, capture_output=True).returncode == 0


@posix
@needs_strace
def test_a_call_is_seen(tmp_path: Path) -> None:
    """The test above can fail."""
    script = "import socket\ntry: socket.create_connection(('127.0.0.1', 9), 1)\nexcept OSError: pass"
    traced([sys.executable, "-S", "-c", script], tmp_path / "log", "?connect,?sendto")
    if not re.search(r"exited with \d", (tmp_path / "log").read_text()):
        pytest.skip("tracing is not allowed here")
    assert "connect(" in (tmp_path / "log").read_text()


def test_a_process_that_reads_articles_ends_in_silence_with_its_parent() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "from kb.index.processes import serve; serve()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as child:  # fmt: skip
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.close()  # nobody waits for its answers
        pickle.dump(SimpleNamespace(take=str), child.stdin)
        pickle.dump("a job", child.stdin)
        assert child.communicate()[1] == b""
