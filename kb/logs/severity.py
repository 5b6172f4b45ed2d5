"""Here is a line of a log; tell whether it says that something failed, or is what a program writes while all goes well.

A failure's words also stand in healthy logs: at a level below that of errors, or in a line that says how the program
goes on all the same.
"""

from __future__ import annotations

import re

from kb.logs.errors import is_error_line
from kb.logs.read import strip_prefix

__all__ = ["is_usual", "says_failure", "speaker", "warns"]

_HEAD_CHARS = 200  # where a level or a rank stands
_LINE_CHARS = 2000

# The first level in a line is its own. NCCL has no level above WARN.
_LEVEL = re.compile(
    r"\b(?P<error>ERROR|CRITICAL|FATAL|SEVERE)\b"
    r"|(?<!NCCL )(?P<warning>\b(?:WARN|WARNING|warning)\b|Warning\b|(?:^|[\s:\[])W\d{4} \d\d:"
    r"|\[W(?:\d{3,4} [\d:.]{8,18})? [\w./-]{1,60}:\d)"
    r"|\b(?:INFO|DEBUG|TRACE|NOTICE|info|debug)\b|(?:^|[\s:\[])[ID]\d{4} \d\d:"
    r"|\[[ID](?:\d{3,4} [\d:.]{8,18})? [\w./-]{1,60}:\d|\b(?:hint|note):"
)
# Most lines have none; these are found ten times faster.
_LEVEL_WORDS = "ERROR CRITICAL FATAL SEVERE WARN arning INFO DEBUG TRACE NOTICE info debug hint: note:".split()
_LEVEL_LETTER = re.compile(r"[WID]\d{3,4} |\[[WID] ")
_EXCEPTION = re.compile(r"(?:\w{1,60}\.){0,9}\w{0,60}(?:Error|Exception): ")
# A program that says what it does instead has not failed.
_GOES_ON = re.compile(
    r"\b(?:[Ss]kipping|[Rr]etrying|retries left|[Ii]gnoring|deprecated|[Ff]all(?:ing|s)? back|recovered|"
    r"[Rr]econnecting|[Rr]esuming)\b|[.;] (?:Setting|Disabling|Overriding|Defaulting|Using)\b"
)
# Most lines have none of it; these are found ten times faster.
_GOES_ON_WORDS = (
    "kipping", "etrying", "retries left", "gnoring", "deprecated", "all back", "alls back", "alling back", "recovered",
    "econnecting", "esuming", " Setting", " Disabling", " Overriding", " Defaulting", " Using",
)  # fmt: skip
# A list of changes tells of failures that are mended.
_CHANGE = re.compile(
    r"[\s*•-]{0,6}(?:[0-9a-f]{7,12} )?(?:\w{1,20}(?:\([\w./-]{1,40}\))?: )?"
    r"[Ff]ix(?:e[sd])?(?:\([\w./-]{1,40}\))?!?:? (?!failed)"
)
_PULL_REQUEST = re.compile(r"\(#\d{1,6}\)\s?$")
# What Python's logging puts before a message, and a parent before what its child said.
_LOGGED, _CHILD_SAID = re.compile(r"(?:INFO|DEBUG):[\w.-]{1,60}:"), "stderr: "
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
    bare, level = strip_prefix(line), _level(line)
    if _is_usual(line, bare, level) or bare.lstrip().startswith(_SOURCE):
        return False
    return level == "error" or _FAILS.search(bare[:_LINE_CHARS].lower()) is not None or is_error_line(bare)


def is_usual(line: str) -> bool:
    """Does a program write this while all goes well, warnings included?"""
    return _is_usual(line, strip_prefix(line), _level(line))


def _is_usual(line: str, bare: str, level: str | None) -> bool:
    if level is None and (_CHANGE.match(bare) or _PULL_REQUEST.search(bare[-12:])):
        return True
    if level not in (None, "error") and not _EXCEPTION.match(bare, _message_at(bare)):
        return True
    return _goes_on(line)


def warns(line: str) -> bool:
    """Is this a warning, or how a program says that it goes on all the same?"""
    level = _level(line)
    return level == "warning" if level else _goes_on(line)


def _goes_on(line: str) -> bool:
    return any(word in line for word in _GOES_ON_WORDS) and _GOES_ON.search(line) is not None


def _message_at(bare: str) -> int:
    child = bare.find(_CHILD_SAID, 0, _HEAD_CHARS)
    logged = _LOGGED.match(bare)
    return child + len(_CHILD_SAID) if child >= 0 else logged.end() if logged else 0


def _level(line: str) -> str | None:
    """`error`, `warning` or `below`; None where the line has none."""
    head = line[:_HEAD_CHARS]
    if not any(word in head for word in _LEVEL_WORDS) and not _LEVEL_LETTER.search(head):
        return None
    found = _LEVEL.search(head)
    return (found.lastgroup or "below") if found else None


def speaker(line: str) -> str:
    """Which rank, worker or process wrote the line, as far as its prefix tells; else an empty string."""
    return " ".join(_SPEAKER.findall(line[:_HEAD_CHARS]))
