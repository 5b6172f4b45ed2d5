"""Reads a pasted text: the lines that identify the failure, and the words around them.

A log of forty lines holds one line that matters and thirty-nine that differ on every machine. Prefixes, colours and
progress bars go. Lines of failure (`kb.logs.classify`) become signatures, the last one first, because a chained
traceback ends in the exception that stopped the program. Frames keep their file and function as context. The rest is
prose. A text of one line is read like the same line in a log.
"""

from __future__ import annotations

import re
from collections import deque

from kb.errors import QueryError
from kb.logs.assertions import LINES_ABOVE, with_statement
from kb.logs.classify import (
    classify,
    frame_of,
    has_prompt,
    is_announcement,
    is_error_line,
    says_it_in_passing,
)
from kb.logs.prefix import strip_prefix
from kb.logs.variables import mask
from kb.records import Lang, Query
from kb.text import HAN_CHAR, clean

__all__ = ["MAX_LINE_CHARS", "MAX_QUERY_CHARS", "MAX_SIGNATURES", "read"]

# A longer text, and a longer line, keeps its first and last half of this: tracebacks end in what matters. Of a longer
# text the lines between that may name a failure stay, too.
MAX_QUERY_CHARS = 1 << 16
MAX_LINE_CHARS = 2000
MAX_MIDDLE_LINES = 100  # of those between the ends, the first ones and as many of the last
MAX_FORMS = 4096  # of them that are remembered, so that each counts once
MAX_SIGNATURES = 5
FIRST_FAILURES, LAST_FAILURES = 6, 6  # of a log, each of which is searched for by itself
LEAST_LOG_LINES = 5
LONG_LOG_LINES = 20  # so many lines nobody writes
LEAST_PRINTED = 0.5  # of the lines of a log: a prefix, a frame, a progress bar

