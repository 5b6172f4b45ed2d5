"""kb.logs.classify: the kind of a line, as a table of cases; a lone line reads like one in a log; time."""

from __future__ import annotations

import json
import math
import re
import time
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest
from conftest import THOROUGH, examples
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.logs.classify import (
    LineKind,
    classify,
    is_error_line,
    is_launcher_line,
    is_usual,
    says_failure,
    says_it_in_passing,
    warns,
)
from kb.logs.prefix import strip_prefix
from kb.logs.read import read
from kb.logs.told import is_told

CASES = Path(__file__).parent / "cases"
LINES = [json.loads(line) for line in (CASES / "logs" / "lines.jsonl").read_text("utf-8").splitlines()]
QUESTIONS = [
    json.loads(line)
    for name in ("questions", "development", "stock", "wild")
    for line in (CASES / f"{name}.jsonl").read_text("utf-8").splitlines()
]
ONE_LINE = [question["query"] for question in QUESTIONS if "\n" not in question["query"].strip()]
COMMAND = "$ python train.py"


@pytest.mark.parametrize("case", LINES, ids=lambda case: ascii(case["line"])[:60])
def test_the_kind_of_a_line(case: dict[str, str]) -> None:
    assert classify(case["line"]) == case["kind"]
    assert classify(case["line"], picked=True) == case.get("picked", case["kind"])


def test_the_table_has_every_kind_several_times() -> None:
    assert len(LINES) >= 120
    assert len({case["line"] for case in LINES}) == len(LINES)
    counts = Counter(case["kind"] for case in LINES)
    assert counts.keys() == {*get_args(LineKind)}
    assert min(counts.values()) >= 4


def test_of_a_line_that_somebody_picked_the_level_says_nothing() -> None:
    kinds = {classify(case["line"], picked=True) for case in LINES}
    assert kinds == {*get_args(LineKind)} - {"healthy", "suspect"}


@pytest.mark.parametrize("prefix", ["[rank0]: ", "worker-1: ", "3: ", "(VllmWorker rank=1 pid=8812) "])
def test_who_wrote_a_line_does_not_change_its_kind(prefix: str) -> None:
    lines = [case["line"] for case in LINES if case["line"] and strip_prefix(prefix + case["line"]) == case["line"]]
    assert len(lines) > 80
    changed = [line for line in lines if classify(prefix + line) != classify(line)]
    assert changed == []


def test_the_questions_that_callers_ask() -> None:
    for case in LINES:
        line, kind = case["line"], case["kind"]
        assert says_failure(line) is (kind in ("failure", "suspect", "launcher"))
        assert is_usual(line) is (kind in ("warning", "healthy", "progress", "metrics"))
        assert warns(line) is (kind == "warning")
        assert is_launcher_line(line) or kind != "launcher"
        picked = case.get("picked", kind)
        assert is_error_line(line) is (picked in ("failure", "warning")) or picked == "launcher"


# --- a lone line, and the same line in a log ------------------------------------------------------------------------


def test_a_command_in_front_of_a_line_does_not_change_how_it_is_read() -> None:
    assert len(ONE_LINE) > 700
    for line in ONE_LINE:
        alone, behind = read(line), read(f"{COMMAND}\n{line}")
        assert behind.signatures == alone.signatures
        assert behind.lang == alone.lang
        if not alone.signatures:
            assert behind.prose == alone.prose


@pytest.mark.thorough
def test_another_rank_in_a_log_does_not_change_how_a_line_is_read() -> None:
    for line in ONE_LINE:
        if says_it_in_passing(line) and is_told(line):
            continue  # with a prefix it was printed
        assert read(f"[rank3]: {line}").signatures == read(line).signatures
        assert read(f"[rank0]: {line}\n[rank1]: {line}").signatures == read(line).signatures


def test_the_lines_of_the_table_are_read_alone_as_in_a_log() -> None:
    for case in LINES:
        if case["line"].strip() and case.get("picked", case["kind"]) != "warning":
            failure = case.get("picked", case["kind"]) == "failure"
            if re.search(r"\w", case["line"]):
                assert bool(read(case["line"]).signatures) is failure
            assert bool(read(f"训练开始\n{case['line']}").signatures) is failure


@pytest.mark.parametrize(
    "line",
    [
        'Traceback (most recent call last):   File "a.py", line 3, in f     self.q.popleft() IndexError: pop from x',
        'File "a.py", line 3, in f  IndexError: pop from an empty deque',
        "raise KeyError(name) KeyError: 'lr'",
    ],
)
def test_a_traceback_in_one_line_is_a_failure(line: str) -> None:
    assert read(line).signatures == read(f"{COMMAND}\n{line}").signatures == (line,)


@pytest.mark.parametrize(
    "text",
    ["100%|██| 3/3", "[rank0]:", "Traceback (most recent call last):", "{'loss': 1.5}", "$ python train.py"],
)
def test_something_to_look_for_is_left_of_every_text(text: str) -> None:
    assert read(text).prose == read(f"{text}\n{text}").prose == text


# --- any text, and time ---------------------------------------------------------------------------------------------


@settings(max_examples=examples(300), deadline=None, derandomize=True, database=None)
@given(st.text(max_size=60), st.sampled_from([case["line"] for case in LINES]), st.text(max_size=60))
def test_any_line_has_a_kind(before: str, line: str, after: str) -> None:
    for picked in (False, True):
        assert classify(before + line + after, picked=picked) in get_args(LineKind)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "unit", ["a", " ", "Error", "0x", "/a", "9", "[rank0]: ", "at ", "File ", "a.", "WARN", "{'", "=", "= "]
)
def test_time_grows_with_the_line(unit: str) -> None:
    def seconds(size: int) -> float:
        line, best = unit * (size // len(unit)) + "!", math.inf
        for _ in range(3):
            start = time.process_time()
            for _ in range(20 if THOROUGH else 5):
                classify(line)
            best = min(best, time.process_time() - start)
        return best

    assert any(seconds(60_000) < 4 * seconds(30_000) + 0.01 for _ in range(3))
