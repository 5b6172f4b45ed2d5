"""Here is what somebody pasted; give me the lines that identify the failure, and the words around them.

A log of forty lines holds one line that matters and thirty-nine that are different on every machine. Prefixes (rank,
time, level, worker), colours and progress go; error lines come first, the last one foremost, because a chained
traceback ends in the exception that stopped the program; frames keep their file and function; what is left is prose.
"""

from __future__ import annotations

import re
from collections import deque

from kb.errors import QueryError
from kb.records import Lang, Query
from kb.text import HAN_CHAR, clean

__all__ = ["MAX_QUERY_CHARS", "codes", "contradicts", "is_around", "mask", "read", "strip_prefix"]

# A longer text, and a longer line, keeps its first and last half of this: tracebacks end in what matters. Of a longer
# text the lines between that speak of failure stay, too.
MAX_QUERY_CHARS = 1 << 16
MAX_LINE_CHARS = 2000
MAX_MIDDLE_LINES = 200  # of those between the ends that speak of failure, the last ones
MAX_SIGNATURES = 5

_ANSI = re.compile(
    r"\x1b\[[0-9;?]{0,20}[ -/]?[@-~]|\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
_PREFIX = re.compile(
    r"\s*(?:"
    r"\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d[.,\d]{0,10}(?:Z|[+-]\d\d:?\d\d)?\]?:?"  # 2025-02-25T11:20:18+00:00
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,60} [\w./-]{1,60}(?:\[\d{1,9}\])?:"  # Feb 25 11:20:18 node7 x[88]:
    r"|\[?\d\d:\d\d:\d\d[.,\d]{0,10}\]?"  # 11:20:18
    r"|[IWEF]\d{4} \d\d:\d\d:\d\d[.\d]{0,10}(?: \d{1,9})?(?: [\w./-]{1,120}:\d{1,6}\])?"  # E0225 11:20:18 9 run.py:7]
    r"|\[(?:rank|Rank|default) ?\d{1,5}\]:?|\[\d{1,5}\]:|(?:worker|rank|node)[-_ ]?\d{1,5}:"  # [rank3]: worker-1:
    r"|\[\d{1,5},\d{1,5}\]<std(?:out|err)>:|\d{1,5}: (?=\S)"  # mpirun: [1,3]<stderr>: srun --label: 3:
    r"|\([\w.-]{1,40} (?:pid|rank|TP|PP)=?[^()]{1,60}\)"  # (VllmWorker pid=88)
    r"|\[(?:INFO|DEBUG|WARN|WARNING|ERROR|CRITICAL|FATAL)(?:\|[^\]]{1,120})?\]"  # [INFO|trainer.py:2452]
    r"|(?:INFO|DEBUG|WARN|WARNING|ERROR|CRITICAL)(?=[ :]\s*(?:\d\d-\d\d|\[|\())[: ]"  # ERROR 02-25 ...
    r"|\d\d-\d\d \d\d:\d\d:\d\d(?: \[?[\w./-]{1,60}:\d{1,6}\]?)?"  # vLLM: 02-25 11:20:18 [core.py:390]
    r"|\[[\w./-]{1,60}\.(?:py|cpp|cc|cu):\d{1,6}(?::\w{1,60})?\]"  # [loss_scaler.py:183:update_scale]
    r"|\[[IWEF](?:\d{3,4} \d\d:\d\d:\d\d[.\d]{0,10})? [\w./-]{1,60}:\d{1,6}\]"  # [E225 11:20:18.142 Group.cpp:616]
    r"|(?:>>|[|+])(?=\s)"  # the bars of an exception group, a shell's trace
    r")[ \t]?"  # one space: what is indented behind it stays indented
)
_FRAME = re.compile(r'\s*File "([^"]{1,400})", line \d{1,9}(?:, in (.{1,80}))?')
_TRACEBACK = re.compile(
    r".{0,200}Traceback \(most recent call last\)"
    r"|During handling of the above exception|The above exception was the direct cause"
)
# What launchers and interpreters say around every failure: it tells which one only where nothing else does.
_AROUND = re.compile(
    r".{0,100}Sending process \d{1,9} closing signal|Killing subprocess|.{0,200}ChildFailedError|[=\-*]{8,}|Failures:"
    r"|Root Cause|<NO_OTHER_FAILURES>|\[\d{1,4}\]:$|(?:time|host|rank|exitcode|error_file|traceback) {1,8}:"
    r"|.{0,100}failed \(exitcode: -?\d{1,5}\)|.{0,200}exits with return code|.{0,200}Warning:|warnings\.warn\("
    r"|.{0,80}process group has NOT been destroyed"
)
# What a trainer says of a step that went well; a loss of 0 and one that is no number say something else.
_METRICS = re.compile(r"\{.{0,80}['\"](?:train_|eval_)?loss['\"]: ?[0-9.]{0,12}[1-9]")
_PROGRESS = re.compile(r"\d{1,3}%\s?\||\d(?:\.\d+)?\s?(?:it/s|s/it)\b|[\u2580-\u259f]{3}")
_FAILURE_WORD = re.compile(
    r"[Ee]rror|ERROR|Exception|Traceback|[Ff]ail|FATAL|Killed|signal \d|\bnan\b|NaN|\bOOM\b|exit ?code"
)

