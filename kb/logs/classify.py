"""What one printed line says: that something failed, that something is wrong but the program goes on, or neither.

This is the only place that decides it; for a line of a log it asks `kb.logs.levels` as well. `classify` gives a line
one kind:

    failure    a program says that it failed: `RuntimeError: ...`, `fatal: ...`, `bash: nvcc: command not found`
    suspect    a word of failure, but not in a form that programs print: `loss is nan`, `训练失败`
    launcher   what a launcher prints around every failure, whichever it is: `exits with return code = 1`
    warning    something is wrong and the program goes on: a level of WARNING, `Retrying in 1s`
    healthy    a level below that, a list of changes, `0 errors`
    traceback  the heading of a traceback
    frame      a line of a stack trace: `File "train.py", line 6`
    source     a line of source code
    progress   a progress bar
    metrics    what a trainer prints of a step that went well
    command    what somebody typed
    text       anything else

The vocabulary is literal or bounded, so time is linear in the line. Most of it is plain substrings: they need no
compilation, which a search of one line would wait for, and Python finds them faster than an alternation of as many.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import Literal

from kb.logs.prefix import HEAD_CHARS, strip_prefix

__all__ = [
    "LineKind",
    "classify",
    "frame_of",
    "has_prompt",
    "is_announcement",
    "is_command",
    "is_error_line",
    "is_launcher_line",
    "is_usual",
    "opens_with_error",
    "says_failure",
    "says_it_in_passing",
    "warns",
]

LineKind = Literal[
    "failure", "suspect", "launcher", "warning", "healthy", "traceback", "frame", "source", "progress", "metrics",
    "command", "text",
]  # fmt: skip

_MAX_CHARS = 2000  # of a line; the rest is not looked at
_LEAST_CHARS = 4

# --- how programs say that they failed ------------------------------------------------------------------------------

# A name that ends like an exception, then a colon, a bracket or the end: `torch.OutOfMemoryError: CUDA ...`
_EXCEPTION = re.compile(
    r"(?:[A-Za-z0-9]|\b)(?:Error|Exception|Warning|Interrupt|Fault|Failure|NotFound|Refused|Timeout|Expired|Exit)"
    r"(?:Kind|Code|Group)?(?: ?\[[^\]\n]{0,40}\]| ?\([^)\n]{0,40}\))?(?=:|：|$|\[| \()"
    r"|^(?:[a-z_]\w{0,40}\.){1,4}error: "  # those of modules in C: `cv2.error: `, `zlib.error: `
)
_ERROR_CODE = re.compile(
    r"\[Errno -?\d{1,5}\]|\b(?:E(?:(?:ACCES|ADDRINUSE|CONNREFUSED|CONNRESET|EXIST|INTEGRITY|INVAL|MFILE|NOENT|"
    r"NOSPC|NOTFOUND|PERM|PIPE|RESOLVE|TARGET|TIMEDOUT)\b|RR_[A-Z_]{3,40}|\d{4,5}\b)|(?:CS|TS)\d{4}\b|ORA-\d{3,5}|"
    r"SQLSTATE\b|C\d{4}:|^(?!KB)[A-Z]{2,5}\d{3,6}: ?(?=[A-Z]|\[PID: )|LNK\d{4}\b|"
    r"(?:^|HTTP(?:/\d\.\d)? )[45]\d\d [A-Z][a-z]{2,15}(?: [A-Z][a-z]{1,15}){0,4}(?![\w])|"
    r"^ERROR \d{3,5} \([A-Z0-9]{5}\)|^Job for \S{1,60} failed|SIG(?:KILL|SEGV|ABRT|BUS|FPE|ILL|TERM)\b)"
)
_ERROR_LEVEL = re.compile(
    r"^(?:[^\w\n]{0,4}|[\w.:/@+\-\[\] ,=]{0,80}[\s\[\]:|])"
    r"(?:error|ERROR|Error|fatal|FATAL|Fatal|FAILED|FAILURE|CRITICAL|PANIC|panic|EMERG|emerg|SEVERE|E)"
    r"(?: ?\[[^\]\n]{0,40}\]| ?\([^)\n]{0,40}\))?(?: [A-Z]{1,4}-?\d{2,6})?(?::|：|!| -|\])(?= ?\S)"
)
# How a message begins, behind a bracket or a bullet at most.
_OPENING = re.compile(r"[^\w\n]{0,4}")
_MESSAGE_STARTS = (
    "npm ERR!", "npm error", "ERR!", "ERR_", "fatal", "FATAL", "panic", "Error response from daemon", "error during",
    "error in ", "Error in ", "error TS", "error CS", "Segmentation fault", "Bus error", "Killed", "Aborted",
    "Caught signal", "Fatal Python", "Exit code", "Exitcode", "exit status 1", "exit status 2", "exit status 3",
    "exit status 4", "exit status 5", "exit status 6", "exit status 7", "exit status 8", "exit status 9",
    "Watchdog caught", "BUILD FAILED", "FAILURE: Build", "Failed to", "Unable to", "Could not", "Cannot", "Can't",
    "can not", "No such", "Permission denied", "Access denied", "Connection refused", "Connection reset",
    "Connection timed", "Kernel panic", "Unhandled", "Uncaught", "ImportError", "Module not found", "Missing",
    "Invalid", "Illegal", "Unsupported", "Unknown", "Unrecognized", "unrecognized", "Refused", "Timeout", "Timed out",
    "Time out", "Out of memory", "command not found", "Unexpected", "Undefined", "undefined", "Expected",
    "A fatal error", "An error", "There was an error", "The requested", "Operation not", "nginx: [emerg]",
)  # fmt: skip
# Wherever they stand in a line, in lower case.
_SAYINGS = (
    "no space left on device", "out of memory", "command not found", "no such file or directory",
    "connection refused", "connection reset", "connection timed out", "connection closed", "connection aborted",
    "undefined reference", "undefined symbol", "segmentation fault", "core dumped", "unsupported class file",
    "is not recognized as", "不是内部或外部命令", "项识别为 cmdlet",
    "could not be ", "could not find ", "could not resolve ", "could not target ",
    "could not connect ", "could not open ", "could not load ", "could not read ", "could not write ", "cannot be ",
    "cannot find ", "cannot open ", "cannot load ", "cannot import ", "cannot read ", "cannot resolve ",
    "cannot access ", "cannot allocate ", "cannot connect ", "cannot touch ", "cannot stat ", "cannot create ",
    "cannot assign ", "failed to ", "unable to ", "failed with", "exited with", "terminated with",
    "returned non-zero", "exit code 1", "exit code 2", "exit code 3", "exit code 4", "exit code 5", "exit code 6",
    "exit code 7", "exit code 8", "exit code 9", "exit code -", "not iterable", "does not exist", "not callable",
    "has no attribute", "no module named", "timed out", "timeout exceeded", "deadline exceeded", "too many ",
    "already in use", "read-only file system", "has been marked", "empty deque", "is not defined", "not found",
    "no matching distribution", "unrecognized argument", "illegal instruction", "illegal memory",
    "device-side assert", "mismatch", "out of range", "invalid argument", "invalid device", "invalid literal",
    "invalid value", "invalid syntax", "invalid token", "invalid reference", "invalid option", "invalid credentials",
    "unexpected token", "unexpected key", "unexpected end", "unexpected eof", "unexpected status", "missing key",
    "missing required", "missing module", "missing 1", "missing 2", "missing 3", "missing 4", "missing 5",
    "missing 6", "missing 7", "missing 8", "missing 9", "access is denied", "not permitted", "oomkilled",
    "crashloopbackoff", "imagepullbackoff", "errimagepull", "bad gateway", "gateway timeout", "gateway time-out",
    "service unavailable", "internal server error", "forbidden", "unauthorized", "certificate verify",
    "certificate signed", "certificate has expired", "certificate is not", "certificate required", "handshake fail",
    "not a git repository", "merge conflict", "diverge", "is out of date", "out of bounds", "overflow",
    "division by zero", "divide by zero", "deadlock", "version conflict", "conflicting", "incompatible", "unmet ",
    "unsatisf", "not supported", "unsupported", "no such", "refused to", "denied", "watchdog caught", "blocked by",
    "rejected", "corrupt", "larger than the maximum", "exceed the", "exceeds the", "no kernel image",
    "marked as ready", "duplicate entry", "error code:", "error_code:", '"level":"fatal"', '"level":"error"',
    '"level":"panic"', "is longer than the", "not ready", "gave http response", "exception: ",
    "error response from daemon", "execution failed", "out of resource", "got completion from peer ",
    "got completion with ", "is not compatible with the current ", "watchdog timeout",
)  # fmt: skip
_OF_SHELLS = ("is not recognized as", "不是内部或外部命令", "项识别为 cmdlet")
_BY_WORD = {
    word: tuple(run) for word, run in groupby(sorted(_SAYINGS), lambda saying: saying[: saying.find(" ") + 1] or saying)
}
"""the sayings by how they begin, so that most of them need not be looked for"""

# --- what is no failure ---------------------------------------------------------------------------------------------

_FRAME = re.compile(r'\s*File "([^"]{1,400})", line \d{1,9}(?:, in (.{1,80}))?')
_CALL = re.compile(
    r"at [\w$.<>]{1,200}\(|at (?:async |new )?[\w$.<>\[\] ]{0,80} ?\(?(?:/|file:|node:|https?:)|\.{3} \d{1,5} more|"
    r"\^+\s{0,9}$|~+\^"
)
_IMPORT = re.compile(r"from [\w.]{1,120} import ")
_SOURCE = (
    "raise ", "return ", "assert ", "self.", "import ", "def ", "class ", "if ", "for ", "while ", "try:", "except ",
)  # fmt: skip
_COMMENT = ("#", "//", "warnings.warn")
_TRACEBACK = re.compile(
    r".{0,200}Traceback \(most recent call last\)"
    r"|During handling of the above exception|The above exception was the direct cause"
)
_NAMED_EXCEPTION = re.compile(r"\w(?:Error|Exception|Exit|Interrupt)\b|\bException: ")
_ANNOUNCEMENT = re.compile(  # what servers, event loops and threads log before any traceback
    r"\b(?:(?:Task|Future|Unhandled|Uncaught) (?:exception|error)|Exception (?:ignored )?(?:in|on)"
    r"|Internal Server Error|Error (?:handling|processing) request"
    r"|An (?:unhandled |unexpected )?(?:error|exception) (?:has )?occurred)\b"
    r"|\bException:?$",
    re.IGNORECASE,
)
_EXCEPTION_BEHIND = re.compile(r"(?:\s|\\n)(?:\w{1,60}\.){0,9}\w{0,60}(?:Error|Exception): \S")
_LAUNCHER = re.compile(
    r".{0,100}Sending process \d{1,9} closing signal|Killing subprocess|.{0,200}ChildFailedError|[=\-*]{8,}|Failures:"
    r"|Root Cause|<NO_OTHER_FAILURES>|(?:time|host|rank|exitcode|error_file|traceback) {1,8}:"
    r"|.{0,100}failed \(exitcode: -?\d{1,5}\)|.{0,200}exits with return code"
    r"|.{0,80}process group has NOT been destroyed"
    r"|.{0,200}(?:Engine ?[Cc]ore|Engine process) (?:initialization )?failed|.{0,80}CalledProcessError: Command"
)
_PYTHON_WARNING = re.compile(r".{0,200}Warning:")
_PROGRESS = re.compile(
    r"\d{1,3}%\s{0,3}[|█▏▎▍▌▋▊▉\[]|[\d?]\s?(?:it/s|s/it)(?:[\]),]|\s{0,9}$)|\bETA:? {0,3}[\d\-?]|[\u2580-\u259f]{3}"
)
_SUMMARY = re.compile(r"\b0 (?:errors?|failed|failures?)\b|\bno errors?\b|\berrors?: 0\b", re.IGNORECASE)
# A loss of 0 and one that is no number do not belong to a step that went well.
_METRICS = re.compile(r"\{.{0,80}['\"](?:train_|eval_)?loss['\"]: ?[0-9.]{0,12}[1-9]")
_ADVICE = re.compile(r"(?:Try |Please |Consider |Use |Set |Run |See |Note|Tip|Hint|hint:|Solution|To fix|Did you mean)")

_SHELL_PROMPT = re.compile(
    r"(?:[\w.@~:/\[\]()-]{0,60}\$|[\w.-]{1,30}@[\w.@~:/\[\]()-]{1,60}[#%>]|PS [A-Z]:[^>\n]{0,80}>) "
)
_PROMPT = re.compile(r"[\w.@~:/\[\]()-]{0,60}[$#>%] ")
_COMMAND = (
    "$ ", "# ", "> ", "sudo ", "export ", "set ", "source ", "cd ", "pip ", "pip3 ", "conda ", "mamba ", "uv ", "npx ",
    "yarn ", "pnpm ", "node ", "git ", "docker ", "docker-compose ", "kubectl ", "helm ", "systemctl ", "service ",
    "apt ", "apt-get ", "yum ", "dnf ", "brew ", "apk ", "curl ", "wget ", "chmod ", "chown ", "rm ", "mv ", "cp ",
    "ls ", "cat ", "grep ", "find ", "df ", "du ", "ps ", "kill ", "lsof ", "ss ", "netstat ", "ssh ", "scp ", "tar ",
    "unzip ", "mkdir ", "ln ", "echo ", "tail ", "head ", "sed ", "awk ", "touch ", "mount ", "umount ", "nvidia-smi",
    "torchrun ", "deepspeed ", "accelerate ", "swift ", "llamafactory-cli ", "vllm ", "make ", "cmake ", "ninja ",
    "gcc ", "g++ ", "go ", "cargo ", "rustc ", "mvn ", "gradle ", "./", "java ", "javac ", "mysql ", "psql ",
    "redis-cli ", "nginx -", "php ", "composer ", "ruby ", "gem ", "bundle ", "powershell ", "Set-", "Get-", "New-",
    "Remove-", "SELECT ", "INSERT ", "UPDATE ", "DELETE ", "ALTER ", "CREATE ", "DROP ", "SHOW ", "FLUSH ", "GRANT ",
)  # fmt: skip
_COMMAND_SHAPE = re.compile(r"PS [A-Z]:|python\d?(?:\.\d+)? |npm (?!ERR|error)|[A-Z][A-Z0-9_]{2,40}=")


def classify(line: str, *, picked: bool = False) -> LineKind:
    """The kind of one line of a log. `picked`: a person chose to show this line, in a question or on a page. Then a
    low level does not make it harmless, the words alone decide: `healthy` and `suspect` do not occur, and `warning`
    only for Python's own (`UserWarning: ...`)."""
    bare = strip_prefix(line)
    text = bare.strip()[:_MAX_CHARS]
    if len(text) < _LEAST_CHARS:
        return "text"
    head = text[:HEAD_CHARS]
    if _TRACEBACK.match(text):
        return _unless_flattened("traceback", text)
    if text.startswith('File "') or _CALL.match(text):
        return _unless_flattened("frame", text)
    if _LAUNCHER.match(text):
        return "launcher"
    if _PROGRESS.search(head):
        return _unless_flattened("progress", text)
    lower = text.lower()
    if _METRICS.match(text) and "nan" not in lower:
        return "metrics"
    level = None
    if not picked:
        from kb.logs import levels  # a search asks for picked lines only, and need not wait for these patterns

        level = levels.level_of(line)
        if mild := levels.mild_kind(line, bare, level):
            return mild
    elif _PYTHON_WARNING.match(text):
        return "warning"
    if text.startswith(_COMMENT):
        return "source"
    if text.startswith(_SOURCE) or _IMPORT.match(text):
        return _unless_flattened("source", text)
    if _SUMMARY.search(head):
        return "text" if picked else "healthy"
    if is_command(text):
        return "command"
    if level == "error" or _says_failure(text, lower) or _ERROR_LEVEL.match(line.strip()[:HEAD_CHARS]):
        return "failure"
    return "suspect" if not picked and levels.is_suspect(lower) else "text"


