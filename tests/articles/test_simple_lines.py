"""Where lines are read without markdown-it, they are read as markdown-it reads them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kb.articles import lines as lines_module
from kb.articles.lines import classify
from kb.articles.simple import simple_kinds
from kb.scraped.labels import split_ordinal

CASES = sorted((Path(__file__).parent / "cases").glob("*.md"))
PIECES = (
    "", "", "text", "    deep", "# One", "## Two #", "  ### Three", "#no", "- item", "1. item", "* item", "- # head",
    "- - x", "-", "1.", "   under", "  under", " a", "```", "```py", "   ```", "   ```sh", "  ```", "````", "``` x `",
    "# comment", "   # comment", "---", "===", "***", "> quote", "<div>", "</div>", "a | b", "|---|---|", "~~~",
    "- ```", "-     code", "10) item", "**bold**", "- **bold**", "\u3000\u3000indented", "x" * 30, "+ plus", "+", ":",
    "\ttab",
)  # fmt: skip


def read_both(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fast = classify(texts, 0)
    with monkeypatch.context() as patch:
        patch.setattr(lines_module, "simple_kinds", lambda _: None)
        assert fast == classify(texts, 0), "\n".join(texts)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_on_the_cases(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_both(path.read_text(encoding="utf-8").split("\n"), monkeypatch)


def test_on_lines_put_together_at_random(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    simple = 0
    for _ in range(1500):
        texts = [rng.choice(PIECES) for _ in range(rng.randint(1, 8))]
        simple += simple_kinds(texts) is not None
        read_both(texts, monkeypatch)
    assert simple > 150


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("12 It stops", "It stops"),
        ("6.1 It stops", "It stops"),
        ("101. It stops", "It stops"),
        ("502 Bad Gateway", "502 Bad Gateway"),
        ("413 Request Entity Too Large", "413 Request Entity Too Large"),
    ],
)
def test_a_code_is_no_ordinal(heading: str, title: str) -> None:
    assert split_ordinal(heading)[1] == title
