"""Reads a file of questions, each with the issue that answers it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from kb.errors import QueryError
from kb.text import HAN_CHAR

__all__ = ["Question", "read_questions"]

_FORM = (
    'a line is like {"id": "q1", "issue": "some-article#1", "kind": "line", "lang": "en", "query": "KeyError: ..."}; '
    '"issue": null where nothing answers'
)


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    query: str
    issue: str | None
    """`slug#n`, or a slug for any issue of that article; None when the base must not answer"""
    also: tuple[str, ...]
    """issues that are right, too"""
    kind: str
    lang: str
    path: str
    line: int
    """1-based"""

    @property
    def wanted(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.issue, *self.also))) if self.issue else ()


def read_questions(data: bytes, path: str) -> list[Question]:
    """The questions of a file with one JSON object a line. An object without "query" is skipped.

    An older form, {"qid", "slug", "record", "kind", "lang", "query"}, is accepted: there a question of the kind "far"
    or "near" without a slug must not be answered. Raises QueryError with `path` and line.
    """
    found: list[Question] = []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
        if not line.strip():
            continue
        try:
            question = _question(json.loads(line.decode("utf-8")), path, number)
        except UnicodeDecodeError:
            raise QueryError("this is not UTF-8", path=path, line=number, hint=_FORM) from None
        except _Wrong as error:
            raise QueryError(str(error), path=path, line=number, hint=_FORM) from None
        except (ValueError, RecursionError) as error:
            raise QueryError(f"this is no JSON ({error})", path=path, line=number, hint=_FORM) from None
        if question is not None:
            found.append(question)
    return found


class _Wrong(Exception):
    """A line that is no question; its text says why."""


def _question(item: object, path: str, line: int) -> Question | None:
    if not isinstance(item, dict):
        raise _Wrong("this is JSON, but no object")
    if "query" not in item:
        return None
    query, issue, also = _text(item, "query"), _issue(item), _also(item)
    if issue is None and also:
        raise _Wrong('"also" names what is right, and "issue" says that nothing is')
    name = item.get("id", item.get("qid"))
    return Question(
        id=str(line if name is None else name),
        query=query,
        issue=issue,
        also=also,
        kind=_text(item, "kind", "any"),
        lang=_text(item, "lang", "zh" if HAN_CHAR.search(query) else "en"),
        path=path,
        line=line,
    )


def _issue(item: dict[str, Any]) -> str | None:
    if "issue" in item:
        return None if item["issue"] is None else _text(item, "issue")
    if "slug" in item:
        return _numbered(_text(item, "slug"), item.get("record"))
    if item.get("kind") in ("far", "near"):
        return None
    raise _Wrong('there is no "issue", which says what is right, or null where nothing is')


def _also(item: dict[str, Any]) -> tuple[str, ...]:
    also = item.get("also") or []
    if not isinstance(also, list):
        raise _Wrong('"also" is no list of issues')
    return tuple(_numbered(*one) if isinstance(one, list) and len(one) == 2 else _numbered(one, None) for one in also)


def _numbered(slug: object, number: object) -> str:
    if not isinstance(slug, str) or not slug:
        raise _Wrong(f"{slug!r} is no issue")
    if number is None:
        return slug
    if type(number) is not int or number < 1:
        raise _Wrong(f"{number!r} is not the number of an issue, from 1")
    return f"{slug}#{number}"


def _text(item: dict[str, Any], key: str, otherwise: str | None = None) -> str:
    value = item.get(key)
    if value is None and otherwise is not None:
        return otherwise
    if not isinstance(value, str) or not value.strip():
        raise _Wrong(f'"{key}" is no text')
    return value
