"""Our own articles tell the same issues in both languages, and changed copies of them are seen through."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
from conftest import SHIPPED, shipped_articles

from kb.index.twins import join_twins


@pytest.fixture(scope="module")
def measured() -> ModuleType:
    path = Path(__file__).parents[2] / "scripts" / "twins.py"
    spec = importlib.util.spec_from_file_location("measure_twins", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["measure_twins"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.thorough
def test_all_of_ours_keep_their_ids() -> None:
    articles = {path: article.records for path, article in shipped_articles().items()}
    joined, unlike = join_twins(articles)
    assert unlike == []
    assert joined == articles


@pytest.mark.thorough
def test_nearly_all_issues_of_changed_pairs_find_their_own(measured: ModuleType) -> None:
    counts: Counter[str] = Counter()
    for count in measured.measure(SHIPPED, pairs=40, seed=1).values():
        counts += count
    assert counts["right"] / counts.total() >= 0.98, counts
