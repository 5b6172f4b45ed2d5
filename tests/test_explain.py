"""kb.search.explain: which known issue explains what a command printed; kb.brief: an issue in a few lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kb import KnowledgeBase
from kb.brief import (
    cause_line,
    fix_line,
    headline,
    known_issue,
    of_finding,
    percent,
    show_line,
    summary_line,
)
from kb.records import Hit
from kb.search.explain import explain
from kb.search.verdict import LIKELY_AT

DEQUE = "IndexError: pop from an empty deque"
ISSUE = "ms-swift-ovis2-grpo#2"


@pytest.fixture(scope="module")
def base(index: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(index) as opened:
        yield opened


@pytest.fixture(scope="module")
def hit(base: KnowledgeBase) -> Hit:
    return base.search(DEQUE).hits[0]


def test_output_that_answers_as_a_question(base: KnowledgeBase) -> None:
    found = explain(base.searcher, DEQUE.encode())
    assert found.record is not None
    assert (found.answered, found.record.issue, found.base) == (True, ISSUE, base.name)
    assert found.confidence == base.search(DEQUE).hits[0].confidence


@pytest.mark.thorough
def test_a_line_in_whatever_noise(base: KnowledgeBase) -> None:
    things = ("storage", "printer", "camera", "router", "scanner", "speaker", "turbine", "elevator")
    noise = "".join(f"error: {thing} of floor {i} cannot be opened\n" for i in range(400) for thing in things)
    output = f"{noise}[rank0]: {DEQUE}\n{noise}".encode()
    found = explain(base.searcher, output)
    assert found.answered
    assert found.record is not None
    assert found.record.issue == ISSUE
    asked = base.search(output.decode())
    assert (asked.answered, asked.hits[0].issue) == (True, ISSUE)


def test_the_language_is_the_one_asked_for(base: KnowledgeBase) -> None:
    found = explain(base.searcher, DEQUE.encode(), lang="zh")
    assert found.record is not None
    assert found.record.lang == "zh"


def test_what_is_not_known_names_the_nearest_issue(base: KnowledgeBase) -> None:
    found = explain(base.searcher, b"the flat tyre needs air")
    assert not found.answered
    assert found.record is not None
    assert found.confidence < LIKELY_AT


@pytest.mark.parametrize("output", [b"", b"\n \n", b"\x00\xff\x1b[0m"])
def test_output_without_words(output: bytes, base: KnowledgeBase) -> None:
    found = explain(base.searcher, output)
    assert (found.answered, found.record, found.confidence) == (False, None, 0.0)


# --- an issue in a few lines ------------------------------------------------------------------------------------------


def test_every_form_of_an_issue_says_the_same(base: KnowledgeBase, hit: Hit) -> None:
    """An exception's hint and a finding of a scan share cause, headline and the command that shows the rest."""
    (finding,) = base.scan([DEQUE]).findings
    of_scan = [line.text.strip() for line in of_finding(finding, "train.log")]
    of_hook = known_issue(hit, 80)
    assert headline(hit.record) in of_scan[0]
    assert of_hook[0].endswith(headline(hit.record))
    for line in (summary_line(hit.record), show_line(hit.record)):
        assert line in of_scan
        assert _flat(line) in _flat(*of_hook)
    # An article that does not say it in short: its cause, and the first command of its fix.
    record = replace(hit.record, summary="")
    of_scan = [line.text.strip() for line in of_finding(replace(finding, record=record), "train.log")]
    of_hook = known_issue(replace(hit, record=record), 80)
    assert cause_line(record) in of_scan and _flat(cause_line(record)) in _flat(*of_hook)
    assert fix_line(record) in of_scan
    command = fix_line(record).split("`")[1]
    assert command.startswith("python -c") and command in " ".join(of_hook)


def _flat(*lines: str) -> str:
    return "".join("".join(lines).split())


def test_an_issue_without_cause_and_fix(hit: Hit) -> None:
    record = replace(hit.record, cause="", fix="")
    assert cause_line(record) == ""
    assert fix_line(record) == "Fix: (kb found no fix in the article)"
    assert "  (kb found no fix in the article)" in known_issue(replace(hit, record=record), 80)


def test_an_id_cannot_end_the_command_that_shows_it(hit: Hit) -> None:
    assert show_line(replace(hit.record, issue="a; rm -rf ~#1")).startswith("kb show 'a; rm -rf ~#1' ")


def test_a_confidence_is_not_rounded_up_to_the_threshold() -> None:
    assert (percent(0.399), percent(1.0), percent(0.0)) == ("39%", "100%", "0%")
