"""Here are the bytes of a log, in pieces of any size; give me its whole lines, and what is shown of one.

A line ends with a line feed; what stands before a carriage return within it was overwritten on a screen, and is kept.
UTF-8 and GB 18030 are told apart line by line, UTF-16 by its fingerprint at the log's beginning.
"""

from __future__ import annotations

import codecs
import re

from kb.logs.fingerprints import Fingerprint
from kb.text import clean
from kb.text.decode import decode

__all__ = ["ANSI", "HALF_LINE", "Lines", "ends", "shown", "telling_part", "text_of"]

HALF_LINE = 8 << 10  # bytes: of a longer line the first and the last so many are read
MAX_TELLING = 2000  # characters
MAX_SHOWN = 300  # characters of a line in a report

ANSI = re.compile(rb"\x1b\[[0-9;?]{0,20}[ -/]?[@-~]|\x1b\][^\x07\x1b\r\n]{0,200}(?:\x07|\x1b\\)|\x1b[@-_]")
_LEFT_OUT = b" ... "


class Lines:
    """Give it pieces; it gives blocks that end with a line, or with what a carriage return wipes away."""

    def __init__(self) -> None:
        self._head: bytes | None = b""
        self._decoder: codecs.IncrementalDecoder | None = None
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        if self._head is not None:
            self._head += data
            if len(self._head) < len(codecs.BOM_UTF8):
                return b""
            data = self._without_bom()
        return self._whole(data)

    def finish(self) -> tuple[bytes, bytes]:
        """What is still missing: whole lines, and the last one if it has no end."""
        block = self._whole(self._without_bom()) if self._head else b""
        if self._decoder:
            block += self._whole(b"", final=True)
        rest, self._rest = self._rest, b""
        return block, rest

    def _without_bom(self) -> bytes:
        """What has come so far. PowerShell writes UTF-16."""
        data, self._head = self._head or b"", None
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            self._decoder = codecs.getincrementaldecoder("utf-16")("replace")
        return data.removeprefix(codecs.BOM_UTF8)

    def _whole(self, data: bytes, *, final: bool = False) -> bytes:
        if self._decoder:
            data = self._decoder.decode(data, final).encode("utf-8", "replace")
        data = self._rest + data
        end = max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1  # a CR at the end may belong to a CR LF
        self._rest = ends(data[end:])
        return data[:end]


def ends(line: bytes) -> bytes:
    """A long line's first and last part; of a line that still grows, the same as of the whole."""
    whole = len(line) <= 2 * HALF_LINE + len(_LEFT_OUT)
    return line if whole else line[:HALF_LINE] + _LEFT_OUT + line[-HALF_LINE:]


def text_of(line: bytes) -> str:
    return clean(decode(ANSI.sub(b"", ends(line))))


def telling_part(text: str, fingerprint: Fingerprint) -> str:
    """Of a long line its beginning, where the level stands, and what is around the fingerprint."""
    if len(text) <= MAX_TELLING:
        return text
    head, at = MAX_TELLING // 8, max(0, fingerprint.place_in(text) - MAX_TELLING // 4)
    part = text[at : at + MAX_TELLING]
    return text[: at + MAX_TELLING] if at <= head else f"{text[:head]} {part}"


def shown(text: str, fingerprint: Fingerprint) -> str:
    """One piece of a line, around the fingerprint; where something is left out stands an ellipsis."""
    text = " ".join(text.split())
    if len(text) <= MAX_SHOWN:
        return text
    at = min(max(0, fingerprint.place_in(text) - MAX_SHOWN // 3), len(text) - MAX_SHOWN)
    return ("… " if at else "") + text[at : at + MAX_SHOWN] + (" …" if at + MAX_SHOWN < len(text) else "")
