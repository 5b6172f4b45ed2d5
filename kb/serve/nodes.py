"""An article's markdown as a tree of plain values, from which a page can build elements.

There is no HTML text anywhere on the way: tags come from a list, the only attributes are the target of a link, the
language of a code block and the first number of a list, and the page creates each element by name. So an article cannot
bring its own markup, and the page never parses any.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from kb.records import IssueRecord
from kb.serve.code import lit
from kb.serve.sources import linked

__all__ = ["TAGS", "parse", "tree"]

Node = Any  # str, or {"tag": one of TAGS, "children": [Node, ...]} with "href" (a), "lang" (pre) or "start" (ol)

TAGS = (
    *("p", "em", "strong", "code", "pre", "a", "br", "ul", "ol", "li", "blockquote", "hr"),
    *("h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
    "span",
)
_HEADINGS = {"h1": "h4", "h2": "h4", "h3": "h4", "h4": "h4", "h5": "h5", "h6": "h6"}
_WEB = re.compile(r"https?://[^\s<>\"']{1,2000}", re.IGNORECASE)
_ARTICLE = re.compile(r"(?:\./)?([\w.-]{1,200})\.md(?:#[^\s]{0,200})?")
_MAX_DEPTH = 100  # markdown-it silently leaves out what is nested deeper

_MARKDOWN = MarkdownIt("commonmark", {"html": False, "maxNesting": _MAX_DEPTH}).enable("table").disable("image")


@lru_cache(maxsize=2000)
def parse(markdown: str, sources: tuple[str, ...] = ()) -> list[Node]:
    """The nodes of a text; where it names one of the `sources`, with a link. The list is shared: do not change it."""
    found = _tree(_MARKDOWN.parse(markdown))
    return linked(found, sources) if sources else found


def tree(record: IssueRecord) -> dict[str, list[Node]]:
    """The texts of a record, by the name of the field."""
    fields = ("summary", "symptom", "cause", "fix", "triage", "only_when", "confusable")
    return {name: parse(getattr(record, name), record.sources) for name in fields}


def _tree(tokens: list[Token]) -> list[Node]:
    root: list[Node] = []
    open_: list[list[Node]] = [root]
    for token in tokens:
        here = open_[-1]
        if token.type == "inline":
            here.extend(_tree(token.children or []))
        elif token.nesting == 1 and token.hidden:
            open_.append(here)  # the paragraph of a tight list: its text belongs to the item
        elif token.nesting == 1:
            node = _element(token)
            here.append(node)
            open_.append(node["children"])
        elif token.nesting == -1:
            open_.pop()
        else:
            here.append(_leaf(token))
    return root


def _element(token: Token) -> dict[str, Any]:
    tag = _HEADINGS.get(token.tag, token.tag)
    if tag == "a":
        href = _href(str(token.attrs.get("href", "")))
        return {"tag": "a", "href": href, "children": []} if href else {"tag": "em", "children": []}
    node: dict[str, Any] = {"tag": tag if tag in TAGS else "p", "children": []}
    if tag == "ol" and "start" in token.attrs:  # a list goes on counting after a code block
        node["start"] = int(token.attrs["start"])
    return node


def _leaf(token: Token) -> Node:
    if token.type in ("fence", "code_block"):
        language = token.info.strip().split(maxsplit=1)[0][:20] if token.info.strip() else ""
        return {"tag": "pre", "lang": language, "children": lit(token.content.removesuffix("\n"), language)}
    if token.type == "code_inline":
        return {"tag": "code", "children": [token.content]}
    if token.type in ("hardbreak", "hr"):
        return {"tag": token.tag, "children": []}
    return "\n" if token.type == "softbreak" else token.content


def _href(target: str) -> str | None:
    """The target of a link on the page: a web address, or the place of another article; None for anything else."""
    if _WEB.fullmatch(target):
        return target
    article = _ARTICLE.fullmatch(target)
    return f"#/issue/{article[1]}/1" if article else None
