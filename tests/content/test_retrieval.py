"""Questions to the shipped articles: how many are answered rightly, and how many that must not be are left alone."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SHIPPED, THOROUGH

from kb import KnowledgeBase, SearchResult

CASES = Path(__file__).parents[1] / "cases"
EACH = 1 if THOROUGH else 2  # of the files from the wild every second question is asked by default


def _load(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CASES / name).read_text("utf-8").splitlines()]


QUESTIONS = _load("questions.jsonl")
DEVELOPMENT = _load("development.jsonl")
WILD = _load("wild.jsonl")[::EACH]
STOCK = _load("stock.jsonl")[::EACH]
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


# --- what must be found ---------------------------------------------------------------------------------------------

# Measured over these files, with the 195 issues of the 191 articles: lines 0.99 first and all answered, traces 0.97 and
# 0.95, keywords 0.98 and 0.98, mixed 0.98 and 0.98, descriptions 0.94 and 0.91.
FLOORS = {  # kind: first, within three, answered
    "line": (0.96, 0.98, 0.96),
    "trace": (0.94, 0.96, 0.91),
    "keywords": (0.95, 0.98, 0.95),
    "mixed": (0.95, 0.98, 0.95),
    "description": (0.91, 0.97, 0.88),
}


@pytest.mark.parametrize("kind", FLOORS)
def test_recall(kind: str, answers: dict[str, SearchResult], known: set[str]) -> None:
    asked = [question for question in BY_ID.values() if question["kind"] == kind and question["issue"] in known]
    misses = [question["id"] for question in asked if not _is_right(question, answers[question["id"]])]
    first, third, answered = FLOORS[kind]
    assert asked
    assert 1 - len(misses) / len(asked) >= first, misses
    assert np.mean([_is_right(question, answers[question["id"]], 3) for question in asked]) >= third
    assert np.mean([answers[question["id"]].answered for question in asked]) >= answered


# --- what must not be answered --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "ceiling"),
    [(QUESTIONS, 0.16), (DEVELOPMENT, 0.06), (WILD, 0.2), (STOCK, 0.2)],
    ids=["questions", "development", "wild", "stock"],
)
def test_questions_about_something_else(
    file: list[dict[str, Any]], ceiling: float, answers: dict[str, SearchResult]
) -> None:
    asked = [question["id"] for question in file if question.get("kind") in ("far", "near", "generic")]
    wrong = [name for name in asked if answers[name].answered]
    assert len(asked) >= 25
    assert len(wrong) / len(asked) <= ceiling, wrong


@pytest.mark.parametrize(
    "text", ["7", "loss", "CUDA", "训练", "OOM", "GPU", "error", "报错", "python", "loss 训练", "1 2 3"]
)
def test_a_word_that_stands_everywhere_is_no_question(text: str, base: KnowledgeBase) -> None:
    result = base.search(text)
    assert not result.answered
    assert result.hits  # the nearest are listed


@pytest.mark.parametrize(
    ("text", "word"),
    [("CUDA out of memory", "memory"), ("nccl timeout", "NCCL")],
)
def test_what_many_issues_print_is_not_answered_by_one_of_them(text: str, word: str, base: KnowledgeBase) -> None:
    """Ten remedies for one line: which, only the circumstances tell. All of the nearest are about it."""
    result = base.search(text, k=3)
    assert result.hits[0].confidence < 0.6
    assert all(word in "\n".join(hit.record.errors) for hit in result.hits)


# --- how sure it is -------------------------------------------------------------------------------------------------


def test_the_operating_point(answers: dict[str, SearchResult], known: set[str]) -> None:
    """A threshold or a bias that moves answers fewer known questions, or more unknown ones."""
    share = {
        there: np.mean([answers[name].answered for name, one in BY_ID.items() if (one["issue"] in known) is there])
        for there in (True, False)
    }
    assert 0.91 <= share[True] <= 0.965
    assert 0.06 <= share[False] <= 0.16


@pytest.mark.parametrize(
    ("lang", "pasted"), [("en", False), ("en", True), ("zh", False)], ids=["en", "en pasted", "zh"]
)
def test_confidence_is_the_share_that_is_right(lang: str, pasted: bool, answers: dict[str, SearchResult]) -> None:
    """In each language: a bias with the wrong sign would be too sure in one. Chinese questions with error lines are too
    few to say."""
    firsts = [
        (result.hits[0].confidence if result.hits else 0.0, _is_right(BY_ID[name], result))
        for name, result in answers.items()
        if (result.query.lang, bool(result.query.signatures)) == (lang, pasted)
    ]
    assert len(firsts) >= 90
    confidence, right = np.mean(firsts, axis=0).tolist()
    assert math.isclose(confidence, right, abs_tol=0.05)


# --- the form of an answer ------------------------------------------------------------------------------------------


def test_a_hit_says_where_it_stands(answers: dict[str, SearchResult]) -> None:
    records = {hit.record.id: hit.record for result in answers.values() for hit in result.hits}
    assert len(records) > 100
    for name, record in records.items():
        place = record.source
        lines = (SHIPPED / place.path).read_text("utf-8").splitlines()
        assert 1 <= place.first_line <= place.last_line <= len(lines), name
        assert record.title in "\n".join(lines[place.first_line - 1 : place.last_line]), name
