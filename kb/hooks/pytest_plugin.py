"""Here is a test that failed; its report gets a section with the known issue. Only with `--kb`, or `kb = true` in the
ini file; else nothing is loaded and nothing is done.

Under xdist the workers send their reports, and the controller explains them.
"""

from __future__ import annotations

import time
import warnings

import pytest

__all__ = ["pytest_addoption", "pytest_configure"]

TITLE = "known issue · 已知问题 (kb)"
MAX_SECONDS = 10.0  # of a whole run
MAX_KEPT = 1000


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

        self._index = (
            pinned()
        )  # a test may change the folder and the environment, and fails before it changes them back
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
            with (
                warnings.catch_warnings()
            ):  # the tests' filters, which may make errors of them, are not for our imports
                warnings.simplefilter("ignore")
                result = self._guard.ask_in_time(lambda: question)
            self._left_s -= time.monotonic() - started
            if len(self._hints) >= MAX_KEPT:
                self._hints.clear()
            self._hints[question] = ""
            if result is not None and result.answered:
                from kb.hooks.hint import hint

                self._hints[question] = hint(result.hits[0])
        return self._hints[question]


def _question(report: pytest.TestReport | pytest.CollectReport) -> str:
    """What the traceback says of the exceptions, without the source around them."""
    from kb.hooks.guard import clip

    lines = clip(report.longreprtext).splitlines()
    said = [line[1:].strip() for line in lines if line.startswith("E  ")]
    return "\n".join(said or lines)
