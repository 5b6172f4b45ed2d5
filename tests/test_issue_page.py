"""`/issue/<slug>/<n>` and `/opensearch.xml`: read without a script, and an article cannot bring its own markup."""

# ruff: noqa: E402  # what needs an extra is imported after asking for it
from __future__ import annotations

import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from conftest import Write, article

from kb import KnowledgeBase

NEEDS = 'needs the extra: pip install -e ".[serve,dev]"'
pytest.importorskip("starlette", reason=NEEDS)
pytest.importorskip("httpx2", reason=NEEDS)
from starlette.testclient import TestClient

from kb.serve import Rules, create_app
from kb.serve.code import lit
from kb.serve.nodes import parse
from kb.serve.sources import label

HOST = "http://127.0.0.1:8080"
DEQUE = "/issue/ms-swift-ovis2-grpo/2"


class Read(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for found, attributes in self.tags if found == tag]


@pytest.fixture(scope="module")
def base(index: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(index) as opened:
        yield opened


@pytest.fixture
def client(base: KnowledgeBase) -> TestClient:
    return TestClient(create_app(base), base_url=HOST)


@pytest.mark.parametrize(("lang", "said"), [("en", "Fix"), ("zh", "解决方案")])
def test_the_answer_first_in_the_language_of_the_address(client: TestClient, lang: str, said: str) -> None:
    found = client.get(DEQUE, params={"lang": lang})
    assert found.status_code == 200
    assert found.headers["content-type"] == "text/html; charset=utf-8"
    page = Read(found.text)
    assert page.of("html")[0]["lang"] == {"en": "en", "zh": "zh-Hans"}[lang]
    order = [one["id"] for one in page.of("section")]
    assert order[:4] == ["summary", "fix", "symptom", "cause"]
    assert said in page.text
    assert 'pip install -U "deepspeed>=0.19.2"' in page.text
    assert not page.of("script")
    assert len(page.of("h1")) == 1


@pytest.mark.parametrize(
    ("accepted", "lang"),
    [("zh-CN,zh;q=0.9,en;q=0.8", "zh-Hans"), ("de-DE,en;q=0.5", "en"), ("fr", "en"), ("", "en"), ("," * 5000, "en")],
)
def test_the_language_of_the_browser(client: TestClient, accepted: str, lang: str) -> None:
    assert Read(client.get(DEQUE, headers={"accept-language": accepted}).text).of("html")[0]["lang"] == lang


def test_what_a_chat_shows_of_a_link(client: TestClient) -> None:
    page = Read(client.get(DEQUE).text)
    told = {one.get("property") or one.get("name"): one["content"] for one in page.of("meta") if "content" in one}
    assert "pop from an empty deque" in (told["og:title"] or "")
    assert "ZeRO-3" in (told["og:description"] or "")
    assert {(one["rel"], one["href"]) for one in page.of("link")} >= {
        ("canonical", f"{HOST}{DEQUE}"),
        ("alternate", "?lang=zh"),
        ("stylesheet", "../../kb.css"),
    }


def test_every_address_of_ours_is_answered(client: TestClient) -> None:
    page = Read(client.get(DEQUE).text)
    ours = [one["href"] for tag in ("a", "link") for one in page.of(tag) if not (one["href"] or "").startswith("http")]
    assert ours
    for one in ours:
        assert client.get(f"{HOST}{DEQUE}/../{one}" if (one or "").startswith("../") else f"{DEQUE}{one}").is_success, (
            one
        )


@pytest.mark.parametrize("number", ["99", "0", "x", "1/2"])
def test_an_issue_that_is_not_there(client: TestClient, number: str) -> None:
    found = client.get(f"/issue/ms-swift-ovis2-grpo/{number}", headers={"accept-language": "zh"})
    assert found.status_code == 404
    page = Read(found.text)
    assert "没有这个问题" in page.text
    assert any((one["href"] or "").endswith("#/") for one in page.of("a"))


def test_near_ids_are_offered_with_their_titles(client: TestClient) -> None:
    text = client.get("/issue/ms-swift-ovis-grpo/2").text
    assert "ms-swift-ovis2-grpo#2" in text
    assert "pop from an empty deque" in text


@pytest.mark.parametrize("path", ["/nothing", "/a/b/c", "/issue", "/issue/a%2Fb/9"])
def test_a_person_is_led_on_from_any_address(client: TestClient, path: str) -> None:
    found = client.get(path, headers={"accept": "text/html,*/*;q=0.8", "accept-language": "zh"})
    assert found.status_code == 404
    page = Read(found.text)
    assert page.of("html")[0]["lang"] == "zh-Hans"
    (brand,) = (one["href"] or "" for one in page.of("a") if one.get("class") == "brand")
    assert brand == "../" * (path.count("/") - 1) + "#/"
    if not path.startswith("/issue/"):
        assert client.get(path).json()["error"] == "there is nothing here", "a program gets JSON"


def test_a_page_is_sent_again_only_when_it_changed(client: TestClient) -> None:
    tag = client.get(DEQUE).headers["etag"]
    assert client.get(DEQUE, headers={"if-none-match": tag}).status_code == 304
    assert client.get(DEQUE, params={"lang": "zh"}, headers={"if-none-match": tag}).status_code == 200


HOSTILE = """\
---
project: "<img src=x onerror=alert(1)>"
versions: ["\\"><script>1</script>"]
sources: ["javascript:alert(1)", "https://example.org/\\"onmouseover=alert(1)"]
---

# Notes

## <script>alert(1)</script> RuntimeError: \u202eboom "quoted" 'single' &amp;

### Symptom

<iframe src="https://evil.example"></iframe> [click](javascript:alert(1)) [data](data:text/html,x) ![x](https://evil.example/x.png)

```
</code></pre><script>alert(2)</script>
```

### Cause

<style>*{display:none}</style> \x9bred

### Fix

1. `"><svg onload=alert(3)>`
"""


def test_an_article_cannot_bring_its_own_markup(write: Write, tmp_path: Path) -> None:
    root = write({"en/evil.md": HOSTILE})
    KnowledgeBase.build(root, tmp_path / "index")
    with KnowledgeBase.open(tmp_path / "index") as base:
        text = TestClient(create_app(base), base_url=HOST).get("/issue/evil/1").text
    page = Read(text)
    assert not {tag for tag, _ in page.tags} & {"script", "iframe", "style", "svg", "object", "embed", "form", "base"}
    assert [one["src"] for one in page.of("img")] == ["../../kb.svg"]
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "srcdoc")], tag
        for name in ("href", "src"):
            assert not (attributes.get(name) or "").lower().startswith(("javascript:", "data:"))
    assert "<script>alert(2)</script>" in page.text, "it is shown as text"
    assert "\u202e" not in text
    assert "\x9b" not in text