def _unless_flattened(kind: LineKind, text: str) -> LineKind:
    """`failure` where a whole traceback, or a bar and the exception that stopped it, were pasted as one line."""
    return "failure" if _EXCEPTION_BEHIND.search(text) else kind


def _says_failure(text: str, lower: str) -> bool:
    if _has_form(text):
        return True
    if _ADVICE.match(text):
        return False
    return any(saying in lower for word in _BY_WORD if word in lower for saying in _BY_WORD[word])


def _has_form(text: str) -> bool:
    """Is it written as programs write that they failed: with an exception's name, a code, a level, or as a message
    begins?"""
    if _EXCEPTION.search(text) or _ERROR_CODE.search(text):
        return True
    return not _ADVICE.match(text) and bool(_ERROR_LEVEL.match(text) or _opens_message(text))


def _opens_message(text: str) -> bool:
    found = _OPENING.match(text)
    return text.startswith(_MESSAGE_STARTS, found.end() if found else 0)


# --- questions that callers ask of a line ---------------------------------------------------------------------------


def is_error_line(line: str) -> bool:
    """Does this line, alone or on a page, say that a program failed? Python's warnings count, because an author who
    shows one means it, and so do launchers' lines that name a signal or an exception."""
    kind = classify(line, picked=True)
    return kind in ("failure", "warning") or (kind == "launcher" and _says_failure(line.strip(), line.lower()))


