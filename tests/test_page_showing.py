"""The page, in a browser: a whole issue, Browse, addresses that lead nowhere, print, and what axe says of each view."""

# what needs an extra is imported after asking for it
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("test_page", reason="needs a browser and the extra serve")
from playwright.sync_api import Page, expect
from test_page import ISSUE, KNOWN, OpenPage, address, browser, visit  # noqa: F401

WHOLE = f"#/issue/{ISSUE}/2"


def copied(page: Page) -> str:
    return str(page.evaluate("navigator.clipboard.readText()"))


def test_what_to_try_stands_first(visit: OpenPage, address: str) -> None:  # noqa: F811
    page = visit(address + WHOLE)
    expect(page.locator(".whole h1")).to_contain_text("pop from an empty deque")
    order = page.locator(".whole :is(.gist, .cure, .body > section, .body > details)").evaluate_all(
        "all => all.map(one => one.className)"
    )
    assert order[:5] == ["gist", "cure", "fix", "symptom", "cause"]
    button = page.locator(".cure .copy")
    assert button.bounding_box()["y"] + 30 < 760, "it is on the first screen"  # type: ignore[index]
    button.click()
    assert copied(page) == 'pip install -U "deepspeed>=0.19.2"'


def test_code_is_copied_as_it_was_written(visit: OpenPage, address: str) -> None:  # noqa: F811
    page = visit(address + WHOLE, width=390)
    fence = page.locator(".symptom .fence").first
    fence.locator(".copy").click()
    text = copied(page)
    assert text.startswith('  File ".../deepspeed/')
    assert text.endswith("IndexError: pop from an empty deque")
    expect(fence.locator("pre strong")).to_have_text("IndexError: pop from an empty deque")
    assert page.evaluate("[...document.querySelectorAll('pre')].every(one => one.scrollWidth <= one.clientWidth)"), (
        "long lines are wrapped"
    )
    names = page.locator(".copy").evaluate_all("all => all.map(one => one.getAttribute('aria-label'))")
    assert len(set(names)) == len(names) > 4


def test_ways_to_hand_an_issue_on(visit: OpenPage, address: str) -> None:  # noqa: F811
    page = visit(address + WHOLE)
    page.get_by_role("button", name="Copy link").click()
    link = copied(page)
    assert link == f"{address}issue/{ISSUE}/2"
    page.get_by_role("button", name="Copy as markdown").click()
    text = copied(page)
    assert text.startswith("## IndexError: pop from an empty deque")
    assert "### Fix\n\n1. Keep all nodes identical" in text
    assert link in text
    place = page.locator(".fix .anchor").get_attribute("href")
    page.goto(address + str(place))
    expect(page.locator("#view h1")).to_contain_text("pop from an empty deque")
    assert page.locator("#fix").bounding_box()["y"] < 760  # type: ignore[index]


def test_the_other_language_of_an_issue(visit: OpenPage, address: str) -> None:  # noqa: F811
    page = visit(address + WHOLE, locale="zh-CN")
    expect(page.locator(".fix h2")).to_contain_text("解决方案")
    expect(page.locator(".gist")).to_have_attribute("lang", "zh-Hans")
    page.click("#other-language")
    expect(page.locator(".gist")).to_have_attribute("lang", "en")
    expect(page.locator("#other-language")).to_be_focused()


def test_browse_by_project_and_by_words(visit: OpenPage, address: str) -> None:  # noqa: F811
    page = visit(address + "#/browse")
    groups = page.locator(".group")
    expect(groups.nth(3)).to_be_visible()
    assert page.locator(".titles li").count() == 0, "closed groups cost nothing"
    groups.first.locator("summary").click()
    expect(groups.first.locator("li").first).to_be_visible()
    page.fill("#filter", "deque")
    expect(page.locator(".titles a")).to_have_count(1)
    expect(page.locator(".filter [role=status]")).to_have_text("1 issue")
    page.fill("#filter", "no such words at all")
    expect(page.locator(".group")).to_have_count(0)
    page.fill("#filter", "")
    page.locator("#view h1").focus()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(groups.nth(1).locator("summary")).to_be_focused()
    page.keyboard.press("Enter")
    expect(groups.nth(1).locator("li").first).to_be_visible()
    page.fill("#filter", "deepspeed")
    page.locator(".titles a").first.click()
    expect(page.locator(".whole")).to_be_visible()


