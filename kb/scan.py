"""Here is a log of any size; give me every known issue that occurs in it, and on which lines.

A healthy log must come through without an alarm, so a line speaks for an issue only when it says that something failed,
stands in words that one issue alone prints, and those words tell enough. What is shorter or shared needs its
circumstances: the lines around it are searched for like a question, and the answer must be an issue that prints the
line. Nearly all lines lack the words in question and are gone after one look; time is linear, memory bounded.
"""

from __future__ import annotations

import codecs
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kb.errors import QueryError
from kb.marks import Mark, Marks, words_of
from kb.records import IssueRecord, Lang
from kb.search import KnowledgeBase
from kb.severity import is_usual, says_failure, speaker, warns
from kb.signature import is_around
from kb.text import HAN_CHAR, clean

__all__ = ["Finding", "Scan", "ScanReport", "Scanner", "scan"]

# Chosen on the questions of tests/cases, planted in healthy logs: above 1.35 more is missed, below 1.2 alarms come.
ALONE = 1.35  # `Mark.told` from which a line that one issue prints is enough
ASK = 0.6  # and from which the lines around it are asked
SURE, SURER = 0.5, 0.75  # how sure their answer must be: about a line that one issue prints, or several
BEFORE, AFTER = 30, 10  # how many lines are asked
MAX_ASKS = 40  # of one log; a search takes as long as a megabyte
ASKS_OF_A_MARK = 3
HALF_LINE = 8 << 10  # bytes: of a longer line the first and the last so many are read
MAX_SPEAKERS = 4096
MAX_JUDGED, MAX_KEY = 4096, 1000
MAX_TELLING = 2000  # characters
MAX_SHOWN = 300  # characters of a line in a report

_ANSI = re.compile(rb"\x1b\[[0-9;?]{0,20}[ -/]?[@-~]|\x1b\][^\x07\x1b\r\n]{0,200}(?:\x07|\x1b\\)|\x1b[@-_]")
_FOLD = bytes(c + 32 if 65 <= c <= 90 else c if 97 <= c <= 122 or c == 10 else 32 for c in range(256))


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


def scan(
    base: KnowledgeBase, chunks: Iterable[bytes], *, lang: Lang | None = None, warnings: bool = False
) -> ScanReport:
    """The known issues in a log that comes in pieces of any size, told in `lang` or in the log's language. With
    `warnings` also those a program warned of. For several logs make one `Scanner`."""
    return Scanner(base).scan(chunks, lang=lang, warnings=warnings)


class Scanner:
    """What a base looks for in logs; made once (a millisecond or two per issue), good for any number of them."""

    def __init__(self, base: KnowledgeBase, *, project: str | None = None) -> None:
        """`project`: only issues of this project or tag."""
        self.base = base
        self.tellings: dict[str, dict[str, IssueRecord]] = {}
        for record in base.records():
            self.tellings.setdefault(record.issue, {})[record.lang] = record
        self.wanted: set[str] = {
            issue for issue, told in self.tellings.items() if project is None or _is_about(told, project)
        }
        self.marks: Marks = Marks([record for told in self.tellings.values() for record in told.values()])
        # The Latin words that a line with a mark must hold, by one of them; of a mark without any, a Chinese character.
        self.needs: dict[bytes, list[frozenset[bytes]]] = {}
        others = set()
        for mark in self.marks:
            if mark.told >= ASK and mark.anchor.isascii():
                words = frozenset(word.encode() for word in mark.words if word.isascii() and word.isalpha())
                self.needs.setdefault(mark.anchor.encode(), []).append(words)
            elif mark.told >= ASK:
                others.add(mark.anchor)
        for anchor, needs in self.needs.items():
            self.needs[anchor] = [one for one in set(needs) if not any(other < one for other in needs)]
        self.anchors: frozenset[bytes] = frozenset(self.needs)
        self.others: re.Pattern[str] | None = re.compile(f"[{''.join(sorted(others))}]") if others else None

    def scan(self, chunks: Iterable[bytes], *, lang: Lang | None = None, warnings: bool = False) -> ScanReport:
        one = Scan(self, lang=lang, warnings=warnings)
        for chunk in chunks:
            one.feed(chunk)
        return one.finish()


