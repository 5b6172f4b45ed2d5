"""The pytest plugin: adds a section with the known issue to the report of a failed test.

It works only with `--kb`, or `kb = true` in the ini file; without that it loads nothing. With pytest-xdist, the
controller explains the reports of its workers.
"""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kb.records import SearchResult

__all__ = ["pytest_addoption", "pytest_configure"]

TITLES = {"known": "known issue · 已知问题 (kb)", "likely": "likely issue · 可能的问题 (kb)"}
MAX_SECONDS = 10.0  # for all hints of a test run
MAX_KEPT = 100  # answers that are remembered


def pytest_addoption(parser: pytest.Parser) -> None:
    explained = "add the known issue, if there is one, to the report of a failed test"
    parser.getgroup("kb").addoption("--kb", action="store_true", help=explained)
    parser.addini("kb", explained, type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    if (config.getoption("--kb") or config.getini("kb")) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Explainer(), "kb-explainer")


class _Explainer:
    def __init__(self) -> None:
        from kb.hooks.guard import Guard, pinned

        # A test may change the folder and the environment, and fail before it changes them back.
        self._index = pinned()
        self._guard = Guard(self._index)
        self._left_s = MAX_SECONDS
        self._answers: dict[str, SearchResult | None] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._explain(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._explain(report)

    def _explain(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        try:
            if not (self._index and report.failed and self._left_s > 0):
                return
            from kb.hooks.guard import clip
            from kb.hooks.hint import hint

            text = clip(report.longreprtext)
            found = hint(self._answer(_question(text)), text)
            if found:
                report.sections.append((TITLES[found.verdict], found.text))
        except Exception as error:
            from kb.hooks.guard import note

            note("no hint", error)

    def _answer(self, question: str) -> SearchResult | None:
        if question not in self._answers:
            started = time.monotonic()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # filters of the tests may turn warnings of our imports into errors
                result = self._guard.ask_in_time(lambda: question)
            self._left_s -= time.monotonic() - started
            if len(self._answers) >= MAX_KEPT:
                self._answers.clear()
            self._answers[question] = result
        return self._answers[question]


def _question(text: str) -> str:
    """The lines of a report that name exceptions, without the source code around them."""
    lines = text.splitlines()
    said = [line[1:].strip() for line in lines if line.startswith("E  ")]
    return "\n".join(said or lines)
