"""`/issue/<slug>/<n>`: an issue as a page that needs no script, for links in chats, for print and for other programs.

The answer first: what it is in short and the fix, then the symptom and the rest. All addresses but the canonical one
are relative, so that it works below a proxy's path.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from starlette.requests import Request
from starlette.responses import Response

from kb.brief import LABELS, plain
from kb.records import IssueRecord, Lang
from kb.serve import nodes
from kb.serve.html import HTML_LANG, document, elements, link, make
from kb.serve.routes import NOT_KEPT, Table, origin, tagged_response

if TYPE_CHECKING:
    from kb.bases import AnyBase

__all__ = ["source_label", "table"]

_MAX_DESCRIPTION = 300  # characters; chats show fewer
_OTHER: dict[Lang, Lang] = {"en": "zh", "zh": "en"}
_WORDS: dict[Lang, dict[str, str]] = {
    "en": {
        "other": "中文版",
        "search": "Search",
        "open": "Open in the search page",
        "more": "More about it",
        "gone": "There is no such issue here",
        "why": "It may have another name now, or stand in another base.",
        "near": "Near it:",
    },
    "zh": {
        "other": "In English",
        "search": "搜索",
        "open": "在搜索页中打开",
        "more": "更多",
        "gone": "这里没有这个问题",
        "why": "它可能改了名，或者在别的知识库里。",
        "near": "相近的：",
    },
}
_THREAD = re.compile(
    r"https?://(?:www\.)?github\.com/([\w.-]{1,100}/[\w.-]{1,100})/(?:issues|pull|discussions)/(\d{1,9})(?:[#?]\S*)?"
)
_WEB = re.compile(r"https?://(?:www\.)?", re.IGNORECASE)


def table(base: AnyBase) -> Table:
    async def show(request: Request) -> Response:
        lang = _reader(request.query_params.get("lang", ""), request.headers.get("accept-language", ""))
        catalogue = base.catalogue()
        slug = request.path_params["slug"]
        issue = f"{slug}#{request.path_params['number']}"
        up = "../" * (slug.count("/") + 2)
        records = catalogue.issues.get(issue.casefold(), ())
        if not records:
            page = _missing(catalogue.near(issue), lang, up)
            return Response(page, 404, NOT_KEPT, media_type="text/html")
        record = next((r for r in records if r.lang == lang), records[0])
        address = f"{origin(request)}{request.url.path}"
        tag = f"{catalogue.snapshot} {record.id} {address}"
        return tagged_response(
            request, tag, lambda: _page(record, up, address, two=len(records) > 1), media_type="text/html"
        )

    return Table({"/issue/{slug:path}/{number}": {"GET": show}})


def source_label(address: str) -> str:
    """How a source is shown: `owner/name#12` for a thread of GitHub, else the address without its scheme."""
    thread = _THREAD.fullmatch(address)
    return f"{thread[1]}#{thread[2]}" if thread else _WEB.sub("", address, count=1)


def _reader(asked: str, accepted: str) -> Lang:
    """The language that the address names, else the first one of the browser that kb speaks."""
    for one in [asked, *accepted[:200].split(",")]:
        found = one.strip()[:2].casefold()
        if found in ("en", "zh"):
            return "zh" if found == "zh" else "en"
    return "en"


def _page(record: IssueRecord, up: str, address: str, *, two: bool) -> bytes:
    """`two`: the issue is told in both languages."""
    words, labels = _WORDS[record.lang], LABELS[record.lang]
    other = HTML_LANG[_OTHER[record.lang]]
    updated = f"{labels['updated']} {record.updated}" if record.updated else ""
    facts = [text for text in (record.project or "", *record.versions, updated) if text]
    errors = "\n".join(f"    {line}" for line in record.errors)
    first = {
        "summary": record.summary,
        "fix": record.fix or labels["no fix"],
        "triage": record.triage,
        "symptom": record.symptom or errors,
        "cause": record.cause or labels["no cause"],
    }
    aliases = "\n".join(f"- {alias}" for alias in record.aliases)
    rest = {"only when": record.only_when, "confusable": record.confusable, "aliases": aliases}
    more = [_section(labels[name], name, text, up) for name, text in rest.items() if text]
    slug, _, number = record.issue.rpartition("#")
    main = make(
        "article",
        {"class": "hit open whole"},
        make("header", None, *(make("span", {"class": "tag"}, text) for text in facts), make("h1", None, record.title)),
        make(
            "div",
            {"class": "body"},
            *(_section(labels[name], name, text, up) for name, text in first.items() if text),
            *([make("details", None, make("summary", None, words["more"]), *more)] if more else []),
            *([_sources(record.sources, labels["source"])] if record.sources else []),
        ),
        make(
            "p",
            {"class": "links"},
            *([link(f"?lang={_OTHER[record.lang]}", words["other"], hreflang=other, lang=other)] if two else []),
            link(f"{up}#/issue/{slug}/{number}", words["open"]),
            make("code", None, record.issue),
        ),
    )
    told = plain(record.summary or record.cause or record.symptom or record.title)[:_MAX_DESCRIPTION]
    title = f"[{record.project}] {record.title}" if record.project else record.title
    head = [
        make("meta", {"name": "description", "content": told}),
        *(
            make("meta", {"property": f"og:{name}", "content": text})
            for name, text in {"type": "article", "site_name": "kb", "title": title, "description": told}.items()
        ),
        make("link", {"rel": "canonical", "href": address}),
        *(
            [make("link", {"rel": "alternate", "hreflang": other, "href": f"?lang={_OTHER[record.lang]}"})]
            if two
            else []
        ),
    ]
    return document(record.title, record.lang, up, head, main)


def _section(label: str, name: str, text: str, up: str) -> Element:
    name = name.replace(" ", "-")
    return make("section", {"class": name, "id": name}, make("h2", None, label), *elements(nodes.parse(text), up))


def _sources(sources: Sequence[str], label: str) -> Element:
    items = (
        make("li", None, link(one, source_label(one), rel="noopener noreferrer nofollow") if _WEB.match(one) else one)
        for one in sources
    )
    return make("section", {"class": "sources", "id": "sources"}, make("h2", None, label), make("ul", None, *items))


def _missing(near: Sequence[str], lang: Lang, up: str) -> bytes:
    words = _WORDS[lang]
    items = (
        make("li", None, link(f"{up}issue/{slug}/{number}", f"{slug}#{number}"))
        for slug, _, number in (issue.rpartition("#") for issue in near)
    )
    main = make(
        "article",
        None,
        make("h1", None, words["gone"]),
        make("p", None, words["why"]),
        *([make("p", None, words["near"]), make("ul", None, *items)] if near else []),
        make("p", None, link(f"{up}#/", words["search"])),
    )
    return document(words["gone"], lang, up, [], main)
