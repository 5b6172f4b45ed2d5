"""Here is text from a log, a fence or a sentence; give me the literal lines by which a failure is known.

An error line is what a program printed to say that it failed: not the frames around it, not progress, not the
command that was typed. Every pattern is a literal or bounded, so time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.text import HAN_CHAR

__all__ = [
    "error_lines",
    "has_error",
    "is_command",
    "is_error_line",
    "looks_like_code",
    "opens_with_error",
    "quoted",
    "quoted_errors",
]

_MAX_LINE = 2000

# A name that ends like an exception, then a colon, a bracket or the end: `torch.OutOfMemoryError: CUDA ...`
_EXCEPTION = re.compile(
    r"(?:[A-Za-z0-9]|\b)(?:Error|Exception|Warning|Interrupt|Fault|Failure|NotFound|Refused|Timeout|Expired|Exit)"
    r"(?:Kind|Code|Group)?(?: ?\[[^\]\n]{0,40}\]| ?\([^)\n]{0,40}\))?(?=:|：|$|\[| \()"
)
_ERRNO = re.compile(
    r"\[Errno -?\d{1,5}\]|\b(?:E(?:(?:ACCES|ADDRINUSE|CONNREFUSED|CONNRESET|EXIST|INTEGRITY|INVAL|MFILE|NOENT|"
    r"NOSPC|NOTFOUND|"
    r"PERM|PIPE|RESOLVE|TARGET|TIMEDOUT)\b|RR_[A-Z_]{3,40}|\d{4,5}\b)|(?:CS|TS)\d{4}\b|ORA-\d{3,5}|SQLSTATE\b|"
    r"C\d{4}:|^(?!KB)[A-Z]{2,5}\d{3,6}: ?(?=[A-Z])|LNK\d{4}\b|"
    r"(?:^|HTTP(?:/\d\.\d)? )[45]\d\d [A-Z][a-z]{2,15}(?: [A-Z][a-z]{1,15}){0,4}(?![\w])|"
    r"SIG(?:KILL|SEGV|ABRT|BUS|FPE|ILL|TERM)\b)"
)
_LEVEL = re.compile(
    r"^(?:[^\w\n]{0,4}|[\w.:/@+\-\[\] ,=]{0,80}[\s\[\]:|])"
    r"(?:error|ERROR|Error|fatal|FATAL|Fatal|FAILED|FAILURE|CRITICAL|PANIC|panic|EMERG|emerg|SEVERE|E)"
    r"(?: ?\[[^\]\n]{0,40}\]| ?\([^)\n]{0,40}\))?(?: [A-Z]{1,4}-?\d{2,6})?(?::|：|!| -|\])(?= ?\S)"
)
_PREFIX = re.compile(
    r"^[^\w\n]{0,4}(?:ERROR \d{3,5} \([A-Z0-9]{5}\)|npm (?:ERR!|error)|ERR!|ERR_|fatal|FATAL|panic|"
    r"Error response from daemon|error during|error in\b|"
    r"Error in\b|error TS|error CS|Segmentation fault|Bus error|Killed\b|Aborted\b|Caught signal|Fatal Python|"
    r"Exit ?code:? ?-?\d|"
    r"exit status [1-9]|Exitcode|Process finished with exit code [1-9-]|Watchdog caught|BUILD FAILED|"
    r"FAILURE: Build|Failed to|"
    r"Unable to|Could not|Cannot|Can't|can not|No such|Permission denied|Access denied|Connection (?:refused|reset|"
    r"timed)|"
    r"Kernel panic|Unhandled|Uncaught|ImportError|Module not found|Missing|Invalid|Illegal|Unsupported|Unknown|"
    r"Unrecognized|"
    r"unrecognized|Refused|Timed? ?out|Out of memory|command not found|Unexpected|Undefined|undefined|Expected|"
    r"A fatal error|An error|There was an error|The requested|Operation not|Job for \S{1,60} failed|nginx: \[emerg\])"
)
# Sayings of failure, wherever they stand in a line; looked for in lower case (eight times faster than IGNORECASE).
_SAYING = re.compile(
    r"no space left on device|out of memory|command not found|no such file or directory|permission denied|"
    r"connection (?:refused|reset|timed out|closed|aborted)|undefined (?:reference|symbol)|segmentation fault|"
    r"core dumped|"
    r"unsupported class file|is not recognized as|could not (?:be |find |resolve |target |connect |open |load |"
    r"read |write )|"
    r"cannot (?:be |find |open |load |import |read |resolve |access |allocate |connect |touch |stat |create |assign )|"
    r"failed to |unable to |failed with|exited with|terminated with|returned non-zero|exit code [1-9-]|not iterable|"
    r"does not exist|not callable|has no attribute|no module named|must be \w{1,30} tensor|timed out|timeout exceeded|"
    r"deadline exceeded|too many |address already in use|already in use|read-only file system|"
    r"has been marked|empty deque|is not defined|not found\b|no matching distribution|unrecognized argument|"
    r"illegal instruction|illegal memory|device-side assert|size mismatch|shape mismatch|mismatch|out of range|"
    r"invalid (?:argument|device|literal|value|syntax|token|reference|option|credentials)|access denied|"
    r"unexpected (?:token|key|end|eof|status)|"
    r"missing (?:key|required|module|\d)|access is denied|not permitted|\boomkilled\b|crashloopbackoff|"
    r"imagepullbackoff|errimagepull|"
    r"bad gateway|gateway time-?out|service unavailable|internal server error|forbidden|unauthorized|"
    r"certificate (?:verify|signed|has expired|is not|required)|"
    r"handshake fail|not a git repository|merge conflict|diverge|is out of date|out of bounds|overflow|"
    r"division by zero|divide by zero|"
    r"deadlock|version conflict|conflicting|incompatible|unmet |unsatisf|not supported|unsupported|no such|"
    r"refused to|denied|"
    r"watchdog caught|blocked by|\brejected\b|corrupt|larger than the maximum|exceeds? the|no kernel image|"
    r"marked as ready|duplicate entry|error[_ ]code:|\"level\":\"(?:fatal|error|panic)\"|is longer than the|"
    r"not ready|gave http response|\bexception: ",
)
_FRAME = re.compile(
    r"^\s{0,200}(?:File \"|Traceback \(most recent|at [\w$.<>]{1,200}\(|at (?:async |"
    r"new )?[\w$.<>\[\] ]{0,80} ?\(?(?:/|file:|node:|https?:)|"
    r"\.{3} \d{1,5} more|During handling of|The above exception was|\^+\s{0,9}$|~+\^|raise |return |assert |self\.|"
    r"from [\w.]{1,120} import |import |def |class |if |for |while |try:|except |#|//|\d{1,3}%\|)"
)
_PROGRESS = re.compile(r"\d{1,3}%\s{0,3}[|█▏▎▍▌▋▊▉\[]|\bit/s\b|\bs/it\b|\bETA\b")
_SUMMARY = re.compile(r"\b0 (?:errors?|failed|failures?)\b|\bno errors?\b|\berrors?: 0\b", re.IGNORECASE)
_COMMAND = re.compile(
    r"^(?:[\w.@~:/\[\]()-]{0,60}[$#>%] )?(?:\$ |# |> |PS [A-Z]:|sudo |export |set |source |cd |pip3? |"
    r"python\d?(?:\.\d+)? -?|conda |mamba |uv |"
    r"npm (?!ERR|error)|npx |yarn |pnpm |node |git |docker(?:-compose)? |kubectl |helm |systemctl |service |"
    r"apt(?:-get)? |yum |dnf |brew |"
    r"apk |curl |wget |chmod |chown |rm |mv |cp |ls |cat |grep |find |df |du |ps |kill |lsof |ss |netstat |ssh |scp |"
    r"tar |unzip |mkdir |ln |echo |tail |head |sed |awk |touch |mount |umount |nvidia-smi|torchrun |deepspeed |"
    r"accelerate |"
    r"swift |llamafactory-cli |vllm |make |cmake |ninja |gcc |g\+\+ |go |cargo |rustc |mvn |gradle |\./gradlew |"
    r"\./|java |"
    r"javac |mysql |psql |redis-cli |nginx -|php |composer |ruby |gem |bundle |powershell |Set-|Get-|New-|Remove-|"
    r"SELECT |INSERT |"
    r"UPDATE |DELETE |ALTER |CREATE |DROP |SHOW |FLUSH |GRANT |CUDA_\w{1,40}=|NCCL_\w{1,40}=|[A-Z][A-Z0-9_]{2,40}=)"
)
_TYPED = re.compile(r"^(?:\w+\.)*\w+ ?(?:\(.{0,200}\)|=.{1,200})$")
_LIMIT_ADVICE = re.compile(
    r"^(?:Try |Please |Consider |Use |Set |Run |See |Note|Tip|Hint|hint:|Solution|To fix|Did you mean)"
)


def is_error_line(line: str) -> bool:
    """Does this line, alone, say that a program failed?"""
    text = line.strip()[:_MAX_LINE]
    if len(text) < 4 or _FRAME.match(text) or _PROGRESS.search(text[:200]) or _SUMMARY.search(text[:200]):
        return False
    if _EXCEPTION.search(text) or _ERRNO.search(text):
        return not is_command(text)
    if is_command(text) or _LIMIT_ADVICE.match(text):
        return False
    return bool(_LEVEL.match(text) or _PREFIX.match(text) or _SAYING.search(text.lower()))


def opens_with_error(line: str) -> bool:
    """The line begins as programs begin their messages: an exception's name, `error:`, `fatal:`."""
    head = line.strip()[:120]
    found = _EXCEPTION.search(head)
    return bool(found and " " not in head[: found.start()].strip("[]0-9: ")) or bool(
        _LEVEL.match(head) or _PREFIX.match(head)
    )


