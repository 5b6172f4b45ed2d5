"""All errors that this package raises on purpose. Each says what happened, where, and what to do next.

    KbError                     1   parent of all; nothing else leaves the package
    ├─ QueryError              64   the question itself cannot be asked
    ├─ ArticleError            65   an article cannot be read
    ├─ IndexCorrupt            65   an index file is not what the manifest says
    ├─ FeedbackError           65   the file of votes and misses cannot be used
    ├─ IndexMismatch           65   the index was built by another encoder or format
    ├─ IndexMissing            66   there is no index (or no such issue) here
    ├─ EncoderUnavailable      69   a model or its extra is not installed
    ├─ ExtraMissing            69   another extra is not installed
    ├─ BaseUnreachable         69   a base over HTTP or in a store does not answer, or not as kb does
    ├─ IndexWriteFailed        74   disk full, no permission, I/O error
    ├─ IndexBusy               75   another build holds the lock
    └─ SettingsError           78   kb.toml cannot be read

Exit codes are those of BSD's sysexits.h, which cron and mail tools know. 1 is kept for "no known issue".
"""

from __future__ import annotations

from pathlib import Path

__all__ = [
    "ArticleError",
    "BaseUnreachable",
    "EncoderUnavailable",
    "ExtraMissing",
    "FeedbackError",
    "IndexBusy",
    "IndexCorrupt",
    "IndexMismatch",
    "IndexMissing",
    "IndexWriteFailed",
    "KbError",
    "QueryError",
    "SettingsError",
]


class KbError(Exception):
    """What happened (`message`), to which file (`path`, `line` 1-based), and what to do next (`hint`)."""

    exit_code = 70

    def __init__(
        self, message: str, *, path: str | Path | None = None, line: int | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path: str | None = None if path is None else str(path)
        self.line = line
        self.hint = hint

    def __str__(self) -> str:
        where = (
            ""
            if self.path is None
            else self.path.replace("\n", "\u240a") + (f":{self.line}" if self.line else "") + ": "
        )
        return f"{where}{self.message}"


class QueryError(KbError):
    exit_code = 64


class LogDamaged(QueryError):
    exit_code = 65


class ArticleError(KbError):
    exit_code = 65


class IndexCorrupt(KbError):
    exit_code = 65


class FeedbackError(KbError):
    exit_code = 65


class IndexMismatch(KbError):
    exit_code = 65


class IndexMissing(KbError):
    exit_code = 66


class EncoderUnavailable(KbError):
    exit_code = 69


class ExtraMissing(KbError):
    exit_code = 69


class BaseUnreachable(KbError):
    exit_code = 69


class IndexWriteFailed(KbError):
    exit_code = 74


class IndexBusy(KbError):
    exit_code = 75


class SettingsError(KbError):
    exit_code = 78
