"""The pytest plugin: adds a section with the known issue to the report of a failed test.

It works only with `--kb`, or `kb = true` in the ini file; without that it loads nothing. With pytest-xdist, the
controller explains the reports of its workers.
"""

from __future__ import annotations

import time
import warnings

import pytest

__all__ = ["pytest_addoption", "pytest_configure"]

TITLE = "known issue · 已知问题 (kb)"
MAX_SECONDS = 10.0  # for all hints of a test run
MAX_KEPT = 1000  # hints that are remembered


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
        self._hints: dict[str, str] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._explain(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._explain(report)

    def _explain(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        try:
            text = self._hint(_question(report)) if self._index and report.failed and self._left_s > 0 else ""
            if text:
                report.sections.append((TITLE, text))
        except Exception as error:
            from kb.hooks.guard import note

            note("no hint", error)

    def _hint(self, question: str) -> str:
        if question not in self._hints:
            started = time.monotonic()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # filters of the tests may turn warnings of our imports into errors
                result = self._guard.ask_in_time(lambda: question)
            self._left_s -= time.monotonic() - started
            if len(self._hints) >= MAX_KEPT:
                self._hints.clear()
            from kb.hooks.hint import hint

            found = hint(result)
            self._hints[question] = found.text if found else ""
        return self._hints[question]


def _question(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The lines of the traceback that report exceptions, without the source code around them."""
    from kb.hooks.guard import clip

    lines = clip(report.longreprtext).splitlines()
    said = [line[1:].strip() for line in lines if line.startswith("E  ")]
    return "\n".join(said or lines)
