"""Every threshold from both sides: what it lets through just above it, and what it holds back just below."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import CORPUS

import kb
from kb import KnowledgeBase, Scanner
from kb.index.build import code
from kb.index.store import Store
from kb.records import SearchResult
from kb.search import searcher
from kb.search.verdict import KNOWN_AT, LIKELY_AT

POP = "IndexError: pop from an empty deque"


@pytest.fixture(scope="module")
def base(index: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(index) as opened:
        yield opened


# --- search ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("confidence", "said"),
    [
        (0.0, "unknown"),
        (LIKELY_AT - 0.001, "unknown"),
        (LIKELY_AT, "likely"),
        (KNOWN_AT - 0.001, "likely"),
        (KNOWN_AT, "known"),
        (1.0, "known"),
    ],
)
def test_what_is_said_from_which_confidence(
    confidence: float, said: str, base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searcher, "confidence", lambda *arguments: confidence)
    assert base.search(POP).verdict == said


@pytest.mark.thorough
def test_how_many_hits_are_asked_for_changes_nothing_about_the_first(base: KnowledgeBase) -> None:
    """The first, and how sure it is, depend on its rivals: those must be found also where one hit is wanted."""
    for issue in sorted({record.issue for record in base.records()}):
        for record in base.show(issue):
            for text in (record.title, *record.errors[:1]):
                one, many = (base.search(text, k).hits[0] for k in (1, 10))
                assert (one.issue, round(one.confidence, 6)) == (many.issue, round(many.confidence, 6)), text


@pytest.mark.thorough
def test_every_error_line_counts(tmp_path: Path) -> None:
    """Of a question and of a record: the second line is compared as well as the first."""
    lines = ["FluxError: the capacitor of frame 3 has drained", "TideError: no moon answers on channel 7"]
    text = "# Notes\n\n## It stops\n\n### Symptom\n\n```\n{}\n```\n\n### Fix\n\n1. Wait.\n"
    (tmp_path / "articles").mkdir()
    (tmp_path / "articles" / "a.md").write_text(text.format("\n".join(lines)), "utf-8")
    shutil.copytree(CORPUS / "en", tmp_path / "articles" / "en")
    KnowledgeBase.build(tmp_path / "articles", tmp_path / "index")
    with KnowledgeBase.open(tmp_path / "index") as base:
        for line in lines:
            hit = base.search(line).hits[0]
            assert (hit.issue, hit.features.bigram_overlap > 0.9) == ("a#1", True), line
        other = "ValueError: frobnication of gadget 12 unsupported"
        for text in (f"{other}\n{lines[1]}", f"{lines[1]}\n{other}"):
            result = base.search(text)
            assert len(result.query.signatures) == 2
            assert (result.hits[0].issue, result.hits[0].features.bigram_overlap > 0.9) == ("a#1", True)


# --- build ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changed", ["arrays.py", "records.py", "text", "logs", "articles", "scraped", "encoders", "index", "serve"]
)
def test_another_program_builds_anew(changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change in a room that turns articles into an index is another program; a change of the server is none."""
    copy = tmp_path / "kb"
    shutil.copytree(Path(kb.__file__).parent, copy, ignore=shutil.ignore_patterns("model", "__pycache__", "bundled"))
    monkeypatch.setattr(kb, "__file__", str(copy / "__init__.py"))
    before = code.__wrapped__()
    file = copy / changed if changed.endswith(".py") else min((copy / changed).glob("[a-z]*.py"))
    with file.open("a", encoding="utf-8") as opened:
        opened.write("# changed\n")
    assert (code.__wrapped__() != before) is (changed != "serve")


# --- scan -----------------------------------------------------------------------------------------------------------

# Error lines by what their words weigh: the sum over words, each by how rare it is in technical text.
LINES = {
    "token": "RuntimeError: token",  # 0.57: too little to ask about
    "kernel": "RuntimeError: kernel",  # 0.68
    "shard": "RuntimeError: tensor shard",  # 1.25: too little to be enough alone
    "worker": "RuntimeError: worker queue",  # 1.44
    "walrus": "RuntimeError: walrus lantern meadow",  # 3; two issues print it
}


