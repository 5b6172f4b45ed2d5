"""The page's JavaScript modules, run by node with the least of a document: which links they make, what they show."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from test_text import SEEN

from kb.serve import page
from kb.text import CONTROL, visible

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs node, which runs the modules")

DOM = """
class Element {
  attributes = {};
  children = [];
  style = {};
  classList = { toggle() {} };
  constructor(tag) { this.tag = tag; }
  append(...children) { this.children.push(...children); }
  setAttribute(name, value) { this.attributes[name] = value; }
  addEventListener() {}
  get firstChild() { return this.children[0]; }
  get textContent() { return text(this); }
}
globalThis.document = { createElement: (tag) => new Element(tag), createTextNode: (text) => text };
const all = (element) => [element, ...(element.children ?? []).flatMap(all)];
const text = (element) => typeof element === "string" ? element : element.children.map(text).join("");
const record = {
  issue: "a#1", lang: "en", project: "P", title: "T", errors: ["E"], versions: [], sources: [], aliases: [],
  rank: 1, confidence: 0.5, matched: [], leads_to: ["a#2"],
  tree: { summary: ["one"], symptom: ["s"], cause: [], fix: [], triage: ["t"], only_when: ["o"], confusable: ["c"] },
  cure: { says: "do it", code: "c", warnings: [] },
};
"""


def in_node(script: str, given: object = None) -> Any:
    """What `script` assigns to `result`, with the page's modules and a document that only holds elements."""
    modules = {
        name: (Path(page.__file__).parent / f"{name}.js").as_uri() for name in ("card", "issue", "parts", "words")
    }
    source = f"""{DOM}
const parts = await import({json.dumps(modules["parts"])}), words = await import({json.dumps(modules["words"])});
const cards = await import({json.dumps(modules["card"])}), issues = await import({json.dumps(modules["issue"])});
const given = {json.dumps(given)};
let result;
{script}
console.log(JSON.stringify(result));"""
    command = ["node", "--input-type=module", "--eval", source]
    ended = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_only_web_addresses_become_links() -> None:
    web = ["https://a.example/b?c#d", "HTTP://A.EXAMPLE/"]
    other = [
        "javascript:alert(1)",
        "data:text/html,x",
        "//a.example",
        "a paper",
        " https://a.example",
        "httpss://a",
        "",
    ]
    found = in_node(
        """
        const hrefs = (element) => all(element).filter((one) => one.tag === "a").map((one) => one.attributes.href);
        const links = given.map((href) => ({ tag: "a", href, children: ["words"] }));
        result = [given.map((one) => parts.sourceLink(one)), parts.elements(links)].map((some) => some.flatMap(hrefs));
        """,
        web + other,
    )
    assert found == [web, web]


@pytest.mark.thorough
def test_the_page_shows_control_characters_as_the_terminal_does() -> None:
    shown = in_node(
        """
        result = [];
        for (let i = 0; i < 0x10000; i++) {
          const [one, child] = [String.fromCharCode(i), parts.elements([String.fromCharCode(i)])[0]];
          if (parts.visible(one) !== child) throw new Error(`${i}`);
          if (child !== one) result.push(i);
        }
        """
    )
    assert [*map(chr, shown)] == [one for one in map(chr, range(0x10000)) if CONTROL.search(one)]
    texts = [text for text, _ in SEEN.values()]
    assert in_node("result = given.map(parts.visible)", texts) == [visible(text) for text in texts]


@pytest.mark.parametrize("confidence", [0.01, 0.5, 0.99])
def test_only_the_answer_is_called_sure(confidence: float) -> None:
    """The server decides what is an answer; the page has no threshold of its own."""
    answer, other = in_node(
        "const hit = { ...record, confidence: given };"
        " result = [text(cards.answerCard(hit, {})), text(cards.card(hit, {}))];",
        confidence,
    )
    assert f"{confidence:.0%} sure" in answer
    assert f"{confidence:.0%}" in other
    assert "sure" not in other


def test_a_likely_issue_says_what_tells_it_apart() -> None:
    likely, other = in_node(
        "result = [given, null].map((tells_apart) => text(cards.card({ ...record, tells_apart }, {})));",
        "`numel == 1`: a barrier \u202e",
    )
    assert "How to tell: numel == 1: a barrier \ufffd" in likely
    assert "How to tell" not in other


class _Keys(HTMLParser):
    """Collects the keys of the texts that kb.html names."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {value or "" for name, value in attrs if name in ("data-text", "data-label", "data-placeholder")}


@pytest.mark.thorough
def test_the_page_says_everything_in_both_languages() -> None:
    texts = in_node("result = words.WORDS;")
    assert texts["en"].keys() == texts["zh"].keys()
    written = re.findall(
        r'^    "?([\w ]+?)"?: ', (Path(page.__file__).parent / "words.js").read_text("utf-8"), re.MULTILINE
    )
    assert sorted(written) == sorted([*texts["en"], *texts["zh"]])  # no key twice: the later one would win
    for key, english in texts["en"].items():
        fields = [sorted(re.findall(r"\{\w+\}", json.dumps(one))) for one in (english, texts["zh"][key])]
        assert fields[0] == fields[1], key
    keys = _Keys()
    keys.feed(page.files()["/"].body.decode("utf-8"))
    assert len(keys.found) > 20
    assert keys.found <= texts["en"].keys()
    shown = in_node(
        """
        result = ["en", "zh"].map((language) => {
          words.setLanguage(language);
          const full = { ...record, versions: ["1"], sources: ["s"], aliases: ["a"], matched: ["m"], base: "b" };
          const shown = [cards.answerCard(full, {}), cards.card(full, {})];
          return [...shown, issues.issueView(full, () => {}), parts.links(full, () => {})].map(text).join(" ");
        });
        """
    )
    assert all(words in shown[0] for words in ("Try first", "points to", "Which one is it", "Asked as"))
    assert "常见问法" in shown[1]
