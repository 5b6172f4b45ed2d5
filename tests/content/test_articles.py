"""The shipped articles themselves: nothing for a reviewer to send back, and each issue whole."""

from __future__ import annotations

import pytest
from conftest import SHIPPED, shipped_articles

from kb.review.lint import review
from kb.review.rules import Choice


@pytest.mark.thorough  # as kb check --strict asks, in `make check` and CI
def test_nothing_is_wrong_with_our_own_articles() -> None:
    """But for what comes with time alone: that does not break a test of today."""
    assert review(SHIPPED, Choice(off=frozenset({"stale"}))) == []


def test_our_own_articles_are_whole() -> None:
    """Read in the project's own form: each issue with all that an answer shows, nothing in an unread place."""
    for path, article in shipped_articles().items():
        assert {remark.kind for remark in article.remarks} <= {"background"}, path
        assert article.title not in [record.title for record in article.records], path
        for record in article.records:
            assert record.symptom, path
            assert record.fix, path
            assert record.project, path
            assert record.tags, path
            assert record.sources, path
            assert (record.lang, path.split("/")[0]) in (("en", "en"), ("zh", "zh"))
