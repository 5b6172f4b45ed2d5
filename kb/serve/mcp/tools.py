"""What each tool does: checked arguments in, an `Answer` out. What a tool cannot do it says in a `KbError`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from kb.bases import AnyBase
from kb.errors import KbError, LogDamaged, QueryError
from kb.feedback.told import Said
from kb.logs.read import read
from kb.records import IssueRecord, Verdict
from kb.scan import Scans
from kb.serve.asgi import Refusal
from kb.serve.mcp import words
from kb.serve.mcp.arguments import (
    Arguments,
    ExplainArguments,
    FeedbackArguments,
    SearchArguments,
    ShowArguments,
    checked,
    schema,
)
from kb.serve.mcp.files import open_log, pieces
from kb.serve.mcp.structure import scan_structure, search_structure
from kb.serve.mcp.told import issues_text, projects_text, scan_text, search_text
from kb.text import visible
from kb.text.decode import decode

__all__ = ["Answer", "Counts", "Tool", "Tools", "Votes", "said"]

_END = 64 << 10  # bytes of a log's end in which error lines are looked for, where no issue was found


@dataclass(frozen=True)
class Answer:
    text: str
    """what the model reads: markdown"""
    facts: Mapping[str, Any]
    """what a program may want to know, for the result's `_meta`: verdict, ids, confidence"""
    structure: Mapping[str, Any] | None = None
    """the answer once more for a client that shows its model nothing else: what is known or likely, and what to try"""


@dataclass(frozen=True)
class Tool:
    title: str
    description: str
    schema: Mapping[str, Any]
    """JSON Schema of the arguments"""
    call: Callable[[Mapping[str, Any]], Answer]
    """raises KbError"""
    only_reads: bool = True


Votes = Callable[[str, Said, str | None], tuple[str, float, float]]
"""keeps a vote on an issue for a question; returns the issue, how many it helped, and how many it did not fit"""


class Counts(Protocol):
    """What is told the verdict of each search and of each log."""

    def count_answer(self, verdict: Verdict) -> None: ...
    def count_scan(self, verdict: Verdict) -> None: ...


