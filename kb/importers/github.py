"""Reads threads from JSON of GitHub issues.

Accepted: the output of `gh issue list --json ...` (author, reactionGroups, state CLOSED) and of the REST API (user,
reactions, state closed): lists of issues or comments, the items of a search, several pages in one file, an issue with
its comments.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kb.errors import ArticleError

__all__ = ["Comment", "Thread", "find_json", "read_threads"]

_ADDRESS = re.compile(
    r"https?://[^/\s]{1,100}/(?:api/v3/)?(?:repos/)?([\w.-]{1,100})/([\w.-]{1,100})/issues/(\d{1,10})"
)
_PULL = re.compile(r"https?://[^/\s]{1,100}/(?:repos/)?[\w.-]{1,100}/[\w.-]{1,100}/pulls?/\d")
_HINT = "gh issue list --json number,title,body,comments,labels,url,state,author,createdAt"
_BOTS = frozenset(
    "github-actions stale dependabot codecov mergify renovate coderabbitai copilot issue-label-bot".split()
)
_INSIDERS = frozenset(("OWNER", "MEMBER", "COLLABORATOR"))
_LIKES = frozenset(("THUMBS_UP", "HEART", "HOORAY", "ROCKET", "+1", "heart", "hooray", "rocket"))


_Key = tuple[str, str, int, str]


@dataclass(frozen=True, slots=True)
class Comment:
    body: str
    by: str
    insider: bool
    """owner, member or collaborator of the repository"""
    likes: int
    url: str
    at: str
    aside: bool = False
    """a bot's, or hidden by the maintainers: a reviewer sees it, and it is never the fix"""


@dataclass(slots=True)
class Thread:
    number: int
    title: str
    body: str
    by: str
    url: str
    """of the web page; empty when the JSON has none"""
    owner: str
    repository: str
    labels: tuple[str, ...]
    closed: bool
    at: str
    bot: bool
    pull: bool
    comments: list[Comment] = field(default_factory=list)
    likes: int = 0
    """of the first post"""
    insider: bool = False
    """who asked belongs to the repository"""
    closed_by: tuple[str, ...] = ()
    """addresses of the pull requests that closed it"""


def read_threads(
    texts: Iterable[tuple[str, str]], refuse: Callable[[ArticleError], object] = lambda error: None
) -> list[Thread]:
    """The threads of (name, JSON) pairs, each once, in order. `refuse` is called for each issue that cannot be read.

    Raises ArticleError for a text that is not JSON or has no issue.
    """
    threads: dict[_Key, Thread] = {}
    loose: list[tuple[_Key, Comment]] = []
    for name, text in texts:
        objects = list(_objects(name, text))
        known = 0
        untitled: list[ArticleError] = []
        for item in objects:
            if "title" not in item and "issue_url" in item:
                found = _ADDRESS.match(_text(item, "issue_url"))
                known += found is not None
                if found and (comment := _comment(item)):
                    loose.append(((found[1].casefold(), found[2].casefold(), int(found[3]), ""), comment))
            elif (thread := _thread(item)) is not None:
                known += 1
                key = _key(thread)
                if key not in threads or len(thread.comments) > len(threads[key].comments):
                    threads[key] = thread
            elif "title" in item or ("body" in item and "number" in item):
                which = f"issue {item['number']}" if isinstance(item.get("number"), int) else "an issue"
                untitled.append(ArticleError(f"{which} has no title", path=name))
        if objects and not known:
            raise ArticleError("holds no issue", path=name, hint=_HINT)
        for error in untitled:
            refuse(error)
    for key, comment in loose:
        if key in threads and comment not in threads[key].comments:
            threads[key].comments.append(comment)
    for thread in threads.values():
        thread.comments.sort(key=lambda comment: comment.at)
    return list(threads.values())


def find_json(folder: Path) -> list[Path]:
    """The .json and .jsonl files below a folder, sorted. Hidden files are left out, and links are not followed."""
    found: list[Path] = []
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(where, name)
            if name.lower().endswith((".json", ".jsonl")) and not name.startswith(".") and not path.is_symlink():
                found.append(path)
    return [path for path in found if path.is_file()]


def _key(thread: Thread) -> _Key:
    """What makes a thread unique: its address, else its number and title, else its text."""
    if thread.owner and thread.number:
        return thread.owner.casefold(), thread.repository.casefold(), thread.number, ""
    return "", "", thread.number, thread.title if thread.number else f"{thread.url}\n{thread.title}\n{thread.body}"


