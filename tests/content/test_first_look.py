"""Do the shipped articles answer, and are they silent where they know nothing? A part of the articles and their
questions; the figures come from all of them, in test_retrieval.py and test_world.py, which CI runs."""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import SHIPPED

from kb import KnowledgeBase
from kb.evaluate import Question, read_questions
from kb.scan import Scanner

CASES = Path(__file__).parents[1] / "cases"
LOGS = CASES / "world" / "logs"


def _some(name: str, each: int) -> list[Question]:
    return list(read_questions((CASES / name).read_bytes(), name))[::each]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    folder = tmp_path_factory.mktemp("first look")
    for lang in ("en", "zh"):
        (folder / "articles" / lang).mkdir(parents=True)
        for path in sorted((SHIPPED / lang).glob("*.md")):
            if zlib.crc32(path.stem.encode()) % 18 == 0:  # a new article changes nothing for the others
                shutil.copy(path, folder / "articles" / lang)
    KnowledgeBase.build(folder / "articles", folder / "index")
    with KnowledgeBase.open(folder / "index") as opened:
        yield opened


@pytest.fixture(scope="module")
def known(base: KnowledgeBase) -> set[str]:
    return {record.issue for record in base.records()}


def test_what_is_known_is_found(base: KnowledgeBase, known: set[str]) -> None:
    asked = [
        one for name in ("questions.jsonl", "development.jsonl") for one in _some(name, 1) if known & {*one.wanted}
    ]
    results = {one: base.search(one.query, 3) for one in asked}
    assert len(asked) >= 25
    assert sum(result.hits[0].issue in one.wanted for one, result in results.items()) >= 0.9 * len(asked)
    answered = {one: result for one, result in results.items() if result.answered}
    assert len(answered) >= 0.6 * len(asked)
    assert sum(result.hits[0].issue not in one.wanted for one, result in answered.items()) <= 0.05 * len(answered)


def test_what_is_not_known_is_not_answered(base: KnowledgeBase, known: set[str]) -> None:
    others = [one for one in _some("development.jsonl", 3) if one.wanted and not known & {*one.wanted}]
    everyday = [one for one in _some("world/everyday.jsonl", 8) if not one.wanted]
    assert min(len(others), len(everyday)) >= 30
    assert [one.query for one in everyday if base.search(one.query, 1).answered] == []
    assert sum(base.search(one.query, 1).answered for one in others) <= 0.05 * len(others)


def test_a_log_is_read_alike(base: KnowledgeBase, known: set[str]) -> None:
    scanner = Scanner(base.searcher)

    def found(name: str) -> set[str]:
        return {finding.issue for finding in scanner.scan([(LOGS / name).read_bytes()]).findings}

    right: dict[str, list[str]] = json.loads((LOGS / "known" / "known.json").read_text("utf-8"))
    asked = {name: issues for name, issues in right.items() if known & {*issues}}
    assert len(asked) >= 5
    assert sum(bool(found(f"known/{name}") & {*issues}) for name, issues in asked.items()) >= 0.75 * len(asked)
    assert {
        path.name for path in sorted((LOGS / "healthy").glob("*.log"))[::10] if found(f"healthy/{path.name}")
    } == set()
