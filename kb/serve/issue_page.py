"""`/issue/<slug>/<n>`: an issue as a page that needs no script, for links in chats, for print and for other programs.

The answer first: what it is in short and the fix, then the symptom and the rest. All addresses but the canonical one
are relative, so that it works below a proxy's path.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from starlette.requests import Request
from starlette.responses import Response

from kb.brief import LABELS, plain
from kb.records import IssueRecord, Lang
from kb.serve import nodes
from kb.serve.gone import missing, reader_language, way_up
from kb.serve.html import HTML_LANG, document, elements, link, make
from kb.serve.routes import NOT_KEPT, Table, origin, tagged_response
from kb.serve.sources import is_web, label
from kb.serve.work import Work

if TYPE_CHECKING:
    from kb.bases import AnyBase

__all__ = ["table"]

_MAX_DESCRIPTION = 300  # characters; chats show fewer
_OTHER: dict[Lang, Lang] = {"en": "zh", "zh": "en"}
_WORDS: dict[Lang, dict[str, str]] = {
    "en": {
        "other": "中文版",
        "open": "Open in the search page",
        "sources": "Sources",
        "anchor": "Link to {name}",
    },
    "zh": {
        "other": "In English",
        "open": "在搜索页中打开",
        "sources": "出处",
        "anchor": "{name} 的链接",
    },
}


def table(base: AnyBase, aside: Work) -> Table:
    async def show(request: Request) -> Response:
        lang, up = reader_language(request), way_up(request)
        issue = f"{request.path_params['slug']}#{request.path_params['number']}"
        snapshot, records = base.snapshot, base.issue(issue)
        if not records:
            names = await aside.run(request, lambda _: base.near(issue))  # it looks at all ids
            near = [_told(base.issue(one), lang) for one in names]
            return Response(missing(request, near), 404, NOT_KEPT, media_type="text/html")
        record = _told(records, lang)
        address = f"{origin(request)}{request.url.path}"
        tag = f"{snapshot} {record.id} {address}"
        return tagged_response(
            request, tag, lambda: _page(record, up, address, two=len(records) > 1), media_type="text/html"
        )

    return Table({"/issue/{slug:path}/{number}": {"GET": show}})


def _told(records: Sequence[IssueRecord], lang: Lang) -> IssueRecord:
    """The one of an issue's translations in this language, where there is one."""
    return next((record for record in records if record.lang == lang), records[0])


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
    rest = {"only when": record.only_when, "confusable": record.confusable}
    slug, _, number = record.issue.rpartition("#")
    main = make(
        "article",
        {"class": "hit open whole"},
        make("header", None, *(make("span", {"class": "tag"}, text) for text in facts), make("h1", None, record.title)),
        make(
            "div",
            {"class": "body"},
            *(_section(record, name, text, up) for name, text in {**first, **rest}.items() if text),
            *([_sources(record)] if record.sources else []),
            *([_folded(labels["aliases"], aliases, up)] if aliases else []),
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


def _section(record: IssueRecord, name: str, text: str, up: str) -> Element:
    inner = elements(nodes.parse(text, record.sources), up)
    return _titled(LABELS[record.lang][name], name.replace(" ", "-"), record, *inner)


def _sources(record: IssueRecord) -> Element:
    items = (
        make("li", None, link(one, label(one), rel="noopener noreferrer nofollow") if is_web(one) else one)
        for one in record.sources
    )
    return _titled(_WORDS[record.lang]["sources"], "sources", record, make("ul", None, *items))


def _titled(title: str, name: str, record: IssueRecord, *inner: Element | str) -> Element:
    """A section with an address of its own."""
    named = _WORDS[record.lang]["anchor"].format(name=title)
    anchor = make("a", {"class": "anchor", "href": f"?lang={record.lang}#{name}", "aria-label": named}, "#")
    return make("section", {"class": name, "id": name}, make("h2", None, title, " ", anchor), *inner)


def _folded(title: str, text: str, up: str) -> Element:
    inner = make("div", None, *elements(nodes.parse(text), up))
    return make("details", {"class": "more"}, make("summary", None, title), inner)
