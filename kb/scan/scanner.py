"""Here is a log of any size; give me every known issue that occurs in it, and on which lines.

A healthy log must come through without an alarm, so a line speaks for an issue only when it says that something failed,
stands in words that one issue alone prints, and those words tell enough. What is shorter or shared needs its
circumstances: the lines around it are searched for like a question, and the answer must be an issue that prints the
line. Nearly all lines lack the words in question and are gone after one look; time is linear, memory bounded.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from kb.errors import QueryError
from kb.logs.fingerprints import Fingerprint, Fingerprints, words_of
from kb.logs.lines import HALF_LINE, Lines, decoded, ends, shown, telling_part, text_of
from kb.logs.read import codes, contradicts, is_around
from kb.logs.severity import is_usual, says_failure, speaker, warns
from kb.records import IssueRecord, Lang, SearchResult
from kb.scan.prefilter import Look
from kb.text import HAN_CHAR

__all__ = ["Finding", "Scan", "ScanReport", "Scanner", "scan"]

# Chosen on the questions of tests/cases, planted in healthy logs: above 1.35 more is missed, below 1.2 alarms come.
ALONE = 1.35  # `Fingerprint.weight` from which a line that one issue prints is enough
ASK = 0.6  # and from which the lines around it are asked
SURE, SURER = 0.5, 0.75  # how sure their answer must be: about a line that one issue prints, or several
BEFORE, AFTER = 30, 10  # how many lines are asked
MAX_ASKS = 40  # of one log; a search takes as long as a megabyte
ASKS_OF_A_MARK = 3
MAX_SPEAKERS = 4096
MAX_JUDGED, MAX_KEY = 4096, 1000

_DIGITS = b"0123456789"
# One of these stands in a line that tells an exit code, a signal or an Xid; most have none.
_CODED = "code", "status", "sig", "xid", "kill", "segmentation", "bus error", "abort", "floating", "illegal", "terminat"
_TO_ONES = str.maketrans("023456789", "1" * 9)

Codes = frozenset[tuple[str, str]]


class Searchable(Protocol):
    """What scanning needs of a `KnowledgeBase`. That class offers `scan` itself, so it is not imported here."""

    @property
    def snapshot(self) -> str: ...

    def records(self) -> Sequence[IssueRecord]: ...

    def search(self, query: str, k: int = ..., /) -> SearchResult: ...


@dataclass(frozen=True, slots=True)
class Finding:
    """One known issue in a log."""

    issue: str
    record: IssueRecord
    confidence: float
    """in [0, 1]"""
    first_line: int
    """1-based, as an editor and `grep -n` count"""
    last_line: int
    count: int
    """how many lines said so"""
    speakers: int
    """how many ranks, workers or processes did, as the lines' prefixes tell; 1 where they tell nothing"""
    text: str
    """the first of these lines, without colours, a long one cut"""

    def as_dict(self) -> dict[str, Any]:
        r = self.record
        return {
            "issue": self.issue,
            "lang": r.lang,
            "project": r.project,
            "title": r.title,
            "confidence": round(self.confidence, 4),
            "first_line": self.first_line,
            "last_line": self.last_line,
            "count": self.count,
            "speakers": self.speakers,
            "text": self.text,
            "cause": r.cause,
            "fix": r.fix,
            "sources": list(r.sources),
        }


@dataclass(frozen=True, slots=True)
class ScanReport:
    findings: tuple[Finding, ...]
    """by first line; an issue at most once"""
    lines: int
    size: int
    """bytes read"""
    snapshot: str
    took_ms: float

    def as_dict(self) -> dict[str, Any]:
        """The public JSON form (`kb scan --json` puts the log's name before it)."""
        return {
            "lines": self.lines,
            "bytes": self.size,
            "took_ms": round(self.took_ms, 3),
            "snapshot": self.snapshot,
            "findings": [finding.as_dict() for finding in self.findings],
        }


def scan(base: Searchable, chunks: Iterable[bytes], *, lang: Lang | None = None, warnings: bool = False) -> ScanReport:
    """The known issues in a log that comes in pieces of any size, told in `lang` or in the log's language. With
    `warnings` also those a program warned of. For several logs make one `Scanner`."""
    return Scanner(base).scan(chunks, lang=lang, warnings=warnings)


