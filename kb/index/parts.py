"""A file of the index that is read in parts: each by its offset and against its own digest.

A search shows a few records of what may be many megabytes. The file is not mapped: one that is cut short under a
mapping kills the process.
"""

from __future__ import annotations

import hashlib
import os
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from kb.arrays import Array
from kb.errors import IndexCorrupt, IndexMissing
from kb.index import snapshot

__all__ = ["Parts", "digests_of"]


def digests_of(parts: Sequence[bytes]) -> Array:
    """(parts, 8) uint8: the beginning of each part's sha256."""
    return np.frombuffer(b"".join(hashlib.sha256(part).digest()[:8] for part in parts), np.uint8).reshape(-1, 8)


class Parts:
    """Safe to share between threads and forked processes."""

    def __init__(self, folder: Path, entry: Mapping[str, Any], starts: Array, digests: Array) -> None:
        """`entry`: the manifest's, of the file. Raises FileNotFoundError, or IndexCorrupt when it does not fit."""
        self._path = folder / entry["name"]
        if not (
            starts.ndim == 1
            and digests.shape == (len(starts) - 1, 8)
            and starts[0] == 0
            and starts[-1] == entry["bytes"]
            and bool((np.diff(starts) >= 0).all())
        ):
            raise IndexCorrupt("the files of the index do not belong together", path=self._path, hint="`kb build`")
        self.starts: Array = starts
        self._digests = digests
        self._reading = Lock()
        with snapshot.open_file(folder, entry) as file:
            self._file = os.dup(file.fileno())
        self._release = weakref.finalize(self, os.close, self._file)

    @property
    def size(self) -> int:
        return len(self._digests)

    def close(self) -> None:
        self._release()

    def read(self, number: int) -> bytes:
        """One part. Raises IndexMissing after `close`, IndexCorrupt when it is not what was written."""
        if not self._release.alive:
            raise IndexMissing("this base is closed", hint="open it anew")
        first, last = int(self.starts[number]), int(self.starts[number + 1])
        data = self._bytes(first, last - first)
        if hashlib.sha256(data).digest()[:8] != self._digests[number].tobytes():
            raise IndexCorrupt(f"part {number} is damaged", path=self._path, hint="`kb build` writes it anew")
        return data

    def _bytes(self, offset: int, size: int) -> bytes:
        if hasattr(os, "pread"):  # forked processes share a position in the file
            return os.pread(self._file, size, offset)
        with self._reading:
            os.lseek(self._file, offset, os.SEEK_SET)
            return os.read(self._file, size)
