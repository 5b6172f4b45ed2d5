"""What is said first of every shipped issue, in both languages: laws of the short form.

The oracle reads the markdown by itself: fenced blocks with markdown-it, bold text with a pattern.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

import pytest
from conftest import THOROUGH, shipped_articles
from markdown_it import MarkdownIt

from kb.brief import Line, answer_lines, fix_line, headline, of_finding, to_try
from kb.records import IssueRecord
from kb.scan import Finding
from kb.text.steps import steps
from kb.text.width import rows

WIDTHS = (60, 80, 200)
BELOW_HEAD = 13  # of fifteen rows: headline and verdict come above
_LEADS = re.compile(r"[:：][\s*)）]{0,4}$")
_BOLD = re.compile(r"\*\*(.+?)\*\*", re.DOTALL)


@cache
def _records() -> tuple[IssueRecord, ...]:
    return tuple(record for article in shipped_articles().values() for record in article.records)


@cache
def _fences(markdown: str) -> tuple[str, ...]:
    tokens = MarkdownIt("commonmark").parse(markdown)
    return tuple(token.content.rstrip("\n") for token in tokens if token.type == "fence")


def _shown_code(lines: list[Line]) -> list[str]:
    """The blocks of code among the lines, without their indentation."""
    blocks: list[list[str]] = []
    for before, line in zip([None, *lines], lines, strict=False):
        if line.role == "code":
            if before is None or before.role != "code":
                blocks.append([])
            blocks[-1].append(line.text[7:])
    return ["\n".join(block) for block in blocks]


def _flat(text: str) -> str:
    return re.sub(r"[\s*`]|\]\([^)]*\)|\[", "", text)


@pytest.mark.thorough
def test_there_is_something_to_judge() -> None:
    records = _records()
    assert len(records) > (1000 if THOROUGH else 100) and {record.lang for record in records} == {"en", "zh"}
    assert all(to_try(record, 10, 80) for record in records)


@pytest.mark.costly
@pytest.mark.parametrize("width", WIDTHS)
def test_it_takes_fifteen_rows(width: int) -> None:
    """A single command may be wider than a narrow terminal: there the rows are more, and the lines are not."""
    tall = []
    for record in _records():
        lines = [line.text for line in answer_lines(record, width, most=BELOW_HEAD)]
        assert len(lines) <= BELOW_HEAD, record.id
        if rows(lines, width) > BELOW_HEAD:
            tall.append(record.id)
    assert len(tall) <= {60: 13, 80: 0, 200: 0}[width], tall


@pytest.mark.costly
@pytest.mark.parametrize("width", WIDTHS)
def test_what_leads_is_followed_by_what_it_leads_to(width: int) -> None:
    for record in _records():
        lines = answer_lines(record, width, most=BELOW_HEAD)
        for line, below in pairwise(lines):
            if line.role == "text" and _LEADS.search(line.text):
                more = below.role == "code" or (below.role == "text" and below.text.startswith(" "))
                assert more, (record.id, line.text)
            if line.role == "label":
                assert below.role in ("text", "code"), (record.id, line.text)


@pytest.mark.costly
@pytest.mark.parametrize("width", WIDTHS)
def test_code_is_whole_and_stands_in_its_own_step(width: int) -> None:
    for record in _records():
        lines = answer_lines(record, width, most=BELOW_HEAD)
        for line in lines:
            if line.role == "text":
                assert line.text.count("`") % 2 == 0, (record.id, line.text)
        in_order = [block for step in steps(record.fix) for block in _fences(_dedented(step.text))[:1]]
        at = 0
        for block in _shown_code(lines):
            assert block in in_order[at:], (record.id, block)
            at = in_order.index(block, at) + 1


def _dedented(step: str) -> str:
    first, _, rest = step.partition("\n")
    return "\n".join([first, *(line[3:] if line.startswith("   ") else line for line in rest.split("\n"))])


def test_no_command_is_shown_without_its_warning() -> None:
    warned = 0
    for record in _records():
        lines = answer_lines(record, 80, most=BELOW_HEAD)
        said = _flat("".join(line.text for line in lines if line.role == "text"))
        shown = _shown_code(lines)
        for step in steps(record.fix):
            if any(block in shown for block in _fences(_dedented(step.text))[:1]):
                prose = re.sub(r"```.*?```", "", step.text, flags=re.DOTALL)
                for bold in _BOLD.findall(re.sub(r"`([^`]*)`", lambda code: code[1].replace("*", ""), prose)):
                    assert _flat(bold) in said.replace("*", ""), (record.id, bold)
                    warned += 1
    assert warned > (50 if THOROUGH else 5)


def test_a_scan_shows_the_first_command() -> None:
    """In the words in short, or in the fix: whatever the issue offers to copy."""
    without = []
    for record in _records():
        finding = Finding(record.issue, record, 0.9, 1, 1, 1, 1, "boom", "")
        told = [line.text for line in of_finding(finding, "a.log") if line.role == "text"]
        assert not any(_LEADS.search(line) for line in told), (record.id, told)
        assert all(line.count("`") % 2 == 0 for line in told), (record.id, told)
        assert not _LEADS.search(fix_line(record)), record.id
        if not any("`" in line for line in told):
            without.append(record.id)
    assert len(without) <= 4, without


def test_the_headline_is_not_repeated() -> None:
    assert all(headline(record) not in line.text for record in _records() for line in answer_lines(record, 200))
