"""The page, in a browser: asking, copying, both languages, a narrow screen, the dark, and a token."""

# ruff: noqa: E402  # what needs an extra is imported after asking for it
from __future__ import annotations

import os
import re
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kb import KnowledgeBase

NEEDS = 'needs the extra: pip install -e ".[serve,dev]"'
pytest.importorskip("starlette", reason=NEEDS)
pytest.importorskip("uvicorn", reason=NEEDS)
pytest.importorskip("playwright", reason=NEEDS)
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
if not CHROMIUM:
    pytest.skip("needs a browser: apt-get install chromium", allow_module_level=True)

import uvicorn
from playwright.sync_api import Browser, Page, expect, sync_playwright

from kb.serve import Rules, create_app
from kb.serve.listen import configured

KNOWN = "[rank3]: IndexError: pop from an empty deque"
CURE = 'pip install -U "deepspeed>=0.19.2"'
ISSUE = "ms-swift-ovis2-grpo"
OpenPage = Callable[..., Page]


@contextmanager
def served(base: KnowledgeBase, rules: Rules | None = None) -> Iterator[str]:
    server = uvicorn.Server(configured(create_app(base, rules)))
    with socket.create_server(("127.0.0.1", 0)) as place:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [place]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{place.getsockname()[1]}/"
        finally:
            server.should_exit = True
            thread.join(10)


@pytest.fixture(scope="module")
def address(index: Path) -> Iterator[str]:
    with KnowledgeBase.open(index) as base, served(base) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def visit(browser: Browser) -> Iterator[OpenPage]:
    """Opens an address in a window of its own; at the end nothing may have gone wrong in any of them."""
    wrong: list[str] = []
    contexts = []

    def go(address: str, *, width: int = 1100, locale: str = "en-US", **options: Any) -> Page:
        context = browser.new_context(viewport={"width": width, "height": 760}, locale=locale, **options)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}") or dialog.dismiss())
        page.on(
            "console",
            lambda said: wrong.append(said.text) if said.type == "error" and "status of 40" not in said.text else None,
        )
        page.goto(address)
        return page

    yield go
    for context in contexts:
        context.close()
    assert not wrong


def test_ask_copy_and_move(visit: OpenPage, address: str) -> None:
    page = visit(address)
    expect(page.locator(".welcome")).to_contain_text("issues")
    page.fill("#box", KNOWN)
    first = page.locator(".answer")
    expect(first.locator("h2")).to_contain_text("pop from an empty deque")
    expect(page.locator("#status")).to_contain_text("Known issue")
    first.locator(".cure .copy").click()
    assert page.evaluate("navigator.clipboard.readText()") == CURE
    page.evaluate("navigator.clipboard.writeText('')")

    page.focus("#box")
    page.keyboard.press("Enter")
    expect(first.locator("h2")).to_be_focused()
    page.keyboard.press("c")
    expect(page.locator("#status")).to_contain_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == CURE
    page.keyboard.press("Enter")
    expect(first.locator(".cure")).to_be_visible()
    page.keyboard.press("k")
    expect(page.locator("#box")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#box")).to_have_value("")
    expect(page.locator(".welcome")).to_be_visible()


def test_not_known_is_said(visit: OpenPage, address: str) -> None:
    page = visit(address)
    page.fill("#box", "how do I fix a flat tyre")
    expect(page.locator(".unknown h2")).to_contain_text("Not known")
    expect(page.locator(".hit:visible")).to_have_count(0)
    page.locator(".others summary").click()
    expect(page.locator(".hit .cure:visible")).to_have_count(0)
    page.keyboard.press("j")
    expect(page.locator(".opens").first).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator(".opens").nth(1)).to_be_focused()
    page.keyboard.press("/")
    expect(page.locator("#box")).to_be_focused()


def test_answers_come_while_one_types(visit: OpenPage, address: str) -> None:
    """Of answers that overtake each other the last one stays."""
    page = visit(address)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.post_data or "") if "search" in request.url else None)
    page.locator("#box").press_sequentially("pop from an empty deque", delay=15)
    expect(page.locator(".hit h2").first).to_contain_text("deque")
    assert 1 <= len(asked) < len("pop from an empty deque")
    assert not [url for url in asked if "deque" in url and "?" in url]


