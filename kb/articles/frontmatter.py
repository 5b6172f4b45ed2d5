"""Here are an article's first lines; give me what its front matter says, and where the body begins.

YAML is read with every value a string. When it is broken, `key: value` lines are taken as they stand and a
remark says so: a missing quote must not cost an article its project.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date

import yaml

from kb.records import Remark

__all__ = ["FrontMatter", "is_draft", "peek", "read_front_matter"]

_MAX_LINES = 200
_MAX_CHARS = 20_000
_MAX_ITEMS = 200
# Keys of the project's own form, and the other names under which pages state the same.
_LISTS = ("project", "tags", "versions", "sources")
_TEXTS = ("title", "lang", "updated", "status")
_OTHERS = "projects product products software component repo repository version source language tag category categories"
_READ = frozenset((*_LISTS, *_TEXTS, *_OTHERS.split()))
_KEY = re.compile(r"[A-Za-z_]{1,40}:(?:\s|$)")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d.*)?$")
_DRAFT = "draft"
_NOTHING = ("~", "null", "Null", "NULL")
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


@dataclass(frozen=True)
class FrontMatter:
    values: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """key in lower case -> its strings, a single value as one"""
    body: int = 0
    """index of the first line after it"""
    remarks: tuple[Remark, ...] = ()

    def first(self, *keys: str) -> str:
        return next((self.values[key][0] for key in keys if self.values.get(key)), "")

    @property
    def draft(self) -> bool:
        """`status: draft`: not reviewed yet."""
        return self.first("status").casefold() == _DRAFT

    def all(self, *keys: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(value for key in keys for value in self.values.get(key, ())))


def is_draft(data: bytes) -> bool:
    """Does an article's front matter say `status: draft`? Far quicker than to parse it, for nearly all do not."""
    return b"status" in data[: 4 * _MAX_CHARS].lower() and peek(data).draft


def peek(data: bytes) -> FrontMatter:
    """An article's front matter, without a look at its body."""
    return read_front_matter(data[: 4 * _MAX_CHARS].decode("utf-8-sig", "replace").splitlines())


def read_front_matter(lines: list[str]) -> FrontMatter:
    start = 0
    while start < len(lines) and not lines[start].strip():
        start += 1
    if start == len(lines) or lines[start].rstrip() != "---":
        return FrontMatter()
    limit = min(len(lines), start + _MAX_LINES)
    end = next((n for n in range(start + 1, limit) if lines[n].rstrip() in ("---", "...")), None)
    if end is None and start + 1 < len(lines) and _KEY.match(lines[start + 1]):
        return FrontMatter(remarks=(Remark(start + 1, "front-matter", f"never closed within {_MAX_LINES} lines"),))
    if end is None or not _is_mapping(lines[start + 1 : end]):
        return FrontMatter()
    inner = lines[start + 1 : end]
    remarks = [Remark(n + 1, "front-matter", lines[n]) for n in range(start + 1, end) if lines[n].startswith("#")]
    source = "\n".join(inner)
    try:
        if len(source) > _MAX_CHARS:
            raise yaml.YAMLError(f"longer than {_MAX_CHARS} characters")
        if "*" in source and any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(source, _LOADER)):
            raise yaml.YAMLError("aliases are not read")  # a short text may unfold to gigabytes
        data = yaml.load(source, _LOADER)
        if not isinstance(data, dict):
            raise yaml.YAMLError("not a mapping")
        values = {str(key).strip().lower(): _strings(value) for key, value in data.items()}
        remarks += [Remark(_line_of(key, inner, start), "front-matter", text) for key, text in _misfits(data)]
        keys = [found[0] for line in inner if (found := _KEY.match(line))]
        for key in sorted({key for key in keys if keys.count(key) > 1}):
            remarks.append(Remark(start + 1, "front-matter", f"{key.strip(': ')}: stands there more than once"))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        values = _key_values(inner)
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or (
            str(error) if isinstance(error, yaml.YAMLError) else "nested too deep"
        )
        text = f"not YAML ({reason}): its `key: value` lines are taken as they stand"
        remarks.append(Remark(start + (mark.line + 2 if mark else 1), "front-matter", text))
    return FrontMatter(values, end + 1, tuple(remarks))


def _is_mapping(inner: list[str]) -> bool:
    """A rule, a paragraph and a rule are no front matter; `key: value` lines are."""
    filled = [line for line in inner if line.strip()]
    return not filled or any(":" in line and not line.startswith((" ", "-", "#")) for line in filled[:3])


def _misfits(data: dict[object, object]) -> Iterator[tuple[str, str]]:
    """Keys of this project's own form whose values are of another type, and keys that are nearly one of them."""
    for key, value in data.items():
        name = str(key).strip().lower()
        if name in _LISTS and not (isinstance(value, str) or _is_list_of_texts(value)):
            yield str(key), f"{name}: wants a text or a list of texts"
        elif name in _TEXTS and not isinstance(value, str):
            yield str(key), f"{name}: wants one text"
        elif name == "updated" and not _is_date(str(value)):
            yield str(key), f"updated: wants a date as 2026-01-31, not {value!r}"
        elif (
            name == "status"
            and str(value).casefold() != _DRAFT
            and difflib.get_close_matches(str(value).casefold(), [_DRAFT], 1, 0.7)
        ):
            yield str(key), f"status: {value!r} is not read; {_DRAFT} is meant?"
        elif name in _LISTS and isinstance(value, str) and value.startswith("["):
            yield str(key), f"{name}: a text that looks like a list; take the quotes off"
        elif name not in _READ and (near := difflib.get_close_matches(name, (*_LISTS, *_TEXTS), 1, 0.8)):
            yield str(key), f"{name}: is not read; {near[0]} is meant?"


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_date(text: str) -> bool:
    try:
        # A time of day may follow. Python reads more forms of a date from 3.11 on.
        return bool(_DATE.match(text) and date.fromisoformat(text[:10]))
    except ValueError:
        return False


def _line_of(key: str, inner: list[str], start: int) -> int:
    return start + 2 + next((n for n, line in enumerate(inner) if line.lstrip("'\"").startswith(key)), 0)


def _strings(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value.strip(),) if value.strip() and value.strip() not in _NOTHING else ()
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        flat = [item if isinstance(item, str) else " ".join(_strings(item)) for item in value[:_MAX_ITEMS]]
        return tuple(item.strip() for item in flat if item.strip())
    return ()


def _key_values(inner: list[str]) -> dict[str, tuple[str, ...]]:
    values: dict[str, tuple[str, ...]] = {}
    key = ""
    for line in inner[:_MAX_LINES]:
        text = line.strip()
        if text.startswith("- ") and key:
            values[key] = (*values.get(key, ()), text[2:].strip().strip("\"'"))
        elif ":" in text and not line.startswith((" ", "#")):
            name, _, rest = text.partition(":")
            key = name.strip().lower()
            rest = rest.strip()
            items = rest[1:-1].split(",") if rest.startswith("[") and rest.endswith("]") else [rest]
            values[key] = tuple(item.strip().strip("\"'") for item in items if item.strip().strip("\"'"))
    return values
