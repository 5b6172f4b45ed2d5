"""Somebody's own pages: the questions that a base makes of itself, and how it answers without aliases."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import CORPUS

from kb import KnowledgeBase
from kb.evaluate import Known, Question, evaluate
from kb.evaluate.own import ask_own, own_questions
from kb.search.verdict import KNOWN_AT

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))
from own_base import next_version, plain_page, write_pages


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    """The frozen articles as somebody else would have written them: no aliases, no summaries, no front matter."""
    folder = tmp_path_factory.mktemp("plain")
    write_pages(CORPUS, folder / "pages", 0, 1, doubled=False)
    KnowledgeBase.build(folder / "pages", folder / "index")
    with KnowledgeBase.open(folder / "index") as base:
        yield base


@pytest.fixture(scope="module")
def doubled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    folder = tmp_path_factory.mktemp("doubled")
    write_pages(CORPUS, folder / "pages", 0, 1, doubled=True)
    KnowledgeBase.build(folder / "pages", folder / "index")
    with KnowledgeBase.open(folder / "index") as base:
        yield base


@pytest.mark.thorough
def test_plain_pages_have_nothing_of_our_form(plain: KnowledgeBase) -> None:
    records = plain.records()
    assert len(records) > 50
    assert not any(record.aliases or record.summary or record.branches or record.conditions for record in records)
    assert sum(bool(record.errors) for record in records) > 20


def test_what_looks_like_a_heading_in_a_fence_stays() -> None:
    page = "---\nproject: X\n---\n# T\n\n## A\n\n### Symptom\n\n```\n### Cause\n# note\n```\n\n### Asked as\n- a\n"
    assert plain_page(page) == "# T\n\n## A\n\n### Problem\n\n```\n### Cause\n# note\n```\n\n"


def test_the_next_version_of_a_page() -> None:
    assert next_version("since v1.9, not in 2.10.1") == "since v1.10, not in 2.11.1"


def test_what_prints_the_same_line_is_left_out_with_it(tmp_path: Path) -> None:
    line = "FluxError: the capacitor of frame {1} has drained"
    page = f"# {{0}}\n\n## {{0}}\n\n### Symptom\n\n```\n{line}\n```\n\n### Fix\n\n{{2}}\n"
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "a.md").write_text(page.format("Ships", 3, "Anchor it."), "utf-8")
    (tmp_path / "pages" / "b.md").write_text(page.format("Lanterns", 7, "Light it."), "utf-8")
    (tmp_path / "pages" / "c.md").write_text(
        "# Tides\n\n## Tides\n\n### Symptom\n\nNo moon.\n\n### Fix\n\nWait.\n", "utf-8"
    )
    KnowledgeBase.build(tmp_path / "pages", tmp_path / "index")
    with KnowledgeBase.open(tmp_path / "index") as base:
        asked = next(one for one in ask_own(base.searcher) if one.kind == "line")
        assert asked.right
        assert max(asked.left_out) < KNOWN_AT  # nothing is left that prints it


@pytest.mark.thorough
def test_a_base_tells_its_own_pages_apart(plain: KnowledgeBase) -> None:
    for one in ask_own(plain.searcher):
        shares = one.as_dict(KNOWN_AT)
        assert shares["first"] > 0.75, one.kind
        assert shares["left_out_known"] < 0.1, one.kind


@pytest.mark.thorough
def test_either_version_of_a_page_is_right(plain: KnowledgeBase, doubled: KnowledgeBase) -> None:
    """Of pages kept for two versions one is shown; a question that wants the other one is answered rightly."""
    records = plain.records()
    asked = [(text, record) for record in records for kind, text in own_questions(record) if kind != "title"]

    def figures(base: KnowledgeBase, version: str) -> Known:
        wanted = [f"{record.issue.replace('#', version + '#')}" for _, record in asked]
        questions = [
            Question(str(n), text, issue, (), "own", record.lang, "own", n)
            for n, ((text, record), issue) in enumerate(zip(asked, wanted, strict=True))
        ]
        found = evaluate(base, questions)
        assert not found.absent
        assert found.all.known is not None
        return found.all.known

    once = figures(plain, "")
    for version in ("", "-next"):
        twice = figures(doubled, version)
        assert twice.recall_at_1 >= once.recall_at_1 - 0.03
        assert twice.answered_right >= once.answered_right - 0.04  # in a small base a doubled word says a little less
