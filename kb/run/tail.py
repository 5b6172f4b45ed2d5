"""Keeps the end of a command's output, and earlier lines that report a failure, in bounded memory."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator

__all__ = ["TAIL_BYTES", "Tail"]

TAIL_BYTES = 256 << 10
FIRST, LAST = 6, 400  # how many of the lines before the tail that report a failure are kept, each once
EARLY_BYTES = 64 << 10  # of these lines that are returned
LINE_BYTES, BEFORE_BYTES = 1 << 10, 1 << 10  # of such a line, and of the lines before it
KEY_BYTES = 512

# A cheap look at bytes while the command runs, before anything else is loaded: the commonest words of failure. At the
# end `kb.logs.classify` drops the lines that a healthy program prints.
_FAILURE_PARTS = (b"rror", b"ailed", b"xception", b"Traceback", b"FATAL")
_DIGITS = b"0123456789"


class Tail:
    """Takes the output piece by piece; safe between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._chunks: deque[bytes] = deque()
        self._kept = 0
        self._size = 0
        self._stream = 0
        self._line = b""  # the last line, as long as it has no end
        self._noted_to = 0  # where the last noted line ended
        self._first: dict[bytes, tuple[int, bytes, bytes]] = {}
        self._last: dict[bytes, tuple[int, bytes, bytes]] = {}

    def add(self, data: bytes, stream: int = 1) -> None:
        with self._lock:
            if stream != self._stream and not self.ends_a_line:
                data = b"\n" + data  # a full buffer may end in the middle of a line
            self._stream = stream
            self._note_failures(data)
            self._chunks.append(data)
            self._kept += len(data)
            self._size += len(data)
            while self._kept - len(self._chunks[0]) >= TAIL_BYTES:
                self._kept -= len(self._chunks.popleft())

    def _note_failures(self, data: bytes) -> None:
        """Lines that differ only in digits count once, at their first place."""
        unfinished, whole = self._line, self._line + data
        end = max(whole.rfind(b"\n"), whole.rfind(b"\r")) + 1
        if len(whole) - end > LINE_BYTES:
            end = len(whole)
        self._line = whole[end:]
        if not end or not _may_name_a_failure(whole):
            return
        folded = {*whole[:end].translate(None, _DIGITS).splitlines()}  # a flood of similar lines shrinks to a handful
        new = {_key(line) for line in folded if _may_name_a_failure(line)} - self._first.keys() - self._last.keys()
        if not new:
            return
        at, start = 0, self._size - len(unfinished)
        for line in whole[:end].splitlines(keepends=True):
            key = _key(line.rstrip(b"\r\n").translate(None, _DIGITS))
            if key in new:
                new.remove(key)
                before = self._before(unfinished, whole[:at], start + at - self._noted_to)
                noted = self._first if len(self._first) < FIRST else self._last
                noted[key] = start + at, before, _around_failure(line)
                self._noted_to = start + at + len(line)
                if len(self._last) > LAST:
                    del self._last[next(iter(self._last))]
            at += len(line)

    def _before(self, unfinished: bytes, before: bytes, most: int) -> bytes:
        """Up to `most` bytes of whole lines before a place. The chunks hold the output up to `unfinished`, with which
        `before` begins."""
        size = min(most, BEFORE_BYTES)
        if size > len(before):
            pieces = deque([before])
            missing = size - len(before) + len(unfinished)
            for chunk in reversed(self._chunks):
                if missing <= 0:
                    break
                pieces.appendleft(chunk[-missing:])
                missing -= len(pieces[0])
            pieces.pop()
            before = b"".join(pieces).removesuffix(unfinished) + before
        before = before[len(before) - size :]
        return before if size == most else before[before.find(b"\n") + 1 :]

    def read(self) -> bytes:
        """The first failures, the last ones before the tail, and the tail."""
        with self._lock:
            kept = b"".join(self._chunks)[-TAIL_BYTES:]
            start = self._size - len(kept)
            first = [one for one in self._first.values() if one[0] < start]
            last = [one for one in self._last.values() if one[0] < start]
        return b"\n".join((*_lines_of(first), *reversed([*_lines_of(reversed(last))]), kept))

    @property
    def ends_a_line(self) -> bool:
        return not self._chunks or self._chunks[-1].endswith(b"\n")


def _lines_of(noted: Iterable[tuple[int, bytes, bytes]]) -> Iterator[bytes]:
    """As many as there is room for, without lines that a healthy program prints."""
    from kb.logs.classify import is_usual  # only after a failure: its patterns take a while to compile
    from kb.text.decode import decode

    room = EARLY_BYTES
    for _, before, line in noted:
        if room > 0 and not is_usual(decode(line)):
            room -= len(before) + len(line)
            yield before + line


def _may_name_a_failure(line: bytes) -> bool:
    return any(word in line for word in _FAILURE_PARTS)


def _key(line: bytes) -> bytes:
    return line if len(line) <= KEY_BYTES else line[: KEY_BYTES // 2] + line[-KEY_BYTES // 2 :]


def _around_failure(line: bytes) -> bytes:
    line = line.rstrip(b"\r\n")
    if len(line) > LINE_BYTES:
        found = min(at for word in _FAILURE_PARTS if (at := line.find(word)) >= 0)
        line = line[max(0, found - LINE_BYTES // 2) :][:LINE_BYTES]
    return line
