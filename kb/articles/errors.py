"""Finds the literal error lines of an issue in its title and its symptom."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from kb.articles.fields import Part
from kb.articles.lines import Line
from kb.logs.classify import is_command, is_error_line, opens_with_error
from kb.logs.errors import error_lines, is_personal, looks_like_code, quoted_errors
from kb.text import HAN

__all__ = ["errors_in"]

_MAX_ERRORS = 40
_MAX_CHARS = 1000
_WORD = re.compile(r"[A-Za-z]{2,}")
_SPAN_THEN_WORDS = re.compile(r"^`[^`\n]{1,500}` [a-z]")
# A Chinese title that opens with a message in English: `A tensor with all NaNs was produced 或者出图全黑`.
_MESSAGE_FIRST = re.compile(
    rf"([A-Z][\w'.,:-]{{0,20}}(?: [\w'.,:()-]{{1,24}}){{1,12}}?(?: [a-z]{{2,20}}){{1,3}})\s?(?=[{HAN}（])"
)
# A Chinese title that ends with one: `启动报错：duplicated store address`.
_MESSAGE_LAST = re.compile(
    r"(?:报错|错误|异常|失败)(?:信息)?[为是]?\s?[:：,，]?\s?([A-Za-z\[][!-~]*(?: [!-~]+){1,40})$"
)
_SPAN = re.compile(r"`([A-Za-z]{3,30}(?: [\w'.,:()-]{1,30}){1,14})`")
_SQL = re.compile(
    r"(?i)select\s.{1,300}\sfrom\s.{1,300}|(?:alter|create|drop|truncate) (?:table|database|index|view|user)|show \w+"
)
_CODE = re.compile(r"`([^`\n]{8,600})`")
_OPTION = re.compile(r"\s--?[A-Za-z]")
_LEVELLED = re.compile(r"\W{0,2}(?:WARNING|WARN|ERROR|CRITICAL|FATAL)\b\W{1,3}[\x20-\x7e]{6}")
_FRAMES = re.compile(r"\s{1,40}|Traceback|During handling|The above exception|File \"")


def errors_in(title: str, symptom: Sequence[Part]) -> list[str]:
    """Error lines from fences, quotes and inline code, and lines that are a message as a whole.

    In the order of the article, each once, at most 40, of at most 1000 characters.
    """
    found: list[str] = []
    for part in symptom:
        found += _in_prose(part.text) if part.text else _in_lines(part.lines)
    found += [hit[1].strip(" ,;:-")] if (hit := _MESSAGE_FIRST.match(title)) and not is_command(title) else []
    found += [hit[1]] if (hit := _MESSAGE_LAST.search(title)) and not is_command(hit[1]) else []
    found += [span for span in _SPAN.findall(title) if not is_command(span) and not looks_like_code(span)]
    found += [title] if opens_with_error(title) and len(title) < 300 and "`" not in title else _in_prose(title)
    kept = [text[:_MAX_CHARS] for text in dict.fromkeys(text.strip() for text in found) if len(text) >= 4]
    return [text for text in kept if not _SQL.fullmatch(text)][:_MAX_ERRORS]


def _in_lines(lines: Sequence[Line]) -> list[str]:
    found: list[str] = []
    fence: list[str] = []
    before = ""
    in_message = False
    for n, line in enumerate(lines):
        if line.kind == "code":
            fence.append(line.text)
            continue
        if fence and line.kind != "blank":
            found += _in_fence(fence, announced=_announces(before))
            fence, before = [], ""
        text = line.text.strip()
        if line.kind in ("text", "heading", "html") and text:
            wrapped = any(_goes_on(*two) for two in pairwise(lines[max(n - 1, 0) : n + 2]))
            message = _is_printed(text, announced=_announces(before), after_message=in_message, wrapped=wrapped)
            found += [text.strip("*` ")] if message else _in_prose(text, wrapped=wrapped)
            in_message = message
        if text and line.kind != "fence":
            before = text
    return found + (_in_fence(fence, announced=_announces(before)) if fence else [])


def _announces(text: str) -> bool:
    return text.endswith((":", "："))


def _goes_on(first: Line, second: Line) -> bool:
    """Does the second line go on with a sentence of the first?"""
    return first.kind == second.kind == "text" and second.text.lstrip()[:1].islower()


def _is_printed(text: str, *, announced: bool, after_message: bool, wrapped: bool = False) -> bool:
    """Whether a line outside a fence is program output: ASCII, and like an error or after a colon. `wrapped`: it is
    only a part of a sentence."""
    if announced and _LEVELLED.match(text) and len(text) <= _MAX_CHARS:
        return True
    if (
        not text.isascii()
        or is_personal(text)
        or any(map(is_error_line, _CODE.findall(text)))
        or _SPAN_THEN_WORDS.match(text)
        or text.startswith(("- ", "* ", "> "))
        or len(text) > _MAX_CHARS
    ):
        return False
    if is_error_line(text):
        return announced or after_message or opens_with_error(text) or not (wrapped or text.endswith("."))
    return announced and len(_WORD.findall(text)) >= 3 and not is_command(text) and not looks_like_code(text)


def _in_fence(texts: list[str], *, announced: bool) -> list[str]:
    """The error lines of a fence. A short fence without any is taken whole, when it is output and not code."""
    lines = error_lines("\n".join(texts))
    if lines:
        return lines
    printed = [text.strip() for text in texts if text.strip() and not _FRAMES.match(text) and not looks_like_code(text)]
    printed = [text for text in printed if not _OPTION.search(text)]
    short = 0 < len(printed) <= (4 if announced else 2)
    return printed if short and all(len(_WORD.findall(text)) >= 2 for text in printed) else []


def _in_prose(text: str, *, wrapped: bool = False) -> list[str]:
    stripped = text.strip().lstrip("-*•># ").strip()
    found = quoted_errors(stripped)
    if not found and _is_printed(stripped, announced=False, after_message=False, wrapped=wrapped):
        found.append(stripped.strip("*` "))
    return found