def test_nobody_reads_it_without_the_token(base: KnowledgeBase) -> None:
    """A browser is sent to the page, which asks for the token."""
    client = TestClient(create_app(base, Rules.of(token="a-token-of-24-characters")), base_url=HOST)
    found = client.get(DEQUE, follow_redirects=False)
    assert found.status_code == 303
    assert found.headers["location"] == f"../../#{DEQUE}"
    assert "deepspeed" not in found.text
    shown = client.get(DEQUE, headers={"authorization": "Bearer a-token-of-24-characters"})
    assert "deepspeed" in shown.text


def test_a_browser_learns_how_to_ask(client: TestClient) -> None:
    found = client.get("/opensearch.xml")
    assert found.headers["content-type"].startswith("application/opensearchdescription+xml")
    (url,) = ElementTree.fromstring(found.content).iter("{http://a9.com/-/spec/opensearch/1.1/}Url")
    assert url.attrib["template"] == f"{HOST}/#/?q={{searchTerms}}"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://github.com/a/b/issues/12", "a/b#12"),
        ("https://github.com/a/b/pull/12#discussion_r1", "a/b#12"),
        ("https://www.example.org/x", "example.org/x"),
        ("javascript:alert(1)", "javascript:alert(1)"),
        ("a book", "a book"),
    ],
)
def test_how_a_source_is_named(address: str, shown: str) -> None:
    assert label(address) == shown


