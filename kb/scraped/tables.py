"""Reads a table whose columns are fields: its rows are issues. Marked tables, and what scraping leaves: `a | b |`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kb.articles.lines import Line
from kb.scraped.labels import role_of

__all__ = ["read_table"]

_RULE = re.compile(r"[\s|:+-]{3,400}")
_ESCAPED = "\\|"
Row = tuple[str, str, Line]
"""role ("" opens an issue), title, cell"""


def read_table(lines: Sequence[Line], start: int) -> tuple[list[Row], int]:
    """The cells that have a role, row by row, and the index after the table.

    With a symptom column every row is an issue; without one the rows are causes and fixes of the present issue.
    """
    stop = start
    while stop < len(lines) and "|" in lines[stop].text and lines[stop].kind in ("table", "text"):
        stop += 1
    if stop - start < 3 or not _RULE.fullmatch(lines[start + 1].text.strip()):
        return [], max(stop, start + 1) if lines[start].kind == "table" else start + 1
    roles = [role_of(cell) for cell in _cells(lines[start].text)]
    if "fix" not in roles and "cause" not in roles and "cause+fix" not in roles:
        return [], stop
    if "symptom" not in roles and roles[0] == "" and ("fix" in roles or "cause+fix" in roles):
        roles[0] = "symptom"
    elif "symptom" not in roles and not {"cause", "fix"} <= set(roles):
        return [], stop
    rows: list[Row] = []
    for line in lines[start + 2 : stop]:
        cells = _cells(line.text)
        if "symptom" in roles:
            title = next((cell for role, cell in zip(roles, cells, strict=False) if role == "symptom" and cell), "")
            if not title:
                continue
            rows.append(("", title, Line(line.no, title, "text")))
        for role, cell in zip(roles, cells, strict=False):
            if cell and role in ("symptom", "cause", "fix", "cause+fix"):
                rows.append((role, "", Line(line.no, cell, "text")))
    return rows, stop


def _cells(text: str) -> list[str]:
    inner = text.strip().replace(_ESCAPED, "\0")
    inner = inner.removeprefix("|").removesuffix("|")
    cells: list[str] = []
    current, ticks = "", False
    for piece in inner.split("|"):  # a bar between backticks belongs to the code
        current = f"{current}|{piece}" if ticks else piece
        ticks = current.count("`") % 2 == 1
        if not ticks:
            cells.append(current.replace("\0", "|").strip())
    if ticks:
        cells += [cell.replace("\0", "|").strip() for cell in current.split("|")]
    return cells