def test_languages(visit: OpenPage, address: str) -> None:
    """The page and the results are in the reader's language, and switch together."""
    page = visit(address, locale="zh-CN")
    assert page.get_attribute("html", "lang") == "zh-Hans"
    expect(page.locator("#ask h1 label")).to_have_text("粘贴报错、日志，或描述现象")
    page.fill("#box", KNOWN)
    first = page.locator(".answer")
    expect(first.locator(".gist")).to_have_attribute("lang", "zh-Hans")
    expect(first.locator(".cure h3")).to_have_text("先试这个")
    first.locator(".links button").click()
    expect(first.locator(".cure")).to_have_attribute("lang", "en")
    page.click("#language")
    assert page.get_attribute("html", "lang") == "en"
    expect(first.locator(".gist")).to_have_attribute("lang", "en")
    expect(first.locator(".cure h3")).to_have_text("Try first")
    page.reload()
    assert page.get_attribute("html", "lang") == "en"
    expect(first.locator(".gist")).to_have_attribute("lang", "en")


def test_places_have_addresses(visit: OpenPage, address: str) -> None:
    page = visit(f"{address}#/issue/{ISSUE}/2")
    expect(page.locator("#view h1")).to_contain_text("pop from an empty deque")
    expect(page.locator(".cure code")).to_have_text(CURE)
    page.click("#to-browse")
    expect(page.locator(".group").nth(5)).to_be_attached()
    page.goto(f"{address}#/browse/DeepSpeed")
    expect(page.locator("#view h1")).to_contain_text("DeepSpeed")
    page.locator("#view h1").focus()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator(".whole h1")).to_be_visible()
    page.go_back()
    expect(page.locator("#view h1")).to_contain_text("DeepSpeed")
    page.goto(f"{address}#/issue/no-such-issue/1")
    expect(page.locator("#view h1")).to_have_text("There is no such issue here.")
    page.keyboard.press("Escape")
    expect(page.locator(".welcome")).to_be_visible()
    expect(page.locator("#status")).to_have_text("")


