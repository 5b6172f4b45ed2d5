"""The user's settings: which bases are asked, in which language answers are shown, which rules `kb check` has.

    lang = "zh"                                  # answers and messages; KB_LANG and --lang come before it

    [bases]
    runbooks = "articles"                        # a folder; relative to this file
    team = "http://kb.intern:8000"               # another kb, over HTTP
    company = "milvus://milvus.intern:19530/kb"  # a store (docs/store.md)

    [bases.storage]                              # the same with more to say
    folder = "../storage-docs"
    lang = "en"                                  # of articles that do not say it themselves
    projects = { "longhorn/" = "Longhorn" }      # the project of articles below a folder that name none

    [search]
    order = ["storage", "runbooks", "bundled"]   # which bases are asked; default: all, and the one that is part of kb
    known-at = 0.6                               # the confidence from which an issue counts as known

    [check]
    off = ["dead-link"]

    [feedback]                                   # only in the user's own file
    file = "team.feedback"                       # where votes and misses are kept; default: in the user's data folder
    misses = true                                # keep what was asked and not known, masked
    votes = false                                # votes do not change the answers

Two files are read: `kb.toml` in the user's configuration folder, and the nearest `kb.toml` at or above the current
folder, which says more by being nearer. That one came with a folder, perhaps from a stranger. So it counts only where
the user trusts the folder (`kb.index.trust`), and even then its bases are folders inside its own: what it cannot do is
send questions to an address, or make kb read another place.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from kb.errors import SettingsError
from kb.index.locate import SETTINGS, is_address
from kb.index.user import config_folder, is_own
from kb.records import Lang

__all__ = ["ADDRESS_HINT", "BaseSettings", "Settings", "read_settings", "settings", "wrong_address"]

_MAX_BYTES = 1 << 20
_MAX_SECONDS = 60.0

ADDRESS_HINT = "http://host:port; a token stands in a file that kb.toml names (token-file)"
_ADDRESS = re.compile(r"https?://(?:\[[0-9A-Fa-f:.]+\]|[^\s/@:\[\]?#]+)(?::(\d{1,5}))?(?:/[^\s@?#]*)?")


def wrong_address(url: str) -> str | None:
    """What is wrong with the address of a `kb serve`. The answer does not repeat it: it may hold a password."""
    if "@" in url:
        return "holds a user name or password"
    found = _ADDRESS.fullmatch(url)
    return None if found and int(found[1] or 0) <= 65535 else "is no address that begins with http:// or https://"


@dataclass(frozen=True, slots=True)
class BaseSettings:
    """One base that a file names: a folder, an address, or a store."""

    name: str
    folder: Path | None = None
    """absolute; None for a base that is elsewhere"""
    url: str | None = None
    """of a kb serve, without a slash at its end; None for any other base"""
    store: str | None = None
    """the address of a base in Milvus; None for any other base"""
    lang: Lang | None = None
    """of articles that do not say it themselves"""
    projects: Mapping[str, str] = field(default_factory=dict)
    """folder below `folder` -> the project of its articles that name none"""
    token_file: Path | None = None
    """holds the token for `url` or `store`"""
    seconds: float = 1.0
    """how long an answer over HTTP is waited for"""


@dataclass(frozen=True, slots=True)
class Settings:
    files: tuple[Path, ...] = ()
    """that were read, the nearest first"""
    lang: Lang | None = None
    bases: Mapping[str, BaseSettings] = field(default_factory=dict)
    """by name, those of the nearest file first"""
    order: tuple[str, ...] | None = None
    """the names of the bases that are asked; None: all, and the one that is part of kb"""
    known_at: float | None = None
    """the confidence from which an issue counts as known; None: the usual one"""
    check_off: frozenset[str] = frozenset()
    check_on: frozenset[str] = frozenset()
    feedback_file: Path | None = None
    """where votes and misses are kept; None: in the user's data folder"""
    misses: bool = False
    """is what was asked and not known kept, masked?"""
    votes: bool = True
    """do votes change the answers?"""

    def base_of(self, articles: Path) -> BaseSettings | None:
        """The base that has these articles."""
        wanted = os.path.realpath(articles)
        for base in self.bases.values():
            if base.folder is not None and wanted in map(os.path.realpath, (base.folder, base.folder / "articles")):
                return base
        return None


@cache
def settings() -> Settings:
    """The settings for the current folder, read once. Raises SettingsError."""
    return read_settings()


