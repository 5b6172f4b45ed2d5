"""The error lines that a page quotes: in a fence, or inside a sentence.

An error line is what a program printed to say that it failed; `kb.logs.classify` decides which line is one. This module
finds them in longer text. Every pattern is a literal or bounded, so time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.logs.assertions import LINES_ABOVE, with_statement
from kb.logs.classify import is_command, is_error_line
from kb.text import HAN_CHAR

__all__ = [
    "error_lines",
    "is_personal",
    "looks_like_code",
    "quoted",
    "quoted_errors",
]

_CODE_SHAPE = re.compile(
    r"[{};\\]$|^[})\]]+[,;]?$|^\w[\w.]{0,60}\s?=\s?\S|^\w[\w.]{0,80}\(.{0,200}\)?[,:]?$|"
    r"^--?\w[\w-]{0,40}(?:[ =]\S{1,60})?(?: \\)?$|^@\w|^<[/\w][^>]{0,200}>$|^\[[\w.-]{1,40}\]$|"
    r"^[\w.-]{1,40}:\s?[\w./'\"{\[-]{0,60}$|"
    r"^(?:from|import|def|class|return|if|for|with|const|let|var|public|private|FROM|RUN|ENV|COPY)\s\S"
)


# Programs have no "my" and do not thank.
_PERSON = re.compile(
    r"(?i)\b(?:my|our|i'm|i am|i can(?:'t|not)?|i have|i've|i get|i got|i tried|i don't|i think|thanks|thank you|"
    r"please help|looking forward|your (?:work|reply|help)|can you|anyone|somebody)\b|"
    r"请问|谢谢|感谢|我(?:的|在|用|想|把|也|是)|您好|你好|大佬"
)


def is_personal(text: str) -> bool:
    """Words in it are a person's about a failure; no program prints them."""
    return _PERSON.search(text[:2000]) is not None


def looks_like_code(text: str) -> bool:
    """A command, a setting or a line of a program."""
    stripped = text.strip()
    return is_command(stripped) or (
        not HAN_CHAR.search(stripped[:400]) and _CODE_SHAPE.search(stripped[:400]) is not None
    )


def error_lines(text: str) -> list[str]:
    """The error lines of a log or a fence, in order, each once, stripped of surrounding space."""
    lines = text.splitlines()
    found = (
        with_statement(line, lines[max(0, n - LINES_ABOVE) : n]).strip()
        for n, line in enumerate(lines)
        if is_error_line(line)
    )
    return list(dict.fromkeys(found))


# --- errors inside a sentence -------------------------------------------------------------------------------------

_QUOTED = re.compile(
    r"``([^`\n]{2,600})``|`([^`\n]{2,600})`|\"([^\"\n]{4,400})\"|“([^”\n]{4,400})”|「([^」\n]{4,400})」|"
    r"‘([^’\n]{4,400})’|"
    r"『([^』\n]{4,400})』|(?<![\w])'([^'\n]{4,300})'(?!\w)"
)
_ASCII_RUN = re.compile(r"[\x20-\x7e“”‘’]{6,600}")
_WORDS = re.compile(r"[A-Za-z]{2,}")
# The words in front of a message in a sentence; the text that follows is the message.
_ANNOUNCED = re.compile(
    r"(?:(?:错误|报错|异常)(?:信息|提示|内容|日志)?|报|提示|报出|抛出|出现|显示|输出|打印|返回|日志为|日志末尾为|"
    r"\b(?:fails? with|failed with|error is|error was|raises|throws|"
    r"reports|prints|says|error message(?: is)?|message|crash(?:es|ed) with|exits? with|(?:stop|abort|die|end|"
    r"answer|respond|finish|return)(?:s|ed)? with|repeats|repeated|returned|returns|"
    r"shows|showed|got|get|receive|received|saying|threw|throws|logged|printed|ended with|ends with|fails on|error))"
    r"(?:了|为|如下|是|以下错误|错误)?[:：]?\s{0,3}$",
    re.IGNORECASE,
)