REPO = "https://github.com/deepspeedai/DeepSpeed"


@pytest.mark.parametrize(
    ("text", "sources", "links"),
    [
        ("see DeepSpeed pull request 8043.", [f"{REPO}/pull/8043"], {"pull request 8043": f"{REPO}/pull/8043"}),
        ("见 PR 8043，已合入", [f"{REPO}/pull/8043#discussion_r1"], {"PR 8043": f"{REPO}/pull/8043#discussion_r1"}),
        ("(issue #12)", [f"{REPO}/issues/12"], {"issue #12": f"{REPO}/issues/12"}),
        ("- **since #8043**", [f"{REPO}/pull/8043"], {"#8043": f"{REPO}/pull/8043"}),
        ("pull request 12", [f"{REPO}/issues/12"], {}),  # another kind of thread
        ("PR 12", [f"{REPO}/pull/12", "https://github.com/a/b/pull/12"], {}),  # of which repository?
        ("PR 12", [f"{REPO}/pull/123"], {}),
        ("`PR 12`", [f"{REPO}/pull/12"], {}),
        ("PR 12.1, a/b#12, xPR 12", [f"{REPO}/pull/12"], {}),
        ("PR 12", ["javascript:alert(1)//pull/12"], {}),
    ],
)
def test_a_source_that_a_text_names_is_a_link(text: str, sources: list[str], links: dict[str, str]) -> None:
    found: dict[str, str] = {}

    def look(tree: list[Any]) -> str:
        said = ""
        for one in tree:
            said += one if isinstance(one, str) else look(one["children"])
            if isinstance(one, dict) and one["tag"] == "a":
                found[one["children"][0]] = one["href"]
        return said

    assert look(parse(text, tuple(sources))) == look(parse(text))
    assert found == links


@pytest.mark.parametrize(
    ("language", "code", "lit_up"),
    [
        ("bash", "$ pip install 'a>=1'  # then restart", [("em", "$ "), ("span", "'a>=1'"), ("em", "# then restart")]),
        ("bash", "echo a#b ${#x}", []),
        ("python", 'print("# no comment")', [("span", '"# no comment"')]),
        ("", "Traceback\nIndexError: pop", [("strong", "IndexError: pop")]),
        ("", "[rank3]: torch.OutOfMemoryError: CUDA", [("strong", "[rank3]: torch.OutOfMemoryError: CUDA")]),
        ("", "Errors are listed # here", []),
        ("json", '{"a": 1}', [("span", '"a"')]),
        ("bat", "REM first\r\nset A=1", [("em", "REM first\r")]),
    ],
)
def test_what_is_lit_up(language: str, code: str, lit_up: list[tuple[str, str]]) -> None:
    found = lit(code, language)
    assert [(one["tag"], one["children"][0]) for one in found if isinstance(one, dict)] == lit_up
    assert "".join(one if isinstance(one, str) else one["children"][0] for one in found) == code


@pytest.mark.thorough
def test_light_takes_time_in_proportion() -> None:
    """Twice the text takes about twice the time, however hostile it is: no pattern goes back."""
    hostile = ["[" * 499, "'" * 499, '"\\' * 249, "a." * 249 + "Error", " #" * 249, "E" * 499, "\\" * 499]
    for line in hostile:
        for language in ("", "bash", "python", "json", "c"):
            started = time.process_time()
            lit("\n".join([line] * 100), language)
            assert time.process_time() - started < 1, (line[:10], language)


def test_one_language_only(write: Write, tmp_path: Path) -> None:
    KnowledgeBase.build(write({"en/a.md": article("boom")}), tmp_path / "index")
    with KnowledgeBase.open(tmp_path / "index") as base:
        page = Read(TestClient(create_app(base), base_url=HOST).get("/issue/a/1?lang=zh").text)
    assert page.of("html")[0]["lang"] == "en"
    assert not [one for one in page.of("link") if one["rel"] == "alternate"]
