"""An issue in single lines: its headline, cause, first command, how to read the rest; and by what it is told apart."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kb.brief.prose import first_sentence, items, plain
from kb.brief.remedy import first_to_try
from kb.brief.words import LABELS, Line, percent
from kb.records import Hit, IssueRecord, Lang, SearchResult
from kb.text.width import cut

if TYPE_CHECKING:
    from kb.scan import Finding

__all__ = [
    "cause_line",
    "cause_sentence",
    "fix_line",
    "headline",
    "hit_line",
    "leads_line",
    "likely_hits",
    "likely_line",
    "of_finding",
    "searched_line",
    "show_command",
    "show_line",
    "summary_line",
    "tells_apart",
]

MAX_SUMMARY = 480  # columns of what an issue says in short; `kb check` asks for fewer
_LONG_BASE = 32  # columns of the name of a base
MAX_APART = 240  # columns of what tells issues apart

_SEE = re.compile(r"[\s,:;，：；。（(]{0,8}(?:see also|see|另?见|参见|详见)?[\s:：]{0,8}$")


def headline(record: IssueRecord) -> str:
    return (f"[{record.project}] " if record.project else "") + record.title


def hit_line(hit: Hit, *, base: bool = False) -> str:
    """A hit in a list of hits. `base`: also from which of several bases it comes."""
    return f"  {percent(hit.confidence):>4}  {hit.issue}  {headline(hit.record)}{base_note(hit) if base else ''}"


def base_note(hit: Hit) -> str:
    """Behind other facts of a hit: the base that it comes from, of a long path its end."""
    base = hit.base if len(hit.base) <= _LONG_BASE else f"…{hit.base[1 - _LONG_BASE :]}"
    return f"  ·  {LABELS[hit.record.lang]['base']}: {base}"


def cause_sentence(record: IssueRecord) -> str:
    """Empty when the article names no cause."""
    return first_sentence(record.cause)


def summary_line(record: IssueRecord) -> str:
    """Under a label, the cause in a sentence and what to try first; empty when the article does not say it in short."""
    words = LABELS[record.lang]
    return f"{words['summary']}{words['colon']}{cut(plain(record.summary), MAX_SUMMARY)}" if record.summary else ""


def cause_line(record: IssueRecord) -> str:
    """`cause_sentence` under a label."""
    words = LABELS[record.lang]
    said = plain(cause_sentence(record)).rstrip(":：")
    return f"{words['cause']}{words['colon']}{said}" if record.cause else ""


def leads_line(hit: Hit) -> str:
    """Of an issue with many causes, which of them what was pasted shows; empty for other issues."""
    return LABELS[hit.record.lang]["leads to"].format(issues=", ".join(hit.leads_to[:3])) if hit.leads_to else ""


def fix_line(record: IssueRecord) -> str:
    """The first command or setting of the fix, with the words that lead to it; or that no fix is known."""
    words = LABELS[record.lang]
    return f"{words['fix']}{words['colon']}{first_to_try(record) or words['no fix']}"


def show_command(record: IssueRecord) -> str:
    """Prints the issue as a whole. The id is quoted: it comes from a file name."""
    issue = f"'{record.issue}'"
    if "'" in record.issue:
        import shlex

        issue = shlex.quote(record.issue)
    return f"kb show {issue}"


def show_line(record: IssueRecord, lang: Lang | None = None) -> str:
    """That command, and what it does, told in the record's language or in `lang`."""
    return f"{show_command(record)}   {LABELS[lang or record.lang]['more']}"


def searched_line(lang: Lang, *, size: int, where: str) -> str:
    """Which base was asked, and how many issues it has."""
    return LABELS[lang]["searched one" if size == 1 else "searched"].format(size=size, where=where)


def tells_apart(record: IssueRecord, others: Iterable[IssueRecord] = ()) -> str:
    """By what one sees that it is this issue and none of the `others`: its own conditions, or what one of them says of
    it in "Not to be confused with", or how its symptom begins."""
    if record.branches:  # it has many causes: what to look at first
        return cut(record.summary, MAX_APART) or first_sentence(record.symptom).rstrip(":：")
    if record.only_when:
        return cut(" ".join(first_sentence(item) for item in items(record.only_when)), MAX_APART)
    said = (_said_of(record.issue, item) for other in others for item in items(other.confusable))
    return next(filter(None, said), "") or first_sentence(record.symptom).rstrip(":：")


def likely_hits(result: SearchResult) -> list[Hit]:
    """The hits that are named when the verdict is likely, the best first."""
    return [hit for hit in result.hits if hit.issue in result.likely]


def likely_line(hits: Iterable[Hit], lang: Lang) -> str:
    """That it may be one of them, and that this is not certain."""
    return LABELS[lang]["likely one" if len(list(hits)) == 1 else "likely several"]


def of_finding(finding: Finding, log: str) -> list[Line]:
    """Where in the log and which issue, what it is in short with its first command, and how to read the rest."""
    record, words = finding.record, LABELS[finding.record.lang]
    where = words["line" if finding.count == 1 else "lines"].format(
        first=finding.first_line, last=finding.last_line, count=finding.count
    )
    if finding.processes > 1:
        where += "  ·  " + words["processes"].format(n=finding.processes)
    note = f"{log}: {where}  ·  {words[finding.verdict]}, {words['confidence']} {percent(finding.confidence)}"
    summary = summary_line(record)
    said = [summary or cause_line(record), "" if "`" in summary else fix_line(record)]  # it has the command already
    return [
        Line(headline(record), "headline"),
        Line(f"  {note}", "note"),
        Line(f"  > {finding.text}", "quote"),
        *(Line(f"  {text}", "text") for text in said if text),
        Line(f"  {show_line(record)}", "note"),
    ]


def _said_of(issue: str, item: str) -> str:
    """What an item of "Not to be confused with" says in front of its link to `issue`; empty when it has none."""
    link = re.search(rf"\[`?{re.escape(issue)}`?\]", item)
    before = item[: link.start()].rpartition(".md)")[2] if link else ""
    return cut(_SEE.sub("", before).lstrip(" ,;.，；。、"), MAX_APART) if before.strip() else ""
