"""Answers as markdown for a model to read: the verdict first, then what decides and what to try, nothing twice.

In: what a search, a scan or a look-up gave. Out: text whose words around an issue are in the issue's language. Control
characters are made visible; what is long is cut and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kb.brief import (
    LABELS,
    answer_lines,
    base_note,
    cause_line,
    first_to_try,
    headline,
    leads_line,
    likely_hits,
    likely_line,
    percent,
    plain,
    summary_line,
    tells_apart,
)
from kb.records import Hit, IssueRecord, Lang, SearchResult
from kb.scan import Finding, ScanReport
from kb.serve.mcp.words import LOG, SCANNED
from kb.text import visible
from kb.text.visible import visible_line
from kb.text.width import cut

__all__ = ["MAX_FINDINGS", "issue_text", "issues_text", "projects_text", "scan_text", "search_text"]

MAX_ANSWER = 4000  # characters of the answer of a search or scan; usual ones have 200 to 2000
MAX_FIELD = 8000  # characters of a symptom, cause or fix shown in full
MAX_WHOLE = 8  # issues of one article that are shown in full
MAX_FINDINGS = 5  # of a log that are shown; others are named
MAX_NAMED = 20  # issues, versions or sources in a line or list
_WIDTH = 200  # columns of a line: a model needs no line ends, but a step or a command keeps its own
_ROWS = 16  # of the issue that is known
NEAR_AT = 0.02  # confidence from which an issue beside the answer is worth naming
_NEAREST = 3  # named when nothing is known
_QUOTED, _NAMED = 240, 120  # columns of a line of a log that speaks for an issue, and of one that speaks for none


def search_text(result: SearchResult, lang: Lang | None = None) -> str:
    words = LABELS[lang or result.query.lang]
    several = len(result.bases) > 1
    if result.answered:
        lines = _known(result.hits[0], several)
        lines += _near(result.hits[1:], words)
    elif result.likely:
        likely = likely_hits(result)
        lines = [likely_line(likely, lang or result.query.lang)]
        for hit in likely:
            lines += ["", *_likely(hit, [other.record for other in likely if other is not hit], several)]
        lines += _near([hit for hit in result.hits if hit not in likely], words)
    else:
        lines = [words["unknown"]]
        if near := [f"`{hit.issue}`" for hit in result.hits[:_NEAREST]]:
            lines.append(f"{words['nearest']} {', '.join(near)}")
    if result.query.is_log and not result.answered:
        lines.append(LOG[lang or result.query.lang])
    lines += [f"(No answer from {cut(base, 80)}: {cut(why, 160)})" for base, why in result.silent]
    return _shortened("\n".join(lines), MAX_ANSWER)


def _known(hit: Hit, several: bool) -> list[str]:
    record = hit.record
    words = LABELS[record.lang]
    first = f"**{words['known'].capitalize()}** ({percent(hit.confidence)}) `{hit.issue}` {headline(record)}"
    lines = [first + (base_note(hit) if several else "")]
    if hit.matched:
        lines.append(f"{words['matched']}{words['colon']}{_span(hit.matched[0])}")
    if not record.branches:
        lines.append(f"{words['symptom']}{words['colon']}{plain(tells_apart(record))}")
    # Its last line names the command that shows the rest; an agent has a tool for that.
    lines += [line.text for line in answer_lines(record, _WIDTH, most=_ROWS, leads=leads_line(hit))[:-1]]
    if record.versions:
        lines.append(f"{words['versions']}{words['colon']}{'; '.join(record.versions[:3])}")
    return lines


def _likely(hit: Hit, others: Sequence[IssueRecord], several: bool) -> list[str]:
    record = hit.record
    words = LABELS[record.lang]
    apart = plain(tells_apart(record, others))
    said = [summary_line(record) or cause_line(record)]
    if apart and not record.branches:  # of an issue with many causes, it is the summary
        said.append(f"{words['apart']}{words['colon']}{apart}")
    first = f"- {percent(hit.confidence)} `{hit.issue}` {headline(record)}{base_note(hit) if several else ''}"
    return [first, *(f"  {one}" for one in said if one)]


def _near(hits: Iterable[Hit], words: dict[str, str]) -> list[str]:
    named = [
        f"- {percent(hit.confidence)} `{hit.issue}` {cut(headline(hit.record), 100)}"
        for hit in hits
        if hit.confidence >= NEAR_AT
    ]
    return ["", words["also"], *named] if named else []


def scan_text(
    report: ScanReport, log: str, lang: Lang | None = None, *, notes: Iterable[str] = (), errors: Iterable[str] = ()
) -> str:
    """`log`: its name; empty for a text. `notes`: what else there is to say of how it was read, as keys of SCANNED.
    `errors`: where nothing was found, what the log says."""
    words = SCANNED[lang or (report.findings[0].record.lang if report.findings else "en")]
    verdicts = [finding.verdict for finding in report.findings]
    counts = [words[name].format(n=verdicts.count(name)) for name in ("known", "likely") if name in verdicts]
    first = words["found" if verdicts else "none"]
    log = visible_line(log) or words["text"]
    lines = [
        first.format(found=words["and"].join(counts), lines=report.lines, s="" if report.lines == 1 else "s", log=log)
    ]
    lines += [words[note] for note in notes]
    if quoted := [_span(line, _NAMED) for line in errors]:
        lines.append(f"{words['errors']} {'; '.join(quoted)}")
    shown = _surest(report.findings)
    for finding in shown:
        lines += ["", *_finding(finding)]
    if others := [f"`{one.issue}` ({one.first_line})" for one in report.findings if one not in shown]:
        lines += ["", words["more"].format(n=len(others), issues=", ".join(others[:MAX_NAMED]))]
    return _shortened("\n".join(lines), MAX_ANSWER)


def _surest(findings: Sequence[Finding]) -> list[Finding]:
    """So many as are shown, in the order of the log."""
    chosen = sorted(findings, key=lambda finding: -finding.confidence)[:MAX_FINDINGS]
    return [finding for finding in findings if finding in chosen]


def _finding(finding: Finding) -> list[str]:
    record, words = finding.record, LABELS[finding.record.lang]
    where = words["line" if finding.count == 1 else "lines"].format(
        first=finding.first_line, last=finding.last_line, count=finding.count
    )
    if finding.processes > 1:
        where += words["comma"] + words["processes"].format(n=finding.processes)
    head = words["known"].capitalize() if finding.verdict == "known" else words["likely"].capitalize()
    summary = summary_line(record)
    said = [f"{where}{words['colon']}{_span(finding.text)}", summary or cause_line(record)]
    if "`" not in summary:  # it has no command yet
        tried = first_to_try(record)
        said.append(f"{words['try']}{words['colon']}{tried}" if tried else words["no fix"])
    first = f"**{head}** ({percent(finding.confidence)}) `{finding.issue}` {headline(record)}"
    return [first, *(f"  {one}" for one in said if one)]


def issues_text(records: Sequence[IssueRecord], lang: Lang | None = None) -> str:
    """Each issue once, in `lang` where it has it."""
    chosen = {record.issue: record for record in reversed(records)}
    chosen |= {record.issue: record for record in records if record.lang == lang}
    names = sorted(chosen, key=_order)
    parts = [issue_text(chosen[name]) for name in names[:MAX_WHOLE]]
    if left_out := names[MAX_WHOLE:]:
        named = visible(", ".join(left_out[:MAX_NAMED]))
        parts.insert(0, f"{len(left_out)} more are left out; ask for one by its id: {named}")
    return "\n\n".join(parts)


def issue_text(record: IssueRecord) -> str:
    """The whole issue; an empty field is left out but for the cause and the fix, whose absence says something."""
    words = LABELS[record.lang]
    parts = [f"# {headline(record)}", f"`{record.issue}`"]
    if record.versions:
        parts[-1] += f" · {words['versions']}{words['colon']}{'; '.join(record.versions[:MAX_NAMED])}"
    fields = [
        (words["summary"], record.summary),
        (words["symptom"], record.symptom),
        (words["only when"], record.only_when),
        (words["cause"], record.cause or words["no cause"]),
        (words["triage"], record.triage),
        (words["fix"], record.fix or words["no fix"]),
        (words["confusable"], record.confusable),
        (words["source"], "\n".join(f"- {cut(one, 500)}" for one in record.sources[:MAX_NAMED])),
    ]
    parts += [f"## {name}\n\n{_shortened(text)}" for name, text in fields if text]
    return visible("\n\n".join(parts))


def projects_text(projects: Iterable[tuple[str, int]], size: int) -> str:
    listed = ", ".join(f"{visible_line(name)} {count}" for name, count in projects)
    return f"{size} issue{'s' * (size != 1)}: {listed}"


def _order(issue: str) -> tuple[str, int]:
    slug, _, number = issue.rpartition("#")
    return slug, int(number)


def _span(text: str, most: int = _QUOTED) -> str:
    quoted = cut(text, most)
    return f"`` {quoted} ``" if "`" in quoted else f"`{quoted}`"


def _shortened(text: str, most: int = MAX_FIELD) -> str:
    rest = len(text) - most
    return visible(text if rest <= 0 else f"{text[:most]} […{rest} more characters]")
