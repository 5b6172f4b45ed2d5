"""kb.logs.quantities and kb.logs.conditions: which numbers a message prints, and what an article demands of them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import check_growth, examples
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.logs.conditions import Comparison, evaluate, holds, parse
from kb.logs.quantities import UNITS, quantities

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "cases" / "logs" / "quantities.jsonl").read_text("utf-8").splitlines()
]
PIECES = st.sampled_from(
    [case["text"] for case in CASES] + ["ried to allocate ", "9e999", "٣", "SeqNum=", "torch.Size([", "'loss': ", "sm_"]
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: ascii(case["text"])[:60])
def test_the_quantities_of_a_text(case: dict[str, Any]) -> None:
    found = quantities(case["text"])
    assert found.keys() == case["quantities"].keys()
    for name, values in case["quantities"].items():
        assert found[name] == pytest.approx(tuple(values), abs=1e-4), name


def test_the_table_has_every_quantity() -> None:
    assert {name for case in CASES for name in case["quantities"]} == UNITS.keys()


@settings(max_examples=examples(400), deadline=None)
@given(st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=8).map("".join)))
def test_any_text_has_quantities(text: str) -> None:
    found = quantities(text)
    assert found.keys() <= UNITS.keys()
    assert all(values and not any(map(math.isnan, values)) for values in found.values())


@pytest.mark.parametrize(
    "piece", ["Tried to allocate ", "1 GiB free; ", "WorkNCCL(", "SeqNum=1", "torch.Size([1, ", "sm_86 "]
)
def test_time_grows_with_the_text(piece: str) -> None:
    def work(size: int) -> Callable[[], object]:
        text = piece * size
        return lambda: quantities(text)

    check_growth(work, 2000)


# --- conditions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "comparisons"),
    [
        ("unallocated >= 0.5 GiB", [("unallocated", ">=", 0.5)]),
        ("unallocated>=512MiB", [("unallocated", ">=", 0.5)]),
        ("timeout == 30 min", [("timeout", "==", 1800.0)]),
        ("seqnum < 100 or numel == 1", [("seqnum", "<", 100.0), ("numel", "==", 1.0)]),
        ("learning_rate != 0", [("learning_rate", "!=", 0.0)]),
    ],
)
def test_a_condition_is_read(condition: str, comparisons: list[tuple[str, str, float]]) -> None:
    assert parse(condition) == tuple(Comparison(*one) for one in comparisons)


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("", "is no comparison"),
        ("the number is small", "is no comparison"),
        ("seqnum", "is no comparison"),
        ("seqnum = 1", "is no comparison"),
        ("1 < seqnum", "is no comparison"),
        ("seqnum < 100 and numel == 1", "is no comparison"),
        ("seqnum < 100 or ", "is no comparison"),
        ("requested > free", "is no comparison"),
        ("seqnumber < 100", "is no quantity; known are requested, gpu"),
        ("unallocated >= 0.5", "wants one of the units B, KiB"),
        ("unallocated >= 0.5 s", "wants one of the units B, KiB"),
        ("seqnum < 100 GiB", "has no unit"),
        ("seqnum < " + "1" * 500, "at most 200 characters"),
    ],
)
def test_a_condition_that_cannot_be_read_says_why(condition: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse(condition)


@pytest.mark.parametrize(
    ("condition", "answer"),
    [
        ("seqnum < 100", True),
        ("seqnum > 100", False),
        ("numel == 1", None),
        ("seqnum > 100 or numel == 1", None),
        ("seqnum < 100 or numel == 1", True),
        ("gpu == 3", True),  # one of the processes
        ("gpu == 7", False),
        ("gpu == 7 or seqnum > 100", False),
    ],
)
def test_a_condition_holds_or_not_or_nobody_knows(condition: str, answer: bool | None) -> None:
    assert holds(condition, {"seqnum": (4.0,), "gpu": (0.0, 3.0)}) is answer


@pytest.mark.parametrize(
    ("conditions", "answer"),
    [
        ([], None),
        (["seqnum < 100"], True),
        (["seqnum < 100", "numel == 1"], None),
        (["numel == 1", "seqnum > 100"], False),
        (["no condition", "seqnum > 100"], False),
        (["no condition", "seqnum < 100"], None),
    ],
)
def test_one_condition_that_does_not_hold_is_enough(conditions: list[str], answer: bool | None) -> None:
    assert evaluate(conditions, {"seqnum": (4.0,)}) is answer


names = st.sampled_from(sorted(name for name, unit in UNITS.items() if not unit))
bounds = st.integers(-3, 3)


@given(names, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), bounds, st.lists(bounds, min_size=1, max_size=3))
def test_a_comparison_or_its_opposite_holds(name: str, sign: str, bound: int, values: list[int]) -> None:
    opposite = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}[sign]
    known = {name: tuple(map(float, values))}
    assert holds(f"{name} {sign} {bound} or {name} {opposite} {bound}", known) is True
    assert holds(f"{name} {sign} {bound}", known) or holds(f"{name} {opposite} {bound}", known)


@given(st.text(max_size=40))
def test_any_text_is_a_condition_or_a_value_error(text: str) -> None:
    try:
        parse(text)
    except ValueError as error:
        assert str(error)
    assert evaluate([text], {}) is None
