"""Which file holds votes and misses, and whether they are in use. Light: a search without such a file stops here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from kb.config import settings
from kb.index.user import data_folder

if TYPE_CHECKING:
    from kb.feedback.store import Feedback
    from kb.feedback.voices import Voiced

__all__ = ["OFF", "feedback_file", "opened", "votes"]

OFF = "off"
"""`KB_FEEDBACK=off`: nothing is read and nothing is kept"""


def feedback_file() -> Path | None:
    """`KB_FEEDBACK`, else what the user's kb.toml says, else the file in the user's data folder; None for `off`."""
    named = os.environ.get("KB_FEEDBACK")
    if named == OFF:
        return None
    if named:
        return Path(named).absolute()
    return settings().feedback_file or data_folder() / "feedback.sqlite"


def votes() -> Voiced | None:
    """The votes that change answers here; None where there are none, or where the user's kb.toml says that they do
    not."""
    path = feedback_file()
    if path is None or not path.exists() or not settings().votes:
        return None
    from kb.feedback.voices import Voiced

    return Voiced(opened(path))


def opened(path: Path) -> Feedback:
    """The file; it is made when something is written to it, and read when something is asked."""
    from kb.feedback.store import Feedback

    return Feedback(path)