# Numbers that say which failure it is. 137 and -9 are the same signal.
_EXIT = re.compile(
    r"(?:return code|exit(?:s|ed)?(?: with)?(?: (?:return|exit))? ?(?:code|status)|exitcode)[^\w\n-]{0,6}(-?\d{1,3})\b",
    re.IGNORECASE,
)
_SIGNAL_NUMBER = re.compile(r"(?<!closing )\bsignal[: ]{1,2}(\d{1,2})\b", re.IGNORECASE)
_SIGNAL_NAME = re.compile(r"(?<!closing signal )\bSIG(HUP|INT|QUIT|ILL|TRAP|ABRT|BUS|FPE|KILL|SEGV|PIPE|TERM)\b")
_SIGNAL_WORDS = re.compile(
    r"(?:signal: |^|: )(Killed|Segmentation fault|Bus error|Aborted|Floating point exception|Illegal instruction|"
    r"Terminated)(?:\.|$| \(core dumped\))",
    re.MULTILINE,
)
_XID = re.compile(r"\bXid(?: \(PCI:[0-9a-fA-F:.]{1,20}\))?:? (\d{1,3})\b")
_SIGNALS = {
    "HUP": "1", "INT": "2", "QUIT": "3", "ILL": "4", "TRAP": "5", "ABRT": "6", "BUS": "7", "FPE": "8", "KILL": "9",
    "SEGV": "11", "PIPE": "13", "TERM": "15", "Killed": "9", "Segmentation fault": "11", "Bus error": "7",
    "Aborted": "6", "Floating point exception": "8", "Illegal instruction": "4", "Terminated": "15",
}  # fmt: skip

_MASKS = (
    (re.compile(r"0x[0-9a-fA-F]+"), "#"),
    (re.compile(r"(?:[A-Za-z]:)?(?:[\\/][\w.@+~-]+){2,}[\\/]?"), "/#"),
    (re.compile(r"\d+(?:[.,:]\d+)*"), "#"),
)


def read(text: str) -> Query:
    """Raises QueryError for a text without a single letter or digit. Time is linear in the text."""
    cut = clean(_ANSI.sub("", _telling(text)))
    if not any(char.isalnum() for char in cut):
        raise QueryError(
            "there is nothing to look for in this question", hint="paste an error message or describe the problem"
        )
    # A terminal shows what stands behind a line's last carriage return; one at its end belongs to a Windows line end.
    lines = [_ends(line.rstrip("\r").rsplit("\r", 1)[-1], MAX_LINE_CHARS, " ") for line in cut.split("\n")]
    lines = [line for line in lines if line.strip()]
    if len(lines) == 1:
        line = strip_prefix(lines[0])
        return Query(text, _lang(line), (line,) if _FAILURE_WORD.search(line) else (), line, "")
    return _read_log(text, lines)


