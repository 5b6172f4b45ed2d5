"""The answer first, in at most fifteen rows: which issue, why in a sentence, what to try, where to read on.

The same for `kb search`, `kb run` and the hooks; each puts its own first line above. The rows are those of a terminal
of the given width; a command that is wider than that stays in one line, because it is there to be copied.
"""

from __future__ import annotations

from collections.abc import Sequence

from kb.brief.issue import (
    cause_line,
    headline,
    hit_line,
    leads_line,
    likely_line,
    show_line,
    summary_line,
    tells_apart,
)
from kb.brief.prose import items, plain
from kb.brief.remedy import MOST_STEPS, to_try
from kb.brief.words import LABELS, Line, percent
from kb.records import Hit, IssueRecord
from kb.text.width import columns, rows, wrap

__all__ = ["MOST_ROWS", "answer_lines", "known_issue", "likely_issues", "likely_lines"]

MOST_ROWS = 15
_LEAST_FOR_FIX = 4  # rows, what is in short may take as many as it wants
_GAPS = 3


def answer_lines(
    record: IssueRecord,
    width: int,
    *,
    most: int = MOST_ROWS,
    leads: str = "",
    below: Sequence[Line] = (),
    read_on: str = "",
    indent: str = "",
    spaced: bool = False,
) -> list[Line]:
    """What it is in short, what to try first and how to read on, in `most` rows where its commands let it. `leads`: of
    an issue with many causes, to which of them the question points. `below`: lines above the last. `read_on`: more for
    the last. `spaced`: with empty lines between the parts where there is room for them."""
    words = LABELS[record.lang]
    summary = summary_line(record) or cause_line(record)
    above = [Line(line, "text") for line in wrap(summary, width, first=indent, indent=indent + "  ")]
    above += [Line(line, "label") for line in wrap(leads, width, first=indent, indent=indent + "  ")]
    last = [*below, Line(indent + show_line(record) + read_on, "note")]
    room = most - 1 - rows([line.text for line in (*above, *last)], width)
    tried = to_try(
        record, max(room, _LEAST_FOR_FIX), width, indent=indent + "  ", most=1 if record.branches else MOST_STEPS
    )
    fix = [_label(record, "try", indent), *tried] if tried else [Line(indent + words["no fix"], "note")]
    room -= rows([line.text for line in tried], width)
    ways = _ways_out(record, room - 1, width, indent)
    room -= rows([line.text for line in ways], width)
    airy = [Line("", "text")] if spaced and room >= _GAPS else []
    return [*airy, *above, *airy, *fix, *ways, *airy, *last]


def _label(record: IssueRecord, name: str, indent: str) -> Line:
    words = LABELS[record.lang]
    return Line(indent + (words[name] + words["colon"]).rstrip(), "label")


def _ways_out(record: IssueRecord, room: int, width: int, indent: str) -> list[Line]:
    """Of an issue with many causes, which circumstance leads where: the first ones, as many as there is room for."""
    lines: list[Line] = []
    for way in items(record.triage) if record.branches else ():
        wrapped = wrap(plain(way), width, first=f"{indent}  - ", indent=f"{indent}    ")
        room -= rows(wrapped, width)
        if room < 0:
            break
        lines += [Line(line, "text") for line in wrapped]
    return [_label(record, "triage", indent), *lines] if lines else []


def known_issue(hit: Hit, width: int | None = None) -> list[str]:
    """The answer for whoever has the failure on the screen above. Its first words are English in any language: a
    program may look for them."""
    record, width = hit.record, width or columns()
    known = "known issue" if record.lang == "en" else f"known issue · {LABELS[record.lang]['known']}"
    first = f"kb: {known} ({percent(hit.confidence)}): {headline(record)}"
    most = MOST_ROWS - rows([first], width)
    return [first, *(line.text for line in answer_lines(record, width, most=most, leads=leads_line(hit), indent="  "))]


def likely_issues(hits: Sequence[Hit], width: int | None = None) -> list[str]:
    """The same for issues of which one is likely."""
    width = width or columns()
    first = f"kb: likely · {likely_line(hits, hits[0].record.lang)}"
    last = ["  " + show_line(hit.record, hits[0].record.lang) for hit in hits]
    return [first, *likely_lines(hits, width, most=MOST_ROWS - 1 - rows(last, width)), *last]


def likely_lines(
    hits: Sequence[Hit], width: int | None = None, *, most: int | None = None, base: bool = False
) -> list[str]:
    """Issues that are likely, each with what tells it apart from the others; in `most` rows, an equal part for each.
    `base`: as in `hit_line`."""
    width = width or columns()
    lines: list[str] = []
    for hit in hits:
        words = LABELS[hit.record.lang]
        apart = plain(tells_apart(hit.record, [other.record for other in hits if other is not hit]))
        head = hit_line(hit, base=base)
        told = wrap(head, width, first=" " * (len(head) - len(head.lstrip())), indent=" " * 8)
        if apart:
            told += wrap(f"{words['apart']}{words['colon']}{apart}", width, first=" " * 8, indent=" " * 10)
        share = len(told) if most is None else max(2, most // len(hits))
        lines += told if len(told) <= share else [*told[: share - 1], told[share - 1] + " …"]
    return lines