def says_failure(line: str) -> bool:
    """Does this line of a log say that something failed?"""
    return classify(line) in ("failure", "suspect", "launcher")


def says_it_in_passing(line: str) -> bool:
    """Is this line a failure by words that may stand anywhere in it, and by nothing else? A person may have written
    it. What shells print of a command that they do not find is a whole sentence, and printed."""
    if classify(line, picked=True) != "failure":
        return False
    text = strip_prefix(line).strip()[:_MAX_CHARS]
    lower = text.lower()
    return not (
        _has_form(text)
        or _ERROR_LEVEL.match(line.strip()[:HEAD_CHARS])
        or any(saying in lower for saying in _OF_SHELLS)
    )


def is_announcement(line: str, following: str) -> bool:
    """Does this line only announce the traceback that follows (`ERROR:    Exception in ASGI application`)? Any failure
    may stand below it. What else stands there may be the cause: NCCL, compilers and drivers say it before Python fails.
    """
    line = line[:_MAX_CHARS].rstrip()
    is_before_one = _TRACEBACK.match(following[:_MAX_CHARS]) is not None
    return is_before_one and _ANNOUNCEMENT.search(line) is not None and _NAMED_EXCEPTION.search(line) is None


def is_usual(line: str) -> bool:
    """Does a program print this while all goes well, warnings included?"""
    return classify(line) in ("warning", "healthy", "progress", "metrics")


