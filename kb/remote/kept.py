"""What one server answered, kept in a folder of the user's: bounded, private, and never an error."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any, Final

from kb.index.snapshot import write
from kb.index.user import is_own

__all__ = ["AWAY_S", "FRESH_S", "Kept", "ago"]

FRESH_S: Final = 300.0
"""seconds for which a kept answer is taken without asking again"""
AWAY_S: Final = 30.0
"""seconds for which a server that did not answer is not asked again"""
MAX_ANSWER: Final = 8 << 20
"""bytes of an answer; one of 100 long issues has one million"""
MAX_KEPT: Final = 200
"""answers of one server"""


class Kept:
    """The answers of one server, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, key: str) -> tuple[dict[str, Any], float] | None:
        """The answer and its age in seconds."""
        path = self._folder / f"{key}.json"
        with contextlib.suppress(OSError, ValueError, RecursionError):
            if is_own(self._folder, path):
                with path.open("rb") as file:
                    found = json.loads(file.read(MAX_ANSWER + 1))
                    age = time.time() - os.fstat(file.fileno()).st_mtime
                return (found, max(age, 0.0)) if isinstance(found, dict) else None
        return None

    def write(self, key: str, answer: dict[str, Any]) -> None:
        """Without the question: what people paste is not for keeping."""
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not is_own(self._folder):
                return
            data = json.dumps({name: value for name, value in answer.items() if name != "query"}).encode()
            write(self._folder / f"{key}.json", data)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._folder / "away")
            kept = sorted(self._folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
            for path in kept[:-MAX_KEPT]:
                path.unlink()

    def away(self) -> bool:
        """Did it fail to answer a moment ago?"""
        try:
            return is_own(self._folder / "away") and time.time() - os.stat(self._folder / "away").st_mtime < AWAY_S
        except OSError:
            return False

    def note_away(self) -> None:
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if is_own(self._folder):
                write(self._folder / "away", b"")


def ago(seconds: float) -> str:
    """How long ago that was, in words."""
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'s' * (count != 1)} ago"
    return "a moment ago"
