"""The codes that a text names and by which a failure is known: exit codes, Xid, CANN, InfiniBand, CUDA, HTTP.

Programs write the same code in several ways. `exit code 137`, `return code = -9`, `killed by signal: Killed` and
`SIGKILL` all say that signal 9 ended the process; `error 12, opcode 0` and `status=12 opcode=0` are the same status of
an InfiniBand completion. A number counts only next to words that make it a code.

A code that comes with any failure is left out, because it tells nothing: exit code 0, the signal that a launcher sends
to the other processes, the flood of flushed InfiniBand requests after the first failed one (status 5), HTTP 500, and
`EE9999`, which Ascend's runtime adds to the code of whatever failed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

__all__ = ["Codes", "capabilities", "codes", "contradicts", "has_code_words", "particulars"]


class _Lazy:
    """A pattern that is compiled when it is first needed: most texts have no codes, and a start would wait for it."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self._source = pattern, flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(*self._source)
        for method in ("search", "match", "fullmatch", "findall", "finditer"):
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


Codes = frozenset[tuple[str, str]]
"""("exit", signal number), ("exit", "code") for an ordinary exit code, ("xid", number), ("cann", "507048" or "EI0002"),
("ib", status), ("cuda", error number), ("http", status), ("sm", major compute capability, 10 for all of Blackwell)"""

_EXIT = _Lazy(
    r"(?:return code|exit(?:s|ed)?(?: with)?(?: (?:return|exit))? ?(?:code|status)|exitcode)[^\w\n-]{0,6}(-?\d{1,3})\b",
    re.IGNORECASE,
)
_SIGNAL_NUMBER = _Lazy(r"(?<!closing )\bsignal[: ]{1,2}(\d{1,2})\b", re.IGNORECASE)
_SIGNAL_NAME = _Lazy(r"(?<!closing signal )\bSIG(HUP|INT|QUIT|ILL|TRAP|ABRT|BUS|FPE|KILL|SEGV|PIPE|TERM)\b")
_SIGNAL_WORDS = _Lazy(
    r"(?:signal: |^|: )(Killed|Segmentation fault|Bus error|Aborted|Floating point exception|Illegal instruction|"
    r"Terminated)(?:\.|$| \(core dumped\))",
    re.MULTILINE,
)
_SIGNALS = {
    "HUP": "1", "INT": "2", "QUIT": "3", "ILL": "4", "TRAP": "5", "ABRT": "6", "BUS": "7", "FPE": "8", "KILL": "9",
    "SEGV": "11", "PIPE": "13", "TERM": "15", "Killed": "9", "Segmentation fault": "11", "Bus error": "7",
    "Aborted": "6", "Floating point exception": "8", "Illegal instruction": "4", "Terminated": "15",
}  # fmt: skip

_XID = _Lazy(r"\bXid(?: \(PCI:[0-9a-fA-F:.]{1,20}\))?:? (\d{1,3})\b")

# CANN's runtime (107xxx parameters, 207xxx resources, 507xxx the device) and its operators (161xxx, 561xxx).
_CANN = _Lazy(r"(?<![\d.,])([1-5](?:07|61)\d{3})(?![\d%]|[.,]\d)")
_CANN_BEFORE = _Lazy(
    r"(?:error|err|result|code|\bret|\breturn|错误|报错|返回值?)[ _]?(?:code|码)?(?: ?(?:is|was|是|为))?[^\w\n]{0,4}\Z",
    re.IGNORECASE,
)
_CANN_AFTER = _Lazy(r" ?(?:报错|错误|error\b)")
# The codes of CANN's modules stand alone. The second pattern finds what may be one with other digits.
_CANN_MODULE = _Lazy(r"(?<![#\w])E(?:[A-Z]\d{4}|\d{5})\b")
_LIKE_CANN_MODULE = _Lazy(r"(?<![#\w])E[A-Z]?\d{0,5}\b")