def is_command(line: str) -> bool:
    """A line somebody typed, rather than one a program printed."""
    return _COMMAND.match(line.strip()[:_MAX_LINE]) is not None


_CODE_SHAPE = re.compile(
    r"[{};\\]$|^[})\]]+[,;]?$|^\w[\w.]{0,60}\s?=\s?\S|^\w[\w.]{0,80}\(.{0,200}\)?[,:]?$|"
    r"^--?\w[\w-]{0,40}(?:[ =]\S{1,60})?(?: \\)?$|^@\w|^<[/\w][^>]{0,200}>$|^\[[\w.-]{1,40}\]$|"
    r"^[\w.-]{1,40}:\s?[\w./'\"{\[-]{0,60}$|"
    r"^(?:from|import|def|class|return|if|for|with|const|let|var|public|private|FROM|RUN|ENV|COPY)\s\S"
)


def looks_like_code(text: str) -> bool:
    """A command, a setting or a line of a program."""
    stripped = text.strip()
    return is_command(stripped) or (
        not HAN_CHAR.search(stripped[:400]) and _CODE_SHAPE.search(stripped[:400]) is not None
    )


def error_lines(text: str) -> list[str]:
    """The error lines of a log or a fence, in order, each once, stripped of surrounding space."""
    found = (line.strip() for line in text.splitlines() if is_error_line(line))
    return list(dict.fromkeys(found))