class Oracle:
    """What a scanner needs of a base, with an answer of its own. `texts`: what it was asked."""

    def __init__(self, base: KnowledgeBase, answer: str | None = None, confidence: float = 0.0) -> None:
        self.snapshot = base.snapshot
        self.texts: list[str] = []
        self._base, self._answer, self._confidence = base, answer, confidence

    @property
    def store(self) -> Store:
        return self._base.searcher.store

    @property
    def base(self) -> str:
        return self._base.name

    def search(self, text: str, k: int = 5, /, *, lang: str | None = None, printed: bool = False) -> SearchResult:
        """`printed`: the whole of a short log, about which it knows nothing."""
        result = self._base.search(POP, 20)
        if printed:
            return replace(result, verdict="unknown", hits=())
        self.texts.append(text)
        hits = [replace(hit, confidence=self._confidence, rank=1) for hit in result.hits if hit.issue == self._answer]
        return replace(result, verdict="known" if hits else "unknown", hits=tuple(hits))

    def found(self, *lines: str) -> list[str]:
        report = Scanner(self).scan(["\n".join(lines).encode()])  # type: ignore[arg-type]
        return [finding.issue for finding in report.findings]


@pytest.fixture(scope="module")
def lines_base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    """An issue for each of LINES, by its name, and a second one for the last."""
    root = tmp_path_factory.mktemp("lines")
    (root / "articles").mkdir()
    for name, line in (*LINES.items(), ("second", LINES["walrus"])):
        text = f"# Notes\n\n## {name}: it stops\n\n### Symptom\n\n```\n{line}\n```\n\n### Fix\n\n1. Wait.\n"
        (root / "articles" / f"{name}.md").write_text(text, "utf-8")
    KnowledgeBase.build(root / "articles", root / "index")
    with KnowledgeBase.open(root / "index") as opened:
        yield opened


@pytest.mark.parametrize(
    ("name", "first"),
    [("token", None), ("kernel", "around"), ("shard", "around"), ("worker", "alone"), ("walrus", "around")],
)
def test_what_is_searched_for_first(name: str, first: str | None, lines_base: KnowledgeBase) -> None:
    """Nothing for a line that weighs little; the line alone when one issue prints it and it weighs enough; else it and
    the lines around it."""
    oracle = Oracle(lines_base)
    oracle.found("before it failed", LINES[name], "behind it failed")
    around = f"before it failed\n{LINES[name]}\nbehind it failed"
    assert oracle.texts[:1] == {None: [], "alone": [LINES[name]], "around": [around]}[first]


@pytest.mark.parametrize(
    ("name", "confidence", "found"),
    [
        ("kernel", 0.47, False),
        ("kernel", 0.53, True),
        ("worker", 0.47, False),
        ("worker", 0.53, True),
        ("walrus", 0.72, False),
        ("walrus", 0.78, True),
    ],
)
def test_how_confident_the_answer_must_be(name: str, confidence: float, found: bool, lines_base: KnowledgeBase) -> None:
    """Surer for a line that several issues print."""
    assert Oracle(lines_base, f"{name}#1", confidence).found(LINES[name]) == [f"{name}#1"] * found


def test_the_lines_around_are_thirty_before_and_ten_after(lines_base: KnowledgeBase) -> None:
    oracle = Oracle(lines_base)
    before, after = ([f"{where} {n} failed" for n in range(1, 61)] for where in ("before", "after"))
    oracle.found(*before, LINES["kernel"], *after)
    asked = oracle.texts[0].splitlines()
    assert (asked[0], asked[-1], len(asked)) == ("before 31 failed", "after 10 failed", 41)


def test_asking_about_one_line_has_an_end(lines_base: KnowledgeBase) -> None:
    """Three times, each with all the lines around it and then with the failures among them."""
    oracle = Oracle(lines_base)
    oracle.found(*[LINES["kernel"], *[""] * 50] * 20)
    assert 3 <= len(oracle.texts) <= 6


def test_the_words_of_a_fingerprint_in_another_order_are_none(lines_base: KnowledgeBase) -> None:
    assert Oracle(lines_base, "walrus#1", 0.99).found("RuntimeError: walrus lantern meadow") == ["walrus#1"]
    assert Oracle(lines_base, "walrus#1", 0.99).found("RuntimeError: meadow walrus lantern") == []
