"""The page while somebody asks, in a browser: calm, three verdicts in three forms, logs, nothing forgotten."""

# ruff: noqa: F811  # fixtures come from test_page
from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason='needs the extra: pip install -e ".[serve,dev]"')

from playwright.sync_api import Page, Route, expect
from test_page import CURE, KNOWN, OpenPage, address, browser, visit  # noqa: F401

LIKELY = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
UNKNOWN = "how do I fix a flat tyre"
FILLER = "step 1 loss 0.3\n"
LOG = FILLER * 1007 + KNOWN + "\n" + "[rank1] tearing down the process group\n" * 63
"""the error at line 1,008, then what each rank prints when it ends"""


def asked(page: Page) -> list[dict[str, Any]]:
    """The bodies of all searches from now on."""
    found: list[dict[str, Any]] = []
    page.on(
        "request",
        lambda request: (
            found.append(json.loads(request.post_data or "{}")) if request.url.endswith("/api/search") else None
        ),
    )
    return found


def paste(page: Page, text: str) -> None:
    page.evaluate("text => navigator.clipboard.writeText(text)", text)
    page.focus("#box")
    page.keyboard.press("Control+v")


def ask(page: Page, text: str) -> None:
    page.fill("#box", text)
    page.keyboard.press("Enter")


def test_three_verdicts_differ_in_form_and_words(visit: OpenPage, address: str) -> None:
    page = visit(address)
    forms = {}
    for question, form in ((KNOWN, ".answer"), (LIKELY, ".likely"), (UNKNOWN, ".unknown")):
        ask(page, question)
        expect(page.locator(form)).to_have_count(1)
        expect(page.locator(":is(.answer, .likely, .unknown)")).to_have_count(1)
        style = f"getComputedStyle(document.querySelector('{form}'))"
        forms[form] = (
            page.inner_text("#view h2, #view .verdict"),
            page.inner_text(f"{form} .mark"),
            page.evaluate(f"{style}.borderStyle + {style}.borderLeftWidth"),
        )
    assert len(forms) == len(set(forms.values())) == len({mark for _, mark, _ in forms.values()})
    assert len({border for _, _, border in forms.values()}) == 3


def test_a_likely_issue_is_said_to_be_one_of_these(visit: OpenPage, address: str) -> None:
    page = visit(address)
    ask(page, LIKELY)
    expect(page.locator(".likely h2")).to_contain_text("Not certain")
    expect(page.locator(".likely")).to_contain_text("Compare before you change anything")
    expect(page.locator(".candidate .gist")).to_be_visible()
    expect(page.locator("body")).not_to_contain_text("% sure")


def test_the_answer_comes_first_and_one_button_copies_the_cure(visit: OpenPage, address: str) -> None:
    page = visit(address)
    ask(page, KNOWN)
    answer = page.locator(".answer")
    expect(answer.locator(".gist")).to_contain_text("stale")
    expect(answer.locator(".cure code")).to_have_text(CURE)
    expect(answer.locator(".copy:visible")).to_have_count(1)
    expect(answer.locator(".versions span").nth(1)).to_have_text("ms-swift 3.3.0.dev0")
    expect(answer.get_by_role("heading", name="Symptom")).to_be_hidden()
    assert page.evaluate("document.querySelector('.cure .copy').getBoundingClientRect().bottom < innerHeight")
    expect(answer.locator(".small a").first).to_be_visible()
    answer.get_by_text("Symptom and cause").click()
    expect(answer.get_by_role("heading", name="Symptom")).to_be_visible()


def test_nothing_shouts_while_one_types(visit: OpenPage, address: str) -> None:
    page = visit(address)
    bodies = asked(page)
    page.evaluate(
        """() => { window.said = []; window.seen = new Set();
        new MutationObserver(() => said.push(status.textContent))
          .observe(document.getElementById('status'), {childList: true});
        const status = document.getElementById('status');
        new MutationObserver(() => { for (const form of ['answer', 'likely', 'unknown'])
          if (document.querySelector('#view .' + form)) seen.add(form); }).observe(view, {childList: true}); }"""
    )
    page.locator("#box").press_sequentially("the tyre of my bicycle is flat", delay=40)
    page.wait_for_timeout(500)
    expect(page.locator(".so-far")).to_contain_text("Nothing yet")
    assert page.evaluate("[...seen].length") == 0
    assert all(body["draft"] for body in bodies)
    expect(page.locator(".unknown")).to_be_visible()
    assert [body.get("draft", False) for body in bodies].count(False) == 1
    assert len(bodies) <= 3
    assert [one for one in page.evaluate("said") if one] == [page.text_content("#status")]


