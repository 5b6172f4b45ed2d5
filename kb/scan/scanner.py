"""The known issues that occur in a log of any size, each with its lines.

A line is a candidate when it says that something failed and holds a fingerprint: words that few issues print
(`kb.scan.fingerprints`). A search then decides. Where one issue alone prints the fingerprint, and it is informative
enough, the line itself is searched for; otherwise, or when that is not sure enough, the lines around it are, and the
answer must be an issue that prints the line. So a confidence here is the same calibrated number as in a search.

Nearly all lines hold no fingerprint and are gone after one look (`prefilter`). Time is linear in the log, memory is
bounded. A log is judged by one snapshot of the base; a log that is followed may move to a newer one (`Scan.move_to`).
"""

from __future__ import annotations

import copy
import hashlib
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace

from kb.components import may_be_anyones
from kb.errors import IndexCorrupt, QueryError
from kb.logs.assertions import LINES_ABOVE, with_statement
from kb.logs.classify import is_announcement, is_launcher_line, is_usual, says_failure, warns
from kb.logs.codes import Codes, codes, contradicts, has_code_words
from kb.logs.fingerprints import Fingerprint
from kb.logs.levels import process_of
from kb.logs.lines import HALF_LINE, Lines, clip, excerpt, informative_part, text_of
from kb.logs.read import MAX_QUERY_CHARS
from kb.logs.structured import unfolded_block
from kb.logs.words import words_of
from kb.records import IssueRecord, Lang
from kb.scan.fingerprints import Fingerprints
from kb.scan.prefilter import Prefilter
from kb.scan.report import Finding, ScanReport, joined
from kb.search.searcher import Searcher
from kb.search.verdict import KNOWN_AT, SCANNED_FROM
from kb.text import HAN_CHAR
from kb.text.decode import decode, decode_lines

__all__ = ["Scan", "Scanner"]

# Chosen on the questions of tests/cases, planted in healthy logs: above 1.35 more is missed, below 1.2 alarms come.
ALONE = 1.35  # `Fingerprint.weight` from which a line that one issue prints is searched for by itself
AROUND = 0.6  # and from which the lines around it are searched for
SURE, SURER = KNOWN_AT, 0.75  # how confident the answer must be: about a line that one issue prints, or several
BEFORE, AFTER = 30, 10  # how many lines around it
MAX_SEARCHES = 40  # searches for lines around, in one log; a search takes as long as a megabyte
SEARCHES_OF_A_FINGERPRINT = 3
MAX_PROCESSES = 4096
MAX_JUDGED, MAX_KEY = 4096, 1000

_DIGITS = b"0123456789"
_TRACEBACK = b"Traceback (most recent call last)"
_ASSERTION = b"AssertionError"


class Scanner:
    """What one snapshot of a base looks for in logs; made once, in a moment, and good for any number of them."""

    def __init__(self, searcher: Searcher) -> None:
        self.searcher: Searcher = searcher
        self.fingerprints: Fingerprints = Fingerprints(searcher.store.prints(), searcher.store.header.columns)
        self.prefilter: Prefilter = Prefilter(self.fingerprints, AROUND)
        self._project: str | None = None
        self._told = dict[str, dict[str, IssueRecord]]()  # memos, shared by all projects
        self._first = dict[str, int]()
        self._codes = dict[int, Codes]()

    def about(self, project: str) -> Scanner:
        """The same, which reports only issues of this project or tag. All else is shared."""
        one = copy.copy(self)
        one._project = project
        return one

    def translations(self, issue: str) -> dict[str, IssueRecord]:
        """The records of an issue by language; empty when the base has no such issue."""
        found = self._told.get(issue)
        if found is None:
            store = self.searcher.store
            records = store.records(store.header.columns.find(issue.casefold(), "/"))
            found = self._told[issue] = {record.lang: record for record in records if record.issue == issue}
        return found

    def first_telling(self, issue: str) -> int:
        """The row of the first issue that tells the same fault: they count as one. -1 when the base has no such
        issue."""
        found = self._first.get(issue)
        if found is None:
            columns = self.searcher.store.header.columns
            rows = columns.find(issue.casefold(), "/")
            found = self._first[issue] = int(columns.first_telling[rows[-1]]) if rows else -1
        return found

    def issue_at(self, row: int) -> str:
        """The issue of a record. Raises IndexCorrupt for -1: a record whose issue the index does not list."""
        if row < 0:
            raise IndexCorrupt("the ids of the index are not those of its records", hint="`kb build` writes it anew")
        return self.searcher.store.records([row])[0].issue

    def codes_of(self, row: int) -> Codes:
        """The codes in the error lines of the issue at this row."""
        found = self._codes.get(row)
        if found is None:
            records = self.translations(self.issue_at(row)).values()
            found = self._codes[row] = codes("\n".join(line for record in records for line in record.errors))
        return found

    def is_wanted(self, issue: str) -> bool:
        """Is the issue reported?"""
        translations = self.translations(issue)
        return bool(translations) and (self._project is None or _is_about(translations, self._project))

    def scan(self, chunks: Iterable[bytes], *, lang: Lang | None = None, warnings: bool = False) -> ScanReport:
        one = Scan(self, lang=lang, warnings=warnings)
        for chunk in chunks:
            one.feed(chunk)
        return one.finish()