class Tools:
    """The tools over a base. Safe between threads, as the base is."""

    def __init__(
        self,
        base: Callable[[], AnyBase],
        *,
        roots: Sequence[Path] = (),
        counts: Counts | None = None,
        votes: Votes | None = None,
    ) -> None:
        """`base` gives the open base, or raises KbError. `roots`: the folders in which a log may be named by its path;
        without any, none can. `votes` keeps what an agent says of an answer; None: there is no tool for it."""
        self._base, self._roots, self._counts, self._votes = base, [*roots], counts, votes
        without = frozenset[str]() if self._roots else frozenset({"path"})
        explain = schema(ExplainArguments, without)
        if without:
            explain["required"] = ["text"]
        about = words.EXPLAIN if self._roots else words.EXPLAIN_TEXT
        self.by_name: dict[str, Tool] = {
            "search_issues": Tool("Search known issues", words.SEARCH, schema(SearchArguments), self._search),
            "explain_log": Tool("Explain a log", about, explain, self._explain),
            "get_issue": Tool("Show a known issue", words.SHOW, schema(ShowArguments), self._show),
            "list_projects": Tool("List projects", words.LIST, schema(Arguments), self._list),
        }
        if votes is not None:
            self.by_name["give_feedback"] = Tool(
                "Say if it helped", words.FEEDBACK, schema(FeedbackArguments), self._vote, only_reads=False
            )

    def call(self, name: str, given: Mapping[str, Any]) -> Answer:
        """Raises KbError."""
        tool = self.by_name.get(name)
        if tool is None:
            raise QueryError(f"there is no tool {name[:40]!r}", hint=f"there are {', '.join(self.by_name)}")
        return tool.call(given)

    def _search(self, given: Mapping[str, Any]) -> Answer:
        asked = checked(given, SearchArguments, "search_issues")
        result = self._base().search(
            asked.query, asked.k, lang=asked.lang, only=asked.only, project=asked.project or None
        )
        if self._counts:
            self._counts.count_answer(result.verdict)
        facts = {
            "verdict": result.verdict,
            "likely": [*result.likely],
            "issues": [{"issue": hit.issue, "confidence": round(hit.confidence, 4)} for hit in result.hits],
            "bases": [*result.bases],
        }
        return Answer(search_text(result, asked.lang), facts, search_structure(result))

    def _explain(self, given: Mapping[str, Any]) -> Answer:
        asked = checked(given, ExplainArguments, "explain_log")
        if (asked.path is None) == (asked.text is None):
            hint = "path: a log that this server may read; text: a short output"
            raise QueryError(
                "explain_log needs path or text, one of the two", hint=hint if self._roots else "give text"
            )
        if asked.path is not None and not self._roots:
            raise QueryError("this server reads no files", hint="give the part around the first error as text")
        base = self._base()
        if asked.project:
            base.search("error", 1, project=asked.project)  # raises for a project without issues
        scans = Scans(base.scanners(), lang=asked.lang)
        notes: list[str] = []
        if asked.path is None:
            log, end = "", (asked.text or "").encode("utf-8", "replace")
            scans.feed(end)
        else:
            log = Path(asked.path).name
            end = self._feed(asked.path, scans, notes)
        report = scans.finish()
        if asked.project:  # not by scanners of their own: the base would keep one for each name
            about = tuple(finding for finding in report.findings if _is_about(finding.record, asked.project))
            report = replace(report, findings=about)
        verdicts = [finding.verdict for finding in report.findings]
        verdict: Verdict = "known" if "known" in verdicts else "likely" if verdicts else "unknown"
        if self._counts:
            self._counts.count_scan(verdict)
        facts = {
            "verdict": verdict,
            "lines": report.lines,
            "findings": [
                {
                    "issue": finding.issue,
                    "verdict": finding.verdict,
                    "confidence": round(finding.confidence, 4),
                    "first_line": finding.first_line,
                    "last_line": finding.last_line,
                    "count": finding.count,
                }
                for finding in report.findings
            ],
        }
        errors = [] if report.findings else _errors_in(end)
        text = scan_text(report, log, asked.lang, notes=notes, errors=errors)
        return Answer(text, facts, scan_structure(report))

    def _feed(self, path: str, scans: Scans, notes: list[str]) -> bytes:
        """Reads the log into `scans`, and what there is to say of how that went into `notes`. Returns its end."""
        end = b""
        with open_log(path, self._roots) as raw:
            try:
                for piece in pieces(raw, skips=lambda: notes.append("ends")):
                    scans.feed(piece)
                    end = (end + piece)[-_END:]
            except LogDamaged:
                notes.append("damaged")
        return end

    def _show(self, given: Mapping[str, Any]) -> Answer:
        asked = checked(given, ShowArguments, "get_issue")
        records = self._base().show(asked.issue)
        return Answer(issues_text(records, asked.lang), {"issues": sorted({record.issue for record in records})})

    def _vote(self, given: Mapping[str, Any]) -> Answer:
        asked = checked(given, FeedbackArguments, "give_feedback")
        assert self._votes is not None
        try:
            issue, helped, against = self._votes(asked.issue, asked.verdict, asked.question)
        except Refusal as refusal:  # too many of one client
            raise QueryError(refusal.message, hint=refusal.hint) from None
        text = f"Noted for `{visible(issue)}`: {helped:g} say that it helped, {against:g} that it did not fit."
        return Answer(text, {"issue": issue, "helped": helped, "did_not_fit": against})

    def _list(self, given: Mapping[str, Any]) -> Answer:
        checked(given, Arguments, "list_projects")
        base = self._base()
        return Answer(projects_text(base.projects(), base.size), {"issues": base.size})


def _is_about(record: IssueRecord, project: str) -> bool:
    return project.casefold() in {name.casefold() for name in (record.project or "", *record.tags)}


def _errors_in(end: bytes) -> list[str]:
    """The first and the last line that say what failed: with them search_issues can be asked."""
    try:
        found = read(decode(end[-_END:]), printed=True).failures
    except QueryError:  # no words
        return []
    return [*dict.fromkeys((*found[:1], *found[-1:]))]


def said(error: KbError) -> str:
    """What is wrong, and below it what to do, with a tool where the hint names a command."""
    hint = error.hint or ""
    for command, tool in _TOOL_FOR.items():
        hint = hint.replace(command, tool)
    return "\n".join(filter(None, (error.message, hint)))


_TOOL_FOR = {"`kb projects`": "list_projects", "`kb search`": "search_issues"}
