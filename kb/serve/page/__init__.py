"""The files of the page, read once at the start. A request is looked up in a dictionary and never touches the disk."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources import files as resources

__all__ = ["File", "files"]

_FILES = {
    "/": ("kb.html", "text/html"),
    "/kb.css": ("kb.css", "text/css"),
    "/kb.js": ("kb.js", "text/javascript"),
    "/answer.js": ("answer.js", "text/javascript"),
    "/api.js": ("api.js", "text/javascript"),
    "/ask.js": ("ask.js", "text/javascript"),
    "/box.js": ("box.js", "text/javascript"),
    "/browse.js": ("browse.js", "text/javascript"),
    "/card.js": ("card.js", "text/javascript"),
    "/issue.js": ("issue.js", "text/javascript"),
    "/feedback.js": ("feedback.js", "text/javascript"),
    "/keys.js": ("keys.js", "text/javascript"),
    "/log.js": ("log.js", "text/javascript"),
    "/parts.js": ("parts.js", "text/javascript"),
    "/words.js": ("words.js", "text/javascript"),
    "/kb.svg": ("kb.svg", "image/svg+xml"),
}


@dataclass(frozen=True)
class File:
    body: bytes
    media_type: str
    etag: str


def files() -> dict[str, File]:
    """The files by the path at which each is served."""
    found = {}
    for path, (name, media_type) in _FILES.items():
        body = resources(__name__).joinpath(name).read_bytes()
        found[path] = File(body, media_type, f'"{hashlib.sha256(body).hexdigest()[:16]}"')
    return found
