"""reStructuredText underlines headings with tildes, which open a fence in Markdown."""

from __future__ import annotations

from functools import partial

import pytest
from conftest import check_growth
from hypothesis import given
from hypothesis import strategies as st

from kb.articles.underlined import without_tildes

PROMPT = "It prints:\n~~~~~~~~~~\nRuntimeError: boom\n~~~~~~~~~~\n\n## Fix"
FENCED = "Run this:\n\n~~~~\nkubectl get pods\n\nfoo\n~~~~\n\nThen wait."


def test_a_heading_of_tildes_is_a_heading() -> None:
    text = "Crash at import\n~~~~~~~~~~~~~~~\n\nIt crashes.\n\n训练卡住\n~~~~~~~~\n\n卡在第一步。"
    assert without_tildes(text.split("\n")) == text.replace("~", "^").split("\n")


@pytest.mark.parametrize(
    "text",
    [
        FENCED,
        FENCED.replace("~~~~", "~~~"),
        "a\n\n~~~~\nfoo\n~~~~",
        "```\nabcd\n~~~~\n```",
        PROMPT,
        "Err:\n~~~~\nError: x\n# no\n~~~~",
    ],
)
def test_a_fence_stays_a_fence(text: str) -> None:
    assert without_tildes(text.split("\n")) == text.split("\n")


def test_time_grows_with_the_page() -> None:
    check_growth(lambda n: partial(without_tildes, ["abcd", "~~~~", "x"] * n), 2000)
    check_growth(lambda n: partial(without_tildes, ["abcd", "~~~~", ""] * n), 2000)


@given(st.lists(st.sampled_from(["~~~~", "~~~", "```", "abcd", "", "  ~~~~~", "x ~~~~"]), max_size=12))
def test_as_many_lines_come_out(lines: list[str]) -> None:
    after = without_tildes(lines)
    assert [line.replace("^", "~") for line in after] == [
        line.rstrip() if "^" in new else line for line, new in zip(lines, after, strict=True)
    ]
