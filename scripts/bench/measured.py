"""What a command costs: seconds, cores, and memory with that of its child processes."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

EVERY = 0.1  # seconds between two looks at the memory, or more


@dataclass(frozen=True)
class Cost:
    """One run of a command, from its start to its end."""

    seconds: float
    cores: float
    """processor time by wall time, child processes included"""
    memory: int | None
    """bytes: the highest sum over the process and its children at one time, pages that they share counted once
    (PSS); None where the system does not say. Mapped files count as far as they were read."""
    output: str


class Failed(Exception):
    """The command ended with an error; the text is the end of what it said."""


def run(command: Sequence[str], *, fine: Sequence[int] = (0,), timeout: float | None = None) -> Cost:
    """Raises Failed for an exit code that is not in `fine`, or after `timeout` seconds."""
    environment: Mapping[str, str] = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    before, started = os.times(), time.perf_counter()
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
        highest, over = [0], threading.Event()

        def watch() -> None:
            pause = EVERY
            while not over.wait(pause):
                looked = time.perf_counter()
                highest[0] = max(highest[0], _memory(process.pid))
                pause = max(EVERY, 50 * (time.perf_counter() - looked))  # a look at gigabytes takes a while

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            output = process.communicate(timeout=timeout)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Failed(f"not done after {timeout:.0f} s") from None
        finally:
            over.set()
            watcher.join()
        seconds, after = time.perf_counter() - started, os.times()
        if process.returncode not in fine:
            errors.seek(0)
            raise Failed((errors.read()[-2000:] or output[-2000:]).strip() or f"exit code {process.returncode}")
    used = after.children_user - before.children_user + after.children_system - before.children_system
    return Cost(seconds, used / seconds, highest[0] or None, output)


def _memory(pid: int) -> int:
    """Bytes of a process and of all below it; 0 where /proc is not to be had."""
    total = 0
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total = int(line.split()[1]) * 1024
    for task in _children(pid):
        total += _memory(task)
    return total


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found += map(int, (task / "children").read_text().split())
    return found


def held() -> dict[str, int]:
    """Bytes that this process holds now: all, and without the files that it has mapped. Empty where /proc is not to
    be had."""
    found: dict[str, int] = {}
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            for key, name in (("VmRSS:", "memory"), ("RssAnon:", "without_files")):
                if line.startswith(key):
                    found[name] = int(line.split()[1]) * 1024
    return found


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files below a folder."""
    if path.is_file():
        return path.stat().st_size
    return sum(one.stat().st_size for one in path.rglob("*") if one.is_file())