_IB = _Lazy(
    r"(?:completion[^\n]{0,100}? with (?:error |status=(?:\w{1,40}\()?)|NET/IB error )(\d{1,3})\b", re.IGNORECASE
)

_CUDA = _Lazy(
    r"\bcuda(?:(?: driver| runtime)? (?:error|failure)|_?error(?:_?[a-z_]{2,40})?)(?: code| number)?"
    r"[ :=#(]{1,3}(?:code |error )?(\d{1,4})\b(?!\.\d)",
    re.IGNORECASE,
)
# How PyTorch prints them: `Unexpected error from cudaGetDeviceCount(). ... Error 802: system not yet initialized`
_CUDA_BARE = _Lazy(r"\bError (\d{3}): [a-z]")
# Until CUDA 10.0 the runtime had other numbers for these. One failure, one code.
_CUDA_OLD = {
    "4": "719", "8": "98", "10": "101", "11": "1", "30": "999", "38": "100", "39": "214", "48": "209", "59": "710",
    "74": "716", "77": "700",
}  # fmt: skip

_HTTP = _Lazy(r"(?<![\d.,])([45]\d\d)(?![\d%]|[.,]\d)")
_HTTP_BEFORE = _Lazy(
    r"(?:\bhttps?(?:/[\d.]{1,3})?(?:[ _]?(?:status|response))?(?:[ _]?error)?(?:[ _]?code)?|statuserror|状态码"
    r"|(?<!exit )status(?:[ _]?code)?(?: is| was| of)?|error(?: code)?:)[^\w\n]{1,4}\Z",
    re.IGNORECASE,
)
_HTTP_AFTER = _Lazy(
    r" (?:Client|Server) Error\b|:? (?:Bad Request|Unauthorized|Forbidden|Not Found|Unprocessable|Too Many Requests|"
    r"Internal Server|Bad Gateway|Service (?:Temporarily )?Unavailable|Gateway Time)"
)

# A list of several is what a program was built for; one alone is what a card is.
_SM = _Lazy(r"(?:(?<![=\w])sm_\d{2,3}[a-f]?\b[ ,;/]{0,2}){1,40}", re.IGNORECASE)
_SM_NUMBER = _Lazy(r"sm_(\d{1,2})(\d)[a-f]?[ ,;/]{0,2}", re.IGNORECASE)
_BLACKWELL = (10, 11, 12)  # the major numbers of one generation

_GPU = _Lazy(
    r"(?<![A-Za-z0-9.])((?:[2345]0[5-9]0(?: ?T[Ii])?|[VAHBTL](?:4|10|16|20|30|40S?|100|200|800)|P40|P100|910[A-C]|310P|"
    r"MI\d{2,3}[XA]?|A6000|GB200))(?![A-Za-z0-9])"
)
_LIBRARY = _Lazy(r"\b(lib[\w+-]{2,40})\.so\b")

# PyTorch prints the same message for every kind of device, with its name in front.
_DEVICE = _Lazy(r"\b(CUDA|NPU|HIP|MPS|XPU)(?: backend)? out of memory", re.IGNORECASE)

_CONTEXT_CHARS = 32  # in front of a number
_WITH_ANY_FAILURE = frozenset(
    (("cann", "EE9999"), ("cann", "E19999"), ("ib", "0"), ("ib", "5"), ("cuda", "0"), ("http", "500"))
)


def codes(text: str) -> Codes:
    """The codes in the text; none in most texts. Linear in it, and never raises.

    Exit codes above 128 (a shell's) and below 0 (Python's) count as the signal they stand for."""
    lower = text.lower()
    found = {("cann", code) for code in _CANN_MODULE.findall(text)} if _has_digit(text) else set()
    for kind in _KINDS:
        if any(word in lower for word in kind.words):
            found.update((kind.name, code) for code in kind.find(text))
    return frozenset(found - _WITH_ANY_FAILURE)


