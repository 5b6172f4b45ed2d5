"""The two buttons under an answer, in a browser: a vote, taken back, and nothing where nobody listens."""

# ruff: noqa: E402  # what needs an extra is imported after asking for it
from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

for name in ("starlette", "uvicorn", "playwright"):
    pytest.importorskip(name, reason='needs the extra: pip install -e ".[serve,dev]"')

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
if not CHROMIUM:
    pytest.skip("needs a browser: apt-get install chromium", allow_module_level=True)

import uvicorn
from playwright.sync_api import Browser, expect, sync_playwright

from kb import KnowledgeBase
from kb.feedback.store import Feedback
from kb.serve import create_app
from kb.serve.guards import RequestGuard
from kb.serve.listen import configured

DEQUE = "ms-swift-ovis2-grpo#2"
PUT = f"""import("/feedback.js").then(({{ feedback }}) =>
  document.querySelector("main").append(feedback("{DEQUE}", "IndexError: pop from an empty deque")))"""


@contextmanager
def serving(app: RequestGuard) -> Iterator[str]:
    server = uvicorn.Server(configured(app))
    with socket.create_server(("127.0.0.1", 0)) as place:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [place]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{place.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join(10)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


def test_a_vote_on_the_page(browser: Browser, index: Path, tmp_path: Path) -> None:
    heard = Feedback(tmp_path / "votes")
    with KnowledgeBase.open(index) as base, serving(create_app(base, feedback=heard)) as address:
        page = browser.new_page(locale="en-GB")
        page.goto(address)
        page.evaluate(PUT)
        group = page.get_by_role("group", name="Was this it?")
        helped, wrong = group.get_by_role("button", name="This helped"), group.get_by_role("button", name="Did not fit")
        helped.click()
        expect(group.get_by_role("status")).to_have_text("Thank you.")
        assert [vote.helped for vote in heard.votes()] == [True]
        wrong.click()
        expect(wrong).to_have_attribute("aria-pressed", "true")
        expect(helped).to_have_attribute("aria-pressed", "false")
        assert [(vote.issue, vote.helped, vote.lines) for vote in heard.votes()] == [
            (DEQUE, False, ("IndexError: pop from an empty deque",))
        ]
        wrong.click()
        expect(group.get_by_role("status")).to_have_text("Taken back.")
        assert heard.votes() == []
        page.close()
    heard.close()


def test_no_buttons_where_nobody_listens(browser: Browser, index: Path) -> None:
    with KnowledgeBase.open(index) as base, serving(create_app(base)) as address:
        page = browser.new_page(locale="en-GB")
        page.goto(address)
        with page.expect_response("**/api/feedback"):
            page.evaluate(PUT)
        expect(page.get_by_role("group", name="Was this it?")).to_have_count(0)
        page.close()
