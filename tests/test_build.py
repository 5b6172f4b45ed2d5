"""kb.index.build: an index depends on the articles alone, and nothing that lies among them can spoil it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from conftest import CORPUS, THOROUGH, FakeEncoder, Write, article, running
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from test_snapshot import deadline, nobody, posix

import kb.index.intake
from kb.articles import MAX_BYTES
from kb.articles.folder import list_articles
from kb.base import KnowledgeBase
from kb.cli import main
from kb.errors import ArticleError, IndexMismatch, KbError
from kb.index import snapshot
from kb.index.build import BuildFailed, build
from kb.index.intake import key_of
from kb.index.writer import SegmentWriter
from kb.review.lint import review
from kb.scraped import parse


def files(index: Path) -> dict[str, bytes]:
    """Every byte of an index; what else lies there holds a process number and a time."""
    return {path.name: path.read_bytes() for path in index.iterdir() if path.name not in (".lock", ".stamp")}


def ask(index: Path, question: str = "RuntimeError: boom at 7") -> list[str]:
    with KnowledgeBase.open(index, encoder=FakeEncoder()) as base:
        return [hit.issue for hit in base.search(question, k=20).hits]


# what was built before leaves no trace

ERRORS = [
    "boom at 7",
    "CUDA out of memory",
    "num_generations=8 hangs",
    "内存不足，训练中断",
    "损失变成 NaN",
    "㐀 ア é 🙂",
]
PATHS = [f"{lang}/{name}.md" for lang in ("en", "zh") for name in ("alpha", "beta", "a-b", "Gamma")] + ["plain.md"]

some_article = st.one_of(
    st.lists(st.sampled_from(ERRORS), max_size=3).map(lambda errors: article(*errors)),
    st.sampled_from(["# 无关\n\n没有问题。\n", "just a line\n", "## Error: oops\n\nit fails\n\n### Fix\n\ndo not\n"]),
)


class Incremental(RuleBasedStateMachine):
    """Articles come, change, move and go; after every build the index is what a build from nothing gives."""

    @initialize()
    def start(self) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.articles = self.root / "articles"
        self.articles.mkdir()
        self.index = self.root / "index"
        self.seed = 0
        self.texts: dict[str, str] = {}
        self.built: dict[str, str] | None = None
        self.changed_encoder = True

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    def _put(self, path: str, text: str) -> None:
        (self.articles / path).parent.mkdir(exist_ok=True)
        (self.articles / path).write_text(text, encoding="utf-8")
        self.texts[path] = text

    @rule(path=st.sampled_from(PATHS), text=some_article)
    def write(self, path: str, text: str) -> None:
        self._put(path, text)

    @precondition(lambda self: self.texts)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        path = data.draw(st.sampled_from(sorted(self.texts)))
        (self.articles / path).unlink()
        del self.texts[path]

    @precondition(lambda self: self.texts)
    @rule(data=st.data(), to=st.sampled_from(PATHS))
    def rename(self, data: st.DataObject, to: str) -> None:
        path = data.draw(st.sampled_from(sorted(self.texts)))
        if path != to:
            text = self.texts.pop(path)
            (self.articles / path).unlink()
            self._put(to, text)

    @rule(seed=st.integers(0, 1))
    def change_the_encoder(self, seed: int) -> None:
        self.changed_encoder |= seed != self.seed
        self.seed = seed

    @precondition(lambda self: (self.index / snapshot.MANIFEST).exists())
    @rule(data=st.data())
    def damage_the_index(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(files(self.index))))
        path = self.index / name
        path.write_bytes(path.read_bytes()[:-2] or b"?")
        self.built = None

    @rule()
    def interrupt_a_build(self) -> None:
        before = files(self.index) if self.index.exists() else {}

        class Impatient(FakeEncoder):
            def encode(self, texts: Any, *, kind: Any) -> Any:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            build(self.articles, self.index, encoder=Impatient(seed=self.seed))
        assert (files(self.index) if self.index.exists() else {}) == before

    @invariant()
    def a_build_is_one_from_nothing(self) -> None:
        if not hasattr(self, "root"):
            return
        encoder = FakeEncoder(seed=self.seed)
        report = build(self.articles, self.index, encoder=encoder)
        nothing = Path(tempfile.mkdtemp(dir=self.root))
        whole = build(self.articles, nothing, encoder=FakeEncoder(seed=self.seed))
        assert files(self.index) == files(nothing)
        assert report.snapshot == whole.snapshot
        assert (report.articles, report.issues, report.records) == (whole.articles, whole.issues, whole.records)
        if self.built is not None and not self.changed_encoder:
            # With an article its group is read: both languages.
            every = self.built.keys() | self.texts.keys()
            changed = {key_of(path) for path in every if self.built.get(path) != self.texts.get(path)}
            assert report.parsed == sum(key_of(path) in changed for path in self.texts)
            assert report.removed == len(self.built.keys() - self.texts.keys())
        else:
            assert report.parsed == len(self.texts)
        shutil.rmtree(nothing)
        self.built, self.changed_encoder = dict(self.texts), False


Incremental.TestCase.settings = settings(max_examples=10 if THOROUGH else 4, stateful_step_count=8)
TestIncremental = Incremental.TestCase


@pytest.mark.thorough
def test_the_shipped_encoder_keeps_the_law_too(tmp_path: Path, write: Write) -> None:
    """It tokenises a few texts in another way than many."""
    odd = "naïve café Ünïcödé ﬁ ㎏ ① Ⅷ 〜～ カタカナ 한국어 🙂 ½ \u202e x\u200by　全角ＡＢＣ"
    articles = write({f"en/a{n}.md": article(f"boom at {n}", f"{odd} {n}") for n in range(12)})
    for lang in ("en", "zh"):
        (articles / lang).mkdir(exist_ok=True)
        for path in sorted((CORPUS / lang).glob("vl*.md")):
            shutil.copy(path, articles / lang)
    build(articles, tmp_path / "whole")
    later = [path for n, path in enumerate(sorted(articles.rglob("*.md"))) if n % 3 == 0]
    moved = [path.rename(tmp_path / f"{n}.md") for n, path in enumerate(later)]
    build(articles, tmp_path / "grown")
    for n, path in enumerate(moved):
        path.rename(later[n])
        if n % 4 == 0:
            build(articles, tmp_path / "grown")
    report = build(articles, tmp_path / "grown")
    assert 0 < report.parsed <= 4
    assert files(tmp_path / "grown") == files(tmp_path / "whole")


def test_unchanged_articles_are_neither_parsed_nor_encoded(
    tmp_path: Path, write: Write, encoder: FakeEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []

    def count(data: bytes, *, path: str, **assumed: Any) -> Any:
        parsed.append(path)
        return parse(data, path=path, **assumed)

    monkeypatch.setattr(kb.index.intake, "parse", count)
    articles = write({f"en/a{n}.md": article(f"boom at {n}") for n in range(5)})
    build(articles, tmp_path / "index", encoder=encoder)
    probes = len(encoder.texts) - len([text for text in encoder.texts if "boom" in text])
    assert len(parsed) == 5

    def again() -> tuple[list[str], list[str]]:
        parsed.clear()
        encoder.texts.clear()
        build(articles, tmp_path / "index", encoder=encoder)
        return parsed, [text for text in encoder.texts if "boom" in text or "crash" in text]

    before = files(tmp_path / "index")
    assert again() == ([], [])
    assert len(encoder.texts) <= 2 * probes
    assert files(tmp_path / "index") == before
    for path in articles.rglob("*.md"):
        os.utime(path, (1, 1))  # what counts is bytes
    assert again() == ([], [])
    write({"en/a3.md": article("crash")})
    only, texts = again()
    assert only == ["en/a3.md"]
    assert texts
    assert all("crash" in text for text in texts)
    (articles / "en" / "a2.md").unlink()
    assert again() == ([], [])
    (articles / "en" / "a1.md").rename(articles / "en" / "b1.md")
    assert again()[0] == ["en/b1.md"]


def test_another_kb_builds_from_nothing(
    tmp_path: Path, write: Write, encoder: FakeEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    articles = write({"a.md": article("boom"), "b.md": article("crash")})
    build(articles, tmp_path / "index", encoder=encoder)
    monkeypatch.setattr(kb.index.build, "code", lambda: "another")
    assert build(articles, tmp_path / "index", encoder=encoder).parsed == 2
    assert build(articles, tmp_path / "index", encoder=encoder).parsed == 0


# same input, same bytes


@pytest.mark.thorough
def test_seed_locale_time_zone_and_threads_change_nothing(tmp_path: Path, write: Write) -> None:
    articles = write({path: article(*ERRORS[n % 4 :]) for n, path in enumerate(PATHS)})
    build(articles, tmp_path / "here")
    environments = [
        {"PYTHONHASHSEED": "1", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TZ": "Asia/Shanghai"},
        {"PYTHONHASHSEED": "2", "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
    ]
    with contextlib.ExitStack() as started:
        children = []
        for n, environment in enumerate(environments):
            command = [sys.executable, "-m", "kb", "build", "--articles", str(articles)]
            command += ["--index", str(tmp_path / f"there{n}")]
            options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": {**os.environ, **environment}}
            children.append(started.enter_context(running(command, **options)))
        assert [child.wait(60) for child in children] == [0, 0]
    for n in range(len(environments)):
        assert files(tmp_path / f"there{n}") == files(tmp_path / "here")


def test_the_order_of_a_folder_changes_nothing(
    tmp_path: Path, write: Write, encoder: FakeEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    articles = write({path: article(*ERRORS) for path in PATHS})
    build(articles, tmp_path / "a", encoder=encoder)
    scandir = os.scandir

    class Backwards:
        def __init__(self, path: Any) -> None:
            with scandir(path) as entries:
                self.entries = sorted(entries, key=lambda entry: entry.name, reverse=True)

        def __enter__(self) -> Any:
            return iter(self.entries)

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(kb.articles.folder.os, "scandir", Backwards)
    build(articles, tmp_path / "b", encoder=encoder)
    assert files(tmp_path / "a") == files(tmp_path / "b")


# what cannot be read

GBK = "# 训练时显存不足\n\n## 现象\n\n报错如下".encode("gbk")
BAD: dict[str, tuple[bytes, str, int | None]] = {
    # what: bytes, words of the message and the hint, line
    "gbk": (b"# T\n\n" + GBK, "not UTF-8 at byte.*GBK", 3),
    "latin1": ("# Modèle\n\nà l'arrêt".encode("latin-1"), "not UTF-8", 1),
    "utf16-le": ("# 训练\n".encode("utf-16"), "UTF-16", 1),
    "utf16-be": (b"\xfe\xff" + "# boom\n".encode("utf-16-be"), "UTF-16", 1),
    "utf16-without-bom": (article("boom").encode("utf-16-le"), "UTF-16", 1),
    "cut-in-a-character": ("# T\n\n标题".encode()[:-1], "not UTF-8", 3),
    "surrogate": (b"# T\n\n\xed\xa0\x80\n", "not UTF-8", 3),
    "nul": (b"# T\n\ntext\n\0\n", "NUL", 4),
    "empty": (b"", "empty", None),
    "blank": (b"\xef\xbb\xbf \n\t\n\xe3\x80\x80\n", "empty", None),
    "bom-only": (b"\xef\xbb\xbf", "empty", None),
    "too-large": (b"# T\n\n" + b"x" * MAX_BYTES, "2,000,000", None),
    "!!!": (article("boom").encode(), "cannot name an issue", None),
}


@pytest.fixture
def old(tmp_path: Path, write: Write, encoder: FakeEncoder) -> tuple[Path, Path]:
    """Articles and their index."""
    articles = write({"en/a.md": article("boom at 7"), "en/b.md": article("crash of rank 3")})
    build(articles, tmp_path / "index", encoder=encoder)
    return articles, tmp_path / "index"


@pytest.mark.parametrize("name", BAD)
def test_a_bad_article_is_named_with_its_line_and_what_to_do(old: tuple[Path, Path], write: Write, name: str) -> None:
    articles, index = old
    before = files(index)
    data, words, line = BAD[name]
    write({f"en/{name}.md": data})
    with pytest.raises(BuildFailed) as caught:
        build(articles, index, encoder=FakeEncoder())
    (error,) = caught.value.bad
    assert error.path == f"en/{name}.md"
    assert error.line == line
    assert re.search(words, f"{error} {error.hint}")
    assert error.hint
    assert files(index) == before
    assert ask(index)[0] == "a#1"
    assert any(finding.path == error.path and finding.level == "error" for finding in review(articles))


def test_all_bad_articles_are_named_and_the_rest_can_be_built(
    old: tuple[Path, Path], tmp_path: Path, write: Write, encoder: FakeEncoder
) -> None:
    articles, index = old
    before = files(index)
    bad = {f"en/{name}.md": data for name, (data, _, _) in BAD.items()}
    write({**bad, "en/new.md": article("a new one")})
    with pytest.raises(BuildFailed) as caught:
        build(articles, index, encoder=encoder)
    assert sorted(str(error.path) for error in caught.value.bad) == sorted(bad)
    assert caught.value.exit_code == 65
    assert str(len(bad)) in caught.value.message
    assert files(index) == before
    report = build(articles, index, encoder=encoder, keep_going=True)
    assert sorted(str(error.path) for error in report.bad) == sorted(bad)
    assert report.articles == 3
    assert sorted(ask(index, "RuntimeError")) == ["a#1", "b#1", "new#1"]
    for path in bad:
        (articles / path).unlink()
    build(articles, tmp_path / "without", encoder=encoder)
    assert files(index) == files(tmp_path / "without")


def test_the_command_names_all_of_them(
    old: tuple[Path, Path], write: Write, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    articles, index = old
    write({f"en/{name}.md": data for name, (data, _, _) in BAD.items()})
    monkeypatch.setattr(sys, "argv", ["kb", "build", "--articles", str(articles), "--index", str(index)])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr().err
    assert ended.value.code == 65
    assert all(name in told for name in BAD)
    assert "Traceback" not in told


def test_an_article_that_vanishes_meanwhile(
    old: tuple[Path, Path], encoder: FakeEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    articles, index = old
    monkeypatch.setattr(kb.index.build, "list_articles", lambda folder: ([*list_articles(folder)[0], "en/gone.md"], []))
    with pytest.raises(BuildFailed) as caught:
        build(articles, index, encoder=encoder)
    assert [error.path for error in caught.value.bad] == ["en/gone.md"]


@posix
def test_an_article_that_may_not_be_read(encoder: FakeEncoder) -> None:
    with tempfile.TemporaryDirectory() as name:
        shared = Path(name)
        shared.chmod(0o777)
        with nobody():
            (shared / "articles" / "closed").mkdir(parents=True)
            (shared / "articles" / "a.md").write_text(article("boom at 7"))
            secret = shared / "articles" / "secret.md"
            secret.write_text(article("secret"))
            secret.chmod(0)
            with pytest.raises(BuildFailed) as caught:
                build(shared / "articles", shared / "index", encoder=encoder)
            assert [error.path for error in caught.value.bad] == ["secret.md"]
            assert "Permission denied" in str(caught.value.bad[0])
            report = build(shared / "articles", shared / "index", encoder=encoder, keep_going=True)
            assert (report.articles, len(report.bad)) == (1, 1)
            (shared / "articles" / "closed").chmod(0)
            with pytest.raises(ArticleError, match="closed"):  # what is in there cannot even be told
                build(shared / "articles", shared / "index", encoder=encoder, keep_going=True)
            (shared / "articles" / "closed").chmod(0o755)


@pytest.mark.parametrize("folder", ["nowhere", "a file"])
def test_no_folder_of_articles(tmp_path: Path, encoder: FakeEncoder, folder: str) -> None:
    (tmp_path / "a file").write_text("")
    with pytest.raises(ArticleError, match=folder):
        build(tmp_path / folder, tmp_path / "index", encoder=encoder)
    assert not (tmp_path / "index").exists()


# files that are no articles


@posix
def test_only_regular_files_inside_the_folder_are_read(
    old: tuple[Path, Path], tmp_path: Path, write: Write, encoder: FakeEncoder
) -> None:
    articles, index = old
    before = files(index)
    (tmp_path / "outside.md").write_text(article("a secret of this machine"))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "c.md").write_text(article("a secret of this machine"))
    os.mkfifo(articles / "pipe.md")
    (articles / "link.md").symlink_to(tmp_path / "outside.md")
    (articles / "own.md").symlink_to(articles / "en" / "a.md")
    (articles / "dangling.md").symlink_to(articles / "nowhere")
    (articles / "loop.md").symlink_to(articles / "loop.md")
    (articles / "loop").symlink_to(articles / "loop")
    (articles / "circle").symlink_to(articles)
    (articles / "away").symlink_to(tmp_path / "elsewhere")
    (articles / "new\nline.md").write_text(article("boom"))
    (articles / "\x1b[31mred.md").write_text(article("boom"))
    Path(os.fsdecode(os.fsencode(articles) + b"/\xff.md")).write_text(article("boom"))
    (articles / ".hidden.md").write_text(article("boom"))
    (articles / "README.md").write_text("about this folder")
    (articles / "notes.txt").write_bytes(b"\0")
    with deadline(5):
        report = build(articles, index, encoder=encoder)
    assert files(index) == before
    assert len({skipped.path for skipped in report.skipped}) == len(report.skipped)
    told = {skipped.path for skipped in report.skipped}
    assert told >= {"pipe.md", "link.md", "own.md", "dangling.md", "loop.md", "circle", "away"}
    assert {"README.md", "notes.txt"} <= told
    assert len(told - {"loop"}) == 12
    assert all(path.isprintable() for path in told)


def test_a_folder_named_like_an_article_is_a_folder(old: tuple[Path, Path], write: Write, encoder: FakeEncoder) -> None:
    articles, index = old
    write({"folder.md/inside.md": article("deep down")})
    assert build(articles, index, encoder=encoder).articles == 3
    assert ask(index, "deep down")[0] == "folder.md-inside#1"


# what is odd, and read


def nested(depth: int) -> str:
    return "".join("  " * n + f"- level {n}\n" for n in range(depth))


AFTER = "\n\n## A later crash\n\n### Symptom\n\nRuntimeError: later\n\n### Fix\n\nlater fix\n"
ODD: dict[str, str | bytes] = {
    "bom": b"\xef\xbb\xbf" + article("boom").encode(),
    "crlf": article("boom").replace("\n", "\r\n"),
    "cr": article("boom").replace("\n", "\r"),
    "lists-50-deep": article("boom") + "\n" + nested(50) + AFTER,
    "quotes-100-deep": article("boom") + "\n" + ">" * 100 + " deep\n" + AFTER,
    "zero-width": article("bo\u200bom \u202e\u2066"),
    "surrogate-in-yaml": article("boom", project='"\\ud800 Demo"'),
    "nul-in-yaml": article("boom", project='"\\0 Demo"'),
    "yaml-is-a-list": "---\n- a\n---\n" + article("boom").split("---\n", 2)[2],
    "yaml-is-broken": "---\nproject: [a\n---\n" + article("boom").split("---\n", 2)[2],
    "yaml-of-a-bomb": "---\na: &a [x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + "tags: *i\n---\n"
    + article("boom").split("---\n", 2)[2],
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_article_is_read_or_refused_by_name(
    old: tuple[Path, Path], write: Write, encoder: FakeEncoder, name: str
) -> None:
    articles, index = old
    write({f"en/{name}.md": ODD[name]})
    with deadline(10):
        try:
            report = build(articles, index, encoder=encoder)
        except BuildFailed as failed:
            assert [error.path for error in failed.bad] == [f"en/{name}.md"]
            assert name.startswith("yaml")
            return
    with KnowledgeBase.open(index, encoder=encoder) as base:
        records = base.show(f"{name}#1")
        assert records[0].errors
        if AFTER in str(ODD[name]):
            assert base.show(f"{name}#2")[0].fix == "later fix"
    assert report.articles == 3


def test_an_unclosed_fence_takes_what_follows_and_says_so(old: tuple[Path, Path], write: Write) -> None:
    """As in CommonMark; no heading goes without a word."""
    articles, index = old
    write({"en/fence.md": article("boom") + "\n```\nnever closed\n" + AFTER})
    build(articles, index, encoder=FakeEncoder())
    with KnowledgeBase.open(index, encoder=FakeEncoder()) as base:
        told = "\n".join(f"{record.title}\n{record.symptom}\n{record.fix}" for record in base.show("fence"))
    assert "later fix" in told


RUNS = [
    "a",
    "的",
    "#",
    "# ",
    ">",
    "> ",
    "[",
    "![",
    "`",
    "*",
    "**a",
    "_",
    "- ",
    "|",
    "<!--",
    "<",
    "&",
    "\\",
    " ",
    "\n",
    "1. ",
]


@pytest.mark.thorough
@pytest.mark.parametrize("unit", RUNS, ids=repr)
def test_long_runs_take_no_long_time(old: tuple[Path, Path], write: Write, unit: str) -> None:
    articles, index = old
    run = unit * (100_000 // len(unit))
    write({"en/run.md": article("boom", fix=f"Fix.\n\n{run}\n")})
    with deadline(10):
        try:
            build(articles, index, encoder=FakeEncoder())
        except BuildFailed as failed:
            assert [error.path for error in failed.bad] == ["en/run.md"]


# duplicates


def test_an_issue_is_told_once_in_a_language(old: tuple[Path, Path], write: Write, encoder: FakeEncoder) -> None:
    articles, index = old
    before = files(index)
    write({"en/a.markdown": article("boom again"), "en/B.md": article("crash again"), "zh/a.md": article("boom")})
    with pytest.raises(BuildFailed) as caught:
        build(articles, index, encoder=encoder)
    assert {error.path for error in caught.value.bad} == {"en/a.md", "en/b.md"}
    assert "a#1/en is already in en/a.markdown" in str(caught.value.bad[0]) + str(caught.value.bad[1])
    assert files(index) == before
    report = build(articles, index, encoder=encoder, keep_going=True)
    assert (report.articles, len(report.bad)) == (3, 2)
    with KnowledgeBase.open(index, encoder=encoder) as base:
        assert [record.source.path for record in base.show("a#1")] == ["en/a.markdown", "zh/a.md"]
    errors = {finding.path for finding in review(articles) if finding.level == "error"}
    assert errors == {"en/a.md", "en/b.md"}


# encoders


@pytest.mark.parametrize(
    "other",
    [
        FakeEncoder(8, name="smaller"),
        FakeEncoder(seed=1, name="other-vectors"),
        FakeEncoder(seed=1, revision="2"),
        FakeEncoder(32),
        FakeEncoder(seed=1),
    ],
    ids=["other dim", "same dim", "same name, other revision", "same name, other dim", "only its vectors differ"],
)
def test_an_index_of_another_encoder_is_refused_and_built_anew(old: tuple[Path, Path], other: FakeEncoder) -> None:
    articles, index = old
    with pytest.raises(IndexMismatch) as caught:
        KnowledgeBase.open(index, encoder=other)
    assert "'fake'" in str(caught.value)
    assert repr(other.name) in str(caught.value)
    assert other.name in (caught.value.hint or "")
    assert build(articles, index, encoder=other).parsed == 2
    with KnowledgeBase.open(index, encoder=other) as base:
        assert base.search("boom at 7").hits[0].issue == "a#1"
    with pytest.raises(IndexMismatch):
        ask(index)


def test_another_revision_encodes_everything_again(old: tuple[Path, Path]) -> None:
    articles, index = old
    assert build(articles, index, encoder=FakeEncoder(revision="2")).parsed == 2


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_vectors_that_are_no_numbers_are_not_published(old: tuple[Path, Path], write: Write, value: float) -> None:
    class Broken(FakeEncoder):
        def encode(self, texts: Any, *, kind: Any) -> Any:
            vectors = super().encode(texts, kind=kind)
            if any("later" in text for text in texts):
                vectors[0, 0] = value
            return vectors

    articles, index = old
    before = files(index)
    write({"en/later.md": article("later")})
    with pytest.raises(KbError, match="fake"):
        build(articles, index, encoder=Broken())
    assert files(index) == before


# interrupts


@pytest.mark.parametrize("where", ["parse", "encode", "write", "publish"])
@pytest.mark.parametrize("what", [KeyboardInterrupt, SystemExit, MemoryError])
def test_whatever_ends_a_build_leaves_the_old_index(
    old: tuple[Path, Path], write: Write, monkeypatch: pytest.MonkeyPatch, where: str, what: type[BaseException]
) -> None:
    articles, index = old
    before = files(index)

    def stop(*_: Any, **__: Any) -> Any:
        raise what

    write({"en/later.md": article("later")})
    encoder = FakeEncoder()
    with monkeypatch.context() as patch, pytest.raises(what):
        if where == "parse":
            patch.setattr(kb.index.intake, "parse", stop)
        elif where == "encode":
            patch.setattr(FakeEncoder, "encode", stop)
        elif where == "write":
            patch.setattr(SegmentWriter, "finish", stop)
        else:
            patch.setattr(snapshot.Path, "replace", stop)
        build(articles, index, encoder=encoder)
    assert files(index) == before
    assert ask(index)[0] == "a#1"
    assert build(articles, index, encoder=encoder).articles == 3


@pytest.mark.costly
@posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_leaves_the_old_index(tmp_path: Path, write: Write, number: signal.Signals) -> None:
    articles = write({"en/a.md": article("boom at 7")})
    build(articles, tmp_path / "index")
    before = files(tmp_path / "index")
    write({"en/b.md": article("crash")})
    script = """
