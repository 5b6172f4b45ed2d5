"""Asks each question of a base without the article that answers it.

Then every answer is wrong, and nobody has to judge it: this measures how well a base knows what it does not know. The
base is built anew without each article, because a word that only this article has must not be known any more.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kb.base import KnowledgeBase
from kb.evaluate.questions import Question
from kb.records import SearchResult

if TYPE_CHECKING:
    from kb.index.build import Progress

__all__ = ["left_out"]


def left_out(
    articles: Path, questions: Sequence[Question], *, k: int = 3, progress: Progress | None = None
) -> Iterator[tuple[Question, SearchResult]]:
    """Each question whose issue is in an article below `articles`, with the answer of a base that lacks all articles
    with a right issue. Takes about half a second an article; the order is that of the articles."""
    with tempfile.TemporaryDirectory() as folder:
        copy, index, aside = Path(folder, "articles"), Path(folder, "index"), Path(folder, "aside")
        shutil.copytree(articles, copy, symlinks=True)
        aside.mkdir()
        KnowledgeBase.build(copy, index, keep_going=True)
        with KnowledgeBase.open(index) as base:
            paths: dict[str, set[str]] = defaultdict(set)
            for record in base.records():
                paths[record.issue].add(record.source.path)
                paths[record.issue.partition("#")[0]].add(record.source.path)
        groups: dict[tuple[str, ...], list[Question]] = defaultdict(list)
        for question in questions:
            there = sorted({path for issue in question.wanted for path in paths.get(issue, ())})
            if there:
                groups[tuple(there)].append(question)
        for done, (out, group) in enumerate(groups.items(), 1):
            for number, path in enumerate(out):
                (copy / path).rename(aside / str(number))
            KnowledgeBase.build(copy, index, keep_going=True)
            with KnowledgeBase.open(index) as base:
                for question in group:
                    yield question, base.search(question.query, k)
            for number, path in enumerate(out):
                (aside / str(number)).rename(copy / path)
            if progress is not None:
                progress("leave out", done, len(groups))
