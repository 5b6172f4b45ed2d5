"""Runs `kb` in a process that is forked when everything is imported, and makes the kernel fail it at a given call.

A new Python takes 0.7 s before it builds, a forked one none: so there is time to try every step. The calls of both are
compared once (`torn.faults.same_calls`). The faults are the kernel's: strace is attached before the first step.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

FAILURES = ("write", "pwrite64", "writev", "pwritev", "ftruncate", "fsync", "fdatasync", "sync_file_range", "fallocate")
NAMES = ("rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat", "openat")
TRACED = ",".join(f"?{call}" for call in (*FAILURES, *NAMES))  # "?": not every machine has every one
PATIENCE_S = 120.0  # a command takes a tenth of a second; one that takes this long hangs
_PR_SET_PTRACER, _ANYBODY = 0x59616D61, ctypes.c_ulong(-1)
CALL = re.compile(r"^(?:\d+ +)?(\w+)\((.*)", re.MULTILINE)


@dataclass(frozen=True)
class Command:
    arguments: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[], None] | None = None
    """called in the forked process, before the command"""


@dataclass(frozen=True)
class Ended:
    code: int
    """as a shell has it, but negative for a signal"""
    stdout: str
    stderr: str
    calls: Sequence[tuple[str, str]] = ()
    """name and the rest of the line, of those that were traced"""

    @property
    def hangs(self) -> bool:
        return self.code == -signal.SIGALRM


def run(command: Command, scratch: Path) -> Ended:
    """Runs `kb` with these arguments. `scratch`: a path beside which its output is kept for the moment."""
    return begin(command, scratch).end()


def traced(command: Command, scratch: Path, *injected: str, paths: bool = False, only: str | None = None) -> Ended:
    """The same under strace. `injected`: what to inject, as strace has it. `paths`: of descriptors, too. `only`: the
    calls that touch this file, with PID for the number of the process."""
    log = scratch.with_suffix(".trace")
    child = begin(command, scratch, wait=True)
    strace = ["strace", "-f", *(["-y"] if paths else []), "-s", "0", "-o", str(log), "-e", f"trace={TRACED}"]
    strace += [part for one in injected for part in ("-e", f"inject={one}")]
    if only:
        strace += ["-P", only.replace("PID", str(child.pid))]
    tracer = subprocess.Popen([*strace, "-p", str(child.pid)], stderr=subprocess.PIPE, text=True)
    assert tracer.stderr is not None
    said = ""
    while "attached" not in said:
        line = tracer.stderr.readline()
        said += line
        if not line:
            os.kill(child.pid, signal.SIGKILL)
            child.end()
            raise SystemExit(f"strace does not work here: {said}")
    child.go()
    ended = child.end()
    tracer.communicate()
    calls = CALL.findall(log.read_text(errors="replace"))
    log.unlink()
    return Ended(ended.code, ended.stdout, ended.stderr, calls)


@dataclass
class Begun:
    pid: int
    gate: int
    scratch: Path

    def go(self) -> None:
        if self.gate >= 0:
            os.write(self.gate, b".")  # not by closing it: what was forked since holds it open
            os.close(self.gate)
            self.gate = -1

    def end(self) -> Ended:
        self.go()
        _, status = os.waitpid(self.pid, 0)
        said = []
        for end in (".out", ".err"):
            path = self.scratch.with_suffix(end)
            said.append(path.read_text("utf-8", "replace") if path.exists() else "")
            path.unlink(missing_ok=True)
        return Ended(os.waitstatus_to_exitcode(status), *said)


def begin(command: Command, scratch: Path, *, wait: bool = False) -> Begun:
    """Forks a process that runs the command, at once or when it is told to `go`."""
    sys.stdout.flush()
    sys.stderr.flush()
    gate, ours = os.pipe()
    pid = os.fork()
    if pid:
        os.close(gate)
        begun = Begun(pid, ours, scratch)
        if not wait:
            begun.go()
        return begun
    code = 70
    try:
        os.close(ours)
        code = _child(command, scratch, gate)
    finally:
        os._exit(code)


def _child(command: Command, scratch: Path, gate: int) -> int:
    with contextlib.suppress(OSError, AttributeError):  # where a process may be traced by its parents alone
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANYBODY, 0, 0, 0)
    for fileno, end in ((1, ".out"), (2, ".err")):
        os.dup2(os.open(scratch.with_suffix(end), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), fileno)
    os.environ.update(command.environment)
    sys.argv = ["kb", *command.arguments]
    if command.prepare:
        command.prepare()
    os.read(gate, 1)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
    from kb.cli import main

    code = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = code or 120  # as Python does at its end
    return code


def no_file_beyond(max_bytes: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, max_bytes))


def seconds() -> tuple[float, float]:
    """By the clock; of processors, of this process and all that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return time.monotonic(), sum(one.ru_utime + one.ru_stime for one in used)