def particulars(text: str) -> Codes:
    """The codes, and what else is particular to a failure without being a contradiction: GPU products and shared
    libraries. A text about an RTX 4090 may well be about a failure of every card."""
    found = {("gpu", name.upper().replace(" ", "")) for name in _GPU.findall(text)} if _has_digit(text) else set()
    libraries = _LIBRARY.findall(text) if ".so" in text else ()
    return codes(text) | found | {("library", name) for name in libraries}


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def has_code_words(text: str) -> bool:
    """Whether the text can have codes, whatever its digits are: two lines that differ in their digits alone have the
    same answer."""
    lower = text.lower()
    return any(word in lower for kind in _KINDS for word in kind.words) or bool(_LIKE_CANN_MODULE.search(text))


def contradicts(one: Codes, other: Codes) -> bool:
    """Do both have codes of one kind, and none in common?"""
    both = {kind for kind, _ in one} & {kind for kind, _ in other}
    return any(not any(code[0] == kind for code in one & other) for kind in both)


def capabilities(text: str) -> Iterator[tuple[int, int]]:
    """Major and minor number of each compute capability that is written as `sm_86` and stands alone."""
    for match in _SM.finditer(text):
        if one := _SM_NUMBER.fullmatch(match[0]):
            yield int(one[1]), int(one[2])


def _exits(text: str) -> set[str]:
    found = {_SIGNALS[name] for name in (*_SIGNAL_NAME.findall(text), *_SIGNAL_WORDS.findall(text))}
    found.update(_SIGNAL_NUMBER.findall(text))
    for code in map(int, _EXIT.findall(text)):
        if code:
            died = -code if code < 0 else code - 128 if 128 < code < 160 else 0
            found.add(str(died) if died else "code")
    return found


def _beside(text: str, *, number: _Lazy, before: _Lazy, after: _Lazy) -> Iterable[str]:
    """The numbers with the right words in front of them or behind."""
    for match in number.finditer(text):
        start, end = match.span()
        if before.search(text[max(0, start - _CONTEXT_CHARS) : start]) or after.match(text, end):
            yield match[1]


def _cuda(text: str) -> Iterable[str]:
    return (_CUDA_OLD.get(code, code) for code in (*_CUDA.findall(text), *_CUDA_BARE.findall(text)))


def _majors(text: str) -> Iterable[str]:
    return ("10" if major in _BLACKWELL else str(major) for major, _ in capabilities(text))


def _devices(text: str) -> Iterable[str]:
    return map(str.upper, _DEVICE.findall(text))


class _Kind(NamedTuple):
    name: str
    words: tuple[str, ...]
    """in lower case; a text without any of them has no code of this kind. Patterns are slow, and few texts have one"""
    find: Callable[[str], Iterable[str]]


_KINDS = (
    _Kind(
        "exit",
        ("code", "status", "sig", "kill", "segmentation", "bus error", "abort", "floating", "illegal", "terminat"),
        _exits,
    ),
    _Kind("xid", ("xid",), _XID.findall),
    _Kind(
        "cann",
        ("err", "ret", "result", "code", "错", "返回"),
        partial(_beside, number=_CANN, before=_CANN_BEFORE, after=_CANN_AFTER),
    ),
    _Kind("ib", ("completion", "net/ib"), _IB.findall),
    _Kind("cuda", ("cuda",), _cuda),
    _Kind(
        "http",
        (
            "http",
            "status",
            "状态码",
            "error",
            "forbidden",
            "not found",
            "unauthorized",
            "many requests",
            "gateway",
            "bad request",
            "unprocess",
            "unavailable",
        ),
        partial(_beside, number=_HTTP, before=_HTTP_BEFORE, after=_HTTP_AFTER),
    ),
    _Kind("sm", ("sm_",), _majors),
    _Kind("device", ("out of memory",), _devices),
)