def test_enter_settles_at_once(visit: OpenPage, address: str) -> None:
    page = visit(address)
    bodies = asked(page)
    page.locator("#box").press_sequentially(UNKNOWN, delay=5)
    page.keyboard.press("Enter")
    expect(page.locator(".unknown")).to_be_visible(timeout=800)
    page.wait_for_timeout(1300)
    assert [body.get("draft", False) for body in bodies] == [False]


def test_a_stale_answer_never_stands_under_a_new_question(visit: OpenPage, address: str) -> None:
    page = visit(address)
    ask(page, KNOWN)
    expect(page.locator(".answer")).to_be_visible()
    held: list[Route] = []
    page.route("**/api/search", lambda route: held.append(route))
    page.locator("#box").press_sequentially(" x", delay=5)
    expect(page.locator("#view")).to_have_attribute("aria-busy", "true", timeout=200)
    expect(page.locator("#status")).to_have_text("")
    page.locator("#view").click(position={"x": 5, "y": 5})
    page.evaluate("navigator.clipboard.writeText('nothing')")
    page.keyboard.press("c")
    assert page.evaluate("navigator.clipboard.readText()") == "nothing"
    expect(page.locator(".searching")).to_be_visible(timeout=1500)
    expect(page.locator(".answer")).to_have_count(0)
    page.wait_for_timeout(1000)
    for route in held:
        route.continue_()
    expect(page.locator(".answer")).to_be_visible()
    expect(page.locator("#view")).to_have_attribute("aria-busy", "false")
    page.unroute("**/api/search")

    page.route("**/api/search", lambda route: route.fulfill(status=404, body="<html>"))
    ask(page, UNKNOWN)
    expect(page.locator("#status")).to_have_text("The server gave no answer (404).")
    expect(page.locator(".answer")).to_have_count(0)


def test_an_earlier_request_is_given_up(visit: OpenPage, address: str) -> None:
    page = visit(address)
    page.evaluate(
        "() => { window.failed = []; const send = fetch;"
        " window.fetch = (...all) => send(...all).catch((error) => { failed.push(error.name); throw error }) }"
    )
    page.route("**/api/search", lambda route: route.continue_() if "deque" in str(route.request.post_data) else None)
    with page.expect_request("**/api/search"):
        ask(page, UNKNOWN)
    ask(page, KNOWN)
    expect(page.locator(".answer")).to_be_visible()
    assert page.evaluate("failed") == ["AbortError"]


def test_the_arrow_keys_scroll(visit: OpenPage, address: str) -> None:
    page = visit(address)
    ask(page, KNOWN)
    page.get_by_text("Symptom and cause").click()
    before = page.evaluate("document.activeElement.tagName + scrollY")
    page.keyboard.press("ArrowDown")
    page.wait_for_function("scrollY > 0")
    assert page.evaluate("document.activeElement.tagName") in before


def test_letter_keys_can_be_switched_off(visit: OpenPage, address: str) -> None:
    page = visit(address)
    ask(page, KNOWN)
    expect(page.locator(".answer h2")).to_be_focused()
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.locator("#letters").uncheck()
    page.keyboard.press("Escape")
    for key in "/?c":
        page.keyboard.press(key)
    expect(page.locator("#box")).not_to_be_focused()
    expect(page.locator("#keys")).to_be_hidden()
    expect(page.locator("#status")).not_to_contain_text("Copied")
    page.reload()
    expect(page.locator(".answer")).to_be_visible()
    page.locator(".answer h2").focus()
    page.keyboard.press("/")
    expect(page.locator("#box")).not_to_be_focused()
    page.click("#to-keys")
    page.locator("#letters").check()
    page.keyboard.press("Escape")
    page.locator(".answer h2").focus()
    page.keyboard.press("/")
    expect(page.locator("#box")).to_be_focused()
    page.keyboard.press("?")
    expect(page.locator("#box")).to_have_value(KNOWN + "?")