import os, sys, time
from kb.index import snapshot
def wait(*_):
    print("now", flush=True)
    time.sleep(30)
snapshot.os.fsync = wait
sys.argv = ["kb", "build", *sys.argv[1:]]
from kb.cli import main
main()
"""
    command = [sys.executable, "-c", script, "--articles", str(articles), "--index", str(tmp_path / "index")]
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "now\n"
        child.send_signal(number)
        _, stderr = child.communicate(timeout=10)
    assert child.returncode in (-number, 128 + number)
    assert "Traceback" not in stderr
    found = files(tmp_path / "index")
    assert {name: data for name, data in found.items() if not name.startswith(".tmp-")} == before
    build(articles, tmp_path / "index")
    assert not any(name.startswith(".tmp-") for name in files(tmp_path / "index"))


STOPPED = """
import os, signal, sys
import kb.index.build
from kb.index.intake import Intake
from kb.index.writer import SegmentWriter
kb.index.build._WORTH_KEEPING = kb.index.build._AT_ONCE = 1
where, number = sys.argv.pop(1), int(sys.argv.pop(1))
def stop(begin):
    def begun(*given, **more):
        global calls
        calls += 1
        if calls == (3 if where == "read" else 1):
            os.kill(os.getpid(), number)
            if number == signal.SIGTERM:
                os.kill(os.getpid(), number)  # as `timeout` does
        return begin(*given, **more)
    return begun