@dataclass(slots=True)
class _Tally:
    """What was seen of one fingerprint (and one set of issues that it may stand for)."""

    fingerprint: Fingerprint
    issues: frozenset[int]
    """those that print a fingerprint of such a line, and no code that contradicts it (`Fingerprint.issues`)"""
    first: int
    text: str
    last: int = 0
    count: int = 0
    processes: set[str] = field(default_factory=set)
    searches: int = 0
    search_from: int = 0
    """the line from which the lines around are new"""
    issue: str | None = None
    confidence: float = 0.0
    launcher: bool = False
    """a launcher printed the line, as it does around every failure"""


@dataclass(slots=True)
class _Pending:
    """A line of which the lines after it have not come yet."""

    tally: _Tally
    number: int
    lines: list[bytes]
    wanted: int


class Scan:
    """One log that is being read: `feed` it, look at `findings` whenever you like, `finish` it."""

    def __init__(self, scanner: Scanner, *, lang: Lang | None = None, warnings: bool = False) -> None:
        self._scanner, self._lang, self._warnings = scanner, lang, warnings
        self._started = time.perf_counter()
        self._lines = Lines()
        self._size = 0
        self._number = 1  # of the line that comes next
        self._before: list[bytes] = []
        self._pending: list[_Pending] = []
        self._searches = 0
        self._has_traceback = False
        self._tallies: dict[tuple[Fingerprint, frozenset[int]], _Tally] = {}
        self._judged: dict[tuple[bytes, Codes], _Tally | None] = {}
        self._coded: dict[bytes, bool] = {}
        self._earlier: dict[str, Finding] = {}  # what was found by snapshots before this one
        self._whole: bytes | None = b""  # all of a log that is still no longer than a question may be

    def feed(self, data: bytes) -> None:
        self._size += len(data)
        if self._whole is not None:
            self._whole += data
            if len(self._whole) > MAX_QUERY_CHARS:
                self._whole = None
        self._read(self._lines.feed(data))

    def finish(self) -> ScanReport:
        """What the whole log holds; its last line needs no line end."""
        block, rest = self._lines.finish()
        self._read(block)
        lines = self._number - 1 + bool(rest)
        self._read(rest + b"\n" if rest else b"")
        self.settle()
        findings = self.findings
        if self._whole:
            log = decode_lines(self._whole)
            findings = tuple(_less_sure_if_anyones(finding, [finding.text], log) for finding in findings)
            if log.count("\n") < SCANNED_FROM and not any(finding.verdict == "known" for finding in findings):
                findings = self._of_whole(log) or findings
        took_ms = (time.perf_counter() - self._started) * 1000
        return ScanReport(findings, lines, self._size, self._scanner.searcher.snapshot, took_ms)

    def _of_whole(self, log: str) -> tuple[Finding, ...]:
        """What a search says of a short log, whose few lines tell it together. Empty where it does not know it."""
        try:
            result = self._scanner.searcher.search(log, 1, lang=self._lang, printed=True)
        except QueryError:  # no words
            return ()
        if not result.answered:
            return ()
        issue = self._scanner.issue_at(self._scanner.first_telling(result.hits[0].issue))
        if not self._scanner.is_wanted(issue):
            return ()
        lines = [text_of(line.encode()).strip() for line in log.split("\n")]
        said = [one for one in (result.read_as.text, *result.read_as.signatures) if one.strip()]
        said += [part for one in said for part in one.split(": ", 1)[1:] if part.startswith("assert ")]  # read as one
        number = next((n for n, line in enumerate(lines, 1) if any(one.strip() in line for one in said)), 1)
        translations, lang = self._scanner.translations(issue), self._lang or result.query.lang
        record = translations.get(lang) or next(iter(translations.values()))
        confidence, text = result.hits[0].confidence, lines[number - 1][:HALF_LINE]
        found = Finding(issue, record, confidence, number, number, 1, 1, text, self._scanner.searcher.base)
        return (_less_sure_if_anyones(found, result.read_as.says, log),)

    def move_to(self, scanner: Scanner) -> None:
        """Looks for the issues of a newer snapshot from the next line on. What was found stays found, with its new
        record, unless the issue is gone."""
        self.settle()
        earlier, self._scanner = self.findings, scanner
        self._earlier = {
            finding.issue: replace(finding, record=translations.get(finding.record.lang, finding.record))
            for finding in earlier
            if (translations := scanner.translations(finding.issue))
        }
        self._tallies, self._judged, self._coded = {}, {}, {}

    def settle(self) -> None:
        """Decides about the lines that still wait for lines after them: nothing more comes for now."""
        for pending in self._pending:
            self._search_around(pending)
        self._pending = []

    @property
    def findings(self) -> tuple[Finding, ...]:
        by_issue: dict[str, list[_Tally]] = {}
        for tally in self._tallies.values():
            # What launchers print says which failure it was only where the log does not show the failure itself.
            if tally.launcher and self._has_traceback:
                continue
            if tally.issue is not None and self._scanner.is_wanted(tally.issue):
                by_issue.setdefault(tally.issue, []).append(tally)
        found = {issue: self._finding(issue, tallies) for issue, tallies in by_issue.items()}
        found = {issue: joined(self._earlier.get(issue), found.get(issue)) for issue in {**self._earlier, **found}}
        return tuple(sorted(found.values(), key=lambda finding: (finding.first_line, finding.issue)))

    def _finding(self, issue: str, tallies: list[_Tally]) -> Finding:
        first = min(tallies, key=lambda tally: (tally.first, -tally.fingerprint.weight))
        translations = self._scanner.translations(issue)
        lang = self._lang or ("zh" if HAN_CHAR.search(first.text) else "en")
        return Finding(
            issue=issue,
            record=translations.get(lang) or next(iter(translations.values())),
            confidence=max(tally.confidence for tally in tallies),
            first_line=first.first,
            last_line=max(tally.last for tally in tallies),
            count=sum(tally.count for tally in tallies),
            processes=len(set().union(*(tally.processes for tally in tallies))),
            text=first.text,
            base=self._scanner.searcher.base,
        )

    # --- lines to issues --------------------------------------------------------------------------------------------

    def _read(self, block: bytes) -> None:
        if not block:
            return
        block = unfolded_block(block)
        lines = block.split(b"\n")
        self._has_traceback = self._has_traceback or _TRACEBACK in block
        self._complete(lines)
        for i in self._candidates(block):
            for part in lines[i].split(b"\r"):
                self._judge(part, lines, i)
        if _ASSERTION in block:
            for part, i in self._bare_assertions(lines):
                self._judge(part, lines, i)
        whole = len(lines) - 1
        self._number += whole
        self._before = [*self._before, *map(clip, lines[max(0, whole - BEFORE) : whole])][-BEFORE:]

    def _candidates(self, block: bytes) -> list[int]:
        return self._scanner.prefilter.candidates(block)

    def _bare_assertions(self, lines: list[bytes]) -> Iterator[tuple[bytes, int]]:
        """Where an assertion has no message: its line with the statement above it."""
        for i, line in enumerate(lines):
            if line.rstrip().endswith(_ASSERTION):
                above = [*self._before[-LINES_ABOVE:], *lines[max(0, i - LINES_ABOVE) : i]]
                text = text_of(line)
                told = with_statement(text, [text_of(one) for one in above])
                if told != text:
                    yield told.encode(), i

    def _judge(self, part: bytes, lines: list[bytes], i: int) -> None:
        if i + 1 < len(lines) and _TRACEBACK in lines[i + 1] and is_announcement(text_of(part), text_of(lines[i + 1])):
            return
        number = self._number + i
        tally = self._judged_once(part, number)
        if tally is None:
            return
        tally.last = number
        tally.count += 1
        if len(tally.processes) < MAX_PROCESSES:
            tally.processes.add(process_of(decode(part[:HALF_LINE])))
        if (
            tally.issue is None
            and number >= tally.search_from
            and tally.searches < SEARCHES_OF_A_FINGERPRINT
            and self._searches < MAX_SEARCHES
        ):
            tally.searches += 1
            tally.search_from = number + BEFORE
            self._searches += 1
            before = [*self._before, *lines[max(0, i - BEFORE) : i]][-BEFORE:]
            pending = _Pending(tally, number, [*map(clip, before), part], AFTER)
            self._pending.append(pending)
            self._complete(lines)

    def _judged_once(self, part: bytes, number: int) -> _Tally | None:
        """Lines that differ in their digits alone are judged once, because a fingerprint lets numbers differ; except
        where a number may say which failure it is."""
        key = part.translate(None, _DIGITS)
        if len(key) > MAX_KEY:
            key = hashlib.blake2b(key).digest()
        if len(self._judged) >= MAX_JUDGED:
            self._judged.clear()
            self._coded.clear()
        coded = self._coded.get(key)
        text = text_of(part) if coded is not False else ""
        if coded is None:
            coded = self._coded[key] = has_code_words(text)
        line_codes = codes(text) if coded else frozenset()
        if (key, line_codes) not in self._judged:
            self._judged[key, line_codes] = self._tally(text or text_of(part), line_codes, number)
        return self._judged[key, line_codes]

    def _tally(self, text: str, line_codes: Codes, number: int) -> _Tally | None:
        """Where to count this line; None for one that names no failure."""
        standing = self._scanner.fingerprints.matching(words_of(text))
        agreeing = ((fingerprint, self._agreeing(fingerprint, line_codes)) for fingerprint in standing)
        fingerprints = [(fingerprint, issues) for fingerprint, issues in agreeing if issues]
        if not fingerprints or fingerprints[0][0].weight < AROUND:
            return None
        fingerprint, printing = fingerprints[0]
        part = informative_part(text, fingerprint)
        if not says_failure(part) and not (self._warnings and warns(part)):
            return None
        issues = frozenset().union(*(issues for _, issues in fingerprints))
        tally = self._tallies.get((fingerprint, issues))
        if tally is None:
            tally = self._tallies[fingerprint, issues] = _Tally(fingerprint, issues, number, excerpt(text, fingerprint))
            tally.launcher = is_launcher_line(part)
            if len(printing) == 1 and fingerprint.weight >= ALONE and not tally.launcher:
                # The words of the fingerprint by themselves, too: in a long line other words drown them.
                start, end = fingerprint.span_in(text)
                _ = self._decide(tally, part, SURE) or self._decide(tally, text[start:end], SURE)
        return tally

    def _agreeing(self, fingerprint: Fingerprint, line_codes: Codes) -> frozenset[int]:
        """The issues that print this fingerprint, without those whose code is another one."""
        if not line_codes:
            return fingerprint.issues
        return frozenset(
            issue for issue in fingerprint.issues if not contradicts(line_codes, self._scanner.codes_of(issue))
        )

    def _complete(self, lines: list[bytes]) -> None:
        """Gives the waiting lines the whole lines among `lines` that come after theirs."""
        still_pending = []
        for pending in self._pending:
            seen = pending.number + 1 + AFTER - pending.wanted  # the first line that it has not got
            start = max(0, seen - self._number)
            more = lines[start : min(start + pending.wanted, len(lines) - 1)]
            pending.lines += map(clip, more)
            pending.wanted -= len(more)
            if pending.wanted:
                still_pending.append(pending)
            else:
                self._search_around(pending)
        self._pending = still_pending

    def _search_around(self, pending: _Pending) -> None:
        tally = pending.tally
        if tally.issue is not None:
            return
        # All that is not usual; then only the failures and the stack frames, among which other prose drowns them less.
        shown = (text_of(line.rstrip(b"\r").rsplit(b"\r", 1)[-1]) for line in pending.lines)
        lines = [line for line in shown if not is_usual(line)]
        for part in (lines, [line for line in lines if says_failure(line) or line[:1].isspace()]):
            if self._decide(tally, "\n".join(part), SURE if len(tally.issues) == 1 else SURER):
                return

    def _decide(self, tally: _Tally, text: str, sure: float) -> bool:
        """Searches for `text`. The answer counts when it is an issue that prints the line and is `sure` enough."""
        try:
            result = self._scanner.searcher.search(text, 1)
        except QueryError:  # no words
            return False
        best = result.hits[0] if result.answered else None
        if best is None or best.confidence < sure:
            return False
        first = self._scanner.first_telling(best.issue)
        if first not in tally.issues:
            return False
        tally.issue, tally.confidence = self._scanner.issue_at(first), best.confidence
        return True


def _less_sure_if_anyones(finding: Finding, lines: Collection[str], log: str) -> Finding:
    """`lines`: those by which it was found."""
    if not may_be_anyones(finding.record, lines, log):
        return finding
    return replace(finding, confidence=min(finding.confidence, KNOWN_AT - 0.01))


def _is_about(translations: dict[str, IssueRecord], project: str) -> bool:
    names = {name.casefold() for record in translations.values() for name in (record.project or "", *record.tags)}
    return project.casefold() in names
