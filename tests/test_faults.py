"""Issues that tell the same fault count as one answer: two versions of a page do not take each other's confidence."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import CORPUS, EMPTY_RECORD, THOROUGH

from kb import KnowledgeBase
from kb.index.faults import faults, plain_title, title_key
from kb.index.snapshot import read_manifest

DEQUE = "IndexError: pop from an empty deque"
BUS = (
    "RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error. "
    "It is possible that dataloader's workers are out of shared memory."
)
MEMORY = "RuntimeError: CUDA error: an illegal memory access was encountered"
QUESTIONS = [DEQUE, BUS, "loss 变成 nan", "exit code -9", "the weather is fine", "bf16 compute capability 7.5"]


@pytest.fixture(scope="module")
def doubled(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeBase:
    """The frozen articles, each as a page for two versions."""
    folder = tmp_path_factory.mktemp("doubled")
    for path in sorted(CORPUS.glob("*/*.md" if THOROUGH else "*/[m-p]*.md")):
        for version in ("2.1", "3.0"):
            copy = folder / "articles" / path.parent.name / f"{path.stem}-v{version[0]}.md"
            copy.parent.mkdir(parents=True, exist_ok=True)
            text = path.read_text("utf-8")
            copy.write_text(text.replace("\n### Fix", f"\n(This page is about version {version}.)\n\n### Fix"), "utf-8")
    KnowledgeBase.build(folder / "articles", folder / "index")
    return KnowledgeBase.open(folder / "index")


@pytest.mark.thorough
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_doubled_base_answers_as_the_single_one(doubled: KnowledgeBase, index: Path, question: str) -> None:
    with KnowledgeBase.open(index) as single:
        one, two = single.search(question, 3), doubled.search(question, 3)
    # The copies add a line, so a confidence moves a little; near a threshold that may change the verdict.
    assert one.verdict == two.verdict or abs(one.hits[0].confidence - two.hits[0].confidence) < 0.05
    if one.verdict != "unknown":
        assert two.hits[0].issue.replace("-v2", "").replace("-v3", "") == one.hits[0].issue
    names = [hit.issue.replace("-v2#", "#").replace("-v3#", "#") for hit in two.hits]
    assert len(names) == len({*names})  # a fault is listed once


def test_a_scan_finds_each_fault_once(doubled: KnowledgeBase) -> None:
    found = doubled.scan(["ok", DEQUE, "ok", MEMORY, DEQUE]).findings
    assert [finding.first_line for finding in found] == [2, 4]


def test_both_versions_can_be_shown(doubled: KnowledgeBase) -> None:
    assert doubled.show("ms-swift-ovis2-grpo-v2#2")
    assert doubled.show("ms-swift-ovis2-grpo-v3#2")


def test_no_two_issues_of_the_corpus_are_one_fault(index: Path) -> None:
    with KnowledgeBase.open(index) as base:
        columns = base.searcher.store.header.columns
        assert len({*columns.fault.tolist()}) == len({*columns.issue.tolist()}) == base.size


def _faults(titles: list[str], terms: list[set[str]]) -> list[int]:
    keys = [title_key(replace(EMPTY_RECORD, title=title)) for title in titles]
    digests = [{hash(term) for term in one} for one in terms]
    return faults(np.arange(len(titles)), np.array(keys, np.uint64), digests.__getitem__).tolist()


SAME = {"the", "server", "does", "not", "start"}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Why is it slow?", "why is it  slow", True),
        ("Upgrade to v2.1 fails", "Upgrade to v3.0.4 fails", True),
        ("tidb-server does not start", "pd-server does not start", False),
        ("Error Number: 8061", "Error Number: 8064", False),
        ("为什么变慢？", "为什么变慢", True),
        ("tikv-server 启动报错", "pd-server 启动报错", False),
    ],
)
def test_which_titles_are_the_same(one: str, other: str, same: bool) -> None:
    first, second = _faults([one, other], [SAME, SAME])
    assert (first == second) is same
    assert (plain_title(one) == plain_title(other)) is same


def test_the_same_title_alone_is_not_enough() -> None:
    one, other, third = _faults(["Symptom"] * 3, [SAME, {"disk", "is", "full"}, SAME | {"again"}])
    assert one == third != other


@pytest.mark.thorough
def test_the_index_is_the_same_whatever_came_before(doubled: KnowledgeBase, tmp_path: Path) -> None:
    articles = Path(doubled.where).parent / "articles"
    folder = tmp_path / "articles"
    shutil.copytree(articles, folder)
    (folder / "en" / "zzz.md").write_text("# Other\n\n## Other\n\n### Symptom\n\nx\n\n### Fix\n\ny\n", "utf-8")
    KnowledgeBase.build(folder, tmp_path / "index")
    (folder / "en" / "zzz.md").unlink()
    KnowledgeBase.build(folder, tmp_path / "index")
    assert read_manifest(tmp_path / "index")[1] == doubled.snapshot


def test_of_several_versions_the_newest_is_shown(tmp_path: Path) -> None:
    """Unless the question has words that only an older one has; 1.10 is newer than 1.9."""
    printed = "```\nFrobError: lantern out of oil\n```"
    page = f"# Frobs\n\n## The frob of {{0}} stalls\n\n### Symptom\n\n{printed}\n\n{{1}}\n\n### Fix\n\nWait.\n"
    (tmp_path / "articles").mkdir()
    for version, more in (("1.2", "It glows purple."), ("1.9", ""), ("1.10", "")):
        text = page.format(f"v{version}", more)
        (tmp_path / "articles" / f"frobs-{version}.md").write_text(text, "utf-8")
    KnowledgeBase.build(tmp_path / "articles", tmp_path / "index")
    with KnowledgeBase.open(tmp_path / "index") as base:
        assert [hit.issue for hit in base.search("FrobError: lantern out of oil").hits] == ["frobs-1.10#1"]
        assert base.search("FrobError: lantern out of oil, it glows purple").hits[0].issue == "frobs-1.2#1"