def read_settings(start: Path | None = None) -> Settings:
    """The settings for the folder `start` (the current one). Raises SettingsError for a file that cannot be read or
    says something that kb does not know."""
    found = [(_nearest(start), True), (config_folder() / SETTINGS, False)]
    read = [_read(path, foreign) for path, foreign in found if path is not None and os.path.lexists(path)]
    merged = Settings()
    for one in read:
        merged = Settings(
            files=(*merged.files, *one.files),
            lang=merged.lang or one.lang,
            bases={**merged.bases, **{name: base for name, base in one.bases.items() if name not in merged.bases}},
            order=one.order if merged.order is None else merged.order,
            known_at=one.known_at if merged.known_at is None else merged.known_at,
            check_off=merged.check_off | (one.check_off - merged.check_on),
            check_on=merged.check_on | (one.check_on - merged.check_off),
            feedback_file=one.feedback_file or merged.feedback_file,  # one of the two files says it at most
            misses=one.misses or merged.misses,
            votes=one.votes and merged.votes,
        )
    return merged


def _nearest(start: Path | None) -> Path | None:
    """The nearest file at or above `start` that counts; a warning tells of one that does not."""
    try:
        here = (start or Path.cwd()).resolve()
    except OSError:  # the current folder was deleted
        return None
    for folder in (here, *here.parents):
        path = folder / SETTINGS
        if os.path.lexists(path) and folder != config_folder():
            return path if _counts(path) else None
    return None


def _counts(path: Path) -> bool:
    from kb.index import trust

    if path.is_symlink() or not is_own(path.parent, path):
        _warn(f"{path} belongs to somebody else, or is a link, and is not used")
        return False
    if trust.decision(path.parent) is not True:
        _warn(f"{path} is not used until you trust its folder: kb trust")
        return False
    return True


def _read(path: Path, foreign: bool) -> Settings:
    """`foreign`: it came with a folder."""
    if not path.is_file():  # to open a pipe would wait for somebody who writes
        raise SettingsError("is no file", path=path)
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"cannot be read ({error.strerror or error})", path=path) from None
    if len(data) > _MAX_BYTES:
        raise SettingsError(f"larger than {_MAX_BYTES:,} bytes", path=path)
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        table = tomllib.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"is not TOML: {error}", path=path) from None
    return _Reader(path, foreign).settings(table)


