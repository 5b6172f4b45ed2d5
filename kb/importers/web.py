"""Turns the HTML of a page into markdown: headings, paragraphs, lists, code, tables.

html-to-markdown converts; it parses as browsers do, in time linear in the size of the page. Our part chooses what of
the page counts: what frames it (navigation, forms, footers, scripts) and what is hidden is left out, and the main part
is taken where the page marks one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from kb.errors import ExtraMissing
from kb.importers.form import one_line
from kb.importers.mask import tidy
from kb.text.decode import decode

__all__ = ["Page", "read_html"]

MAIN_CHARS = 200  # a main part with less markdown is a frame around something else
INDENT = 3  # of a nested list: enough below "1. ", and never an indented code block

_FRAME = (
    "script style noscript template svg math nav footer form button select textarea iframe object embed canvas audio "
    "video dialog menu [hidden] [aria-hidden=true]"
).split()
_MAIN = re.compile(r"<(?:article|main)[\s/>]", re.IGNORECASE)
_CHARSET = re.compile(rb"<meta[^<>]{0,200}charset=[\"' ]{0,3}([\w-]{2,40})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Page:
    markdown: str
    title: str
    address: str
    """what the page says its own is; empty when it does not"""
    lang: str
    """"en", "zh" or empty"""


def read_html(data: bytes | str) -> Page:
    """Bytes are read as UTF-8, or in the encoding that the page declares. Raises ExtraMissing when html-to-markdown is
    not installed. The caller limits the size of `data`."""
    try:
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
    parts = _MainParts()
    visitor: Any = parts if _MAIN.search(text) else None  # without a visitor the conversion is much faster
    whole = convert(text, options, visitor).content or ""
    about = convert(text, ConversionOptions(extract_metadata=True)).metadata.document
    address = about.canonical_url or about.open_graph.get("url") or ""
    return Page(
        markdown="\n".join(line.rstrip() for line in (parts.largest() or whole).strip("\n").split("\n")) + "\n",
        title=one_line(about.title or "", 300),
        address=one_line(address) if address.startswith(("https://", "http://")) else "",
        lang={"zh": "zh", "en": "en"}.get((about.language or "")[:2].lower(), ""),
    )


class _MainParts:
    """A visitor of the conversion, which collects the markdown of the outermost <article> and <main> elements."""

    def __init__(self) -> None:
        self._depth = {"article": 0, "main": 0}
        self._parts: dict[str, list[str]] = {"article": [], "main": []}

    def visit_element_start(self, context: Any) -> str:
        if context.tag_name in self._depth:
            self._depth[context.tag_name] += 1
        return "continue"

    def visit_element_end(self, context: Any, markdown: str) -> str:
        tag = context.tag_name
        if tag in self._depth:
            self._depth[tag] -= 1
            if not self._depth[tag]:
                self._parts[tag].append(markdown.strip("\n"))
        return "continue"

    def largest(self) -> str:
        """All articles, or all main parts, whichever is longer; empty when there are none of some length."""
        longest = max(("\n\n".join(part) for part in self._parts.values()), key=len)
        return longest if len(longest) > MAIN_CHARS else ""
