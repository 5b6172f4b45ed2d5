"""Decides whether a base that kb found, and nobody named, may answer: who owns it, and does the user trust it?

A base that kb finds by walking up from the current folder was put there by whoever wrote that folder: a colleague on a
shared disk, or the author of a repository that was cloned a minute ago. Its articles contain commands that people and
agents run. So a base that nobody named is used only when two things hold:

- it belongs to the user or to root: the folder, `articles/` with its language folders, `index/` with the manifest, and
  the links among them (`why_not_ours`). What somebody lets others write into these folders is theirs to decide;
- the user trusts it: they were asked once, ran `kb trust`, or built it themselves (`decision`, `remember`).

The decisions are kept in `trust.json` in the user's configuration folder, one absolute path for each base.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kb.errors import IndexBusy, IndexWriteFailed
from kb.index.snapshot import MANIFEST, locked, write
from kb.index.user import config_folder, is_own

__all__ = ["decision", "remember", "why_not_ours"]

_MAX_BYTES = 1 << 20
_ATTEMPTS = 100


def why_not_ours(base: Path) -> str:
    """Empty when the base in the folder `base` belongs to the user or root, else the part that does not.

    Looked at without following links: the folder, its `articles/` with their language folders, its `index/` with the
    manifest. A link must be the user's own, and so must be what it leads to: whoever may put a link into a shared
    folder could otherwise lead to articles of the user's choice or of their own (git's safe.directory, CVE-2022-24765).
    """
    if sys.platform == "win32":
        return ""
    articles, index = base / "articles", base / "index"
    for path in (base, articles, articles / "en", articles / "zh", index, index / MANIFEST):
        if not is_own(path):
            return str(path)
        try:
            if path.is_symlink() and not is_own(Path(os.path.realpath(path))):
                return str(path)
        except OSError:
            return str(path)
    return ""


def decision(base: Path) -> bool | None:
    """Has the user trusted the base in this folder (True), declined it (False), or not been asked (None)?"""
    return _decisions().get(_key(base))


def remember(base: Path, trusted: bool | None) -> None:
    """Keeps the user's decision; None forgets it. Raises IndexWriteFailed."""
    path = _file()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(path.parent):
            decisions = _decisions()
            decisions.pop(_key(base), None)
            if trusted is not None:
                decisions[_key(base)] = trusted
            text = json.dumps(decisions, ensure_ascii=False, indent=1, sort_keys=True)
            write(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise IndexWriteFailed(f"the decision cannot be kept ({error.strerror or error})", path=path) from None


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Another process may be keeping a decision: it takes milliseconds."""
    for attempt in range(_ATTEMPTS):
        try:
            with locked(folder):
                yield
                return
        except IndexBusy:
            if attempt == _ATTEMPTS - 1:
                raise
            time.sleep(0.02)


def _file() -> Path:
    return config_folder() / "trust.json"


def _key(base: Path) -> str:
    return os.path.realpath(base)


def _decisions() -> dict[str, bool]:
    """Empty when the file is missing, damaged, or somebody else's: then the user is asked again."""
    try:
        with open(_file(), "rb") as file:
            if sys.platform != "win32" and os.fstat(file.fileno()).st_uid not in (0, os.geteuid()):
                return {}
            found = json.loads(file.read(_MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return {k: v for k, v in found.items() if isinstance(v, bool)} if isinstance(found, dict) else {}