def _objects(name: str, text: str) -> Iterator[dict[str, Any]]:
    """Every object that may be an issue or a comment, in lists, pages, search results and JSON lines."""
    decoder = json.JSONDecoder()
    text = text.lstrip("\ufeff \t\r\n")
    at = 0
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            line = text.count("\n", 0, getattr(error, "pos", at)) + 1
            raise ArticleError("is not JSON", path=name, line=line, hint=_HINT) from None
        if not isinstance(value, list | dict):
            raise ArticleError("holds no issue", path=name, hint=_HINT)
        yield from _within(value, 4)
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1


def _within(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    if isinstance(value, list) and depth:
        for item in value:
            yield from _within(item, depth - 1)
    elif isinstance(value, dict):
        inner = value.get("issue")
        if isinstance(value.get("items"), list):
            yield from _within(value["items"], depth - 1)
        elif isinstance(inner, dict):
            comments = value.get("comments")
            yield {**inner, "comments": comments} if isinstance(comments, list) else inner
        else:
            yield value


def _thread(item: dict[str, Any]) -> Thread | None:
    title = " ".join(_text(item, "title").split())
    if not title:
        return None
    url = _text(item, "html_url") or _text(item, "url")
    place = _ADDRESS.match(url) or _ADDRESS.match(_text(item, "url"))
    number = item.get("number")
    comments = item.get("comments")
    nodes = comments.get("nodes") if isinstance(comments, dict) else comments
    read = (
        [found for one in nodes if isinstance(one, dict) and (found := _comment(one))]
        if isinstance(nodes, list)
        else []
    )
    return Thread(
        number=number if isinstance(number, int) and 0 < number < 10**10 else int(place[3]) if place else 0,
        title=title[:1000],
        body=_text(item, "body"),
        by=_author(item)[0],
        url=url,
        owner=place[1] if place else "",
        repository=place[2] if place else "",
        labels=tuple(_labels(item.get("labels"))),
        closed=_text(item, "state").casefold() == "closed",
        at=_text(item, "created_at") or _text(item, "createdAt"),
        bot=_author(item)[1],
        pull="pull_request" in item or item.get("isPullRequest") is True or bool(_PULL.match(url)),
        comments=read,
        likes=_likes(item),
        insider=_is_insider(item),
        closed_by=tuple(_pulls(item.get("closedByPullRequestsReferences"))),
    )


def _comment(item: dict[str, Any]) -> Comment | None:
    by, bot = _author(item)
    body = _text(item, "body")
    if not body.strip():
        return None
    return Comment(
        body=body,
        by=by,
        insider=_is_insider(item),
        likes=_likes(item),
        url=_text(item, "html_url") or _text(item, "url"),
        at=_text(item, "created_at") or _text(item, "createdAt"),
        aside=bot or item.get("isMinimized") is True,
    )


def _is_insider(item: dict[str, Any]) -> bool:
    return (_text(item, "author_association") or _text(item, "authorAssociation")) in _INSIDERS


def _pulls(value: Any) -> Iterator[str]:
    for pull in value if isinstance(value, list) else ():
        if isinstance(pull, dict) and _PULL.match(url := _text(pull, "url")):
            yield url


def _author(item: dict[str, Any]) -> tuple[str, bool]:
    """The login, and whether it is a bot's."""
    found = item.get("user") or item.get("author")
    who = found if isinstance(found, dict) else {}
    login = _text(who, "login")
    bot = (
        who.get("is_bot") is True or _text(who, "type") == "Bot" or login.endswith("[bot]") or login.casefold() in _BOTS
    )
    return login, bot


def _likes(item: dict[str, Any]) -> int:
    counts: list[Any] = []
    if isinstance(reactions := item.get("reactions"), dict):
        counts = [count for name, count in reactions.items() if name in _LIKES]
    elif isinstance(groups := item.get("reactionGroups"), list):
        users = [group.get("users") for group in groups if isinstance(group, dict) and group.get("content") in _LIKES]
        counts = [one.get("totalCount") for one in users if isinstance(one, dict)]
    return sum(count for count in counts if isinstance(count, int) and 0 < count < 10**6)


def _labels(value: Any) -> Iterator[str]:
    for label in value if isinstance(value, list) else ():
        name = _text(label, "name") if isinstance(label, dict) else label if isinstance(label, str) else ""
        if name.strip():
            yield name.strip()


def _text(item: dict[str, Any], key: str) -> str:
    value = item.get(key)
    return value if isinstance(value, str) else ""
