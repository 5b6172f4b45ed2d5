"""Turns the HTML of a page into markdown: headings, paragraphs, lists, code, tables.

readability-lxml finds where the text is that somebody wrote, and html-to-markdown converts the element around that
text; it parses as browsers do, in time linear in the size of the page. Readability's own result is not used: it drops
lists of links, captions and the languages of code. What frames a page (navigation, forms, footers, scripts) and what
is hidden is left out everywhere.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kb.errors import ExtraMissing
from kb.importers.form import one_line
from kb.importers.mask import tidy
from kb.text.decode import decode

if TYPE_CHECKING:
    from lxml.html import HtmlElement

__all__ = ["Page", "read_html"]

MAIN_CHARS = 200  # a main part with less text is a frame around something else
MAX_ELEMENTS = 30_000  # of a page whose main part is looked for: time and memory of readability grow with them
INDENT = 3  # of a nested list: enough below "1. ", and never an indented code block

_FRAME = (
    "script style noscript template svg math nav footer form button select textarea iframe object embed canvas audio "
    "video dialog menu [hidden] [aria-hidden=true]"
).split()
_SILENT = ("script", "style", "noscript", "template", "nav", "footer", "form", "button", "select", "textarea", "svg")
_SITE = re.compile(r"(?<=.{8}) [-|–—_·] [^-|–—_·]{1,24}$")
_HIDDEN = re.compile(r"display\s{0,3}:\s{0,3}none", re.IGNORECASE)
_NUMBERS = re.compile(r"[\d\s]{1,20000}")
_CHARSET = re.compile(rb"<meta[^<>]{0,200}charset=[\"' ]{0,3}([\w-]{2,40})", re.IGNORECASE)
_PLACE = "data-kb-place"
_NEARLY_ALL = 0.95  # of the text that readability found
_MOST_OF_IT = 0.6  # of the part that a page marks as its main one; with less, readability took a part for the whole
_MORE = 0.6  # text around the element, as a share of its own, that may belong to the article
_LINKS = 0.1  # share of that text in links, from which on it is navigation
_BOXES = {"html", "body", "div", "section", "article", "main", "center", "table", "tbody", "tr", "td", "form", "span"}


@dataclass(frozen=True, slots=True)
class Page:
    markdown: str
    title: str
    address: str
    """what the page says its own is; empty when it does not"""


def read_html(data: bytes | str) -> Page:
    """Bytes are read as UTF-8, or in the encoding that the page declares. Raises ExtraMissing when html-to-markdown or
    readability-lxml is not installed. The caller limits the size of `data`."""
    try:
        import readability  # noqa: F401  is it there; `_main_html` uses it
        from html_to_markdown import ConversionOptions, convert
    except ImportError:
        raise ExtraMissing(
            "reading HTML needs the extra `import`", hint='pip install "kb-issues[import]", or save the page as text'
        ) from None
    if isinstance(data, bytes):
        declared = _CHARSET.search(data[:4096])
        data = decode(data, declared[1].decode("ascii") if declared else "")
    text = tidy(data).replace("\0", "")
    options = ConversionOptions(
        bullets="-",
        list_indent_width=INDENT,
        compact_tables=True,
        highlight_style="none",
        exclude_selectors=_FRAME,
        strip_tags=["a"],  # a linked heading is still a heading
        skip_images=True,
        extract_metadata=False,
    )
    about = convert(text, ConversionOptions(extract_metadata=True)).metadata.document
    address = about.canonical_url or about.open_graph.get("url") or ""
    markdown = convert(_main_html(text) or text, options).content or ""
    return Page(
        markdown="\n".join(line.rstrip() for line in markdown.strip("\n").split("\n")) + "\n",
        title=one_line(about.title or "", 300),
        address=one_line(address) if address.startswith(("https://", "http://")) else "",
    )


# --- the part of a page that somebody wrote -------------------------------------------------------------------------


def _main_html(text: str) -> str:
    """The HTML of the main part, below the heading that stands above it; empty when no such part was found."""
    from lxml.etree import LxmlError
    from lxml.html import HTMLParser, document_fromstring, tostring

    parser = HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    try:
        tree = document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    except LxmlError:
        return ""
    too_deep = any("depth" in str(error.message) for error in parser.error_log)  # lxml gave up, and text is lost
    if too_deep or sum(1 for _ in tree.iter()) > MAX_ELEMENTS:
        return ""
    _drop_frames(tree)
    _unwrap_code(tree)
    marked = _marked_parts(tree)
    found = _around_the_text(tree)
    whole = sum(_length(part) for part in marked)
    if whole > MAIN_CHARS:
        inside = any(part is found or part in found.iterancestors() for part in marked)
        parts = [found] if inside and _length(found) >= _MOST_OF_IT * whole else marked
    elif _length(found) > MAIN_CHARS:
        parts = [found]
    else:
        return ""
    html = "".join(tostring(part, encoding="unicode", with_tail=False) for part in parts)
    return _heading_above(tree, parts) + html


def _drop_frames(tree: HtmlElement) -> None:
    """Takes out what no reader reads. A form around most of the page is no frame: some sites have one."""
    whole = _length(tree)
    for form in list(tree.iter("form")):
        if 2 * _length(form) > whole:
            form.tag = "div"
    for frame in list(tree.iter()):
        if (frame.tag in _SILENT or _HIDDEN.search(frame.get("style") or "")) and frame.getparent() is not None:
            frame.drop_tree()


def _unwrap_code(tree: HtmlElement) -> None:
    """Code beside its line numbers, in a table of its own, as highlighters write it: the code alone."""
    for table in list(tree.iter("table")):
        codes = [cell.find(".//pre") for cell in table.iter("td", "th")]
        if not codes or any(code is None for code in codes) or table.getparent() is None:
            continue
        codes = [code for code in codes if not _NUMBERS.fullmatch("".join(code.itertext()))]
        figure = table.getparent()
        language = (figure.get("class") or "").split()[1:2] if figure.tag == "figure" else []
        for code in codes:
            code.tail = None
            if language and code.find("code") is None:
                code.set("class", f"language-{language[0]}")
            table.addprevious(code)
        table.drop_tree()


def _marked_parts(tree: HtmlElement) -> list[HtmlElement]:
    """The outermost <article> elements, or the <main> ones, whichever hold more text."""
    kinds: list[list[HtmlElement]] = [
        [one for one in tree.iter(tag) if not any(above.tag == tag for above in one.iterancestors())]
        for tag in ("article", "main")
    ]
    return max(kinds, key=lambda parts: sum(map(_length, parts)))


def _around_the_text(tree: HtmlElement) -> HtmlElement:
    """The smallest element that holds nearly all of the text that readability takes for the article."""
    from lxml.html import document_fromstring, tostring
    from readability import Document
    from readability.readability import Unparseable

    logging.getLogger("readability").addHandler(logging.NullHandler())  # its tracebacks are not for the terminal
    elements: list[HtmlElement] = [one for one in tree.iter() if isinstance(one.tag, str)]
    for place, element in enumerate(elements):
        element.set(_PLACE, str(place))
    try:
        summary = document_fromstring(Document(tostring(tree, encoding="unicode")).summary())
    except (Unparseable, ValueError):
        return tree
    held = [0] * len(elements)
    for one in summary.iter():
        if isinstance(one.tag, str) and _PLACE in one.attrib:
            held[int(one.get(_PLACE))] += len(one.text or "") + sum(len(child.tail or "") for child in one)
    for place in range(len(elements) - 1, 0, -1):
        held[int(elements[place].getparent().get(_PLACE))] += held[place]
    at: HtmlElement | None = tree
    found = tree
    while at is not None:
        found = at
        boxes = (child for child in found if child.tag in _BOXES)
        at = next((box for box in boxes if held[int(box.get(_PLACE))] >= _NEARLY_ALL * held[0] > 0), None)
    return _widened(found)


def _widened(element: HtmlElement) -> HtmlElement:
    """The element, or one around it with much more text outside of links: the article is written in several."""
    widest = element
    for above in element.iterancestors():
        more = _length(above) - _length(widest)
        links = _links(above) - _links(widest)
        if more > _MORE * _length(widest) and links < _LINKS * more:
            widest = above
    return widest


def _heading_above(tree: HtmlElement, parts: Sequence[HtmlElement]) -> str:
    """The title of the page as a heading, where the main part has none of its own."""
    from lxml.html import tostring
    from lxml.html.builder import H1
    from readability.htmls import shorten_title

    page = " ".join((tree.findtext(".//title") or "").split())
    headings = [" ".join(one.text_content().split()) for one in tree.iter("h1")]
    title = next((one for one in headings if one and one in page), "") or shorten_title(tree) or "".join(headings[:1])
    title = _SITE.sub("", title)
    tops = [one for part in parts for one in part.iter("h1")]
    shown = ["".join(one.text_content().split()) for part in parts for one in part.iter("h1", "h2")]
    is_shown = len(tops) == 1 or any("".join(title.split()) in one for one in shown)  # several <h1> are sections
    return "" if is_shown else str(tostring(H1(title), encoding="unicode"))


def _length(element: HtmlElement) -> int:
    return sum(len(text.strip()) for text in element.itertext())


def _links(element: HtmlElement) -> int:
    return sum(_length(link) for link in element.iter("a"))
