"""The shipped articles themselves: each issue is whole. What a reviewer would send back, `kb check --strict` says."""

from __future__ import annotations

from conftest import shipped_articles


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
