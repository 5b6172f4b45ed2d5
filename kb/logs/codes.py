"""Exit codes, signals and GPU error numbers (Xid) that a text names, in one form.

A failure is often known only by such a number, and launchers write the same one in several ways: `exit code 137`,
`return code = -9`, `killed by signal: Killed` and `SIGKILL` all say that signal 9 ended the process.
"""

from __future__ import annotations

import re

__all__ = ["Codes", "codes", "contradicts"]

Codes = frozenset[tuple[str, str]]
"""("exit", signal number), ("exit", "code") for an ordinary exit code, ("xid", number)"""

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


def codes(text: str) -> Codes:
    """The codes in the text. Exit codes above 128 (a shell's) and below 0 (Python's) count as the signal they stand
    for; exit code 0 is no failure, and the signal that a launcher sends to the other processes is not counted."""
    found = {("xid", number) for number in _XID.findall(text)}
    for code in map(int, _EXIT.findall(text)):
        if code:
            died = -code if code < 0 else code - 128 if 128 < code < 160 else 0
            found.add(("exit", str(died) if died else "code"))
    found.update(("exit", number) for number in _SIGNAL_NUMBER.findall(text))
    found.update(("exit", _SIGNALS[name]) for name in (*_SIGNAL_NAME.findall(text), *_SIGNAL_WORDS.findall(text)))
    return frozenset(found)


def contradicts(one: Codes, other: Codes) -> bool:
    """Do both have codes of one kind, and none in common?"""
    both = {kind for kind, _ in one} & {kind for kind, _ in other}
    return any(not any(code[0] == kind for code in one & other) for kind in both)
