"""Gives the content of an index file that was found whole.

A small file is read, and its sha256 compared at every opening. A large one is mapped: only what a question needs of it
is read. To hash gigabytes at every start would take longer than the search, so that is done once on each machine for
each state of the file, and a stamp in the user's cache remembers it. Whoever can write the index could write the stamp
as well; a stamp saves time and protects nobody (SECURITY.md).
"""

from __future__ import annotations

import hashlib
import logging
import mmap
import os
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from kb.arrays import Array, load
from kb.errors import IndexCorrupt, IndexMissing
from kb.index import snapshot
from kb.index.user import cache_folder

__all__ = ["MAPPED_FROM", "Later", "are_sound", "arrays", "content", "note_made", "stamp", "verified", "was_made_here"]

MAPPED_FROM = 1 << 24
"""bytes; smaller files are read and verified at every opening: 16 MB take 10 to 20 ms"""

_DAY_S = 86_400.0
_KEPT_S = 30 * _DAY_S


def arrays(folder: Path, entry: Mapping[str, Any]) -> dict[str, Array]:
    """The arrays of a safetensors file that a manifest names. Raises FileNotFoundError, IndexCorrupt."""
    return load(content(folder, entry), folder / entry["name"])


def content(folder: Path, entry: Mapping[str, Any]) -> memoryview:
    """The bytes of a file that a manifest names. Raises FileNotFoundError, IndexCorrupt."""
    if entry["bytes"] < MAPPED_FROM:
        return memoryview(snapshot.read_file(folder, entry))
    verified(folder, entry)
    with snapshot.open_file(folder, entry) as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def verified(folder: Path, entry: Mapping[str, Any]) -> Path:
    """The path of a file whose sha256 was found as the manifest says: now, or at an earlier time and the file has not
    been written to since. Raises FileNotFoundError, IndexCorrupt."""
    path = folder / str(entry["name"])
    with snapshot.open_file(folder, entry) as file:
        _verify(file, file.fileno(), path, entry)
    return path


def _verify(file: BinaryIO | mmap.mmap, fileno: int, path: Path, entry: Mapping[str, Any]) -> None:
    known = _stamp_of(path, os.fstat(fileno), entry["sha256"])
    if not _remembered(known):
        if entry["bytes"] > 1 << 30:
            logging.getLogger("kb").warning("verifying %s, once on this machine", path)
        for _ in snapshot.checked(file, path, entry):
            pass
        _remember(known)


class Later:
    """A file of which the content is not needed yet. It is held open: the next build removes its name. Safe to share
    between threads and forked processes."""

    def __init__(self, folder: Path, entry: Mapping[str, Any]) -> None:
        """Raises FileNotFoundError, or IndexCorrupt when it has not the size that the manifest says."""
        self._path, self._entry = folder / str(entry["name"]), entry
        with snapshot.open_file(folder, entry) as file:
            self._file = os.dup(file.fileno())
        self._release = weakref.finalize(self, os.close, self._file)

    def content(self) -> bytes | memoryview:
        """Its bytes, found whole. Raises IndexMissing after `close`, IndexCorrupt."""
        if not self._release.alive:
            raise IndexMissing("this base is closed", hint="open it anew")
        size = self._entry["bytes"]
        if os.fstat(self._file).st_size != size:
            raise IndexCorrupt("was cut short", path=self._path, hint="`kb build` writes it anew from the articles")
        data = mmap.mmap(self._file, 0, access=mmap.ACCESS_READ)  # a position in the file would be shared
        if size < MAPPED_FROM:
            with data:
                return b"".join(snapshot.checked(data, self._path, self._entry, size + 1))
        _verify(data, self._file, self._path, self._entry)
        return memoryview(data)

    def close(self) -> None:
        self._release()


def are_sound(entries: Iterable[Mapping[str, Any]], look: Callable[[], bool]) -> bool:
    """Does `look` find nothing in the files that leads out of their arrays? Of large ones it is asked once on this
    machine for each content: their hashes may be right, and what is hashed forged."""
    sizes, names = zip(*((entry["bytes"], entry["sha256"]) for entry in entries), strict=True)
    known = cache_folder() / "sound" / hashlib.sha256("".join(names).encode()).hexdigest()[:32]
    is_large = max(sizes) >= MAPPED_FROM
    if is_large and _remembered(known):
        return True
    found = look()
    if is_large and found:
        _remember(known)
    return found


def stamp(folder: Path, entry: Mapping[str, Any]) -> None:
    """Remembers a file as whole that was hashed while it was written."""
    if entry["bytes"] >= MAPPED_FROM:
        path = folder / entry["name"]
        with suppress(OSError):
            _remember(_stamp_of(path, path.stat(), entry["sha256"]))


def note_made(sha256: str) -> None:
    """Remembers that this user's own build wrote a file of this content."""
    _leave(cache_folder() / "made" / sha256[:32])


def was_made_here(folder: Path, sha256: str) -> bool:
    """Did this user's own build write a file of this content, or does the user trust the base in `folder`? Asked before
    a file is given to a library that is not made for files of strangers."""
    if (cache_folder() / "made" / sha256[:32]).exists():
        return True
    from kb.index import trust  # late: few bases have such a file

    return trust.decision(folder.resolve().parent) is True


def _stamp_of(path: Path, found: os.stat_result, sha256: str) -> Path:
    """Another one when the file was moved, replaced, or written to."""
    state = (os.path.realpath(path), found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, sha256)
    return cache_folder() / "verified" / hashlib.sha256(repr(state).encode("utf-8", "replace")).hexdigest()[:32]


def _remembered(known: Path) -> bool:
    try:
        age = time.time() - known.stat().st_mtime
    except OSError:
        return False
    if age > _DAY_S:  # it is still of use
        with suppress(OSError):
            os.utime(known)
    return True


def _remember(known: Path) -> None:
    """Leaves a stamp, and removes those that nobody has used for a month: of files that were replaced, mostly."""
    _leave(known)
    with suppress(OSError):
        for other in known.parent.iterdir():
            if time.time() - other.stat().st_mtime > _KEPT_S:
                other.unlink()


def _leave(known: Path) -> None:
    with suppress(OSError):  # a cache that cannot be written: it is verified again next time
        known.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        known.touch(mode=0o600)
