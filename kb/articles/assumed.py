"""What the owner of a folder says about its articles: project and language of those that do not say it themselves.

Projects go by place: `{"longhorn/": "Longhorn", "k8s-*": "Kubernetes"}`. A key is a folder, or a pattern as a shell has
them, relative to the articles folder; the folder of a language need not be named. Of several that fit, the longest
counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, TypedDict

from kb.articles.source import place_of
from kb.records import Lang

__all__ = ["Assumed", "Unstated"]


class Unstated(TypedDict):
    """What is taken for one article that states neither; arguments of `kb.scraped.parse`."""

    project: str | None
    lang: Lang | None


@dataclass(frozen=True, slots=True)
class Assumed:
    projects: Mapping[str, str] = field(default_factory=dict)
    """folder or pattern -> project"""
    lang: Lang | None = None

    def of(self, path: str) -> Unstated:
        """For the article at `path` (POSIX, relative to the articles folder)."""
        fitting = [key for key in self.projects if any(_fits(place, key) for place in (path, place_of(path)))]
        best = max(fitting, key=lambda key: (len(key), key), default=None)
        return {"project": None if best is None else self.projects[best], "lang": self.lang}

    def as_dict(self) -> dict[str, Any]:
        """The form in which an index keeps it; empty when nothing is assumed."""
        return {"projects": dict(self.projects), "lang": self.lang} if self.projects or self.lang else {}


def _fits(path: str, key: str) -> bool:
    key = key.removeprefix("./").rstrip("/")
    return key in ("", ".") or path.startswith(f"{key}/") or fnmatchcase(path, key) or fnmatchcase(path, f"{key}/*")
