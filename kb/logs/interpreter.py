"""Messages that Python, the C library and the operating system print by themselves: `No module named 'x'`,
`Connection refused`, `'NoneType' object is not subscriptable`.

Any program prints them, so that such a line says nothing about which one failed. The messages are data: checksums of
all texts with which several versions of CPython can end a line, collected from their sources and binaries by
`scripts/interpreter_messages.py`.
"""

from __future__ import annotations

import re
import zlib
from bisect import bisect_left
from functools import cache
from pathlib import Path

__all__ = ["MESSAGES", "is_own_message", "key_of", "without_variables"]

MESSAGES = Path(__file__).with_name("interpreter.bin")
"""sorted, little-endian, 32 bits each: the CRC-32 of each message's key"""

_LEAST_WORDS = 2  # a message of one word may be anybody's
_MAX_CHARS = 400
_CLASS = re.compile(r"^(?:[A-Za-z_][\w.]{0,100}(?:Error|Exception|Interrupt|Iteration|Exit|Warning)|E {2,8}\w+): ")
_VARIABLE = re.compile(
    r"\"[^\"]{0,200}\"|'[^']{0,200}'|`[^`]{0,200}`|%[-+ #0]?\d{0,4}(?:\.\d{1,4})?(?:ll|l|z)?[a-zA-Z%]|\{[^{}]{0,80}\}|"
    r"[\w.]{1,100}\(\)|\[(?:Errno|WinError) -?\d{1,6}\]|\(core dumped\)|\S{0,200}[/\\]\S{0,200}|"
    r"[\[(]?\d[\w.:,-]{0,40}[\])]?"
)
_WORD = re.compile(r"[a-z]+")


def key_of(message: str) -> str:
    """The words of a message, without what differs from one time to the next; of a format string the same."""
    return " ".join(_WORD.findall(without_variables(message[:_MAX_CHARS]).casefold()))


def without_variables(message: str) -> str:
    """The message without quoted names, numbers, paths and gaps."""
    return _VARIABLE.sub(" ", message)


def is_own_message(line: str) -> bool:
    """Whether the line, without the name of the exception, is a message that Python or the system prints by itself."""
    message = line.strip()
    while found := _CLASS.match(message):
        message = message[found.end() :]
    key = key_of(message)
    if key.count(" ") + 1 < _LEAST_WORDS:
        return False
    known, checksum = _checksums(), zlib.crc32(key.encode())
    at = bisect_left(known, checksum)
    return at < len(known) and known[at] == checksum


@cache
def _checksums() -> memoryview:
    data = MESSAGES.read_bytes()
    from array import array
    from sys import byteorder

    numbers = array("I", data)
    if byteorder == "big":
        numbers.byteswap()
    return memoryview(numbers)
