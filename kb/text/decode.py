"""Turns the bytes of a log, a pasted text or a web page into text, whatever their encoding is.

Nothing is refused: bytes that fit no encoding become U+FFFD. Articles are the exception in this project: they must be
UTF-8, and `kb.articles.source` refuses everything else.
"""

from __future__ import annotations

import codecs

__all__ = ["decode", "decode_lines"]

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def decode(data: bytes, declared: str = "") -> str:
    """The text by the first encoding that fits all bytes: UTF-16 with a byte order mark (PowerShell's `>`), UTF-8, the
    `declared` one, GB 18030 (a Chinese Windows). If none fits: UTF-8, with U+FFFD for bytes that are wrong.

    A byte order mark is removed.
    """
    if data.startswith(_UTF16):
        encodings = ["utf-16"]
    else:
        data = data.removeprefix(codecs.BOM_UTF8)
        encodings = ["utf-8", declared, "gb18030"] if declared else ["utf-8", "gb18030"]
    for encoding in encodings:
        try:
            return data.decode(encoding)
        except (UnicodeError, LookupError):  # LookupError: no such encoding, or none of text
            continue
    return data.decode("utf-8", "replace")


def decode_lines(data: bytes) -> str:
    """Each line by itself: for the output of several programs, and for text that was cut within a character."""
    return "\n".join(map(decode, data.split(b"\n")))