class _Reader:
    """Checks one file, key by key. Whatever kb does not know is an error that names its place: a typing mistake must
    not be taken for a setting."""

    def __init__(self, path: Path, foreign: bool) -> None:
        self.path, self.foreign = path, foreign

    def settings(self, table: dict[str, Any]) -> Settings:
        self._only(table, "", ("lang", "bases", "search", "check", "feedback"))
        search, check = self._table(table, "", "search"), self._table(table, "", "check")
        self._only(search, "search.", ("order", "known-at"))
        self._only(check, "check.", ("off", "on"))
        feedback = self._feedback(table)
        bases = {name: self._base(name, value) for name, value in self._table(table, "", "bases").items()}
        order = self._names(search, "search.", "order") if "order" in search else None
        if order == ():
            raise self._error("search.order is empty", "leave it out to ask all bases")
        return Settings(
            files=(self.path,),
            lang=self._lang(table, ""),
            bases={name: base for name, base in bases.items() if base is not None},
            order=order,
            known_at=self._number(search, "search.", "known-at", 0.0, 1.0),
            check_off=frozenset(self._names(check, "check.", "off")),
            check_on=frozenset(self._names(check, "check.", "on")),
            feedback_file=self._path(file) if (file := self._text(feedback, "feedback.", "file")) else None,
            misses=self._flag(feedback, "feedback.", "misses", False),
            votes=self._flag(feedback, "feedback.", "votes", True),
        )

    def _feedback(self, table: dict[str, Any]) -> dict[str, Any]:
        """What is kept of a person's questions only that person can say, no folder."""
        feedback = self._table(table, "", "feedback")
        self._only(feedback, "feedback.", ("file", "misses", "votes"))
        if feedback and self.foreign:
            _warn(f"{self.path}: feedback is not used; your own {config_folder() / SETTINGS} may say it")
            return {}
        return feedback

    def _base(self, name: str, value: Any) -> BaseSettings | None:
        place = f"bases.{name}"
        if name in ("bundled", "here") or not name or "/" in name:
            raise self._error(f"{place}: a base cannot have this name", "bundled and here are kb's own")
        if isinstance(value, str):
            kind = "store" if is_address(value) else "url" if value.startswith(("http://", "https://")) else "folder"
            value = {kind: value}
        if not isinstance(value, dict):
            raise self._error(f"{place} is no folder, address or table")
        prefix = place + "."
        self._only(value, prefix, ("folder", "url", "store", "lang", "projects", "token-file", "seconds"))
        folder, url, store = (self._text(value, prefix, key) for key in ("folder", "url", "store"))
        if [folder, url, store].count(None) != 2:
            raise self._error(f"{place} needs a folder, a url or a store, and one of them only")
        if url is not None and (wrong := wrong_address(url)):
            raise self._error(f"{prefix}url {wrong}", ADDRESS_HINT)
        if store is not None:
            self._require_address(store, prefix)
        if self.foreign and folder is None:
            own = config_folder() / SETTINGS
            _warn(f"{self.path}: {place} is an address and is not asked; your own {own} may name it")
            return None
        token = self._text(value, prefix, "token-file")
        projects = self._table(value, prefix, "projects")
        for key, project in projects.items():
            if not isinstance(project, str) or not project.strip():
                raise self._error(f"{prefix}projects.{key} is no name of a project")
        return BaseSettings(
            name=name,
            folder=self._folder(folder, place) if folder is not None else None,
            url=url.rstrip("/") if url is not None else None,
            store=store,
            lang=self._lang(value, prefix),
            projects=dict(projects),
            token_file=self._path(token) if token is not None else None,
            seconds=self._number(value, prefix, "seconds", 0.05, _MAX_SECONDS) or 1.0,
        )

    def _require_address(self, store: str, prefix: str) -> None:
        from kb.index.milvus import address

        if wrong := address.wrong_address(store):
            raise self._error(f"{prefix}store {wrong}", address.ADDRESS_HINT)

    def _folder(self, text: str, place: str) -> Path:
        folder = self._path(text)
        inside = Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(self.path.parent))
        if self.foreign and not inside:
            raise self._error(
                f"{place}: {text!r} lies outside the folder of this file",
                f"your own {config_folder() / SETTINGS} may name it",
            )
        return folder

    def _path(self, text: str) -> Path:
        return Path(os.path.abspath(self.path.parent / os.path.expanduser(text)))

    def _lang(self, table: dict[str, Any], prefix: str) -> Lang | None:
        value = table.get("lang")
        if value not in (None, "en", "zh"):
            raise self._error(f'{prefix}lang is {value!r}, it can be "en" or "zh"')
        return value

    def _number(self, table: dict[str, Any], prefix: str, key: str, least: float, most: float) -> float | None:
        value = table.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise self._error(f"{prefix}{key} is {value!r}, it can be {least:g} to {most:g}")
        return float(value)

    def _flag(self, table: dict[str, Any], prefix: str, key: str, default: bool) -> bool:
        value = table.get(key, default)
        if not isinstance(value, bool):
            raise self._error(f"{prefix}{key} is {value!r}, it can be true or false")
        return value

    def _names(self, table: dict[str, Any], prefix: str, key: str) -> tuple[str, ...]:
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self._error(f"{prefix}{key} is no list of names")
        return tuple(value)

    def _text(self, table: dict[str, Any], prefix: str, key: str) -> str | None:
        value = table.get(key)
        if value is not None and (not isinstance(value, str) or not value.strip() or "\0" in value):
            raise self._error(f"{prefix}{key} is no text")
        return value

    def _table(self, table: dict[str, Any], prefix: str, key: str) -> dict[str, Any]:
        value = table.get(key, {})
        if not isinstance(value, dict):
            raise self._error(f"{prefix}{key} is no table")
        return value

    def _only(self, table: dict[str, Any], prefix: str, known: tuple[str, ...]) -> None:
        for key in table:
            if key not in known:
                from difflib import get_close_matches

                near = get_close_matches(key, known, n=1)
                hint = f"did you mean {prefix}{near[0]}?" if near else f"known here: {', '.join(known)}"
                raise self._error(f"{prefix}{key} is no setting", hint)

    def _error(self, message: str, hint: str | None = None) -> SettingsError:
        return SettingsError(message, path=self.path, hint=hint)


def _warn(message: str) -> None:
    import logging  # late: a start has no use for it

    from kb.text import visible_line

    logging.getLogger("kb").warning("%s", visible_line(message))