@dataclass(slots=True)
class _Tally:
    """What was seen of one mark."""

    mark: Mark
    issues: frozenset[str]
    """those that print a mark of such a line"""
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
        self._head: bytes | None = b""
        self._decoder: codecs.IncrementalDecoder | None = None
        self._rest = b""
        self._size = 0
        self._number = 1  # of the line that comes next
        self._before: list[bytes] = []
        self._open: list[_Question] = []
        self._asked = 0
        self._tallies: dict[Mark, _Tally] = {}
        self._judged: dict[bytes, _Tally | None] = {}

    def feed(self, data: bytes) -> None:
        self._size += len(data)
        if self._head is not None:
            self._head += data
            if len(self._head) < len(codecs.BOM_UTF8):
                return
            data = self._without_bom()
        self._take(data)

    def finish(self) -> ScanReport:
        """What the whole log holds; its last line needs no line end."""
        if self._head:
            self._take(self._without_bom())
        if self._decoder:
            self._take(b"", final=True)
        lines = self._number - 1 + bool(self._rest)
        if self._rest:
            self._read(self._rest + b"\n")
            self._rest = b""
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
        first = min(tallies, key=lambda tally: (tally.first, -tally.mark.told))
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

    # --- bytes to lines ---------------------------------------------------------------------------------------------

    def _without_bom(self) -> bytes:
        """What has come so far. PowerShell writes UTF-16."""
        data, self._head = self._head or b"", None
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            self._decoder = codecs.getincrementaldecoder("utf-16")("replace")
        return data.removeprefix(codecs.BOM_UTF8)

    def _take(self, data: bytes, *, final: bool = False) -> None:
        if self._decoder:
            data = self._decoder.decode(data, final).encode("utf-8", "replace")
        data = self._rest + data
        end = max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1  # a CR at the end may belong to a CR LF
        self._rest = _ends(data[end:])
        if end:
            self._read(data[:end])

    def _read(self, block: bytes) -> None:
        """`block` ends with a line, or with what a carriage return wipes away."""
        lines = block.split(b"\n")
        self._complete(lines)
        for i in self._candidates(block):
            for part in lines[i].split(b"\r"):
                self._judge(part, lines, i)
        whole = len(lines) - 1
        self._number += whole
        self._before = [*self._before, *map(_ends, lines[max(0, whole - BEFORE) : whole])][-BEFORE:]

    def _candidates(self, block: bytes) -> list[int]:
        """Which lines hold the words of a mark. This is all that happens to most of a log."""
        anchors, needs, others = self._scanner.anchors, self._scanner.needs, self._scanner.others
        if b"\x1b" in block:
            block = _ANSI.sub(b"", block)
        folded = block.replace(b"\\n", b"  ").replace(b"\\t", b"  ") if b"\\" in block else block
        found = []
        for i, line in enumerate(folded.translate(_FOLD).split(b"\n")):
            words = line.split()
            if not anchors.isdisjoint(words):
                present = frozenset(words)
                if any(need <= present for anchor in anchors & present for need in needs[anchor]):
                    found.append(i)
        if others and not block.isascii():
            lines = enumerate(block.split(b"\n"))
            found += [i for i, line in lines if not line.isascii() and others.search(_decoded(line))]
        return sorted(set(found))

    # --- lines to issues --------------------------------------------------------------------------------------------

    def _judge(self, part: bytes, lines: list[bytes], i: int) -> None:
        """Lines that differ in their digits alone are judged once: a mark lets numbers differ."""
        number = self._number + i
        key = part.translate(None, b"0123456789")
        if key in self._judged:
            tally = self._judged[key]
        else:
            tally = self._tally(_text_of(part), number)
            if len(self._judged) >= MAX_JUDGED:
                self._judged.clear()
            if len(key) <= MAX_KEY:
                self._judged[key] = tally
        if tally is None:
            return
        tally.last = number
        tally.count += 1
        if len(tally.speakers) < MAX_SPEAKERS:
            tally.speakers.add(speaker(_decoded(part[:HALF_LINE])))
        if tally.issue is None and number >= tally.ask_from and tally.asks < ASKS_OF_A_MARK and self._asked < MAX_ASKS:
            tally.asks += 1
            tally.ask_from = number + BEFORE
            self._asked += 1
            before = [*self._before, *lines[max(0, i - BEFORE) : i]][-BEFORE:]
            question = _Question(tally, number, [*map(_ends, before), part], AFTER)
            self._open.append(question)
            self._complete(lines)

    def _tally(self, text: str, number: int) -> _Tally | None:
        """Where to count this line; None for one that tells nothing."""
        marks = self._scanner.marks.standing_in(words_of(text))
        if not marks or marks[0].told < ASK:
            return None
        mark = marks[0]
        telling = _telling_part(text, mark)
        if not says_failure(telling) and not (self._warnings and warns(telling)):
            return None
        tally = self._tallies.get(mark)
        if tally is None:
            issues = frozenset().union(*(one.issues for one in marks))
            tally = self._tallies[mark] = _Tally(mark, issues, number, _shown(telling, mark))
            if len(mark.issues) == 1 and mark.told >= ALONE and not is_around(telling):
                (tally.issue,) = mark.issues
                tally.confidence = 1 - 0.5**mark.told
        return tally

    def _complete(self, lines: list[bytes]) -> None:
        """Gives open questions the whole lines among `lines` that come after theirs."""
        still_open = []
        for question in self._open:
            seen = question.number + 1 + AFTER - question.wanted  # the first line that it has not got
            start = max(0, seen - self._number)
            more = lines[start : min(start + question.wanted, len(lines) - 1)]
            question.lines += map(_ends, more)
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
        shown = (_text_of(line.rstrip(b"\r").rsplit(b"\r", 1)[-1]) for line in question.lines)
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


def _text_of(line: bytes) -> str:
    return clean(_decoded(_ANSI.sub(b"", _ends(line))))


def _telling_part(text: str, mark: Mark) -> str:
    """Of a long line its beginning, where the level stands, and what is around the mark."""
    if len(text) <= MAX_TELLING:
        return text
    at = max(0, text.lower().find(mark.anchor) - MAX_TELLING // 4)
    return f"{text[: MAX_TELLING // 8]} {text[at : at + MAX_TELLING]}"


def _shown(text: str, mark: Mark) -> str:
    text = " ".join(text.split())
    at = max(0, text.lower().find(mark.anchor) - MAX_SHOWN // 2) if len(text) > MAX_SHOWN else 0
    return ("… " if at else "") + text[at : at + MAX_SHOWN] + (" …" if at + MAX_SHOWN < len(text) else "")


def _ends(line: bytes) -> bytes:
    """A long line's first and last part; of a line that still grows, the same as of the whole."""
    return line if len(line) <= 2 * HALF_LINE + 1 else line[:HALF_LINE] + b" " + line[-HALF_LINE:]


def _decoded(line: bytes) -> str:
    for encoding in ("utf-8", "gb18030"):
        try:
            return line.decode(encoding)
        except UnicodeDecodeError:
            pass
    return line.decode("utf-8", "replace")