class Scanner:
    """What a base looks for in logs; made once (a millisecond or two per issue), good for any number of them."""

    def __init__(self, base: Searchable, *, project: str | None = None) -> None:
        """`project`: only issues of this project or tag."""
        self.base = base
        self.tellings: dict[str, dict[str, IssueRecord]] = {}
        for record in base.records():
            self.tellings.setdefault(record.issue, {})[record.lang] = record
        self.wanted: set[str] = {
            issue for issue, told in self.tellings.items() if project is None or _is_about(told, project)
        }
        self.fingerprints: Fingerprints = Fingerprints(
            [record for told in self.tellings.values() for record in told.values()]
        )
        self.codes: dict[str, Codes] = {
            issue: codes("\n".join(line for record in told.values() for line in record.errors))
            for issue, told in self.tellings.items()
        }
        self.look: Look = Look(fingerprint for fingerprint in self.fingerprints if fingerprint.weight >= ASK)

    def scan(self, chunks: Iterable[bytes], *, lang: Lang | None = None, warnings: bool = False) -> ScanReport:
        one = Scan(self, lang=lang, warnings=warnings)
        for chunk in chunks:
            one.feed(chunk)
        return one.finish()


@dataclass(slots=True)
class _Tally:
    """What was seen of one fingerprint."""

    fingerprint: Fingerprint
    issues: frozenset[str]
    """those that print a fingerprint of such a line, and no other code than it does"""
    first: int
    text: str
    last: int = 0
    count: int = 0
    speakers: set[str] = field(default_factory=set)
    asks: int = 0
    ask_from: int = 0
    """the line from which the circumstances are new"""
    issue: str | None = None
    confidence: float = 0.0


