"""HTML that is built as a tree: the standard library escapes every text, so no article can bring its own markup.

The page (`kb.serve.page`) builds its elements in the browser, out of the same nodes; this is for what is read without
a script.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from xml.etree.ElementTree import Element, tostring

from kb.records import Lang
from kb.serve import nodes
from kb.text import visible

__all__ = ["HTML_LANG", "document", "elements", "link", "make"]

HTML_LANG: dict[Lang, str] = {"en": "en", "zh": "zh-Hans"}
_BAR: dict[Lang, tuple[str, str, str]] = {"en": ("Pages", "Search", "Browse"), "zh": ("页面", "搜索", "浏览")}

_HEADINGS = {"h4": "h3", "h5": "h4", "h6": "h5"}  # below a section's h2; the page has theirs one lower


def make(tag: str, attributes: Mapping[str, str] | None = None, *children: Element | str) -> Element:
    """An element. Texts are made visible: what would change the text around it is shown as a mark."""
    made = Element(tag, {name: visible(value) for name, value in (attributes or {}).items()})
    last: Element | None = None
    for child in children:
        if not isinstance(child, str):
            made.append(child)
            last = child
        elif last is None:
            made.text = (made.text or "") + visible(child)
        else:
            last.tail = (last.tail or "") + visible(child)
    return made


def link(address: str, text: str, **attributes: str) -> Element:
    return make("a", {"href": address, **attributes}, text)


def elements(tree: Iterable[nodes.Node], up: str) -> list[Element | str]:
    """The elements for an article's nodes. `up`: the way from the page to the root of the server, as in `../../`."""
    return [one if isinstance(one, str) else _element(one, up) for one in tree]


def _element(node: nodes.Node, up: str) -> Element:
    children = elements(node["children"], up)
    if node["tag"] == "pre":
        code = make("code", {"translate": "no"}, *children)
        return make("div", {"class": "fence"}, make("pre", None, code))
    if node["tag"] == "table":
        return make("div", {"class": "wide"}, make("table", None, *children))
    if node["tag"] == "ol" and "start" in node:
        return make("ol", {"start": str(node["start"])}, *children)
    if node["tag"] != "a":
        return make(_HEADINGS.get(node["tag"], node["tag"]), None, *children)
    if node["href"].startswith("#/issue/"):
        return make("a", {"href": f"{up}{node['href'][2:]}"}, *children)
    return make("a", {"href": node["href"], "rel": "noopener noreferrer nofollow"}, *children)


def document(title: str, lang: Lang, up: str, head: Iterable[Element], main: Element) -> bytes:
    """A whole page around `main`, in UTF-8, with the style and the mark of the server's page."""
    parts = [
        make("meta", {"charset": "utf-8"}),
        make("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        make("meta", {"name": "color-scheme", "content": "light dark"}),
        make("meta", {"name": "referrer", "content": "no-referrer"}),
        make("title", None, f"{title} · kb"),
        make("link", {"rel": "icon", "href": f"{up}kb.svg", "type": "image/svg+xml"}),
        make("link", {"rel": "stylesheet", "href": f"{up}kb.css"}),
        *head,
    ]
    mark = make("img", {"src": f"{up}kb.svg", "alt": "", "width": "28", "height": "28"})
    pages, search, browse = _BAR[lang]
    bar = make(
        "header",
        None,
        make("a", {"class": "brand", "href": f"{up}#/", "aria-label": "kb"}, mark, make("span", None, "kb")),
        make("nav", {"aria-label": pages}, link(f"{up}#/", search), link(f"{up}#/browse", browse)),
    )
    body = make("body", None, bar, make("main", None, make("div", {"id": "view"}, main)))
    page = make("html", {"lang": HTML_LANG[lang]}, make("head", None, *parts), body)
    written: bytes = tostring(page, encoding="utf-8", method="html")
    return b"<!doctype html>\n" + written