# What do I do when the error occurs: ERROR 1064 (HY000): …? The message is what follows.
_TOLD = re.compile(
    r"(?:What|Why|How|When|While|If|In|On|This|My|I|We|You)\b[^:\n]{8,160}\b(?:errors?|message|exception)"
    r"(?: (?:message|is|was|occurs|occurred|appears|appeared|says|reads)){0,2}: (?=\S)([^\n]{8,600}?)[?？]?$"
)


def quoted(text: str) -> Iterator[tuple[int, str]]:
    """(offset, content) of each text in straight, curly or corner quotes or in inline code, in order, not nested."""
    for match in _QUOTED.finditer(text):
        yield match.start(), next(group for group in match.groups() if group is not None).strip()


def quoted_errors(sentence: str) -> list[str]:
    """Error strings inside a sentence: in quotes, in inline code, behind `the error occurs:`, or an ASCII run between
    Chinese characters."""
    if (told := _TOLD.match(sentence)) and is_error_line(told[1]):
        return [told[1]]
    found: list[str] = []
    spans: list[tuple[int, int]] = []
    for match in _QUOTED.finditer(sentence):
        value = next(group for group in match.groups() if group is not None).strip()
        announced = _ANNOUNCED.search(sentence[max(0, match.start() - 40) : match.start()])
        shown = _SHOWN.match(sentence, match.end()) is not None and " " in value and not _CODE_MARKS.search(value)
        if is_error_line(value) or (_is_message(value) and (announced or _is_informative(value))) or shown:
            found.append(value)
            spans.append(match.span())
    for match in _ASCII_RUN.finditer(sentence):
        if any(start < match.end() and match.start() < end for start, end in spans):
            continue
        whole = match.start() == 0 and match.end() == len(sentence)
        words = len(_WORDS.findall(match.group()))
        before = sentence[max(0, match.start() - 40) : match.start()]
        named = words >= 4 and _ANNOUNCED.search(before) is not None
        if not whole and words >= 2 and (named or is_error_line(match.group())):
            found.append(match.group().strip(" ,;:-\"'“”‘’`*"))
    for match in _BARE_NAME.finditer(sentence):
        if not any(start <= match.start() < end for start, end in spans) and not any(
            match[0] in text for text in found
        ):
            found.append(match[0])
    return list(dict.fromkeys(found))


# `channel_max reached` is logged
_SHOWN = re.compile(
    r"\s?(?:is |are |was |were |gets )?(?:logged|printed|shown|displayed|reported|appears?|comes up)\b|"
    r"\s?(?:的)?(?:报错|错误提示|字样)"
)

# Names of failures that need no quotes: SignatureDoesNotMatch, query_wait_timeout, exit code 137.
_BARE_NAME = re.compile(
    r"(?<![A-Za-z0-9_.$/\-])(?:(?:[A-Z][a-z]{1,20}){1,5}(?:NotMatch|NotFound|Failed|Exceeded|Denied|Mismatch|BackOff|"
    r"Refused|Unavailable|Killed|Overflow)(?:[A-Z][a-z]{1,20}){0,2}|[a-z]{2,20}(?:_[a-z]{2,20}){1,4}_(?:timeout|"
    r"failed|refused|denied|"
    r"exceeded|unavailable)|exit (?:code|status) [1-9]\d{0,2})(?![A-Za-z0-9_(=])"
)
_FAILURE_WORD = re.compile(
    r"\b(?:error|fail(?:s|ed|ure)?|fatal|abort(?:s|ed)?|denied|refused|warn(?:ing)?|exhausted|stale|lost|"
    r"expired|exceeded|timeout|unavailable|missing|"
    r"invalid|unknown|cannot|corrupt(?:ed)?|mismatch|not found|rejected|stopped|unreachable|disconnected)\b",
    re.IGNORECASE,
)
_CODE_MARKS = re.compile(r"^[-./~$<]|[{}=;]|\w\(|--\w")


def _is_informative(value: str) -> bool:
    return _FAILURE_WORD.search(value) is not None or (
        len(_WORDS.findall(value)) >= 5 and not _CODE_MARKS.search(value)
    )


def _is_message(value: str) -> bool:
    """Words, as a program prints them; not an option, a path or a command."""
    return len(_WORDS.findall(value)) >= 3 and " " in value and not is_command(value) and not value.startswith("-")
