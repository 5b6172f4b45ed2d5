"""The posts of a thread as the folded part of a draft keeps them: who wrote, when, what speaks for each as the fix.

    {"post": 2, "by": "ann", "who": "insider", "at": "2026-01-31", "likes": 3, "url": "...", "chance": 0.93,
     "reasons": ["confirmed_by_asker", "code"]}
    > the text, line by line

Secrets are masked. Of a long post the middle goes, so that a thread of any length fits into an article.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from kb.articles.folded import fold, unfold
from kb.importers.fix import EVIDENCE, Candidate
from kb.importers.github import Thread
from kb.importers.mask import mask_secrets, tidy

__all__ = ["Post", "Who", "folded_posts", "posts_of", "read_posts"]

MAX_POST = 12_000  # characters of a post
MAX_THREAD = 400_000  # of all of them, shared evenly
MAX_POSTS = 2000

Who = Literal["asker", "insider", "other", "bot"]

_NOTE = "# What `kb import` read. `kb review` shows it and takes it out of an article that is accepted."
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class Post:
    number: int
    """0: the first post"""
    by: str
    who: Who
    """"bot" is also whom the maintainers have hidden"""
    at: str
    """a date as 2026-01-31, or empty"""
    likes: int
    url: str
    chance: float
    """with which it is the fix; 0 for a post that cannot be"""
    reasons: tuple[str, ...]
    """kinds of evidence (`kb.importers.fix`), those against it with a "-" in front"""
    text: str


def posts_of(thread: Thread, ranked: Sequence[Candidate]) -> list[Post]:
    """The first post and the comments, in their order; of more than `MAX_POSTS` the first and the last."""
    of = {one.number: one for one in ranked}
    first = ("asker", thread.by, thread.at, thread.likes, thread.url, thread.body)
    rest = [
        ("bot" if c.aside else "asker" if thread.by and c.by == thread.by else "insider" if c.insider else "other",
         c.by, c.at, c.likes, c.url, c.body)
        for c in thread.comments
    ]  # fmt: skip
    numbered = list(enumerate([first, *rest]))
    if len(numbered) > MAX_POSTS:
        numbered = numbered[: MAX_POSTS // 2] + numbered[-MAX_POSTS // 2 :]
    most = max(200, min(MAX_POST, MAX_THREAD // len(numbered)))
    return [
        Post(
            number,
            _line(by, 60),
            _who(who),
            date[0] if (date := _DATE.match(at)) else "",
            likes,
            _line(url, 300) if url.startswith(("https://", "http://")) else "",
            round(of[number].chance, 3) if number in of else 0.0,
            of[number].reasons if number in of else (),
            _shortened("\n".join(line.rstrip() for line in mask_secrets(tidy(text)).split("\n")), most),
        )
        for number, (who, by, at, likes, url, text) in numbered
    ]


def folded_posts(posts: Sequence[Post]) -> str:
    lines = [_NOTE]
    for post in posts:
        head = {
            "post": post.number, "by": post.by, "who": post.who, "at": post.at, "likes": post.likes, "url": post.url,
            "chance": post.chance, "reasons": post.reasons,
        }  # fmt: skip
        lines.append(
            json.dumps({name: value for name, value in head.items() if value not in ("", ())}, ensure_ascii=False)
        )
        lines += [f"> {line}".rstrip() for line in post.text.split("\n")]
    return fold(lines)


def read_posts(text: str) -> list[Post]:
    """The posts in the folded part of a draft. What is not of its form is left out: a draft may have been edited."""
    heads: list[tuple[dict[str, Any], list[str]]] = []
    for line in unfold(text):
        if line.startswith(">"):
            if heads:
                heads[-1][1].append(line[1:].removeprefix(" "))
        elif line.startswith("{"):
            try:
                head = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(head, dict):
                heads.append((head, []))
    posts = [_post(head, "\n".join(lines)) for head, lines in heads]
    return list({post.number: post for post in posts if post.number >= 0}.values())


def _post(head: dict[str, Any], text: str) -> Post:
    number, likes, chance, reasons = (head.get(name) for name in ("post", "likes", "chance", "reasons"))
    return Post(
        number if isinstance(number, int) and not isinstance(number, bool) else -1,
        _line(str(head.get("by", "")), 60),
        _who(str(head.get("who", ""))),
        date[0] if (date := _DATE.match(str(head.get("at", "")))) else "",
        likes if isinstance(likes, int) else 0,
        _line(str(head.get("url", "")), 300),
        float(chance) if isinstance(chance, int | float) and 0 <= chance <= 1 else 0.0,
        tuple(_known(reasons if isinstance(reasons, list) else ())),
        tidy(text),
    )


def _known(reasons: Iterable[Any]) -> Iterable[str]:
    return (one for one in reasons if isinstance(one, str) and one.removeprefix("-") in EVIDENCE)


def _who(word: str) -> Who:
    return next((one for one in get_args(Who) if one == word), "other")


def _line(text: str, most: int) -> str:
    return " ".join(tidy(mask_secrets(text[: most * 4])).split())[:most]


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}\n[…]\n{text[-most // 2 :]}"
