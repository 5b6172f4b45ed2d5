"""Does the shipped base answer, and is it silent where it knows nothing? A few questions of each file; the figures come
from all of them, in test_retrieval.py and test_world.py, which CI runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kb import KnowledgeBase
from kb.evaluate import Question, read_questions
from kb.scan import Scanner

CASES = Path(__file__).parents[1] / "cases"


def _some(name: str, each: int) -> Sequence[Question]:
    return read_questions((CASES / name).read_bytes(), name)[::each]


@pytest.fixture(scope="module")
def base(shipped_index: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(shipped_index) as opened:
        yield opened


def test_what_is_known_is_found(base: KnowledgeBase) -> None:
    asked = [one for name in ("questions.jsonl", "development.jsonl") for one in _some(name, 5) if one.wanted]
    results = {one: base.search(one.query, 3) for one in asked}
    assert len(asked) >= 40
    assert sum(result.hits[0].issue in one.wanted for one, result in results.items()) >= 0.9 * len(asked)
    known = {one: result for one, result in results.items() if result.answered}
    assert len(known) >= 0.6 * len(asked)
    assert all(result.hits[0].issue in one.wanted for one, result in known.items())


def test_what_is_not_known_is_not_answered(base: KnowledgeBase) -> None:
    asked = [one for one in _some("world/everyday.jsonl", 8) if not one.wanted]
    assert len(asked) >= 30
    assert sum(base.search(one.query, 1).answered for one in asked) <= 1


def test_a_log_is_read_alike(base: KnowledgeBase) -> None:
    scanner = Scanner(base.searcher)
    logs = CASES / "world" / "logs"
    healthy, known = (sorted((logs / kind).glob("*.log"))[::10] for kind in ("healthy", "known"))
    assert [path.name for path in healthy if scanner.scan([path.read_bytes()]).findings] == []
    assert [path.name for path in known if not scanner.scan([path.read_bytes()]).findings] == []
