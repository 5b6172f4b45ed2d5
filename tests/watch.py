"""What this process does meanwhile, as Python's audit hooks tell it: files, connections, programs, code from data."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_REACHES_OUT = (
    "socket.connect",
    "socket.getaddrinfo",
    "socket.gethostby",
    "socket.sendto",
    "socket.sendmsg",
)
_RUNS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.startfile", "os.fork", "pty.spawn")
_CODE = ("pickle.find_class", "marshal.load", "code.__new__", "ctypes.dlopen")
_CHANGES = {
    "os.remove": (0,), "os.rename": (0, 1), "os.link": (1,), "os.symlink": (1,), "os.mkdir": (0,), "os.rmdir": (0,),
    "os.chmod": (0,), "os.chown": (0,), "os.truncate": (0,), "os.utime": (0,), "shutil.rmtree": (0,),
}  # fmt: skip
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass
class Seen:
    read: set[Path] = field(default_factory=set)
    """files that were opened, by their names"""
    written: set[Path] = field(default_factory=set)
    """files that were opened to be written, made, moved or removed"""
    out: list[str] = field(default_factory=list)
    """connections, and names that were looked up"""
    run: list[str] = field(default_factory=list)
    """programs"""
    code: list[str] = field(default_factory=list)
    """code that was made of data, or of a file that is no part of what is installed"""


_seen: Seen | None = None


def _listen(event: str, arguments: tuple[Any, ...]) -> None:
    seen = _seen
    if seen is None:
        return
    if event == "open":
        path, mode, flags = arguments
        if isinstance(path, str | bytes | os.PathLike):
            name = Path(os.path.abspath(os.fsdecode(path)))
            writes = any(letter in mode for letter in "wax+") if isinstance(mode, str) else bool(flags & _WRITES)
            (seen.written if writes else seen.read).add(name)
    elif event in _CHANGES:
        seen.written |= {
            Path(os.path.abspath(os.fsdecode(arguments[at])))
            for at in _CHANGES[event]
            if isinstance(arguments[at], str | bytes | os.PathLike)
        }
    elif event.startswith(_REACHES_OUT):
        seen.out.append(f"{event} {arguments[1:]}")
    elif event.startswith(_RUNS):
        seen.run.append(f"{event} {arguments[:2]}")
    elif event.startswith(_CODE):
        if not _by_import():
            seen.code.append(f"{event} {arguments[:1]}"[:200])
    elif event == "exec":
        file = getattr(arguments[0], "co_filename", "")
        if os.path.isabs(file) and not file.startswith((sys.prefix, sys.base_prefix, str(Path(__file__).parents[1]))):
            seen.code.append(f"exec {file}")


def _by_import() -> bool:
    """Does Python read its own compiled files, or load its own libraries? The frames know."""
    frame, depth = sys._getframe(2), 0
    while frame and depth < 4:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame, depth = frame.f_back, depth + 1  # type: ignore[assignment]
    return False


sys.addaudithook(_listen)  # a hook stays until the process ends; it is deaf but in `watching`


@contextmanager
def watching() -> Iterator[Seen]:
    """What Python does meanwhile, in every thread."""
    global _seen
    _seen = seen = Seen()
    try:
        yield seen
    finally:
        _seen = None


def below(paths: set[Path], *folders: Path) -> set[Path]:
    """Those of the paths that lie in one of the folders, by their real names."""
    real = [Path(os.path.realpath(folder)) for folder in folders]
    return {path for path in paths if any(Path(os.path.realpath(path)).is_relative_to(folder) for folder in real)}
