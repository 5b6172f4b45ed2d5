"""Recognises what opens a section without a Markdown mark: bare headings, questions, answers, replies."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kb.articles.lines import Line
from kb.logs.classify import is_command, is_error_line
from kb.logs.errors import looks_like_code
from kb.scraped.labels import read_label, role_of, split_ordinal
from kb.text import HAN_CHAR

__all__ = ["is_bare_heading", "is_reply", "question_or_answer", "text_after_name", "unmark_commands"]

_Q = re.compile(
    r"^\s{0,8}(?:[>#*+•-]{1,6}\s{0,3})?(?:\*\*|__)?\s?(?:【(?:问|提问|问题|Q)】\s?\d{0,2}|(?:Q|Question|"
    r"问)\s?[#＃]?\d{0,3}\s?[:：.、)]|(?:Q|Question)\s?\d{1,3}\s|(?:提问|"
    r"问题)\s?[:：](?=.{0,200}[?？]))(?!\d)\s{0,3}",
    re.IGNORECASE,
)
_A = re.compile(
    r"^\s{0,8}(?:[>#*+•-]{1,6}\s{0,3}){0,2}(?:\*\*|__)?\s?(?:【(?:答|回答|解答|答案|A)】|(?:A|Answer|答|回答|"
    r"解答)\s?\d{0,3}\s?[:：])(?:\*\*|__)?\s{0,3}",
    re.IGNORECASE,
)
_REPLY = re.compile(
    r"^[\s>*#_@\[-]{0,8}[\w.-]{1,40}[\]*_]{0,3}\s?(?:[(（\[][\w ,/]{1,40}[)）\]]\s?)?(?:bot )?(?:commented|replied|"
    r"wrote|answered|评论|回复|发表)(?:于|了|道)?"
    r"(?:\s.{0,60})?[:：]?\s{0,4}$",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"^\s{0,4}(?:[-*>]\s{1,3})?(?:\*\*)?(?:@[\w.-]{1,40}|[#＃]?\d{1,3}\s?(?:楼|L|F)\s?[\w.-]{0,20}|"
    r"(?:楼主|题主|提问者|维护者|作者|管理员|网友|网友回复|回复|OP|"
    r"maintainer|reporter|author)(?:\s[\w.-]{1,40})?|"
    r"[\w.-]{1,40}(?:\*\*)?\s?(?:[(（\[][\w ,/]{1,40}[)）\]]\s?)?(?:commented|replied|wrote|answered|评论道?|回复道?)"
    r"(?:\s[^:：\n]{1,40})?)"
    r"(?:\s?[(（][^()（）\n]{1,20}[)）])?"
    r"(?:\*\*)?\s?[:：](?:\*\*)?\s{0,3}(?=\S)"
)
_CLOSED = re.compile(r"[。.;；:：!！?？…|}\])）】\"”>,、~～]\s{0,4}$")
_ITEM = re.compile(r"^\s{0,12}(?:[-*+•·]\s|\d{1,3}[.、)）]|[（(]\d{1,2}[)）]|[①-⑳])")
_SHORT_ZH, _SHORT_EN, _WORDS_EN = 40, 90, 14


def question_or_answer(text: str) -> tuple[str, str] | None:
    """("question" | "answer", the text after the mark) for `Q1：`, `**Q: …**`, 【问】, `> A:`, `答：`."""
    head = text[:40]
    if not any(mark in head for mark in "QqAa问答提"):
        return None
    found = _A.match(text)
    if found:
        return "answer", text[found.end() :].strip().removeprefix("**").removesuffix("**")
    found = _Q.match(text)
    if found and (text[found.end() :].strip(" *") or "【" in text[:8]):
        return "question", text[found.end() :].strip().removeprefix("**").strip("*_ ").strip()
    return None


def is_reply(text: str) -> bool:
    """Whether the line opens a comment of an issue thread: `@name:`, `3楼：`, `name commented on May 2`."""
    return _REPLY.match(text[:120]) is not None or _NAMED.match(text) is not None


def text_after_name(text: str) -> str:
    """The text after the name in `@name（维护者）：text`; "" when the name has a line of its own."""
    found = _NAMED.match(text)
    return text[found.end() :].strip() if found else ""


def unmark_commands(lines: Sequence[Line]) -> None:
    """Turns headings that are code into code: `# rm -f x` (a root prompt) and `# why` (a comment above a command)."""
    for n in range(len(lines) - 1, -1, -1):
        line = lines[n]
        if line.kind != "heading" or line.level != 1 or not line.text.startswith("# "):
            continue
        text = line.text[2:].strip()
        before = lines[n - 1] if n else None
        after = lines[n + 1] if n + 1 < len(lines) else None
        prompt = is_command(text)
        glued = (
            before is not None and before.kind in ("text", "code", "heading") and text[:1].islower() and text.isascii()
        )
        comment = after is not None and (
            (after.kind == "code" and after.block == 0) or (after.kind == "text" and looks_like_code(after.text))
        )
        if prompt or glued or comment:
            line.kind, line.level = "code", 0


def is_bare_heading(lines: Sequence[Line], n: int, *, plain: bool) -> bool:
    """Whether a line is a heading without a mark: short, no closing punctuation, after a complete line, before a body.

    On a page with marked headings (`plain` false) only a line that is a label alone counts, between blank lines.
    """
    line = lines[n]
    text = line.text.strip()
    if not text or len(text) > _SHORT_EN or line.text.startswith("    "):
        return False
    role = role_of(text)
    if _ITEM.match(line.text) and (not role or text[-1] in ":："):
        return False
    before, after = _before(lines, n), _after(lines, n)
    if after is None:
        return False
    if not plain:
        alone = (n == 0 or lines[n - 1].kind != "text") and (n + 1 >= len(lines) or lines[n + 1].kind != "text")
        return bool(role) and alone and role not in ("faq", "toc") and len(text) <= 24
    if role:
        gap = n == 0 or lines[n - 1].kind == "blank"
        return gap or before is None or before.kind != "text" or _complete(before) or len(text) <= 8
    if text[-1] in "?？":
        return False
    if (_CLOSED.search(text) and text[-1] not in ')）"”]') or is_error_line(text) or looks_like_code(text):
        return False
    _, title = split_ordinal(text)
    gap = n > 0 and lines[n - 1].kind == "blank"
    if not _fits(title, heads=len(after.text) >= 24) or not (gap or before is None or _complete(before)):
        return False
    if after.kind not in ("text", "code", "fence", "table"):
        return False
    return _is_body(after) and not (
        before is not None and before.kind == "text" and before.text.rstrip().endswith((" -", ":", "："))
    )


def _fits(title: str, *, heads: bool) -> bool:
    if HAN_CHAR.search(title):
        return (2 if heads else 4) <= len(title) <= _SHORT_ZH and not any(mark in title for mark in "，,。；;")
    words = title.split()
    return 2 <= len(words) <= _WORDS_EN and (title[0].isupper() or title[0].isdigit() or title[0] in "`\"'")


def _is_body(line: Line) -> bool:
    text = line.text.strip()
    return (
        line.kind != "text"
        or len(text) > 40
        or bool(_CLOSED.search(text))
        or bool(_ITEM.match(line.text))
        or text in ("-", "*", "•")
        or bool(role_of(text))
        or read_label(text) is not None
        or "，" in text
        or "," in text
        or is_error_line(text)
    )


def _before(lines: Sequence[Line], n: int) -> Line | None:
    return next(
        (lines[k] for k in range(n - 1, max(-1, n - 6), -1) if lines[k].kind not in ("blank", "boilerplate")), None
    )


def _after(lines: Sequence[Line], n: int) -> Line | None:
    return next(
        (lines[k] for k in range(n + 1, min(len(lines), n + 8)) if lines[k].kind not in ("blank", "boilerplate")), None
    )


def _complete(line: Line) -> bool:
    text = line.text.strip()
    return line.kind != "text" or bool(
        _CLOSED.search(text)
        or _ITEM.match(line.text)
        or role_of(text)
        or looks_like_code(text)
        or is_error_line(text)
        or len(text) <= 24
    )
