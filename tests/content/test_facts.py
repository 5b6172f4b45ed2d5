"""Codes and conditions of the shipped articles: no question may be kept from the issue that answers it."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest
from conftest import shipped_articles

from kb.logs.codes import Codes, codes, contradicts
from kb.logs.conditions import evaluate
from kb.logs.quantities import quantities
from kb.records import IssueRecord
from kb.text import fences

CASES = Path(__file__).parents[1] / "cases"
QUESTIONS = [
    question
    for name in ("questions", "development", "stock", "wild")
    for line in (CASES / f"{name}.jsonl").read_text("utf-8").splitlines()
    if (question := json.loads(line))["issue"]
]
SELDOM = {"exit"}  # codes that an article may show without being known by them


@pytest.fixture(scope="module")
def records() -> dict[str, list[IssueRecord]]:
    found: dict[str, list[IssueRecord]] = defaultdict(list)
    for article in shipped_articles().values():
        for record in article.records:
            found[record.issue].append(record)
    return found


def printed(record: IssueRecord) -> Codes:
    return codes("\n".join(record.errors))


@pytest.mark.thorough
def test_no_question_contradicts_the_issue_that_answers_it(records: dict[str, list[IssueRecord]]) -> None:
    wrong = [
        (question["id"], record.id)
        for question in QUESTIONS
        for record in records[question["issue"]]
        if contradicts(codes(question["query"]), printed(record))
    ]
    assert len(QUESTIONS) > 500
    assert not wrong


@pytest.mark.thorough
def test_no_question_fails_a_condition_of_the_issue_that_answers_it(records: dict[str, list[IssueRecord]]) -> None:
    answers = [
        (question["id"], record.id, evaluate(record.conditions, quantities(question["query"])))
        for question in QUESTIONS
        for record in records[question["issue"]]
        if record.conditions
    ]
    assert not [answer for answer in answers if answer[2] is False]
    assert sum(answer[2] is True for answer in answers) >= 30


def test_what_an_issue_is_known_by_is_in_its_error_lines(records: dict[str, list[IssueRecord]]) -> None:
    """Codes in its title and its fences; a search compares the error lines alone."""
    for record in (record for translations in records.values() for record in translations):
        fenced = [block.text for block in fences.split(record.symptom) if isinstance(block, fences.Code)]
        shown = {kind for kind, _ in codes("\n".join((record.title, *fenced)))} - SELDOM
        assert shown <= {kind for kind, _ in printed(record)}, record.id
