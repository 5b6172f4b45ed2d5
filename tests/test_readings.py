"""kb.logs.read: is a text a log, and which of its lines say that a program failed? Cases: cases/logs/readings.jsonl."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from conftest import check_growth, examples
from hypothesis import given, settings
from hypothesis import strategies as st

from kb import KnowledgeBase
from kb.logs.read import FIRST_FAILURES, LAST_FAILURES, MAX_QUERY_CHARS, read
from kb.search.explain import explain
from kb.text import clean

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "cases" / "logs" / "readings.jsonl").read_text("utf-8").splitlines()
]
LINES = st.sampled_from([line for case in CASES for line in case["text"].splitlines()])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"].replace(" ", "-"))
def test_what_a_text_is_and_which_lines_failed(case: dict[str, Any]) -> None:
    query = read(case["text"], printed=case["printed"])
    assert (query.is_log, list(query.failures)) == (case["is_log"], case["failures"])


def test_the_cases_are_of_every_kind() -> None:
    assert len({case["name"] for case in CASES}) == len(CASES)
    for kind in product([True, False], repeat=2):
        assert any((case["is_log"], bool(case["failures"])) == kind for case in CASES)


@settings(max_examples=examples(200))
@given(st.lists(LINES | st.text(max_size=20), min_size=1, max_size=30), st.booleans())
def test_failures_are_lines_of_the_text(lines: list[str], printed: bool) -> None:
    text = "\n".join((*lines, "x"))
    query = read(text, printed=printed)
    there = {line.strip() for line in clean(text).replace("\r", "\n").split("\n")}
    assert {line for line in query.failures if line.isascii()} <= there
    assert len(set(query.failures)) == len(query.failures) <= FIRST_FAILURES + LAST_FAILURES
    if printed:
        assert query.is_log
    # What a program printed twice is told once: a second copy of the text changes nothing but the place of the last.
    twice = read(f"{text}\n{text}", printed=printed)
    assert twice.failures == query.failures or len(lines) == 0
    assert {*twice.signatures} == {*query.signatures} or len(query.signatures) == 5


@pytest.mark.thorough
def test_a_line_in_the_middle_of_megabytes() -> None:
    noise = "".join(f"10:00:00 INFO step {i}: request {i} failed, trying again\n" for i in range(20_000))
    text = f"{noise}ValueError: the walrus is not here\n{noise}"
    assert len(text) > 10 * MAX_QUERY_CHARS
    query = read(text)
    assert query.is_log
    assert "ValueError: the walrus is not here" in query.failures
    assert query.signatures[0] == "ValueError: the walrus is not here"


@pytest.mark.parametrize("line", ["RuntimeError: step {} failed\n", "2025-01-01 10:00:00 ERROR {}\n", "Error {} and "])
def test_time_grows_with_the_log(line: str) -> None:
    def work(size: int) -> Callable[[], object]:
        text = "".join(line.format(i) for i in range(size))
        return lambda: read(text, printed=True)

    check_growth(work, 4000)


# --- what comes of it -----------------------------------------------------------------------------------------------

FAILURE = "RuntimeError: CUDA error: an illegal memory access was encountered"


def test_a_log_without_failures_is_no_evidence(index: Path) -> None:
    """However near an article is to what a healthy program prints."""
    with KnowledgeBase.open(index) as base:
        asked = base.show("ms-swift-ovis2-grpo#2")[0].aliases[-1]
        log = "".join(f"[INFO] step {i} loss 2.{i}\n" for i in range(9)) + f"[INFO] {asked}\n"
        assert base.search(asked).hits[0].issue == "ms-swift-ovis2-grpo#2"
        result = base.search(log)
        assert (result.query.is_log, result.verdict, result.likely) == (True, "unknown", ())
        assert base.search(asked).verdict != "unknown"
        assert explain(base.searcher, asked.encode()).verdict == "unknown"  # a program printed it


def test_a_line_of_a_log_is_as_good_as_alone(index: Path) -> None:
    with KnowledgeBase.open(index) as base:
        log = "".join(f"[INFO] step {i} loss 2.{i}\n" for i in range(300))
        alone, inside = (
            base.search(f"[rank0]: {FAILURE}").hits[0],
            base.search(f"{log}[rank0]: {FAILURE}\n{log}").hits[0],
        )
        assert (alone.issue, alone.confidence) == (inside.issue, pytest.approx(inside.confidence))


def test_of_two_known_lines_the_one_that_says_more(index: Path) -> None:
    """Whatever their order: what wraps a failure is general."""
    lines = (f"[rank0]: {FAILURE}", "[rank0]: Caught signal 8 (Floating point exception: integer divide by zero)")
    with KnowledgeBase.open(index) as base:
        alone = [base.search(line) for line in lines]
        assert all(result.answered for result in alone)
        expected = max((result.hits[0] for result in alone), key=lambda hit: hit.evidence.own_information)
        for order in (lines, lines[::-1]):
            log = "\n".join(("[INFO] step 1 loss 2.0", order[0], "[INFO] step 2 loss 2.0", order[1], "[INFO] bye"))
            assert base.search(log).hits[0].issue == expected.issue


def test_what_a_launcher_says_where_nothing_else_failed(index: Path) -> None:
    """Also of the output of a program, as `kb run` reads it."""
    with KnowledgeBase.open(index) as base:
        (case,) = [case for case in CASES if case["name"] == "what launchers say where nothing else failed"]
        found = explain(base.searcher, case["text"].encode())
        assert found.answered
        assert found.record is not None
        assert found.record.issue == "deepspeed-offload-exit-minus-9#1"
