"""Logs against the shipped articles: no false alarm in a healthy log, and most of their error lines are found."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from kb import KnowledgeBase
from kb.logs.classify import says_failure
from kb.logs.words import words_of
from kb.scan import Scanner
from kb.text import clean

pytestmark = pytest.mark.thorough  # the whole shipped base is built; test_first_look.py asks a part
CASES = Path(__file__).parents[1] / "cases"
HEALTHY = sorted((CASES / "healthy").glob("*.log"))
HEALTHY_LINES = [line for path in HEALTHY for line in path.read_bytes().decode().splitlines()]


@pytest.fixture(scope="module")
def base(shipped_index: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(shipped_index) as opened:
        yield opened


@pytest.fixture(scope="module")
def scanner(base: KnowledgeBase) -> Scanner:
    return Scanner(base.searcher)


def issues(scanner: Scanner, log: bytes) -> list[str]:
    """Without the issues that have many causes: those say of a bare line where to look."""
    return [finding.issue for finding in scanner.scan([log]).findings if not finding.record.branches]


def encoded(lines: list[str]) -> bytes:
    return "\n".join(lines).encode()


def test_no_alarm_in_healthy_logs(scanner: Scanner) -> None:
    assert len(HEALTHY) > 20
    assert {path.stem: found for path in HEALTHY if (found := issues(scanner, path.read_bytes()))} == {}


def test_logs_with_failures(scanner: Scanner) -> None:
    """The findings that tests/test_scan.py has among the few articles of the corpus, and no other. Among many articles
    one may be less sure: a line of which half are names that no article has is likely there, and known here."""
    cases = json.loads((CASES / "scan.json").read_text("utf-8"))
    expected = {case["name"]: [one[0] for one in case["found"]] for case in cases}
    found = {case["name"]: issues(scanner, encoded(case["log"])) for case in cases}
    assert len(found) > 10
    assert {name: one for name, one in found.items() if not set(one) <= set(expected[name])} == {}
    assert sum(found[name] != expected[name] for name in found) <= 1


def test_most_error_lines_of_the_base_are_found_in_a_healthy_log(base: KnowledgeBase, scanner: Scanner) -> None:
    """Each alone, with another rank. An issue with many causes is no wrong answer: it says where to look."""
    printed: dict[str, set[str]] = {}
    for record in base.records():
        for line in record.errors:
            if says_failure(line):
                printed.setdefault(line, set()).add(record.issue)
    around = (CASES / "healthy" / "megatron-pretrain.log").read_text("utf-8").splitlines()
    found = wrong = 0
    chosen = [line for line in sorted(printed) if zlib.crc32(line.encode()) % 9 == 0]  # a new line moves no other
    for line in chosen:
        report = scanner.scan([encoded([*around[:15], f"[rank3]: {line}", *around[15:]])])
        found += any(finding.issue in printed[line] for finding in report.findings)
        wrong += any(finding.issue not in printed[line] for finding in report.findings if not finding.record.branches)
    assert found / len(chosen) > 0.74
    assert wrong / len(chosen) < 0.02


def test_questions_that_the_base_does_not_answer_raise_no_alarm(scanner: Scanner) -> None:
    alarms, asked = [], 0
    for name in ("development", "questions", "stock"):
        for line in (CASES / f"{name}.jsonl").read_text("utf-8").splitlines():
            question = json.loads(line)
            if question["issue"] is None:
                asked += 1
                report = scanner.scan([encoded([*HEALTHY_LINES[40:70], question["query"], *HEALTHY_LINES[70:100]])])
                alarms += [(question["id"], finding.issue) for finding in report.findings]
    assert asked > 80
    assert len(alarms) <= 3, alarms


def test_every_mark_stands_in_its_own_line(base: KnowledgeBase) -> None:
    records = base.records()
    scanner = base.scanner()
    assert len(list(scanner.fingerprints)) > 1000
    for record in records[::10]:
        for line in record.errors:
            standing = scanner.fingerprints.matching(words_of(clean(line)))
            printing = set().union(*(mark.issues for mark in standing))
            assert not standing or scanner.first_telling(record.issue) in printing