def _read_log(text: str, lines: list[str]) -> Query:
    from kb.logs.errors import is_error_line  # its patterns take as long to compile as a whole search of one line

    errors: dict[str, str] = {}  # masked form -> the line, so that eight ranks count once
    prose: dict[str, str] = {}
    context: dict[str, str] = {}
    around: dict[str, str] = {}
    in_traceback = False
    for raw in lines:
        line = strip_prefix(raw)
        if not line or ((_PROGRESS.search(raw) or _METRICS.match(line)) and not _FAILURE_WORD.search(line)):
            continue
        if frame := _FRAME.match(line):
            in_traceback = True
            name = re.split(r"[\\/]", frame[1])[-1] + " " + (frame[2] or "").rstrip()
            context.setdefault(name, name)
        elif _TRACEBACK.match(line):
            in_traceback = True
        elif in_traceback and line[:1].isspace():
            context.setdefault(line.strip(), line.strip())
        elif _AROUND.match(line.lstrip()):
            in_traceback = False
            around[mask(line)] = line.strip()
        elif is_error_line(line):
            in_traceback = False
            key = mask(line)
            errors.pop(key, None)  # a repeated line counts where it stands last
            errors[key] = line.strip()
        else:
            in_traceback = False
            prose.setdefault(mask(line), line.strip())
    signatures = tuple(reversed((errors or around).values()))[:MAX_SIGNATURES]
    words = "\n".join(prose.values())
    frames = [*context.values(), *(around.values() if errors else ())]
    return Query(text, _lang(words), signatures, words, "\n".join(frames))


def _lang(words: str) -> Lang:
    """Programs print English on every machine: one Chinese character tells that a Chinese reader asks."""
    return "zh" if HAN_CHAR.search(words) else "en"


def _telling(text: str) -> str:
    """All of a text of usual length; of a longer one both ends, and between them the lines that speak of failure."""
    if len(text) <= MAX_QUERY_CHARS:
        return text
    half = MAX_QUERY_CHARS // 2
    lines: deque[str] = deque(maxlen=MAX_MIDDLE_LINES)
    at = half
    while found := _FAILURE_WORD.search(text, at, len(text) - half):
        first = text.rfind("\n", max(0, found.start() - MAX_LINE_CHARS), found.start()) + 1
        at = text.find("\n", found.end(), found.end() + MAX_LINE_CHARS)
        at = at if at >= 0 else found.end() + MAX_LINE_CHARS
        lines.append(text[max(first, found.start() - MAX_LINE_CHARS) : at])
    return "\n".join((text[:half], *lines, text[-half:]))


def _ends(text: str, most: int, between: str) -> str:
    """The first and the last half of `most` characters of a longer text."""
    return text if len(text) <= most else text[: most // 2] + between + text[-(most // 2) :]


def strip_prefix(line: str) -> str:
    """The line without rank, time, level and worker in front of it; the indentation of what follows is kept."""
    at = 0
    for _ in range(6):
        found = _PREFIX.match(line, at)
        if found is None or found.end() == at:
            break
        at = found.end()
    return line[at:]


def is_around(line: str) -> bool:
    """Do launchers and interpreters say this around every failure, whichever it is?"""
    return _AROUND.match(strip_prefix(line).lstrip()) is not None


def codes(text: str) -> frozenset[tuple[str, str]]:
    """What the text says by number that names a failure: ("exit", signal) of a process that died by one, however that
    is written, ("exit", "code") of one that ended with an ordinary code, ("xid", number) of a GPU."""
    found = {("xid", number) for number in _XID.findall(text)}
    for code in map(int, _EXIT.findall(text)):
        if code:
            died = -code if code < 0 else code - 128 if 128 < code < 160 else 0
            found.add(("exit", str(died) if died else "code"))
    found.update(("exit", number) for number in _SIGNAL_NUMBER.findall(text))
    found.update(("exit", _SIGNALS[name]) for name in (*_SIGNAL_NAME.findall(text), *_SIGNAL_WORDS.findall(text)))
    return frozenset(found)


def contradicts(asked: frozenset[tuple[str, str]], told: frozenset[tuple[str, str]]) -> bool:
    """Do both give a code of one kind, and never the same?"""
    return any(
        kind in {other for other, _ in told} and not {code for code in asked & told if code[0] == kind}
        for kind in {kind for kind, _ in asked}
    )


def mask(line: str) -> str:
    """The line with what differs between machines replaced: addresses, paths, numbers."""
    for pattern, stand_in in _MASKS:
        line = pattern.sub(stand_in, line)
    return " ".join(line.split())
