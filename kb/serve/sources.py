"""An article's sources: how each is named, and where its text names one.

"DeepSpeed pull request 8043" becomes a link only where exactly one source of the article is a pull request with this
number: then it is certain which repository is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["is_web", "label", "linked"]

_WEB = re.compile(r"https?://(?:www\.)?", re.IGNORECASE)
_THREAD = re.compile(
    r"https?://(?:www\.)?[\w.-]{1,100}/([\w.-]{1,100}/[\w.-]{1,100})/(?:-/)?"
    r"(issues|pull|pulls|merge_requests|discussions)/(\d{1,9})(?:[/#?]\S{0,500})?",
    re.IGNORECASE,
)
_GITHUB = re.compile(r"https?://(?:www\.)?github\.com/", re.IGNORECASE)
_KINDS = {"issues": "issue", "discussions": "discussion"}  # all others are pull requests
_NAMED = re.compile(
    r"(?:(?<![\w/-])(?:(pull request|PR|MR|拉取请求|合并请求)|(issue)|(discussion))s?[ \u00a0]?#?(\d{1,9})"
    r"|(?<![\w/&])#(\d{2,9}))(?!\w|\.\d)",
    re.IGNORECASE | re.ASCII,
)
_CLOSED = ("a", "code", "pre")  # what they hold is not looked at

Node = Any  # as in kb.serve.nodes


def is_web(source: str) -> bool:
    """Only these become links: a source comes from an article and may be any text."""
    return _WEB.match(source) is not None


def label(source: str) -> str:
    """How a source is shown: `owner/name#12` for a thread of GitHub, else its address without the scheme."""
    thread = _THREAD.fullmatch(source) if _GITHUB.match(source) else None
    return f"{thread[1]}#{thread[3]}" if thread else _WEB.sub("", source, count=1)


def linked(tree: Sequence[Node], sources: Iterable[str]) -> list[Node]:
    """The nodes, with a link wherever a text names one of the sources by its kind and number. The nodes given stay as
    they are."""
    named: dict[tuple[str, str], set[str]] = {}
    for source in sources:
        if thread := _THREAD.fullmatch(source):
            kind = _KINDS.get(thread[2].lower(), "pull")
            named.setdefault((kind, thread[3]), set()).add(source)
            named.setdefault(("", thread[3]), set()).add(source)
    certain = {key: next(iter(found)) for key, found in named.items() if len(found) == 1}
    return _with_links(tree, certain) if certain else list(tree)


def _with_links(tree: Sequence[Node], certain: dict[tuple[str, str], str]) -> list[Node]:
    made: list[Node] = []
    for node in tree:
        if isinstance(node, str):
            made += _split(node, certain)
        elif node["tag"] in _CLOSED:
            made.append(node)
        else:
            made.append({**node, "children": _with_links(node["children"], certain)})
    return made


def _split(text: str, certain: dict[tuple[str, str], str]) -> list[Node]:
    pieces: list[Node] = []
    start = 0
    for found in _NAMED.finditer(text):
        kind = "pull" if found[1] else "issue" if found[2] else "discussion" if found[3] else ""
        if source := certain.get((kind, found[4] or found[5])):
            pieces += [text[start : found.start()], {"tag": "a", "href": source, "children": [found[0]]}]
            start = found.end()
    return [piece for piece in (*pieces, text[start:]) if piece]
