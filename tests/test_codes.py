"""kb.logs.codes: which codes a text names, as a table of cases; never an error, linear in the text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import check_growth, examples
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.logs.codes import codes, contradicts, has_code_words

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "cases" / "logs" / "codes.jsonl").read_text("utf-8").splitlines()
]
PIECES = st.sampled_from(
    [case["text"] for case in CASES]
    + ["error code ", "507048", "status=", "12", "HTTP", "sm_", "86", "E", "I0002", "signal ", "٣", "completion", "\n"]
)
any_text = st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=8).map("".join))


@pytest.mark.parametrize("case", CASES, ids=lambda case: ascii(case["text"])[:60])
def test_the_codes_of_a_text(case: dict[str, object]) -> None:
    text = str(case["text"])
    assert codes(text) == {tuple(code) for code in case["codes"]}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("NET/IB error 4 vendor 81", "Got completion with error 12, opcode 0, len 0, vendor err 129"),
        ("error code is 507035", "EI0002: [PID: 1] error code is 507048"),
        ("EZ9999: Inner Error!", "EI0006: Getting socket times out"),
        ("Error 804: forward compatibility was attempted, cudaGetDeviceCount()", "CUDA error 802"),
        ("404 Client Error", "401 Client Error, 403 Client Error"),
        ("RTX 3090 with CUDA capability sm_86", "RTX 5090 with CUDA capability sm_120"),
    ],
)
def test_another_code_of_one_kind_contradicts(asked: str, told: str) -> None:
    assert contradicts(codes(asked), codes(told))


def test_the_table_says_of_every_kind_what_is_none() -> None:
    assert {kind for case in CASES for kind, _ in case["codes"]} == {"exit", "cann", "ib", "cuda", "http", "sm"}
    assert sum(not case["codes"] for case in CASES) >= 12


@settings(max_examples=examples(400), deadline=None)
@given(any_text, st.sampled_from("0123456789"))
def test_a_text_with_codes_has_their_words_whatever_its_digits_are(text: str, digit: str) -> None:
    """`kb scan` asks once for all lines that differ in their digits alone."""
    found = codes(text)
    assert all(isinstance(kind, str) and isinstance(code, str) for kind, code in found)
    assert has_code_words(text) or not found
    assert not contradicts(found, found)
    other = text.translate({ord(one): digit for one in "0123456789"})
    assert has_code_words(other) == has_code_words(text)


@pytest.mark.parametrize(
    "piece", ["error code 507048 ", "completion from ", "HTTP 40", "sm_86 ", "E", "12345 ", "EI0002"]
)
def test_time_grows_with_the_text(piece: str) -> None:
    def work(size: int) -> Callable[[], object]:
        text = piece * size
        return lambda: codes(text)

    check_growth(work, 2000)
