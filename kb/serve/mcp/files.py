"""A log that an agent names by its path: opened only within the allowed folders, and read up to a limit.

A path may come from a text that somebody planted. So a file outside the folders is not told apart from one that does
not exist, no link leads out of them, and nothing but a regular file is opened: a pipe would wait for ever, and to open
a device may do something.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BufferedReader
from pathlib import Path

from kb.errors import QueryError
from kb.logs.unpack import chunks_of

__all__ = ["HEAD", "MOST", "TAIL", "ends", "open_log", "pieces"]

HEAD, TAIL = 16 << 20, 48 << 20  # bytes at both ends that are judged: a second or two
MOST = 4 << 30  # bytes that are read to count the lines between them

_PLAIN = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_FOLDER = _PLAIN | _NO_LINK | getattr(os, "O_DIRECTORY", 0)


def open_log(path: str, roots: Sequence[Path]) -> BufferedReader:
    """Opens the file for reading; a relative path starts in the first of `roots` that has it. Raises QueryError."""
    for root in roots:
        try:
            within = Path(os.path.realpath(root, strict=True))
            real = Path(os.path.realpath(within / path, strict=True))
            inside = real.relative_to(within)
            mode = real.stat().st_mode
        except (OSError, ValueError):  # not there, no path at all, outside
            continue
        if not stat.S_ISREG(mode):
            raise QueryError("that is no ordinary file", hint="path is one log, no folder and no pipe")
        try:
            return os.fdopen(_descriptor(within, inside.parts), "rb")
        except PermissionError:
            raise QueryError("that file may not be read", hint="give the part around the first error as text") from None
        except OSError:
            break  # it was exchanged meanwhile
    raise QueryError(
        "there is no such file in the folders that this server may read",
        hint="give a path below them or the text itself; --root FOLDER at the server's start allows another folder",
    )


def _descriptor(root: Path, parts: Sequence[str]) -> int:
    """Opens the file from folder to folder and follows no link: `parts` had none when it was looked at, and one that
    was put there since does not count. Raises OSError."""
    if os.open not in os.supports_dir_fd:
        return _ordinary(os.open(root.joinpath(*parts), _PLAIN))
    folder = os.open(root, _FOLDER)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        return _ordinary(os.open(parts[-1], _PLAIN | _NO_LINK, dir_fd=folder))
    finally:
        os.close(folder)


def _ordinary(opened: int) -> int:
    if stat.S_ISREG(os.fstat(opened).st_mode):
        return opened
    os.close(opened)
    raise OSError("not an ordinary file")


def pieces(raw: BufferedReader, *, skips: Callable[[], None] = lambda: None) -> Iterator[bytes]:
    """The bytes of a log, as `ends` gives them. Raises QueryError for too long a one, and as `chunks_of`."""
    return ends(_limited(chunks_of(raw, "the log")), skips=skips)


def _limited(chunks: Iterable[bytes]) -> Iterator[bytes]:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > MOST:
            raise QueryError(f"this log is longer than {MOST >> 30} GiB", hint="cut out the part around the failure")
        yield chunk


def ends(
    chunks: Iterable[bytes], head: int = HEAD, tail: int = TAIL, skips: Callable[[], None] = lambda: None
) -> Iterator[bytes]:
    """The first and the last bytes, `head` and `tail` at least. Of what lies between only the line ends come, so that
    the lines after it keep their numbers; `skips` is then called once."""
    kept: deque[bytes] = deque()
    size = 0
    whole = True
    for chunk in chunks:
        if head > 0:
            head -= len(chunk)
            yield chunk
            continue
        kept.append(chunk)
        size += len(chunk)
        while size - len(kept[0]) >= tail:
            left_out = kept.popleft()
            size -= len(left_out)
            if whole:
                whole = False
                skips()
            yield b"\n" * left_out.count(b"\n")
    yield from kept