def test_a_hostile_article_stays_within_a_narrow_screen(visit: OpenPage, tmp_path: Path, write: Any) -> None:
    long = "x" * 3000
    deep = "".join("  " * depth + f"- {'y' * 40}\n" for depth in range(30))
    wide = f"|{' a |' * 60}\n|{'---|' * 60}\n|{f' {long[:50]} |' * 60}\n"
    text = (
        f'---\nproject: "{long[:150]}"\nversions: ["{long}"]\nsources: ["https://a.example/{long}"]\n---\n\n# Notes\n\n'
        f"## It stops {long}\n\n### Symptom\n\n```\nRuntimeError: abc \u202edef {long}\n```\n\n"
        f"### Fix\n\n1. a\n\n```\n{long}\n```\n\n2. `{long}`\n\n{'> ' * 40}{long}\n\n{deep}\n{wide}\n"
    )
    KnowledgeBase.build(write({"en/a.md": text}), tmp_path / "index")
    with KnowledgeBase.open(tmp_path / "index") as base, served(base) as address:
        page = visit(address + "#/issue/a/1", width=360)
        expect(page.locator(".whole h1")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert "\u202e" not in page.inner_text("main")
        assert page.locator(".fix ol").nth(1).get_attribute("start") == "2"
        page.goto(address + "#/browse")
        expect(page.locator(".group")).to_have_count(1)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.goto(address + "#/")
        page.fill("#box", "RuntimeError: abc def")
        expect(page.locator(".hit")).to_have_count(1)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_project_and_a_long_log(visit: OpenPage, address: str) -> None:
    page = visit(address)
    page.evaluate("log => navigator.clipboard.writeText(log)", "step 1 loss 0.3\n" * 40_000 + KNOWN)
    page.focus("#box")
    page.keyboard.press("Control+v")
    expect(page.locator(".answer h2")).to_contain_text("pop from an empty deque")
    expect(page.locator(".answer .chips")).to_contain_text("line 40,001")
    page.keyboard.press("Escape")
    page.fill("#box", KNOWN)
    page.select_option("#project", "vLLM")
    expect(page.locator(".others .tag").first).to_have_text("vLLM")


@pytest.mark.parametrize("place", ["#/", "#/browse", f"#/issue/{ISSUE}/2"])
def test_a_narrow_screen(visit: OpenPage, address: str, place: str) -> None:
    page = visit(address + place, width=360, locale="zh-CN", has_touch=True)
    if place == "#/":
        page.fill("#box", KNOWN)
    expect(page.locator("#view :is(a, button, summary)").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_dark(visit: OpenPage, address: str) -> None:
    page = visit(address, color_scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(paper) == "rgb(19, 20, 22)"
    page.click("#theme")
    assert page.evaluate(paper) == "rgb(251, 250, 248)"
    page.reload()
    assert page.evaluate(paper) == "rgb(251, 250, 248)"


def test_what_a_reader_of_screens_is_told(visit: OpenPage, address: str) -> None:
    page = visit(address)
    expect(page.get_by_role("textbox", name="Paste an error, a log, or say what happens")).to_be_focused()
    expect(page.get_by_role("combobox", name="Project")).to_be_visible()
    page.fill("#box", KNOWN)
    expect(page.get_by_role("status")).to_contain_text("DeepSpeed ZeRO-3")
    expect(page.get_by_role("heading", name=re.compile("^IndexError"))).to_be_visible()
    nameless = page.evaluate(
        "[...document.querySelectorAll('button, a, select, textarea, input')].filter(one =>"
        " !one.textContent.trim() && !one.getAttribute('aria-label') && !one.labels?.length).length"
    )
    assert nameless == 0


def test_payloads_stay_text(visit: OpenPage, tmp_path: Path, write: Any) -> None:
    payloads = (Path(__file__).parent / "cases/hostile_markup.txt").read_text("utf-8").splitlines()
    hostile = "<img src=x onerror=alert(1)>"
    text = (
        f'---\nproject: "Demo {hostile}"\ntags: ["{hostile}"]\nsources: ["javascript:alert(1)", "https://a.example/{hostile}"]\n'
        f"---\n\n# Notes\n\n## It stops {hostile}\n\n### Symptom\n\n```\nRuntimeError: abcdef ghi {hostile}\n```\n\n"
        "### Fix\n\n" + "\n\n".join(payloads) + "\n"
    )
    KnowledgeBase.build(write({"en/a.md": text}), tmp_path / "index")
    with KnowledgeBase.open(tmp_path / "index") as base, served(base) as address:
        page = visit(address)
        for question in (f"RuntimeError: abcdef ghi {hostile}", *payloads):
            page.fill("#box", question)
            page.wait_for_timeout(20)
        page.fill("#box", f"RuntimeError: abcdef ghi {hostile}")
        expect(page.locator(".hit")).to_have_count(1)
        for place in ("", f"#/issue/a/1/{hostile}", "#/browse", "#/issue/a/1"):
            page.goto(address + place)
            page.wait_for_timeout(100)
            assert page.locator("main script, main img, main iframe, main svg, main form form, main style").count() == 0
        expect(page.locator(".whole")).to_contain_text("<script>alert(1)</script>")
        links = page.locator("main a").evaluate_all("all => all.map(one => [one.getAttribute('href'), one.rel])")
        for href, rel in links:
            assert href.startswith(("#/", "issue/")) or (re.match("https?://", href) and "noopener" in rel)


def test_a_token_is_asked_for(visit: OpenPage, index: Path) -> None:
    with KnowledgeBase.open(index) as base, served(base, Rules.of(token="s3cret")) as address:
        page = visit(address)
        expect(page.locator("#login")).to_be_visible()
        page.fill("#token", "wrong")
        page.keyboard.press("Enter")
        expect(page.locator("#wrong")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("#login")).to_be_hidden()
        expect(page.locator("#status")).to_have_text("A token is needed")
        page.fill("#box", KNOWN)
        expect(page.locator("#login")).to_be_visible()
        page.fill("#token", "s3cret")
        page.keyboard.press("Enter")
        expect(page.locator(".hit").first).to_be_visible()
        other_tab = page.context.new_page()  # a link opens without asking again
        other_tab.goto(f"{address}#/browse")
        expect(other_tab.locator("#view h1")).to_be_visible()
        expect(other_tab.locator("#login")).to_be_hidden()
        assert "s3cret" not in page.evaluate(
            "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
        )
        page = visit(f"{address}#token=s3cret")
        expect(page.locator(".welcome")).to_contain_text("issues")
        assert "s3cret" not in page.url


def test_pictures(visit: OpenPage, address: str, tmp_path: Path) -> None:
    """What stands in docs/img; `KB_PICTURES=docs/img pytest tests/test_page.py -k pictures` renews it."""
    folder = Path(os.environ.get("KB_PICTURES") or tmp_path)
    pictures: list[tuple[str, str, dict[str, Any]]] = [
        ("page", KNOWN, {"width": 1000}),
        ("page-dark", "断点续训又从第 0 步开始", {"width": 1000, "locale": "zh-CN", "color_scheme": "dark"}),
        ("page-phone", "多机训练 pop from an empty deque", {"width": 360, "locale": "zh-CN"}),
        ("page-unknown", "how do I fix a flat tyre", {"width": 1000}),
    ]
    for name, question, options in pictures:
        page = visit(address, **options)
        page.fill("#box", question)
        expect(page.locator(":is(.hit, .unknown)").first).to_be_visible()
        page.wait_for_timeout(300)
        page.screenshot(path=folder / f"{name}.png")
        assert (folder / f"{name}.png").stat().st_size < 200_000
