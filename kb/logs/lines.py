"""Bytes of a log to lines of text.

`Lines` takes the bytes in pieces of any size and returns blocks of whole lines. A line ends with a line feed; a
carriage return inside a line stays, because the text in front of it was shown on a screen before it was overwritten.
UTF-8 and GB 18030 are recognised line by line, UTF-16 by its byte order mark. The functions below cut a long line to
the parts that are read and shown.
"""

from __future__ import annotations

import codecs
import re

from kb.logs.fingerprints import Fingerprint
from kb.text import clean
from kb.text.decode import decode

__all__ = ["ANSI", "HALF_LINE", "Lines", "clip", "excerpt", "informative_part", "text_of"]

HALF_LINE = 8 << 10  # bytes: of a line longer than two halves, the first and the last half are read
MAX_PART = 2000  # characters around a fingerprint
MAX_SHOWN = 300  # characters of a line in a report

ANSI = re.compile(rb"\x1b\[[0-9;?]{0,20}[ -/]?[@-~]|\x1b\][^\x07\x1b\r\n]{0,200}(?:\x07|\x1b\\)|\x1b[@-_]")
_LEFT_OUT = b" ... "


class Lines:
    """Splits a stream of bytes into blocks that end with a line feed or a carriage return."""

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
        """The rest: a block of whole lines, and the last line if it has no line end."""
        block = self._whole(self._without_bom()) if self._head else b""
        if self._decoder:
            block += self._whole(b"", final=True)
        rest, self._rest = self._rest, b""
        return block, rest

    def _without_bom(self) -> bytes:
        """The bytes so far, without a byte order mark. PowerShell writes UTF-16."""
        data, self._head = self._head or b"", None
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            self._decoder = codecs.getincrementaldecoder("utf-16")("replace")
        return data.removeprefix(codecs.BOM_UTF8)

    def _whole(self, data: bytes, *, final: bool = False) -> bytes:
        if self._decoder:
            data = self._decoder.decode(data, final).encode("utf-8", "replace")
        data = self._rest + data
        end = max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1  # a CR at the end may belong to a CR LF
        self._rest = clip(data[end:])
        return data[:end]


def clip(line: bytes) -> bytes:
    """The line, or the first and last HALF_LINE of a longer one. A line that is clipped while it grows, and again when
    it is complete, comes out as if it had been clipped once."""
    whole = len(line) <= 2 * HALF_LINE + len(_LEFT_OUT)
    return line if whole else line[:HALF_LINE] + _LEFT_OUT + line[-HALF_LINE:]


def text_of(line: bytes) -> str:
    """The line as cleaned text, without colours, clipped."""
    return clean(decode(ANSI.sub(b"", clip(line))))


def informative_part(text: str, fingerprint: Fingerprint) -> str:
    """The line, or of a long one its beginning, where the level is, and the text around the fingerprint."""
    if len(text) <= MAX_PART:
        return text
    head, at = MAX_PART // 8, max(0, fingerprint.position_in(text) - MAX_PART // 4)
    part = text[at : at + MAX_PART]
    return text[: at + MAX_PART] if at <= head else f"{text[:head]} {part}"


def excerpt(text: str, fingerprint: Fingerprint) -> str:
    """At most MAX_SHOWN characters of the line around the fingerprint, with an ellipsis for what is left out."""
    text = " ".join(text.split())
    if len(text) <= MAX_SHOWN:
        return text
    at = min(max(0, fingerprint.position_in(text) - MAX_SHOWN // 3), len(text) - MAX_SHOWN)
    return ("… " if at else "") + text[at : at + MAX_SHOWN] + (" …" if at + MAX_SHOWN < len(text) else "")