def test_escape_can_be_undone(visit: OpenPage, address: str) -> None:
    page = visit(address)
    paste(page, LOG)
    expect(page.locator(".answer")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#box")).to_have_value("")
    expect(page.locator(".welcome")).to_be_visible()
    page.get_by_role("button", name="Bring back").click()
    expect(page.locator(".answer .chips")).to_contain_text("line 1,008")
    expect(page.locator("#undo")).to_be_hidden()


def test_the_language_of_the_results_is_the_readers(visit: OpenPage, address: str) -> None:
    page = visit(address, locale="zh-CN")
    bodies = asked(page)
    ask(page, KNOWN)
    expect(page.locator(".answer h2")).to_have_attribute("lang", "zh-Hans")
    page.click("#language")
    expect(page.locator(".answer h2")).to_have_attribute("lang", "en")
    assert [body["lang"] for body in bodies] == ["zh", "en"]


def test_a_pasted_log_is_sent_once(visit: OpenPage, address: str) -> None:
    page = visit(address)
    sizes: list[tuple[str, int]] = []
    page.on(
        "request",
        lambda request: (
            sizes.append((request.url.rpartition("/api/")[2], len(request.post_data_buffer or b"")))
            if "/api/s" in request.url
            else None
        ),
    )
    paste(page, LOG * 4)
    expect(page.locator(".answer h2")).to_contain_text("pop from an empty deque")
    expect(page.locator(".answer .chips")).to_contain_text("line 1,008")
    expect(page.locator("#log-what")).to_contain_text("4,284 lines")
    assert [path for path, _ in sizes] == ["scan"]
    assert sizes[0][1] < len(LOG)  # gzip
    page.click("#language")
    expect(page.locator(".answer h2")).to_have_attribute("lang", "zh-Hans")
    expect(page.locator("#log-what")).to_contain_text("共 4,284 行")
    page.select_option("#project", "vLLM")
    expect(page.locator(".unknown")).to_be_visible()
    page.select_option("#project", "ms-swift")
    expect(page.locator(".answer")).to_be_visible()
    assert all(size < 1000 for path, size in sizes[1:])


def test_one_can_jump_to_the_line_that_matched(visit: OpenPage, address: str) -> None:
    page = visit(address)
    paste(page, LOG)
    page.get_by_role("button", name="show it").click()
    chosen = "(({value, selectionStart, selectionEnd}) => value.slice(selectionStart, selectionEnd))(box)"
    assert page.evaluate(chosen) == KNOWN
    assert page.evaluate("(({scrollTop, clientHeight}) => scrollTop > 100 && clientHeight > 50)(box)")
    page.keyboard.press("Escape")
    ask(page, f"Traceback (most recent call last):\n  File x\n{KNOWN}\nbye")
    page.locator("#box").blur()
    expect(page.locator(".answer .chips")).to_contain_text("line 3")
    page.get_by_role("button", name="show it").click()
    assert page.evaluate(chosen) == KNOWN


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_is_read(visit: OpenPage, address: str, tmp_path: Path, packed: bool) -> None:
    page = visit(address)
    path = tmp_path / ("train.log.gz" if packed else "train.log")
    path.write_bytes(gzip.compress(LOG.encode()) if packed else LOG.encode())
    page.set_input_files("#file", path)
    expect(page.locator(".answer .chips")).to_contain_text("line 1,008")
    expect(page.locator("#log-what")).to_contain_text(path.name)
    expect(page.locator("#box")).not_to_be_editable()
    page.get_by_role("button", name="Remove").click()
    expect(page.locator("#box")).to_be_editable()


@pytest.mark.parametrize(
    ("content", "said"), [(b"\x7fELF\0\0\0", "not a text file"), (b"\x1f\x8bbroken", "cannot be read")]
)
def test_a_file_that_is_no_log(visit: OpenPage, address: str, tmp_path: Path, content: bytes, said: str) -> None:
    page = visit(address)
    (tmp_path / "x.log").write_bytes(content)
    page.set_input_files("#file", tmp_path / "x.log")
    expect(page.locator("#status")).to_contain_text(said)


def test_a_file_can_be_dropped(visit: OpenPage, address: str) -> None:
    page = visit(address)
    data = page.evaluate_handle(
        "log => { const data = new DataTransfer(); data.items.add(new File([log], 'rank0.log')); return data }", LOG
    )
    page.dispatch_event("#box", "dragover", {"dataTransfer": data})
    page.dispatch_event("#box", "drop", {"dataTransfer": data})
    expect(page.locator(".answer .chips")).to_contain_text("line 1,008")


def test_a_healthy_log_has_no_known_issue(visit: OpenPage, address: str) -> None:
    page = visit(address)
    paste(page, FILLER * 500)
    expect(page.locator(".unknown")).to_contain_text("No known issue in these 500 lines.")


def test_a_log_of_3_mb_blocks_nobody(visit: OpenPage, address: str) -> None:
    page = visit(address)
    page.evaluate(
        "() => { window.long = [];"
        " new PerformanceObserver(list => long.push(...list.getEntries().map(one => one.duration)))"
        ".observe({ type: 'longtask' }) }"
    )
    page.evaluate("log => { window.log = log }", "".join(f"step {n} loss {n % 97}\n" for n in range(150_000)) + KNOWN)
    longest = []
    for _ in range(3):  # a busy machine makes any task long; the page's own work is in all of them
        page.wait_for_timeout(300)
        page.evaluate(
            """() => { long.length = 0; const clipboardData = new DataTransfer();
            clipboardData.setData("text/plain", log);
            box.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true })); }"""
        )
        expect(page.locator(".answer")).to_be_visible()
        page.wait_for_timeout(300)
        assert page.evaluate("box.value.length") < 100_000
        longest.append(max(page.evaluate("long"), default=0))
        page.keyboard.press("Escape")
        expect(page.locator(".welcome")).to_be_visible()
    assert min(longest) < 100


def test_a_question_has_a_link(visit: OpenPage, address: str) -> None:
    page = visit(f"{address}#/?q={'pop%20from%20an%20empty%20deque'}")
    expect(page.locator("#box")).to_have_value("pop from an empty deque")
    expect(page.locator(".answer")).to_be_visible()
    ask(page, UNKNOWN)
    expect(page.locator(".unknown")).to_be_visible()
    page.get_by_role("button", name="Copy a link").click()
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == page.url
    other = visit(link)
    expect(other.locator("#box")).to_have_value(UNKNOWN)
    expect(other.locator(".unknown")).to_be_visible()


@pytest.mark.parametrize("question", [KNOWN, "x" * 3000 + "\n" + KNOWN, LOG], ids=["short", "long", "log"])
def test_the_question_survives_a_reload(visit: OpenPage, address: str, question: str) -> None:
    page = visit(address)
    paste(page, question)
    expect(page.locator(".answer")).to_be_visible()
    before = page.input_value("#box")
    page.reload()
    expect(page.locator(".answer")).to_be_visible()
    assert page.input_value("#box") == before


def test_not_known_is_no_dead_end(visit: OpenPage, address: str) -> None:
    page = visit(address)
    page.select_option("#project", "vLLM")
    ask(page, KNOWN)
    expect(page.locator(".unknown")).to_contain_text("No issue of vLLM")
    expect(page.locator(".unknown li")).to_have_count(4)
    expect(page.locator(".unknown")).to_contain_text("kb scan")
    expect(page.locator(".others summary")).to_have_text(re.compile("probably something else"))
    page.get_by_role("button", name="remove the filter").click()
    expect(page.locator(".answer")).to_be_visible()
    assert page.input_value("#project") == ""


def test_enter_does_not_close_what_it_opened(visit: OpenPage, address: str) -> None:
    page = visit(address)
    for question in (KNOWN, LIKELY):
        page.focus("#box")
        ask(page, question)
        expect(page.locator(":is(.answer, .likely) h2").first).to_be_focused()
        page.keyboard.press("Enter")
        page.wait_for_timeout(100)
        expect(page.locator(".cure")).to_be_visible()


def test_what_was_replaced_can_be_brought_back(visit: OpenPage, address: str) -> None:
    page = visit(address)
    paste(page, LOG)
    expect(page.locator(".answer")).to_be_visible()
    page.keyboard.press("Control+a")
    paste(page, UNKNOWN)
    expect(page.locator("#box")).to_have_value(UNKNOWN)
    page.get_by_role("button", name="Bring back").click()
    expect(page.locator("#log-what")).to_contain_text("1,071 lines")
    page.focus("#box")
    page.keyboard.press("Control+z")
    expect(page.locator("#box")).to_have_value(UNKNOWN)
    page.keyboard.press("Escape")
    page.keyboard.press("Control+z")
    expect(page.locator("#box")).to_have_value(UNKNOWN)
    page.locator("#box").press_sequentially(" now")
    page.keyboard.press("Control+z")  # what was typed is the browser's to undo
    assert page.input_value("#box").startswith(UNKNOWN[:5])
    assert page.locator("#box").is_editable()


def test_control_enter_asks_a_question_of_several_lines(visit: OpenPage, address: str) -> None:
    page = visit(address)
    bodies = asked(page)
    page.focus("#box")
    page.keyboard.type("it stops", delay=2)
    page.keyboard.press("Shift+Enter")
    page.keyboard.type(KNOWN, delay=2)
    page.keyboard.press("Control+Enter")
    expect(page.locator(".answer h2")).to_be_focused(timeout=900)
    assert page.input_value("#box") == f"it stops\n{KNOWN}"
    settled = [body for body in bodies if not body.get("draft")]
    assert settled == bodies[-1:], "on a slow machine a draft may come before it"


def test_the_findings_of_a_log_are_not_alternatives(visit: OpenPage, address: str) -> None:
    page = visit(address)
    issues = page.evaluate("fetch('api/issues?lang=en').then(one => one.json()).then(one => one.issues.slice(0, 4))")

    def report(*found: tuple[str, float]) -> dict[str, Any]:
        findings = [
            {"issue": one["issue"], "project": one["project"], "base": "bundled", "verdict": verdict, "text": "x y"}
            | {"confidence": confidence, "first_line": n, "count": n}
            for n, (one, (verdict, confidence)) in enumerate(zip(issues, found, strict=False), 1)
        ]
        surest = "known" if ("known", 0.9) in found else "likely"
        return {"verdict": surest, "likely": [], "findings": findings, "lines": 500, "took_ms": 1.0}

    def has_many_causes(route: Route) -> None:
        whole = route.fetch().json()
        for one in whole["translations"]:
            one["tree"]["triage"] = ["Look at the other one."]
        route.fulfill(json=whole)

    found = report(("likely", 0.3), ("known", 0.6), ("known", 0.9), ("known", 0.99))
    page.route("**/api/scan*", lambda route: route.fulfill(json=found))
    page.route(f"**/api/issues/{issues[3]['issue'].replace('#', '/')}*", has_many_causes)
    paste(page, FILLER * 500)
    expect(page.locator(".answer .chips")).to_contain_text("line 3 (and 2 more)")
    expect(page.locator(".near")).to_have_text("Also in this log")
    expect(page.locator(".hit .sure")).to_have_text(["90% sure", "60% sure", "99% sure", "30% likely"])
    expect(page.locator(".candidate")).to_have_count(1)
    page.unroute("**/api/scan*")
    page.route("**/api/scan*", lambda route: route.fulfill(json=report(*[("likely", 0.3)] * 3)))
    page.keyboard.press("Escape")
    paste(page, FILLER * 500)
    expect(page.locator(".likely")).to_contain_text("These 3 places may be known issues.")


def test_a_link_with_a_project_that_is_not_there(visit: OpenPage, address: str) -> None:
    page = visit(f"{address}#/?q=pop&project=Nonesuch", locale="zh-CN")
    expect(page.locator("#status")).to_have_text("知识库中没有项目或标签 Nonesuch。")


def test_a_question_too_long_for_a_link_has_none(visit: OpenPage, address: str) -> None:
    page = visit(address)
    paste(page, "=" * 2000 + "\n" + KNOWN)
    expect(page.locator(".answer")).to_be_visible()
    expect(page.get_by_role("button", name="Copy a link")).to_have_count(0)
    assert page.url.endswith("#/")


def test_where_an_answer_is_from(visit: OpenPage, address: str) -> None:
    page = visit(address)
    ask(page, KNOWN)
    expect(page.locator(".answer .small")).to_contain_text("Sources:")
    expect(page.locator(".answer .small a").first).to_have_text(re.compile(r"^[\w.-]+/[\w.-]+#\d+$"))
    expect(page.locator(".answer .base")).to_be_hidden()  # of one base nothing has to be said
    names = page.evaluate("[...document.querySelectorAll('.base')].map(one => one.textContent)")
    assert not any("/" in name for name in names)
