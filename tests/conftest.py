"""What several tests share: a home of their own, small articles, an encoder of a few dimensions."""

from __future__ import annotations

import gc
import io
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

import kb
from kb import KnowledgeBase
from kb.arrays import Array
from kb.articles.folder import read_articles
from kb.cli.words import speak
from kb.config import settings as kb_settings
from kb.encoders import Kind
from kb.encoders.static import StaticEncoder
from kb.encoders.unigram import FILE_NAME, UnigramTokenizer
from kb.index import locate
from kb.index.user import cache_folder
from kb.records import Article, IssueRecord, Source
from kb.scraped import parse

MODEL = Path(kb.__file__).parent / "model"
SHIPPED = Path(__file__).parents[1] / "articles"
CORPUS = Path(__file__).parent / "corpus"
"""A few articles that never change: what code is tested on. What `articles/` holds is tested in tests/content."""
EMPTY_RECORD = IssueRecord(
    "a#1/en", "a#1", "en", None, *[""] * 8, *[()] * 7, updated="", source=Source("en/a.md", 1, 1)
)
"""for `dataclasses.replace`: a test names only the fields that it is about"""
THOROUGH = os.environ.get("KB_TEST_THOROUGH", "") not in ("", "0")  # CI's second run; the first is what people wait for


def examples(thorough: int) -> int:
    """So many examples of hypothesis where time is no matter, else a fourth of them."""
    return thorough if THOROUGH else max(10, thorough // 4)


CASES_EACH = 2
"""At most so many cases of a parametrized test are asked in the default run."""


def _some(cases: Sequence[pytest.Item]) -> list[pytest.Item]:
    """At most `CASES_EACH`, evenly spread; of a costly test one."""
    most = min(len(cases), 1 if cases[0].get_closest_marker("costly") else CASES_EACH)
    return [cases[len(cases) * n // most] for n in range(most)]


def pytest_report_header() -> str:
    asked = "all tests" if THOROUGH else f"the quick tests, {CASES_EACH} cases of each; KB_TEST_THOROUGH=1 asks all"
    return f"kb: {asked}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """People wait for the default run: it is to take less than a minute on two cores. What somebody names runs."""
    if THOROUGH or config.option.keyword or any("::" in arg for arg in config.args):
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("thorough"):
            item.add_marker(pytest.mark.skip(reason="takes long; KB_TEST_THOROUGH=1 runs it, as CI does"))
        else:
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out = {item for each in cases.values() for item in set(each) - {*_some(each)}}
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]


settings.register_profile("quick", deadline=None, max_examples=examples(100))  # a busy machine is no failure
settings.register_profile("thorough", deadline=None, max_examples=100)
settings.load_profile("thorough" if THOROUGH else "quick")


@pytest.fixture(scope="session", autouse=True)
def hears_ctrl_c() -> Iterator[None]:
    """What nohup or a background job starts inherits that Ctrl-C is ignored, and so would what the tests start."""
    before = signal.getsignal(signal.SIGINT)
    if before == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", autouse=True)
def model_read_once() -> Iterator[None]:
    """Hundreds of tests open a base: vocabulary and checksum of the shipped model are worked out at the first."""
    init, revision = UnigramTokenizer.__init__, StaticEncoder.revision.func  # type: ignore[attr-defined]
    read: dict[tuple[object, ...], Any] = {}

    def state(what: str, *files: Path) -> tuple[object, ...]:
        return (what, *((file, file.stat().st_mtime_ns, file.stat().st_size) for file in files))

    def init_once(self: UnigramTokenizer, folder: Path) -> None:
        if folder != MODEL:
            init(self, folder)
            return
        key = state("vocabulary", folder / FILE_NAME)
        if key not in read:
            init(self, folder)
            read[key] = dict(vars(self))
        vars(self).update(read[key], _memo={})

    def revision_once(self: StaticEncoder) -> str:
        if self._folder != MODEL:
            return str(revision(self))
        key = state("revision", MODEL / "model.safetensors", MODEL / "tokenizer.json")
        if key not in read:
            read[key] = revision(self)
        return str(read[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(UnigramTokenizer, "__init__", init_once)
        patch.setattr(StaticEncoder, "revision", property(revision_once))
        yield


_FOLDERS = count()


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """As pytest's own, which looks through the folders and moves a link: 5 ms for each of thousands of tests."""
    folder = tmp_path_factory.getbasetemp() / f"test{next(_FOLDERS)}"
    folder.mkdir(mode=0o700)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this machine's user is read or written: caches, KB_INDEX and the current folder are the test's own.
    Nor is anything left of the test before: its settings, and the `--lang` of a command that it ran in this process."""
    home = tmp_path / "home"
    home.mkdir()
    here = tmp_path / "here"
    here.mkdir()
    for name in (
        "KB_INDEX",
        "KB_STORE",
        "KB_STORE_TOKEN",
        "KB_STORE_TOKEN_FILE",
        "KB_BASES",
        "KB_LANG",
        "LC_ALL",
        "LC_MESSAGES",
        "LANG",
        "COLUMNS",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "KB_FEEDBACK",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KB_PAGER", "")
    kb_settings.cache_clear()
    speak(None)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(home))
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(home / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("os.fsync", lambda fileno: None)  # that it is called is tested; nobody pulls the plug meanwhile
    monkeypatch.chdir(here)


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index of the frozen articles in tests/corpus, for reading."""
    folder = tmp_path_factory.mktemp("corpus") / "index"
    KnowledgeBase.build(CORPUS, folder)
    return folder


@pytest.fixture(scope="session")
def shipped_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's cache that holds the index of the articles that kb ships. All workers share it: the first one that needs
    it takes seconds, and kb itself makes the others wait."""
    base = tmp_path_factory.getbasetemp()
    home = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shipped"
    home.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("KB_INDEX", "KB_STORE", "KB_BASES", "XDG_CONFIG_HOME"):
            patch.delenv(name, raising=False)
        for name in ("HOME", "USERPROFILE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
            patch.setenv(name, str(home))
        patch.chdir(base)
        KnowledgeBase.open().close()
        return cache_folder()


@pytest.fixture
def shipped_is_built(shipped_cache: Path, alone: None) -> None:
    """For tests in which the bundled base is asked, too: its index lies in the test's own cache."""
    shutil.copytree(shipped_cache, cache_folder(), copy_function=os.link, dirs_exist_ok=True)


@pytest.fixture(scope="session")
def shipped_index(shipped_cache: Path) -> Path:
    """The index of the articles that kb ships, for tests of their content."""
    (manifest,) = shipped_cache.rglob("manifest.json")
    return manifest.parent


@pytest.fixture
def corpus_is_bundled(alone: None, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests in which the bundled base is asked, too, and it is no matter what it knows: a small one."""
    monkeypatch.setattr(locate, "bundled", lambda: locate.Location(index, None, False, bundled=True))


ONE_WORKER = ("tests/content/", "tests/test_encoders.py")
"""Tests whose fixtures cost many seconds: one worker of pytest-xdist runs them, so that these are made once."""

EACH_ALONE = ("tests/test_build.py", "tests/test_hooks.py", "tests/test_importers.py", "tests/test_run.py")
"""Long modules whose tests share nothing: they fill up what the others leave, so that no worker waits at the end."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    if config.getoption("dist") != "load":  # `pytest -n 2` means load
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            module = nodeid.partition("::")[0]
            if module in EACH_ALONE:
                return nodeid.partition("[")[0]
            return next((start for start in ONE_WORKER if nodeid.startswith(start)), module)

    return Scheduling(config, log)


class FakeEncoder:
    """A text's vector is the mean of its words' vectors, which come from checksums. `texts` is what it was given."""

    def __init__(self, dim: int = 16, *, name: str = "fake", revision: str = "1", seed: int = 0) -> None:
        self.name, self.revision, self.dim, self.seed = name, revision, dim, seed
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Array:
        self.texts += texts
        vectors = np.zeros((len(texts), self.dim), np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"[a-z0-9_]+|[\u4e00-\u9fff]", text.lower()):
                vectors[row] += _vector(word, self.seed, self.dim)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.divide(vectors, norms, out=vectors, where=norms > 0)


@cache
def _vector(word: str, seed: int, dim: int) -> Array:
    return np.random.default_rng([zlib.crc32(word.encode()), seed]).standard_normal(dim, np.float32)


@cache
def shipped_articles() -> dict[str, Article]:
    """Every article that kb ships, by its path; by default some. A worker parses them once."""
    parsed = {}
    for path, data in [*read_articles(SHIPPED)][:: 1 if THOROUGH else 18]:
        assert isinstance(data, bytes), data
        parsed[path] = parse(data, path=path)
    return parsed


@pytest.fixture
def encoder() -> FakeEncoder:
    return FakeEncoder()


def article(*errors: str, title: str = "Notes on training", fix: str = "Set it to 1.", project: str = "Demo") -> str:
    """An article in our own form with an issue for each error line."""
    issues = [
        f"## Training stops with {error}\n\n### Symptom\n\nIt prints\n\n```\nRuntimeError: {error}\n```\n\n"
        f"### Cause\n\nThe setting behind {error} is wrong.\n\n### Fix\n\n{fix}\n"
        for error in errors
    ]
    return f"---\nproject: {project}\n---\n\n# {title}\n\n" + "\n".join(issues)


@contextmanager
def running(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """A process that is gone afterwards, whatever the test found: one that still ran would be waited for, for ever."""
    with subprocess.Popen(command, **options) as child:
        try:
            yield child
        finally:
            child.kill()


def port_of(server: subprocess.Popen[str]) -> int:
    """Where a `kb serve` answers: it says so on stderr when it does."""
    assert server.stderr
    said = []
    for line in server.stderr:
        said.append(line)
        if found := re.search(r"http://127\.0\.0\.1:(\d+)/", line):
            return int(found[1])
    raise AssertionError("".join(said))


def run_kb(*arguments: str, stdin: bytes | None = b"", **environment: str) -> subprocess.CompletedProcess[str]:
    """`kb ARGUMENTS` by the `main` of the console script, but in this process, which has loaded everything: starting an
    interpreter takes longer than most commands. A test of descriptors, signals, terminals or of what is loaded wants a
    process of its own. `stdin`: what a pipe brings; None for the null device, as a job of cron has it."""
    from kb.cli import main

    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    with tempfile.TemporaryFile() as piped, open(os.devnull, "rb") as null, pytest.MonkeyPatch.context() as patch:
        piped.write(stdin or b"")
        piped.seek(0)
        given = io.TextIOWrapper(null if stdin is None else piped, "utf-8")
        for name, value in {"argv": ["kb", *arguments], "stdin": given, "stdout": out, "stderr": err}.items():
            patch.setattr(sys, name, value)
        for name, value in environment.items():
            patch.setenv(name, value)
        kb_settings.cache_clear()
        try:
            with pytest.raises(SystemExit) as ended:
                main()
        finally:
            gc.enable()  # a command does without
            kb_settings.cache_clear()
    said = []
    for stream in (out, err):
        stream.flush()
        said.append(stream.buffer.getvalue().decode("utf-8"))  # type: ignore[attr-defined]
    assert "Traceback" not in said[1]
    return subprocess.CompletedProcess(["kb", *arguments], int(ended.value.code or 0), *said)


NOISE_S = 0.02


def check_growth(work: Callable[[int], Callable[[], object]], size: int, *, factor: float = 2.6) -> None:
    """Asserts that time grows at most by `factor` when the size doubles: by 2 for linear work, by 4 for quadratic.

    `work(n)` prepares an input of size n and returns what is timed. Measured is `size` against 8 times that, three
    doublings, so that a machine which is slower for a while (or has another program on the same core) does not matter.
    The clock counts CPU time, of several tries the least counts, and less than `NOISE_S` is quick enough.
    Where people wait, long inputs are a fourth as long."""
    if size >= 1000 and not THOROUGH:
        size //= 4
    small, large = work(size), work(8 * size)
    least = [math.inf, math.inf]
    for _ in range(6):
        least = [min(before, cpu_seconds(one)) for before, one in zip(least, (small, large), strict=True)]
        if least[1] <= max(NOISE_S, factor**3 * least[0]):
            return
        if least[1] > 100 * factor**3 * least[0]:  # no noise is that large
            break
    raise AssertionError(f"size {size}: {least[0]:.4f} s; 8 times as much: {least[1]:.4f} s")


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes articles by path into `articles/` and returns that folder: `write({"en/a.md": article("boom")})`."""

    def put(files: dict[str, str | bytes] | None = None, folder: str = "articles") -> Path:
        root = tmp_path / folder
        root.mkdir(exist_ok=True)
        for path, content in (files or {}).items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        return root

    return put
