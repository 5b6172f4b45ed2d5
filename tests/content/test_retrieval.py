"""Questions to the shipped articles: how many are answered rightly, and how many that must not be are left alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SHIPPED

from kb import KnowledgeBase, SearchResult

CASES = Path(__file__).parents[1] / "cases"
pytestmark = pytest.mark.thorough  # test_first_look.py asks some of them


def _load(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CASES / name).read_text("utf-8").splitlines()]


QUESTIONS = _load("questions.jsonl")
DEVELOPMENT = _load("development.jsonl")
WILD = _load("wild.jsonl")
STOCK = _load("stock.jsonl")
BY_ID = {question["id"]: question for question in QUESTIONS + DEVELOPMENT + WILD + STOCK if "query" in question}


@pytest.fixture(scope="module")
def base(shipped_index: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(shipped_index) as opened:
        yield opened


@pytest.fixture(scope="module")
def known(base: KnowledgeBase) -> set[str]:
    return {record.issue for record in base.records()}


@pytest.fixture(scope="module")
def answers(base: KnowledgeBase) -> dict[str, SearchResult]:
    """Every question of tests/cases, asked once."""
    return {name: base.search(question["query"], 10) for name, question in BY_ID.items()}


def _is_right(question: dict[str, Any], result: SearchResult, within: int = 1) -> bool:
    right = {question["issue"], *question.get("also", [])}
    return any(hit.issue in right for hit in result.hits[:within])


def _helps(question: dict[str, Any], result: SearchResult) -> bool:
    """The first hit is of use, or leads to the issue."""
    first = result.hits[0]
    right = {question["issue"], *question.get("also", [])}
    return first.issue in question.get("partly", []) or bool({way.issue for way in first.record.branches} & right)


def _is_named(question: dict[str, Any], result: SearchResult) -> bool:
    named = [hit.issue for hit in result.hits[:1]] if result.answered else result.likely
    return bool({question["issue"], *question.get("also", [])} & {*named})


# --- what must be found ---------------------------------------------------------------------------------------------

# Measured over these files, with the 1,710 issues of the 1,318 articles. What is only likely is no answer.
FLOORS = {  # kind: first, within three, known, known or likely and the right one among those named
    "line": (0.92, 0.97, 0.86, 0.89),
    "trace": (0.85, 0.89, 0.88, 0.82),
    "keywords": (0.9, 0.98, 0.66, 0.79),
    "mixed": (0.95, 0.98, 0.78, 0.92),
    "description": (0.93, 0.97, 0.54, 0.73),
}


@pytest.mark.parametrize("kind", FLOORS)
def test_recall(kind: str, answers: dict[str, SearchResult], known: set[str]) -> None:
    asked = [question for question in BY_ID.values() if question["kind"] == kind and question["issue"] in known]
    misses = [question["id"] for question in asked if not _is_right(question, answers[question["id"]])]
    first, third, answered, named = FLOORS[kind]
    assert asked
    assert 1 - len(misses) / len(asked) >= first, misses
    assert np.mean([_is_right(question, answers[question["id"]], 3) for question in asked]) >= third
    assert np.mean([answers[question["id"]].answered for question in asked]) >= answered
    assert np.mean([_is_named(question, answers[question["id"]]) for question in asked]) >= named


# --- what must not be answered --------------------------------------------------------------------------------------


NEAR = ("far", "near", "generic")


@pytest.mark.parametrize(
    ("file", "ceiling"),
    [(QUESTIONS, 0.04), (DEVELOPMENT, 0.04), (WILD, 0.04), (STOCK, 0.04)],
    ids=["questions", "development", "wild", "stock"],
)
def test_questions_about_something_else(
    file: list[dict[str, Any]], ceiling: float, answers: dict[str, SearchResult]
) -> None:
    asked = [question["id"] for question in file if not question["issue"] and question.get("kind") in NEAR]
    wrong = [name for name in asked if answers[name].answered]
    assert len(asked) >= 20
    assert len(wrong) <= max(1, ceiling * len(asked)), wrong


@pytest.mark.parametrize(
    "text", ["7", "loss", "CUDA", "训练", "OOM", "GPU", "error", "报错", "python", "loss 训练", "1 2 3"]
)
def test_a_word_that_stands_everywhere_is_no_question(text: str, base: KnowledgeBase) -> None:
    result = base.search(text)
    assert not result.answered
    assert result.hits  # the nearest are listed


@pytest.mark.parametrize(
    ("text", "family"),
    [
        ("显存不足", "pytorch-cuda-out-of-memory#1"),
        ("训练时爆显存", "pytorch-cuda-out-of-memory#1"),
        ("CUDA out of memory", "pytorch-cuda-out-of-memory#1"),
        ("loss is nan", "training-loss-nan-or-zero#1"),
        ("loss 变成 nan", "training-loss-nan-or-zero#1"),
        ("training hangs", "training-hangs-no-message#1"),
        ("cuda not available pytorch", "no-cuda-gpus-available#1"),
    ],
)
def test_a_bare_question_gets_its_family(text: str, family: str, base: KnowledgeBase) -> None:
    result = base.search(text)
    assert (result.verdict, result.likely[:1]) == ("likely", (family,))


@pytest.mark.parametrize("text", ["exit code 1", "多卡训练报错", "模型加载失败", "grafana 打不开", "CUDA 报错"])
def test_a_bare_question_about_anything_gets_none(text: str, base: KnowledgeBase) -> None:
    assert base.search(text).verdict == "unknown"


@pytest.mark.parametrize(
    ("text", "word"),
    [("CUDA out of memory", "memory"), ("nccl timeout", "NCCL")],
)
def test_what_many_issues_print_is_not_answered_by_one_of_them(text: str, word: str, base: KnowledgeBase) -> None:
    """Ten remedies for one line: which, only the circumstances tell. The issue that leads to them comes first."""
    first = base.search(text, k=3).hits[0].record
    assert len(first.branches) >= 3
    assert word in "\n".join((first.title, *first.errors))


# --- how sure it is -------------------------------------------------------------------------------------------------


def test_the_operating_point(answers: dict[str, SearchResult], known: set[str]) -> None:
    """A threshold or a bias that moves answers fewer known questions, or more unknown ones."""
    share = {
        there: np.mean([answers[name].answered for name, one in BY_ID.items() if (one["issue"] in known) is there])
        for there in (True, False)
    }
    assert 0.72 <= share[True] <= 0.88
    assert share[False] <= 0.04


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_is_said_to_be_known_is_right(lang: str, answers: dict[str, SearchResult]) -> None:
    """In each language: a bias with the wrong sign would be too sure in one."""
    said = [(BY_ID[name], result) for name, result in answers.items() if result.query.lang == lang and result.answered]
    assert len(said) >= 100
    assert np.mean([_is_right(question, result) for question, result in said]) >= 0.91
    assert np.mean([_is_right(question, result) or _helps(question, result) for question, result in said]) >= 0.96


# --- the form of an answer ------------------------------------------------------------------------------------------


def test_a_hit_says_where_it_stands(answers: dict[str, SearchResult]) -> None:
    records = {hit.record.id: hit.record for result in answers.values() for hit in result.hits}
    assert len(records) > 100
    for name, record in records.items():
        place = record.source
        lines = (SHIPPED / place.path).read_text("utf-8").splitlines()
        assert 1 <= place.first_line <= place.last_line <= len(lines), name
        assert record.title in "\n".join(lines[place.first_line - 1 : place.last_line]), name