def warns(line: str) -> bool:
    """Does this line say that something is wrong while the program goes on?"""
    return classify(line) == "warning"


def is_launcher_line(line: str) -> bool:
    """Do launchers and interpreters print this around every failure, whichever it is?"""
    return classify(line, picked=True) == "launcher"


def is_command(line: str) -> bool:
    """A line that somebody typed, not one that a program printed."""
    text = line.strip()[:_MAX_CHARS]
    if text.startswith(_COMMAND) or _COMMAND_SHAPE.match(text):
        return True
    prompt = _PROMPT.match(text)
    return prompt is not None and (
        text.startswith(_COMMAND, prompt.end()) or _COMMAND_SHAPE.match(text, prompt.end()) is not None
    )


def has_prompt(line: str) -> bool:
    """The line opens with a shell's prompt, so what follows was typed for certain."""
    return _SHELL_PROMPT.match(line.lstrip()) is not None


def opens_with_error(line: str) -> bool:
    """The line begins as programs begin their messages: an exception's name, `error:`, `fatal:`."""
    head = line.strip()[:120]
    found = _EXCEPTION.search(head)
    return bool(found and " " not in head[: found.start()].strip("[]0-9: ")) or bool(
        _ERROR_LEVEL.match(head) or _opens_message(head)
    )


def frame_of(line: str) -> str | None:
    """The file's name and the function of a Python frame, `_tensor.py backward`; None for another line."""
    if found := _FRAME.match(line):
        return re.split(r"[\\/]", found[1])[-1] + " " + (found[2] or "").rstrip()
    return None