def has_error(text: str) -> bool:
    return any(is_error_line(line) for line in text.splitlines())


# --- errors inside a sentence -------------------------------------------------------------------------------------

_QUOTED = re.compile(
    r"``([^`\n]{2,600})``|`([^`\n]{2,600})`|\"([^\"\n]{4,400})\"|“([^”\n]{4,400})”|「([^」\n]{4,400})」|"
    r"‘([^’\n]{4,400})’|"
    r"『([^』\n]{4,400})』|(?<![\w])'([^'\n]{4,300})'(?!\w)"
)
_ASCII_RUN = re.compile(r"[\x20-\x7e“”‘’]{6,600}")
_WORDS = re.compile(r"[A-Za-z]{2,}")
# What stands before a message in a sentence: the text after it is the message.
_ANNOUNCED = re.compile(
    r"(?:(?:错误|报错|异常)(?:信息|提示|内容|日志)?|报|提示|报出|抛出|出现|显示|输出|打印|返回|日志为|日志末尾为|"
    r"\b(?:fails? with|failed with|error is|error was|raises|throws|"
    r"reports|prints|says|error message(?: is)?|message|crash(?:es|ed) with|exits? with|(?:stop|abort|die|end|"
    r"answer|respond|finish|return)(?:s|ed)? with|repeats|repeated|returned|returns|"
    r"shows|showed|got|get|receive|received|saying|threw|throws|logged|printed|ended with|ends with|fails on|error))"
    r"(?:了|为|如下|是|以下错误|错误)?[:：]?\s{0,3}$",
    re.IGNORECASE,
)


def quoted(text: str) -> Iterator[tuple[int, str]]:
    """Where and what stands in straight, curly or corner quotes or inline code, left to right, not nested."""
    for match in _QUOTED.finditer(text):
        yield match.start(), next(group for group in match.groups() if group is not None).strip()


def quoted_errors(sentence: str) -> list[str]:
    """Error strings inside a sentence: in quotes, in inline code, or an ASCII run between Chinese characters."""
    found: list[str] = []
    spans: list[tuple[int, int]] = []
    for match in _QUOTED.finditer(sentence):
        value = next(group for group in match.groups() if group is not None).strip()
        announced = _ANNOUNCED.search(sentence[max(0, match.start() - 40) : match.start()])
        shown = _SHOWN.match(sentence, match.end()) is not None and " " in value and not _CODE_MARKS.search(value)
        if is_error_line(value) or (_is_message(value) and (announced or _is_telling(value))) or shown:
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
_TELLING = re.compile(
    r"\b(?:error|fail(?:s|ed|ure)?|fatal|abort(?:s|ed)?|denied|refused|warn(?:ing)?|exhausted|stale|lost|"
    r"expired|exceeded|timeout|unavailable|missing|"
    r"invalid|unknown|cannot|corrupt(?:ed)?|mismatch|not found|rejected|stopped|unreachable|disconnected)\b",
    re.IGNORECASE,
)
_CODE_MARKS = re.compile(r"^[-./~$<]|[{}=;]|\w\(|--\w")


def _is_telling(value: str) -> bool:
    return _TELLING.search(value) is not None or (len(_WORDS.findall(value)) >= 5 and not _CODE_MARKS.search(value))


def _is_message(value: str) -> bool:
    """Words, as a program prints them; not an option, a path or a command."""
    return len(_WORDS.findall(value)) >= 3 and " " in value and not is_command(value) and not value.startswith("-")