calls = 0
if where == "read":
    Intake.take = stop(Intake.take)
elif where == "write":
    SegmentWriter._finish = stop(SegmentWriter._finish)
else:
    kb.index.build._joined = stop(kb.index.build._joined)
sys.argv = ["kb", "build", *sys.argv[1:]]
from kb.cli import main
main()
"""


@posix
@pytest.mark.thorough
@pytest.mark.parametrize("where", ["read", "write", "join"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_what_a_stopped_build_has_read_is_kept(
    tmp_path: Path, write: Write, number: signal.Signals, where: str
) -> None:
    """Whatever stops it: Ctrl-C, `timeout`, a container or a service that ends, a terminal that is closed."""
    articles, index = write({f"en/a{n}.md": article(f"boom {n}") for n in range(4)}), tmp_path / "index"
    command = [sys.executable, "-c", STOPPED, where, str(int(number)), "--articles", str(articles)]
    done = subprocess.run([*command, "--index", str(index)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 128 + number
    said = "interrupted" if number == signal.SIGINT else f"stopped by {number.name}"
    assert done.stderr.strip() == f"kb: {said}"
    assert not [path for path in index.iterdir() if path.name.startswith(".tmp-")]
    report = build(articles, index)
    assert (report.articles, report.parsed) == (4, 2 if where == "read" else 0)


# progress


def test_progress_ends_where_it_should(tmp_path: Path, write: Write, encoder: FakeEncoder) -> None:
    seen: list[tuple[str, int, int]] = []
    articles = write({f"a{n}.md": article("boom") for n in range(3)})
    build(articles, tmp_path / "index", encoder=encoder, progress=lambda *step: seen.append(step))
    assert seen == [("read", 3, 3)]
    write({"a1.md": article("crash")})
    build(articles, tmp_path / "index", encoder=encoder, progress=lambda *step: seen.append(step))
    assert seen[1:] == [("read", 1, 1), ("join", 3, 3)]


def test_the_manifest_says_what_is_in_the_index(old: tuple[Path, Path]) -> None:
    manifest, identity = snapshot.read_manifest(old[1])
    assert manifest["counts"]["articles"] == manifest["counts"]["issues"] == manifest["counts"]["records"] == 2
    assert manifest["projects"] == ["Demo"]
    assert identity == hashlib.sha256((old[1] / snapshot.MANIFEST).read_bytes()).hexdigest()[:12]
