"""Here are the parameters of a request as they came; give me arguments for a search, or say what is wrong with them.

The same tables make the contract (`openapi`), so that what is promised is what is checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from kb.base import MAX_K
from kb.errors import QueryError
from kb.search.ranking import ANSWER_AT

__all__ = ["ISSUES", "LISTING", "QUESTION", "SEARCH", "from_json", "from_pairs"]

Schema = dict[str, Any]
Table = Mapping[str, Schema]

QUESTION: Schema = {
    "type": "string",
    "minLength": 1,
    "description": "An error line, a log or a description, in Chinese or English.",
}
_LANG: Schema = {"type": "string", "enum": ["en", "zh"]}
_RENDER: Schema = {
    "type": "string",
    "enum": ["tree"],
    "description": "Adds `tree` to each result: symptom, cause and fix as nodes a page can show.",
}
SEARCH: Table = {
    "k": {
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_K,
        "default": 5,
        "description": "How many issues to list.",
    },
    "lang": {**_LANG, "description": "Search and show articles in this language only."},
    "project": {"type": "string", "minLength": 1, "description": "Search this project or tag only, any letter case."},
    "min_confidence": {
        "type": "number",
        "minimum": 0,
        "maximum": 1,
        "default": ANSWER_AT,
        "description": "Answer from this confidence on.",
    },
    "render": _RENDER,
}
ISSUES: Table = {
    "lang": {**_LANG, "description": "Only this telling."},
    "render": _RENDER,
}
LISTING: Table = {
    "project": {"type": "string", "minLength": 1, "description": "Only issues of this project, any letter case."},
    "lang": {**_LANG, "default": "en", "description": "The language of the titles, where an issue is told in it."},
}

_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,20}\.?[0-9]{0,20}|\.[0-9]{1,20})(?:[eE][+-]?[0-9]{1,3})?")


def from_pairs(pairs: Iterable[tuple[str, str]], table: Table) -> dict[str, Any]:
    """The parameters of a query string, each of its own type. Raises QueryError."""
    given: dict[str, Any] = {}
    for name, text in pairs:
        if name in given:
            raise QueryError(f"{_shown(name)} is given twice")
        kind = table.get(name, {}).get("type")
        if kind == "integer" and _INTEGER.fullmatch(text):
            given[name] = int(text)
        elif kind == "number" and _NUMBER.fullmatch(text):
            given[name] = float(text)
        else:
            given[name] = text
    return _checked(given, table)


def from_json(body: bytes, table: Table) -> dict[str, Any]:
    """The members of a JSON object. Raises QueryError."""
    try:
        given = json.loads(body, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise QueryError("the body is no JSON", hint='{"query": "the error message"}') from None
    if not isinstance(given, dict):
        raise QueryError("the body is no JSON object", hint='{"query": "the error message"}')
    return _checked(given, table)


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)


def _checked(given: dict[str, Any], table: Table) -> dict[str, Any]:
    for name, value in given.items():
        if name not in table:
            raise QueryError(f"there is no parameter {_shown(name)}", hint=f"there are {', '.join(table)}")
        if isinstance(value, float) and table[name]["type"] == "integer" and value.is_integer():
            given[name] = int(value)  # 1.0 is an integer to JSON
        if not _fits(given[name], table[name]):
            raise QueryError(f"{name} must be {_told(table[name])}")
    return given


def _fits(value: Any, schema: Schema) -> bool:
    kind = schema["type"]
    if kind == "string":
        if not isinstance(value, str) or len(value) < schema.get("minLength", 0):
            return False
        return value in schema.get("enum", (value,))
    numbers = int if kind == "integer" else (int, float)
    if not isinstance(value, numbers) or isinstance(value, bool):
        return False
    return bool(schema["minimum"] <= value <= schema["maximum"])


def _told(schema: Schema) -> str:
    if "enum" in schema:
        return " or ".join(schema["enum"])
    if schema["type"] == "string":
        return "a text that is not empty" if schema.get("minLength") else "a text"
    return (
        f"{'an integer' if schema['type'] == 'integer' else 'a number'} of {schema['minimum']} to {schema['maximum']}"
    )


def _shown(name: str) -> str:
    return repr(name[:40])