@pytest.mark.parametrize("place", ["#/nowhere", "#/issue/no-such-issue/1", "#/browse/NoSuchProject"])
def test_an_address_that_leads_nowhere_leads_on(visit: OpenPage, address: str, place: str) -> None:  # noqa: F811
    page = visit(address + place)
    expect(page.locator("#view h1")).to_contain_text("There is no such")
    page.locator("main a >> text=Browse").click()
    expect(page.locator(".group").first).to_be_visible()


def test_near_ids_are_offered(visit: OpenPage, address: str) -> None:  # noqa: F811
    page = visit(f"{address}#/issue/ms-swift-ovis-grpo/2")
    page.get_by_role("link", name=f"{ISSUE}#2").click()
    expect(page.locator(".whole h1")).to_contain_text("pop from an empty deque")


def test_a_source_that_the_text_names_is_a_link(visit: OpenPage, address: str) -> None:  # noqa: F811
    page = visit(address + WHOLE)
    link = page.get_by_role("link", name="pull request 8043")
    expect(link).to_have_attribute("href", "https://github.com/deepspeedai/DeepSpeed/pull/8043")
    expect(link).to_have_attribute("rel", re.compile("noopener"))


@pytest.mark.parametrize("place", [WHOLE, f"issue/{ISSUE}/2"])
def test_forced_colours(visit: OpenPage, address: str, place: str) -> None:  # noqa: F811
    """What colour says is said by form, too."""
    page = visit(address + place, forced_colors="active")
    strong = page.locator(".symptom pre strong").first
    expect(strong).to_have_css("text-decoration-line", "underline")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_print_shows_everything(visit: OpenPage, address: str) -> None:  # noqa: F811
    page = visit(address + WHOLE)
    expect(page.locator(".whole")).to_be_visible()
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).color") == "rgb(29, 28, 26)", "ink on paper"
    expect(page.locator(".copy").first).to_be_hidden()
    expect(page.locator("#ask")).to_be_hidden()
    expect(page.locator(".body details li").first).to_be_visible()
    assert page.evaluate(
        "[...document.querySelectorAll('.fence')].every(one => one.scrollWidth <= one.clientWidth + 1)"
    )
    address_of = "getComputedStyle(document.querySelector('.sources li a'), '::after').content"
    assert "https://github.com/" in page.evaluate(address_of)


# --- axe ------------------------------------------------------------------------------------------------------------

STATES = {
    "welcome": ("#/", ""),
    "known": ("#/", KNOWN),
    "likely": ("#/", "CUDA error: device-side assert triggered"),
    "unknown": ("#/", "how do I fix a flat tyre"),
    "issue": (WHOLE, ""),
    "browse": ("#/browse", ""),
    "nowhere": ("#/nowhere", ""),
    "help": ("#/", "?"),
    "without a script": (f"issue/{ISSUE}/2", ""),
    "nowhere without a script": ("issue/ms-swift-ovis-grpo/2", ""),
}
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark", "locale": "zh-CN"},
    "phone": {"width": 390, "has_touch": True},
}


@pytest.mark.parametrize(
    ("state", "look"),
    [(state, look) for state in STATES for look in LOOKS if look != "phone" or state in ("known", "issue", "browse")],
)
def test_axe_finds_nothing(state: str, look: str, visit: OpenPage, address: str) -> None:  # noqa: F811
    axe = pytest.importorskip("axe_core_python", reason='needs the extra: pip install -e ".[dev]"')
    script = (Path(axe.__file__).parent / "axe.min.js").read_text("utf-8")
    place, question = STATES[state]
    page = visit(address + place, bypass_csp=True, **LOOKS[look])
    if question == "?":
        page.locator("#box").blur()
        page.keyboard.press("?")
        expect(page.locator("#keys")).to_be_visible()
    elif question:
        page.fill("#box", question)
        page.keyboard.press("Enter")
        expect(page.locator(":is(.answer, .likely, .unknown)").first).to_be_visible()
    expect(page.locator("#view > *").first).to_be_visible()
    page.wait_for_timeout(250)  # what fades in has its colours
    page.evaluate(script)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    told = [
        f"{one['id']}: {re.sub(' +', ' ', one['nodes'][0]['html'])[:150]} {one['nodes'][0].get('failureSummary', '')}"
        for one in found["violations"]
    ]
    assert not told, "\n".join(told)
