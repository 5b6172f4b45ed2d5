"""Finds the lines with a number, in bold or with a sign that are titles of issues, not items of a list.

`1. Title` heads an issue when labels (cause, fix, ...) follow it before the next number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kb.articles.lines import Line
from kb.scraped.labels import read_label, role_of, split_ordinal

__all__ = ["numbered_titles"]

_NUMBER = re.compile(
    r"^(\s{0,3})(?:\*\*)?(\d{1,2}\s?[.、)）]|[（(]\d{1,2}[)）]|[①-⑳]|[一二三四五六七八九十]{1,2}、)\s{0,3}(?=\S)"
)
_BOLD_HEAD = re.compile(r"^\*\*[^*\n:：]{3,200}\*\*\s?[^\s*:：][^*:：]{0,30}$")
_SIGN = re.compile(r"^\s{0,4}([\u2580-\u25ff\u2600-\u27bf§※»▎])\ufe0f?\s{0,3}(?=\S)")
_KEY = frozenset(("symptom", "cause", "fix", "cause+fix", "symptom+cause", "symptom+fix", "analysis"))


def numbered_titles(lines: Sequence[Line]) -> dict[int, str]:
    """Index of the line (from 0) -> title."""
    titles: dict[int, str] = {}
    start = 0
    for n in range(len(lines) + 1):
        if n == len(lines) or lines[n].kind == "heading":
            if n - start > 1:
                titles |= _in_run(lines, start, n, _NUMBER) or _bold_heads(lines, start, n) or _signed(lines, start, n)
            start = n + 1
    return titles


def _in_run(lines: Sequence[Line], start: int, stop: int, mark: re.Pattern[str]) -> dict[int, str]:
    found = [(n, hit) for n in range(start, stop) if lines[n].kind == "text" and (hit := mark.match(lines[n].text))]
    if not found:
        return {}
    indent = min(len(hit[1]) for _, hit in found)
    places = [n for n, hit in found if len(hit[1]) <= indent + 1]
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


def _bold_heads(lines: Sequence[Line], start: int, stop: int) -> dict[int, str]:
    """Lines such as `**Title** (#12)` after a blank line. They are titles when labels follow at least two of them."""
    places = [
        n
        for n in range(start, stop)
        if lines[n].kind == "text" and _BOLD_HEAD.match(lines[n].text) and (n == 0 or lines[n - 1].kind == "blank")
    ]
    labelled = sum(n + 1 < stop and _label_role(lines[n + 1]) in _KEY for n in places)
    return {n: lines[n].text.replace("**", "").strip() for n in places} if labelled >= 2 else {}


def _signed(lines: Sequence[Line], start: int, stop: int) -> dict[int, str]:
    """Short lines after a blank line that open with one sign: `◆ Title`. Titles when labels follow at least two."""
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


def _title(text: str) -> str:
    stripped = text.strip().lstrip("*").strip()
    label = read_label(text)
    if label is not None and label.role == "topic" and label.rest:
        return label.rest
    return split_ordinal(stripped)[1].strip("* ").rstrip(":：")
