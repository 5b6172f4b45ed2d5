"""Deliberately broken variants of what writes and reads an index. `scripts/crash.py --self-test` must catch each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kb.index import cache, pieces, snapshot
from kb.index.locate import Location, mark, stamp_of


def in_place() -> None:
    """A file is written where the old one lies."""

    def write(path: Path, data: bytes) -> None:
        with path.open("wb", buffering=0) as file:
            file.write(data[: len(data) // 2])
            time.sleep(0.005)
            file.write(data[len(data) // 2 :])

    vars(snapshot)["write"] = write


def joined_too_early() -> None:
    """What was joined is removed before a manifest names the whole."""
    joined = pieces.joined

    def join(folder: Path, chosen: Sequence[pieces.Piece]) -> Iterator[Any]:
        yield from joined(folder, chosen)
        for piece in chosen:
            for entry in piece.files.values():
                (folder / entry["name"]).unlink(missing_ok=True)

    vars(pieces)["joined"] = join


def marked_too_early() -> None:
    """The index in the cache is called fresh before it is."""
    renew = cache._renew

    def early(place: Location, folder: Path, progress: Any) -> Any:
        mark(folder, stamp_of(place))
        return renew(place, folder, progress)

    vars(cache)["_renew"] = early


def unlocked() -> None:
    """Nobody waits for anybody."""
    vars(snapshot)["_lock"] = lambda fileno: None


def unchecked() -> None:
    """The digest of a file is not looked at."""

    def read_file(folder: Path, entry: Mapping[str, Any]) -> bytes:
        with snapshot.open_file(folder, entry) as file:
            return file.read()

    vars(snapshot)["read_file"] = read_file
