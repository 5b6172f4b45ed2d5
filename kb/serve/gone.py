"""What a person reads where an address leads nowhere, with ways on. Programs get JSON (`kb.serve.routes`)."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request

from kb.records import IssueRecord, Lang
from kb.serve.html import HTML_LANG, document, link, make

__all__ = ["missing", "reader_language", "way_up"]

_WORDS: dict[Lang, dict[str, str]] = {
    "en": {
        "issue": "There is no such issue here",
        "page": "There is no such page here",
        "why": "It may have another name now, or stand in another base.",
        "near": "Near it",
        "search": "Search",
        "browse": "Browse all issues",
    },
    "zh": {
        "issue": "这里没有这个问题",
        "page": "这里没有这个页面",
        "why": "它可能改了名，或者在别的知识库里。",
        "near": "相近的",
        "search": "搜索",
        "browse": "浏览全部问题",
    },
}


def reader_language(request: Request) -> Lang:
    """The language that the address names (`?lang=zh`), else the first one of the browser that kb speaks."""
    accepted = request.headers.get("accept-language", "")[:200].split(",")
    for one in [request.query_params.get("lang", ""), *accepted]:
        found = one.strip()[:2].casefold()
        if found in ("en", "zh"):
            return "zh" if found == "zh" else "en"
    return "en"


def way_up(request: Request) -> str:
    """The way from the address to the root of the server, as in `../../`. A `/` that is written `%2F` is none."""
    raw = bytes(request.scope.get("raw_path") or request.url.path.encode()).partition(b"?")[0]
    return "../" * max(raw.count(b"/") - 1, 0)


def missing(request: Request, near: Sequence[IssueRecord] = (), *, what: str = "issue") -> bytes:
    """The page that says so. `what`: "issue" or "page"; `near`: issues that may be meant."""
    lang, up = reader_language(request), way_up(request)
    words = _WORDS[lang]
    items = []
    for record in near:
        slug, _, number = record.issue.rpartition("#")
        shown = link(f"{up}issue/{slug}/{number}", record.title, lang=HTML_LANG[record.lang])
        items.append(make("li", None, shown, " ", make("code", None, record.issue)))
    main = make(
        "article",
        {"class": "gone"},
        make("h1", None, words[what]),
        *([make("p", None, words["why"])] if what == "issue" else []),
        *([make("h2", None, words["near"]), make("ul", None, *items)] if near else []),
        make("p", None, link(f"{up}#/", words["search"]), " · ", link(f"{up}#/browse", words["browse"])),
    )
    return document(words[what], lang, up, [], main)
