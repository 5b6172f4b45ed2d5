"""What only a log shows about a line: its level, the process that wrote it, whether the program goes on, and words that
raise suspicion.

`kb.logs.classify` asks for these when it reads a log, and not for a line that a person picked.
"""

from __future__ import annotations

import re
from typing import Literal

from kb.logs.prefix import HEAD_CHARS

__all__ = ["Level", "is_suspect", "level_of", "mild_kind", "process_of"]

Level = Literal["error", "warning", "below"]

# Words of failure in any other form, in lower case. Alone they prove little; a scan sees them only in lines that also
# hold the words of a known error.
_SUSPICIOUS = (
    "fail", "error", "assert", "abort", "uncorrect", "fallen off", "insufficient", "not enough", "no available",
    "does not match", "time out", "times out", "timed out", "timeout", "invalid", "unsupported",
    "not supported", "is greater than", "nccl warn", "xid", "报错", "失败", "错误", "异常", "无法", "不支持", "超时",
)  # fmt: skip
_SUSPICIOUS_WORDS = re.compile(r"\babruptly|\bis nan\b|is over \d|\bis lost\b")

# The first level in a line is its own. NCCL has no level above WARN.
_LEVEL = re.compile(
    r"(?P<error>\b(?:ERROR|CRITICAL|FATAL|SEVERE)\b|(?:^|[\s:\[])[EF]\d{4} \d\d:"
    r"|\[[EF]\d{3,4} [\d:.]{8,18} [\w./-]{1,60}:\d)"
    r"|(?<!NCCL )(?P<warning>\b(?:WARN|WARNING|warning)\b|Warning\b|(?:^|[\s:\[])W\d{4} \d\d:"
    r"|\[W(?:\d{3,4} [\d:.]{8,18})? [\w./-]{1,60}:\d|\d: W [\w./-]{1,120}:\d)"
    r"|\b(?:INFO|DEBUG|TRACE|NOTICE|info|debug)\b|(?:^|[\s:\[])[ID]\d{4} \d\d:"
    r"|\[[ID](?:\d{3,4} [\d:.]{8,18})? [\w./-]{1,60}:\d|\d: I [\w./-]{1,120}:\d|\b(?:hint|note):"
)
# Most lines have none; these are found ten times faster.
_LEVEL_WORDS = "ERROR CRITICAL FATAL SEVERE WARN arning INFO DEBUG TRACE NOTICE info debug hint: note:".split()
# glog, PyTorch, TensorFlow; the last one prints lines of its level E at every start
_LEVEL_LETTER = re.compile(r"[WIDEF]\d{3,4} |\[[WID] |\d: [WI] ")
_EXCEPTION_START = re.compile(r"(?:\w{1,60}\.){0,9}\w{0,60}(?:Error|Exception): ")
# A program that says what it does instead has not failed.
_GOES_ON = re.compile(
    r"\b(?:[Ss]kipping|[Rr]etrying|retries left|[Ii]gnoring|deprecated|[Ff]all(?:ing|s)? back|recovered|"
    r"[Rr]econnecting|[Rr]esuming)\b"
    r"|[.;] (?:Setting|Disabling|Overriding|Defaulting|Using|Will (?:continue|retry|try|use))\b"
)
# Most lines have none of it; these are found ten times faster.
_GOES_ON_WORDS = (
    "kipping", "etrying", "retries left", "gnoring", "deprecated", "all back", "alls back", "alling back", "recovered",
    "econnecting", "esuming", " Setting", " Disabling", " Overriding", " Defaulting", " Using", " Will ",
)  # fmt: skip
# A list of changes names failures that are fixed.
_CHANGE = re.compile(
    r"[\s*•-]{0,6}(?:[0-9a-f]{7,12} )?(?:\w{1,20}(?:\([\w./-]{1,40}\))?: )?"
    r"[Ff]ix(?:e[sd])?(?:\([\w./-]{1,40}\))?!?:? (?!failed)"
)
_PULL_REQUEST = re.compile(r"\(#\d{1,6}\)\s?$")
# What Python's logging puts before a message, and a parent process before what its child printed.
_LOGGED, _CHILD_PRINTED = re.compile(r"(?:INFO|DEBUG):[\w.-]{1,60}:"), "stderr: "
_PROCESS = re.compile(
    r"\[(?:rank|Rank|RANK|default) ?\d{1,5}\]|\b(?:worker|rank|Rank|RankID|node)[-_=: ]{0,2}\d{1,5}\b"
    r"|\([\w.-]{1,40} pid=\d{1,9}"
    r"|\[\d{1,5},\d{1,5}\]<std|^\s?\[?\d{1,5}\]?: |\bip=[\d.]{7,15}|^[\w-]{1,40}\d:\d{2,8}:\d{2,8} \[\d{1,3}\]"
)


def mild_kind(line: str, bare: str, level: Level | None) -> Literal["warning", "healthy"] | None:
    """The kind of a line whose level, or whose words about how the program goes on, make it harmless. `bare`: the line
    without its prefixes."""
    if level is None and (_CHANGE.match(bare) or _PULL_REQUEST.search(bare[-12:])):
        return "healthy"
    if level in ("warning", "below") and not _EXCEPTION_START.match(bare, _message_at(bare)):
        return "warning" if level == "warning" else "healthy"
    return "warning" if _goes_on(line) else None


def _goes_on(line: str) -> bool:
    return any(word in line for word in _GOES_ON_WORDS) and _GOES_ON.search(line) is not None


def _message_at(bare: str) -> int:
    child = bare.find(_CHILD_PRINTED, 0, HEAD_CHARS)
    logged = _LOGGED.match(bare)
    return child + len(_CHILD_PRINTED) if child >= 0 else logged.end() if logged else 0


def level_of(line: str) -> Level | None:
    """The first level that the line names; `below` stands for INFO and less."""
    head = line[:HEAD_CHARS]
    if not any(word in head for word in _LEVEL_WORDS) and not _LEVEL_LETTER.search(head):
        return None
    found = _LEVEL.search(head)
    if found is None:
        return None
    return "error" if found["error"] else "warning" if found["warning"] else "below"


def is_suspect(lower: str) -> bool:
    """Does the line, in lower case, hold a word of failure in any form?"""
    return any(word in lower for word in _SUSPICIOUS) or _SUSPICIOUS_WORDS.search(lower) is not None


def process_of(line: str) -> str:
    """The rank, worker or process that wrote the line, as its prefix names it; empty when it names none."""
    return " ".join(_PROCESS.findall(line[:HEAD_CHARS]))
