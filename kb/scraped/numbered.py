"""Here are lines; tell me which numbered or bulleted ones are titles of issues, not items of a list.

`1. Title` heads an issue when labels (cause, fix, ...) follow it before the next number; `- **error text**` heads
one when several do and steps follow each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kb.articles.lines import Line
from kb.logs.classify import is_error_line
from kb.logs.errors import quoted_errors
from kb.scraped.labels import read_label, role_of, split_ordinal

__all__ = ["numbered_titles"]

_NUMBER = re.compile(
    r"^(\s{0,3})(?:\*\*)?(\d{1,2}\s?[.、)）]|[（(]\d{1,2}[)）]|[①-⑳]|[一二三四五六七八九十]{1,2}、)\s{0,3}(?=\S)"
)
_BULLET = re.compile(r"^(\s{0,3})[-*+•]\s{1,4}(?=\S)")
_STRONG = re.compile(r"^(?:\*\*|__|`|\"|“)(.{3,400}?)(?:\*\*|__|`|\"|”)[。.:：;；?？]?$")
_BOLD_LEAD = re.compile(r"^\*\*([^*\n]{3,300})\*\*(?![^\n]{0,3}[:：])[^\n]{0,60}$")
_BOLD_HEAD = re.compile(r"^\*\*[^*\n:：]{3,200}\*\*\s?[^\s*:：][^*:：]{0,30}$")
_SIGN = re.compile(r"^\s{0,4}([\u2580-\u25ff\u2600-\u27bf§※»▎])\ufe0f?\s{0,3}(?=\S)")
_KEY = frozenset(("symptom", "cause", "fix", "cause+fix", "symptom+cause", "symptom+fix", "analysis"))


def numbered_titles(lines: Sequence[Line]) -> dict[int, str]:
    """index -> title"""
    titles: dict[int, str] = {}
    start = 0
    for n in range(len(lines) + 1):
        if n == len(lines) or lines[n].kind == "heading":
            if n - start > 1:
                titles |= (
                    _in_run(lines, start, n, _NUMBER)
                    or _bold_bullets(lines, start, n)
                    or _bold_heads(lines, start, n)
                    or _signed(lines, start, n)
                )
            start = n + 1
    return titles


def _in_run(lines: Sequence[Line], start: int, stop: int, mark: re.Pattern[str]) -> dict[int, str]:
    found = [(n, hit) for n in range(start, stop) if lines[n].kind == "text" and (hit := mark.match(lines[n].text))]
    if not found:
        return {}
    indent = min(len(hit[1]) for _, hit in found)
    places = [n for n, hit in found if len(hit[1]) <= indent + 1 and not _is_label(lines[n].text)]
    labelled = []
    for place, n in enumerate(places):
        end = places[place + 1] if place + 1 < len(places) else stop
        roles = {role for k in range(n + 1, end) if (role := _label_role(lines[k])) in _KEY}
        if roles:
            labelled.append(n)
    if len(labelled) < 2 or len(labelled) * 2 < len(places):
        return {}
    kept = set(labelled)
    return {n: _title(lines[n].text) for n in places if n in kept}


def _bold_bullets(lines: Sequence[Line], start: int, stop: int) -> dict[int, str]:
    """Bullets that open in bold (or quotes), say little more, and have steps or text under them."""
    titles: dict[int, str] = {}
    told = 0
    for n in range(start, stop):
        hit = _BULLET.match(lines[n].text) if lines[n].kind == "text" else None
        if hit is None:
            continue
        text = lines[n].text[hit.end() :].strip()
        strong = _STRONG.match(text) or _BOLD_LEAD.match(text)
        after = next((lines[k] for k in range(n + 1, stop) if lines[k].kind != "blank"), None)
        if strong is None or after is None:
            continue
        if after.text.startswith((" ", "\t")) or _NUMBER.match(after.text) or after.kind != "text":
            titles[n] = text.replace("**", "").strip("*_ ")
            told += is_error_line(strong[1]) or bool(quoted_errors(text)) or is_error_line(text)
    return titles if len(titles) >= 2 and told else {}


def _bold_heads(lines: Sequence[Line], start: int, stop: int) -> dict[int, str]:
    """`**Title** (#12)` on a line of its own after a gap; titles, all of them, when labels follow two."""
    places = [
        n
        for n in range(start, stop)
        if lines[n].kind == "text" and _BOLD_HEAD.match(lines[n].text) and (n == 0 or lines[n - 1].kind == "blank")
    ]
    labelled = sum(n + 1 < stop and _label_role(lines[n + 1]) in _KEY for n in places)
    return {n: lines[n].text.replace("**", "").strip() for n in places} if labelled >= 2 else {}


def _signed(lines: Sequence[Line], start: int, stop: int) -> dict[int, str]:
    """`▎#12 Title`, `◆ Title`: short lines after a gap that open with one sign, when labels follow two of them."""
    signed: dict[str, list[int]] = {}
    for n in range(start, stop):
        hit = _SIGN.match(lines[n].text) if lines[n].kind == "text" and len(lines[n].text) <= 160 else None
        if hit and (n == 0 or lines[n - 1].kind in ("blank", "rule")) and not role_of(lines[n].text):
            signed.setdefault(hit[1], []).append(n)
    for places in signed.values():
        ends = [*places[1:], stop]
        labelled = sum(
            any(_label_role(line) in _KEY for line in lines[n + 1 : end]) for n, end in zip(places, ends, strict=True)
        )
        if labelled >= 2:
            return {n: _SIGN.sub("", lines[n].text).strip() for n in places}
    return {}


def _label_role(line: Line) -> str:
    if line.kind != "text" or len(line.text) > 4000:
        return ""
    label = read_label(line.text)
    return label.role if label else role_of(line.text.strip()) if len(line.text) < 40 else ""


def _is_label(text: str) -> bool:
    label = read_label(text)
    return (label is not None and label.role in _KEY) or role_of(text) in _KEY


def _title(text: str) -> str:
    stripped = text.strip().lstrip("*").strip()
    label = read_label(text)
    if label is not None and label.role == "topic" and label.rest:
        return label.rest
    return split_ordinal(stripped)[1].strip("* ").rstrip(":：")