@dataclass(slots=True)
class _Question:
    """A line whose circumstances are still coming in."""

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
        self._open: list[_Question] = []
        self._asked = 0
        self._tallies: dict[tuple[Fingerprint, frozenset[str]], _Tally] = {}
        self._judged: dict[tuple[bytes, Codes], _Tally | None] = {}
        self._coded: dict[bytes, bool] = {}

    def feed(self, data: bytes) -> None:
        self._size += len(data)
        self._read(self._lines.feed(data))

    def finish(self) -> ScanReport:
        """What the whole log holds; its last line needs no line end."""
        block, rest = self._lines.finish()
        self._read(block)
        lines = self._number - 1 + bool(rest)
        self._read(rest + b"\n" if rest else b"")
        self.settle()
        took_ms = (time.perf_counter() - self._started) * 1000
        return ScanReport(self.findings, lines, self._size, self._scanner.base.snapshot, took_ms)

    def settle(self) -> None:
        """Decides about lines whose circumstances are incomplete: nothing more comes for now."""
        for question in self._open:
            self._ask(question)
        self._open = []

    @property
    def findings(self) -> tuple[Finding, ...]:
        by_issue: dict[str, list[_Tally]] = {}
        for tally in self._tallies.values():
            if tally.issue is not None and tally.issue in self._scanner.wanted:
                by_issue.setdefault(tally.issue, []).append(tally)
        found = [self._finding(issue, tallies) for issue, tallies in by_issue.items()]
        return tuple(sorted(found, key=lambda finding: (finding.first_line, finding.issue)))

    def _finding(self, issue: str, tallies: list[_Tally]) -> Finding:
        first = min(tallies, key=lambda tally: (tally.first, -tally.fingerprint.weight))
        tellings = self._scanner.tellings[issue]
        lang = self._lang or ("zh" if HAN_CHAR.search(first.text) else "en")
        return Finding(
            issue=issue,
            record=tellings.get(lang) or next(iter(tellings.values())),
            confidence=max(tally.confidence for tally in tallies),
            first_line=first.first,
            last_line=max(tally.last for tally in tallies),
            count=sum(tally.count for tally in tallies),
            speakers=len(set().union(*(tally.speakers for tally in tallies))),
            text=first.text,
        )

    # --- lines to issues --------------------------------------------------------------------------------------------

    def _read(self, block: bytes) -> None:
        if not block:
            return
        lines = block.split(b"\n")
        self._complete(lines)
        for i in self._candidates(block):
            for part in lines[i].split(b"\r"):
                self._judge(part, lines, i)
        whole = len(lines) - 1
        self._number += whole
        self._before = [*self._before, *map(ends, lines[max(0, whole - BEFORE) : whole])][-BEFORE:]

    def _candidates(self, block: bytes) -> list[int]:
        return self._scanner.look.candidates(block)

    def _judge(self, part: bytes, lines: list[bytes], i: int) -> None:
        number = self._number + i
        tally = self._judged_once(part, number)
        if tally is None:
            return
        tally.last = number
        tally.count += 1
        if len(tally.speakers) < MAX_SPEAKERS:
            tally.speakers.add(speaker(decoded(part[:HALF_LINE])))
        if tally.issue is None and number >= tally.ask_from and tally.asks < ASKS_OF_A_MARK and self._asked < MAX_ASKS:
            tally.asks += 1
            tally.ask_from = number + BEFORE
            self._asked += 1
            before = [*self._before, *lines[max(0, i - BEFORE) : i]][-BEFORE:]
            question = _Question(tally, number, [*map(ends, before), part], AFTER)
            self._open.append(question)
            self._complete(lines)

    def _judged_once(self, part: bytes, number: int) -> _Tally | None:
        """Lines that differ in their digits alone are judged once: a fingerprint lets numbers differ. Not so those in which a
        number may name the failure."""
        key = part.translate(None, _DIGITS)
        if len(key) > MAX_KEY:
            key = hashlib.blake2b(key).digest()
        if len(self._judged) >= MAX_JUDGED:
            self._judged.clear()
            self._coded.clear()
        coded = self._coded.get(key)
        text = text_of(part) if coded is not False else ""
        if coded is None:
            coded = self._coded[key] = bool(_codes(text.translate(_TO_ONES)))
        told = codes(text) if coded else frozenset()
        if (key, told) not in self._judged:
            self._judged[key, told] = self._tally(text or text_of(part), told, number)
        return self._judged[key, told]

    def _tally(self, text: str, told: Codes, number: int) -> _Tally | None:
        """Where to count this line; None for one that tells nothing."""
        standing = self._scanner.fingerprints.standing_in(words_of(text))
        agreeing = ((fingerprint, self._agreeing(fingerprint, told)) for fingerprint in standing)
        fingerprints = [(fingerprint, issues) for fingerprint, issues in agreeing if issues]
        if not fingerprints or fingerprints[0][0].weight < ASK:
            return None
        fingerprint, printing = fingerprints[0]
        telling = telling_part(text, fingerprint)
        if not says_failure(telling) and not (self._warnings and warns(telling)):
            return None
        issues = frozenset().union(*(issues for _, issues in fingerprints))
        tally = self._tallies.get((fingerprint, issues))
        if tally is None:
            tally = self._tallies[fingerprint, issues] = _Tally(fingerprint, issues, number, shown(text, fingerprint))
            if len(printing) == 1 and fingerprint.weight >= ALONE and not is_around(telling):
                (tally.issue,) = printing
                tally.confidence = 1 - 0.5**fingerprint.weight
        return tally

    def _agreeing(self, fingerprint: Fingerprint, told: Codes) -> frozenset[str]:
        """The issues that print this fingerprint, without those whose signal, exit code or Xid is another one."""
        if not told:
            return fingerprint.issues
        return frozenset(issue for issue in fingerprint.issues if not contradicts(told, self._scanner.codes[issue]))

    def _complete(self, lines: list[bytes]) -> None:
        """Gives open questions the whole lines among `lines` that come after theirs."""
        still_open = []
        for question in self._open:
            seen = question.number + 1 + AFTER - question.wanted  # the first line that it has not got
            start = max(0, seen - self._number)
            more = lines[start : min(start + question.wanted, len(lines) - 1)]
            question.lines += map(ends, more)
            question.wanted -= len(more)
            if question.wanted:
                still_open.append(question)
            else:
                self._ask(question)
        self._open = still_open

    def _ask(self, question: _Question) -> None:
        tally = question.tally
        if tally.issue is not None:
            return
        # All that is not usual; then the failures and the frames alone, which prose from elsewhere may drown.
        shown = (text_of(line.rstrip(b"\r").rsplit(b"\r", 1)[-1]) for line in question.lines)
        lines = [line for line in shown if not is_usual(line)]
        for asked in (lines, [line for line in lines if says_failure(line) or line[:1].isspace()]):
            try:
                result = self._scanner.base.search("\n".join(asked), 1)
            except QueryError:
                continue
            best = result.hits[0] if result.answered else None
            if best and best.issue in tally.issues and best.confidence >= (SURE if len(tally.issues) == 1 else SURER):
                tally.issue, tally.confidence = best.issue, best.confidence
                return


def _is_about(tellings: dict[str, IssueRecord], project: str) -> bool:
    names = {name.casefold() for record in tellings.values() for name in (record.project or "", *record.tags)}
    return project.casefold() in names


def _codes(text: str) -> Codes:
    lower = text.lower()
    return codes(text) if any(word in lower for word in _CODED) else frozenset()
