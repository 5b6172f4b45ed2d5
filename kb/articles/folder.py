"""Lists and reads the article files of a folder, and says which files are left out and why.

Only regular files below the folder count. Symbolic links, FIFOs and devices are never followed or opened.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kb.articles.source import MAX_BYTES, SUFFIXES
from kb.errors import ArticleError

__all__ = ["Skipped", "list_articles", "read_article", "read_articles"]

_OTHER_TEXTS = (".txt", ".text", ".rst", ".adoc", ".org", ".html", ".htm", ".ipynb", ".docx", ".pdf")
"""what somebody may take for an article; other files are not worth a word"""


_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that is left out: no article, or one that is not finished. `path` and the `reason`."""

    path: str
    reason: str


def list_articles(folder: Path) -> tuple[list[str], list[Skipped]]:
    """Paths (POSIX, relative, sorted) of the regular Markdown files below `folder`, and those left out with the reason.

    Symbolic links, FIFOs, devices and hidden files are no articles. Raises ArticleError when `folder` is no folder.
    """
    found: list[str] = []
    skipped: list[Skipped] = []

    def walk(where: Path, prefix: str) -> None:
        with os.scandir(where) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                path = prefix + entry.name
                is_article = entry.name.lower().endswith(SUFFIXES)
                if entry.name.startswith("."):
                    continue
                if not _is_text(path):
                    skipped.append(Skipped(repr(path), "its name is not valid UTF-8 or holds control characters"))
                elif entry.is_symlink():
                    if is_article or Path(entry.path).is_dir():  # entry.is_dir() raises for a link to itself
                        skipped.append(Skipped(path, "a symbolic link"))
                elif entry.is_dir():
                    walk(Path(entry.path), path + "/")
                elif is_article:
                    if entry.is_file():
                        found.append(path)
                    else:
                        skipped.append(Skipped(path, "not a regular file"))
                elif entry.name.lower().endswith(_OTHER_TEXTS):
                    skipped.append(Skipped(path, "not Markdown"))

    try:
        walk(folder, "")
    except OSError as error:
        raise ArticleError(
            f"cannot list the articles ({error.strerror})", path=error.filename or folder, hint="--articles DIR"
        ) from None
    return sorted(found), skipped


def _is_text(name: str) -> bool:
    return name.isprintable() and not any("\ud800" <= char <= "\udfff" for char in name)


def read_article(folder: Path, path: str, *, named: bool = False) -> bytes:
    """The article's bytes, at most one more than the parser takes. `named`: the user named this very file, and where it
    is a link, meant what it leads to. Raises ArticleError."""
    try:
        # A FIFO or a link may have replaced the file since it was listed: opening must not hang, nor lead elsewhere.
        fileno = os.open(folder / path, _READ | (0 if named else _NO_LINK))
        with open(fileno, "rb") as file:
            if not stat.S_ISREG(os.fstat(fileno).st_mode):
                raise ArticleError("not a regular file", path=path)
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ArticleError(f"cannot be read ({error.strerror})", path=path) from None


def read_articles(folder: Path) -> Iterator[tuple[str, bytes | ArticleError]]:
    """The path of every article with its bytes, or with the error when they cannot be read."""
    for path in list_articles(folder)[0]:
        try:
            yield path, read_article(folder, path)
        except ArticleError as error:
            yield path, error