_HAS_LEVEL = re.compile(r"\b(?:INFO|DEBUG|WARNING|ERROR)\b")
_LEVEL = re.compile(r"\b(?:ERROR|CRITICAL|FATAL)\b")
_NO_DIGITS = str.maketrans("", "", "0123456789")
_HEADLESS = re.compile(r"[A-Za-z_][\w.]{0,100}(?:Error|Exception):")
# A loss of 0 or nan, a gradient that is no number: the program goes on, and the training has failed.
_NO_NUMBER = re.compile(
    r"\bloss['\"]?(?: is)?[ =:]{1,3}['\"]?(?:nan\b|0\.0{1,8}(?![\d.])|0(?![\d.]))"
    r"|\bnorm['\"]?(?: is)?[ =:]{1,3}['\"]?nan\b",
    re.IGNORECASE,
)
_PRINTED = ("failure", "launcher", "warning", "traceback", "frame", "progress", "metrics")
_ANSI = re.compile(
    r"\x1b\[[0-9;?]{0,20}[ -/]?[@-~]|\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
# A cheap first look at the middle of a very long text, megabytes perhaps; `classify` decides about the lines it keeps.
_MAY_NAME_A_FAILURE = re.compile(r"[Ee]rror|ERROR|Exception|Traceback|[Ff]ail|FATAL|Killed|signal \d|exit ?code")


def read(text: str, *, printed: bool = False) -> Query:
    """`printed`: a program printed all of it, and nobody wrote around it. Time is linear in the text.

    Raises QueryError for what is no text, or has not a single letter or digit."""
    _require_text(text)
    cut = clean(_ANSI.sub("", _plain(_shortened(text))))
    if not any(char.isalnum() for char in cut):
        raise QueryError(
            "there is nothing to look for in this question", hint="paste an error message or describe the problem"
        )
    failures: dict[str, str] = {}  # masked form -> the line, so that eight ranks count once
    warnings: dict[str, str] = {}
    launchers: dict[str, str] = {}
    prose: dict[str, str] = {}
    typed: dict[str, None] = {}
    left_out: dict[str, str] = {}
    context: dict[str, str] = {}
    first: dict[str, str] = {}  # of the failures, in the order of their first occurrence, with their prefixes
    launched: dict[str, str] = {}  # the same of what launchers print
    lines = like_printed = 0
    in_traceback = ends_in_traceback = False
    headless: tuple[str, str] | None = None
    raws = cut.split("\n")
    may_be_told = not printed and len(raws) < LONG_LOG_LINES
    for n, (raw, following) in enumerate(zip(raws, [*raws[1:], ""], strict=True)):
        # A terminal shows what stands behind a line's last carriage return; one at its end is part of a line end.
        whole = _ends(raw.rstrip("\r").rsplit("\r", 1)[-1], MAX_LINE_CHARS)
        line = strip_prefix(whole)
        stripped = line.strip()
        kind = classify(whole, picked=True)
        prefix = whole[: len(whole) - len(line)]
        if kind == "failure" and may_be_told and not prefix and says_it_in_passing(whole) and _is_told(stripped):
            kind = "text"
        if headless and stripped:  # the message of an exception may begin on a line of its own
            if kind == "text" and prefix == headless[0] and not _HAS_LEVEL.search(whole):
                line = stripped = f"{headless[1]} {stripped}"
                whole, kind = prefix + line, "failure"
            else:
                failures[headless[1]] = first[headless[1]] = headless[1]
            headless = None
        if kind == "failure" and _HEADLESS.fullmatch(stripped):
            headless = prefix, stripped
            in_traceback = False
            lines += 1
            like_printed += 1
            continue
        frame = frame_of(line) if kind == "frame" else None
        says = not in_traceback and (kind == "failure" or _LEVEL.search(whole[:200]))
        announces = says and is_announcement(stripped, strip_prefix(following))
        lines += bool(stripped)
        like_printed += bool(stripped) and (line is not whole or kind in _PRINTED)
        if _NO_NUMBER.search(stripped):
            first.setdefault(mask(line), whole.strip())
        if not stripped or kind in ("progress", "metrics"):
            left_out.setdefault(kind, whole.strip())
        elif frame or kind == "traceback":
            in_traceback = True
            if frame:
                context.setdefault(frame, frame)
            else:
                left_out.setdefault(kind, stripped)
        elif announces or (line[:1].isspace() and (in_traceback or kind in ("frame", "source"))):
            context.setdefault(stripped, stripped)
        elif kind == "failure":
            in_traceback, ends_in_traceback = False, in_traceback
            whole = with_statement(whole, raws[max(0, n - LINES_ABOVE) : n])
            line = whole[len(prefix) :]
            stripped = line.strip()
            key = mask(line)
            failures.pop(key, None)  # a repeated line counts where it stands last
            failures[key] = stripped
            first.setdefault(key, whole.strip())
        else:
            in_traceback = False
            ends_in_traceback &= kind == "launcher"
            if kind == "warning":
                warnings[mask(line)] = stripped
            elif kind == "launcher":
                launchers[mask(line)] = stripped
                launched.setdefault(mask(line), whole.strip())
            else:
                prose.setdefault(mask(line), stripped)
                if _LEVEL.search(whole[:200]):
                    first.setdefault(mask(line), whole.strip())
                if kind == "command" and has_prompt(line):
                    typed[stripped] = None
    if headless:
        failures[headless[1]] = first[headless[1]] = headless[1]
    # A warning identifies a failure only where nothing else does; what launchers print never does.
    signatures = tuple(reversed((failures or warnings).values()))[:MAX_SIGNATURES]
    words, behind = [*prose.values()], [*context.values()]
    if signatures:
        behind += [*(warnings.values() if failures else ()), *launchers.values()]
    else:
        words += launchers.values()
        described = [line for line in words if line not in typed]
        if not described and not context:
            described = [line for line in left_out.values() if line]
        if described:  # a command in front of a description is not part of it
            words, behind = described, [*behind, *typed]
    lang = _lang("\n".join((*words, *signatures)))
    is_log = printed or lines >= LONG_LOG_LINES
    is_log = is_log or (lines >= LEAST_LOG_LINES and (like_printed >= LEAST_PRINTED * lines or ends_in_traceback))
    said = _failures(first, launched) if lines > 1 or printed else ()
    return Query(text, lang, signatures, "\n".join(words), "\n".join(behind), said, is_log)


def _failures(first: dict[str, str], launched: dict[str, str]) -> tuple[str, ...]:
    """See `Query.failures`. A line that a program calls a warning, or after which it goes on, is none."""
    found = [line for line in first.values() if _NO_NUMBER.search(line) or classify(line) in ("failure", "suspect")]
    found = found or [line for line in launched.values() if is_error_line(line)]
    if len(found) > FIRST_FAILURES + LAST_FAILURES:
        found = found[:FIRST_FAILURES] + found[-LAST_FAILURES:]
    return tuple(found)


def _is_told(line: str) -> bool:
    from kb.logs.told import is_told  # few questions need it

    return is_told(line)


def _lang(words: str) -> Lang:
    """Programs print English on every machine: one Chinese character shows that a Chinese reader asks. Bytes that are
    no text hold some by accident, among many that are no character."""
    lines = words.split("\n")
    return "zh" if any(len(HAN_CHAR.findall(line)) > line.count("\ufffd") for line in lines) else "en"


def _require_text(question: object) -> None:
    if not isinstance(question, str):
        what = f"the question is of type {type(question).__name__}, and it can only be a str"
        raise QueryError(what, hint="bytes: text.decode(); an exception: its traceback")


def _plain(text: str) -> str:
    """A log of JSON objects as a plain one."""
    if '"' not in text or "{" not in text:
        return text
    from kb.logs.structured import unfolded  # few questions have any, and a search should start at once

    return unfolded(text)


def _shortened(text: str) -> str:
    """A text of usual length as it is; of a longer one both ends, and from between them the lines that may name a
    failure."""
    if len(text) <= MAX_QUERY_CHARS:
        return text
    half = MAX_QUERY_CHARS // 2
    lines: list[str] = []
    last: deque[str] = deque(maxlen=MAX_MIDDLE_LINES)
    seen: set[str] = set()  # without their digits: a line that comes a thousand times crowds no other one out
    at = half
    while found := _MAY_NAME_A_FAILURE.search(text, at, len(text) - half):
        first = text.rfind("\n", max(0, found.start() - MAX_LINE_CHARS), found.start()) + 1
        at = text.find("\n", found.end(), found.end() + MAX_LINE_CHARS)
        at = at if at >= 0 else found.end() + MAX_LINE_CHARS
        line = text[max(first, found.start() - MAX_LINE_CHARS) : at]
        form = line.translate(_NO_DIGITS)
        if form in seen:
            continue
        if len(seen) < MAX_FORMS:
            seen.add(form)
        into = lines if len(lines) < MAX_MIDDLE_LINES else last
        into.append(line)
    return "\n".join((text[:half], *lines, *last, text[-half:]))


def _ends(line: str, most: int) -> str:
    """The first and the last half of `most` characters of a longer line."""
    return line if len(line) <= most else line[: most // 2] + " " + line[-(most // 2) :]
