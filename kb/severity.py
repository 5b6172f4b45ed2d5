"""Here is a line of a log; tell whether it says that something failed, or is what a program writes while all goes well.

A failure's words also stand in healthy logs: at a level below that of errors, or in a line that says how the program
goes on all the same.
"""

from __future__ import annotations

import re

from kb.errorlines import is_error_line
from kb.signature import strip_prefix

__all__ = ["is_usual", "says_failure", "speaker", "warns"]

_HEAD_CHARS = 200  # where a level or a rank stands
_LINE_CHARS = 2000

# The first level in a line is its own. NCCL has no level above WARN.
_LEVEL = re.compile(
    r"\b(?P<error>ERROR|CRITICAL|FATAL|SEVERE)\b"
    r"|(?<!NCCL )(?P<warning>\b(?:WARN|WARNING|[Ww]arning)\b|\b\w{1,40}Warning\b|(?:^|[\s:\[])W\d{4} \d\d:"
    r"|\[W(?:\d{3,4} [\d:.]{8,18})? [\w./-]{1,60}:\d)"
    r"|\b(?:INFO|DEBUG|TRACE|NOTICE|info|debug)\b|(?:^|[\s:\[])[ID]\d{4} \d\d:"
    r"|\[[ID](?:\d{3,4} [\d:.]{8,18})? [\w./-]{1,60}:\d|\b(?:hint|note):"
)
_EXCEPTION = re.compile(r"(?:\w{1,60}\.){0,9}\w{0,60}(?:Error|Exception): ")
# A program that says what it does instead has not failed.
_GOES_ON = re.compile(
    r"\b(?:[Ss]kipping|[Rr]etrying|retries left|[Ii]gnoring|deprecated|[Ff]all(?:ing|s)? back|recovered|"
    r"[Rr]econnecting|[Rr]esuming)\b|[.;] (?:Setting|Disabling|Overriding|Defaulting|Using)\b"
)
# What `is_error_line` leaves out because in an article it says little: here the line has the words of a mark as well.
_FAILS = re.compile(
    r"fail|error|assert|abort|uncorrect|fallen off|insufficient|not enough|no available|abruptly|does not match|"
    r"\bis nan\b|time[sd]? ?out|invalid|unsupported|not supported|is over \d|is greater than|\bis lost\b|nccl warn|xid|"
    r"报错|失败|错误|异常|无法|不支持|超时"
)
_SOURCE = ("raise ", "return ", "assert ", "self.", "#", "//", "def ", "class ", "warnings.warn")
_SPEAKER = re.compile(
    r"\[(?:rank|Rank|RANK|default) ?\d{1,5}\]|\b(?:worker|rank|Rank|RankID|node)[-_=: ]{0,2}\d{1,5}\b"
    r"|\([\w.-]{1,40} pid=\d{1,9}"
    r"|\[\d{1,5},\d{1,5}\]<std|^\s?\[?\d{1,5}\]?: |\bip=[\d.]{7,15}|^[\w-]{1,40}\d:\d{2,8}:\d{2,8} \[\d{1,3}\]"
)


def says_failure(line: str) -> bool:
    bare = strip_prefix(line)
    if is_usual(line) or bare.lstrip().startswith(_SOURCE):
        return False
    level = _LEVEL.search(line[:_HEAD_CHARS])
    if level and level["error"]:
        return True
    return is_error_line(bare) or _FAILS.search(bare[:_LINE_CHARS].lower()) is not None


def is_usual(line: str) -> bool:
    """Does a program write this while all goes well, warnings included?"""
    level = _LEVEL.search(line[:_HEAD_CHARS])
    if level and not level["error"] and not _EXCEPTION.match(strip_prefix(line)):
        return True
    return _GOES_ON.search(line) is not None


def warns(line: str) -> bool:
    """Is this a warning, or how a program says that it goes on all the same?"""
    level = _LEVEL.search(line[:_HEAD_CHARS])
    return bool(level["warning"] if level else _GOES_ON.search(line))


def speaker(line: str) -> str:
    """Which rank, worker or process wrote the line, as far as its prefix tells; else an empty string."""
    return " ".join(_SPEAKER.findall(line[:_HEAD_CHARS]))
