"""Turns the bytes of a log, a pasted text or a web page into text, whatever their encoding is.

Nothing is refused: bytes that fit no encoding become U+FFFD. Articles are the exception in this project: they must be
UTF-8, and `kb.articles.source` refuses everything else.
"""

from __future__ import annotations

import codecs
import re

__all__ = ["decode", "decode_lines"]

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# What no terminal, progress bar or hole in a file has. Ctrl-Z (1a) ends a text file of DOS.
_NO_TEXT = re.compile(r"[\x01-\x06\x0e-\x19\x1c-\x1f\x7f]")


def decode(data: bytes, declared: str = "") -> str:
    """The text by the first encoding that fits all bytes: UTF-16 with a byte order mark (PowerShell's `>`), UTF-8, the
    `declared` one, GB 18030 (a Chinese Windows) where that gives Chinese. If none fits: UTF-8, with U+FFFD for bytes
    that are wrong.

    A byte order mark is removed.
    """
    if data.startswith(_UTF16):
        encodings = ["utf-16"]
    else:
        data = data.removeprefix(codecs.BOM_UTF8)
        encodings = ["utf-8", declared, "gb18030"] if declared else ["utf-8", "gb18030"]
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except (UnicodeError, LookupError):  # LookupError: no such encoding, or none of text
            continue
        if encoding != "gb18030" or _is_chinese(text):
            return text
    return data.decode("utf-8", "replace")


def _is_chinese(text: str) -> bool:
    """Nearly any bytes are characters of GB 18030. What somebody wrote are mostly common ones, those of GB 2312."""
    beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
    common = (len(text.encode("gb2312", "ignore")) - len(text) + beyond_ascii) / 2  # two bytes each
    return common * 2 >= beyond_ascii and not _NO_TEXT.search(text)


def decode_lines(data: bytes) -> str:
    """Each line by itself: for the output of several programs, and for text that was cut within a character."""
    return "\n".join(map(decode, data.split(b"\n")))
