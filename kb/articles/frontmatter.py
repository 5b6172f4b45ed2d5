"""Reads an article's front matter: its values by key, and the line where the body begins.

The front matter is YAML between two lines of `---`; every value is read as a string. When the YAML is broken, its
`key: value` lines are read one by one and a remark says so, so that a missing quote does not lose the project.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date

from kb.records import Remark

__all__ = ["FrontMatter", "is_draft", "peek", "read_front_matter"]

_MAX_LINES = 200
_MAX_CHARS = 20_000
_MAX_ITEMS = 200
# Keys of the project's own form, and the other names under which pages state the same.
_LISTS = ("project", "tags", "versions", "sources")
_TEXTS = ("title", "lang", "updated", "status", "duplicate_of")
_OTHERS = "projects product products software component repo repository version source language tag category categories"
_READ = frozenset((*_LISTS, *_TEXTS, *_OTHERS.split()))
_KEY = re.compile(r"[A-Za-z_]{1,40}:(?:\s|$)")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d.*)?$")
_CLOSING = re.compile(rb"\n---[ \t\r]*\n")
_DRAFT = "draft"
_DUPLICATE = "duplicate"
_STATES = (_DRAFT, _DUPLICATE)
_NOTHING = ("~", "null", "Null", "NULL")


@dataclass(frozen=True)
class FrontMatter:
    values: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """key in lower case -> its strings; a single value gives one"""
    body: int = 0
    """index of the first line after it"""
    remarks: tuple[Remark, ...] = ()

    def first(self, *keys: str) -> str:
        """The first string of the first of these keys that has any; "" when none has."""
        return next((self.values[key][0] for key in keys if self.values.get(key)), "")

    @property
    def draft(self) -> bool:
        """`status: draft`: not reviewed yet, or `status: duplicate`: another issue says it. Neither is served."""
        return self.first("status").casefold() in _STATES

    @property
    def updated(self) -> str:
        """Its day (`2026-01-31`); "" when there is none, or something else."""
        said = self.first("updated")
        return said[:10] if _is_date(said) else ""

    @property
    def duplicate_of(self) -> str:
        """Of a duplicate, the issue that says it (`slug#n`); "" when none is named."""
        return self.first("duplicate_of") if self.is_duplicate else ""

    @property
    def is_duplicate(self) -> bool:
        return self.first("status").casefold() == _DUPLICATE

    def all(self, *keys: str) -> tuple[str, ...]:
        """The strings of all these keys, each once."""
        return tuple(dict.fromkeys(value for key in keys for value in self.values.get(key, ())))


def is_draft(data: bytes) -> bool:
    """Whether an article's front matter says `status: draft` or `status: duplicate`, without parsing the body.

    Equal to `parse(...).draft`. Front matter that nowhere says "status" is not even decoded.
    """
    head = data[: 4 * _MAX_CHARS]
    closing = _CLOSING.search(head, head.find(b"---") + 3)
    return b"status" in head[: closing.start() if closing else None].lower() and peek(data).draft


def peek(data: bytes) -> FrontMatter:
    """An article's front matter, without reading its body. Bytes that are not UTF-8 are replaced."""
    return read_front_matter(data[: 4 * _MAX_CHARS].decode("utf-8-sig", "replace").splitlines())


def read_front_matter(lines: list[str]) -> FrontMatter:
    """The front matter that opens these lines of an article; an empty one with `body` 0 when there is none.

    At most 200 lines and 20,000 characters. Nothing is raised: what cannot be read becomes a remark.
    """
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
    import yaml  # late: whoever needs only `is_draft` or a name of this package does not wait for it

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        if len(source) > _MAX_CHARS:
            raise yaml.YAMLError(f"longer than {_MAX_CHARS} characters")
        if "*" in source and any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(source, loader)):
            raise yaml.YAMLError("aliases are not read")  # a short text may unfold to gigabytes
        data = yaml.load(source, loader)
        if not isinstance(data, dict):
            raise yaml.YAMLError("not a mapping")
        values = {str(key).strip().lower(): _strings(value) for key, value in data.items()}
        remarks += [Remark(_line_of(key, inner, start), "front-matter", text) for key, text in _misfits(data)]
        keys = [found[0] for line in inner if (found := _KEY.match(line))]
        for key in sorted({key for key in keys if keys.count(key) > 1}):
            remarks.append(Remark(start + 1, "front-matter", f"{key.strip(': ')}: given more than once"))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        values = _key_values(inner)
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or (
            str(error) if isinstance(error, yaml.YAMLError) else "nested too deep"
        )
        text = f"not YAML ({reason}): its `key: value` lines are read one by one"
        remarks.append(Remark(start + (mark.line + 2 if mark else 1), "front-matter", text))
    return FrontMatter(values, end + 1, tuple(remarks))


def _is_mapping(inner: list[str]) -> bool:
    """Front matter has `key: value` lines; a paragraph between two rules has none."""
    filled = [line for line in inner if line.strip()]
    return not filled or any(":" in line and not line.startswith((" ", "-", "#")) for line in filled[:3])


def _misfits(data: dict[object, object]) -> Iterator[tuple[str, str]]:
    """Keys of this project's own form with a value of another type, and keys that look misspelt."""
    import difflib

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
            and str(value).casefold() not in _STATES
            and (close := difflib.get_close_matches(str(value).casefold(), _STATES, 1, 0.7))
        ):
            yield str(key), f"status: {value!r} is not read; {close[0]} is meant?"
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
