"""The sha256 of every article, without reading those that did not change.

A large folder takes long to read and little to list. Beside the index is noted, for each article, its size, its times
and its inode; where all of these are as they were, so is its content (git does the same). A file that was written to in
the moment before the note was made might be written to again within the same tick of the clock: it is read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterable
from pathlib import Path

from kb.articles.folder import read_article
from kb.index import snapshot

__all__ = ["Hashes"]

FROM = 2000
"""articles; fewer are read: that takes less than a tenth of a second"""

_NAME = ".hashes"
_TICK_NS = 2_000_000_000
_MAX_BYTES = 1 << 30


class Hashes:
    def __init__(self, articles: Path, index: Path, paths: Iterable[str]) -> None:
        self._articles, self._file, self._paths = articles, index / _NAME, list(paths)
        self._root, self._at = os.fspath(articles), time.time_ns()
        self._old = _read(self._file) if len(self._paths) >= FROM else {}
        self._now: dict[str, list[int | str]] = {}

    def of(self, path: str) -> str:
        """Raises ArticleError when the article cannot be read."""
        state = self._state(path)
        known = self._old.get(path)
        if known is not None and state is not None and known[:-1] == state:
            self._now[path] = known
            return str(known[-1])
        digest = hashlib.sha256(read_article(self._articles, path)).hexdigest()
        self.note(path, digest, state)
        return digest

    def note(self, path: str, digest: str, state: list[int] | None = None) -> None:
        """An article that was read somewhere else, a moment ago."""
        state = state or self._state(path)
        if state is not None and max(state[1:3]) < self._at - _TICK_NS:
            self._now[path] = [*state, digest]

    def keep(self) -> None:
        """For the next build. A note that cannot be written is no error."""
        with contextlib.suppress(OSError):
            if len(self._paths) >= FROM:
                snapshot.write(self._file, json.dumps(self._now).encode())
            elif self._file.exists():
                self._file.unlink()

    def _state(self, path: str) -> list[int] | None:
        try:
            found = os.lstat(f"{self._root}/{path}")
        except OSError:
            return None
        return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]


def _read(file: Path) -> dict[str, list[int | str]]:
    with (
        contextlib.suppress(OSError, ValueError, TypeError, AttributeError, RecursionError),
        snapshot.open_plainly(file) as opened,
    ):
        found = json.loads(opened.read(_MAX_BYTES))
        return {path: known for path, known in found.items() if len(known) == 5 and len(known[-1]) == 64}
    return {}
