"""The parameters of a request, as pydantic models: they check what a client sends, and make the contract (`openapi`).

In: the pairs of a query string, or the bytes of a JSON body. Out: a model whose fields have the right types. What does
not fit raises QueryError, which names the parameter and what it can be.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kb.base import MAX_K
from kb.errors import QueryError
from kb.records import Lang
from kb.search.verdict import KNOWN_AT

__all__ = [
    "IssueParams",
    "ListParams",
    "NoParams",
    "ScanBody",
    "ScanOptions",
    "SearchBody",
    "SearchOptions",
    "SearchParams",
    "from_json",
    "from_pairs",
    "replace_lone_surrogates",
]


class NoParams(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


P = TypeVar("P", bound=NoParams)


Question = Annotated[
    str, Field(min_length=1, description="An error line, a log or a description, in Chinese or English.")
]
Name = Annotated[str, Field(min_length=1)]
Render = Annotated[
    Literal["tree"] | None,
    Field(description="Adds `tree` to each result: symptom, cause and fix as nodes that a page can show."),
]

Brief = Annotated[
    bool,
    Field(description="Of each issue only what it is and what to try first, for an editor or a chat bot."),
]

_KNOWN = f"Answer from this confidence on (0 to 1). Default: the server's kb.toml, else {KNOWN_AT:g}."
_TOLD = "Show each issue in this language, where it has an article in it. Default: the language of the question."


class SearchOptions(NoParams):
    k: Annotated[int, Field(ge=1, le=MAX_K, description=f"How many issues to list, 1 to {MAX_K}.")] = 5
    lang: Annotated[Lang | None, Field(description=_TOLD)] = None
    only: Annotated[Lang | None, Field(description="Search and show articles in this language only.")] = None
    project: Annotated[Name | None, Field(description="Search this project or tag only, in any letter case.")] = None
    min_confidence: Annotated[float | None, Field(ge=0, le=1, description=_KNOWN)] = None
    brief: Brief = False
    draft: Annotated[
        bool, Field(description="Somebody is still typing: the question is counted apart from those that were asked.")
    ] = False
    render: Render = None
    why: Annotated[bool, Field(description="Adds `why` to each result: what speaks for it and against it.")] = False


class SearchParams(SearchOptions):
    q: Question


class SearchBody(SearchOptions):
    query: Question


class ScanOptions(NoParams):
    lang: Annotated[Lang | None, Field(description="Show each issue in this language. Default: its line's.")] = None
    project: Annotated[Name | None, Field(description="Report this project or tag only, in any letter case.")] = None
    min_confidence: Annotated[float | None, Field(ge=0, le=1, description="Leave out issues that are less sure.")] = (
        None
    )
    warnings: Annotated[bool, Field(description="Also report warnings; a healthy log may have many.")] = False
    brief: Brief = False


class ScanBody(ScanOptions):
    text: Annotated[str, Field(description="The log.")]


class IssueParams(NoParams):
    lang: Annotated[Lang | None, Field(description="The translation in this language, where there is one.")] = None
    only: Annotated[Lang | None, Field(description="The translation in this language, and no other.")] = None
    render: Render = None


class ListParams(NoParams):
    project: Annotated[Name | None, Field(description="Only issues of this project, in any letter case.")] = None
    lang: Annotated[Lang, Field(description="The language of the titles, where an issue has a translation in it.")] = (
        "en"
    )


def from_pairs(pairs: Iterable[tuple[str, str]], model: type[P]) -> P:
    """The parameters of a query string. Raises QueryError."""
    given: dict[str, Any] = {}
    for name, text in pairs:
        if name in given:
            raise QueryError(f"{_short(name)} is given twice")
        given[name] = text
    try:
        return model.model_validate_strings(given)
    except ValidationError as error:
        raise _explained(error, model) from None


def from_json(body: bytes, model: type[P], also: Mapping[str, object] | None = None) -> P:
    """The members of a JSON object in UTF-8, and `also` those that it leaves out. Raises QueryError."""
    try:
        given = json.loads(replace_lone_surrogates(body).decode("utf-8-sig"), parse_float=_number)
    except (ValueError, RecursionError):
        raise QueryError("the body is not valid JSON", hint=_EXAMPLE) from None
    if not isinstance(given, dict):
        raise QueryError("the body is not a JSON object", hint=_EXAMPLE)
    try:
        return model.model_validate({**(also or {}), **given})
    except ValidationError as error:
        raise _explained(error, model) from None


_EXAMPLE = '{"query": "the error message"}'


def _number(text: str) -> float:
    number = float(text)
    return int(number) if number.is_integer() else number  # 1.0 is an integer in JSON Schema


def _explained(error: ValidationError, model: type[NoParams]) -> QueryError:
    """The first thing that is wrong. The text never repeats what the client sent, but for the name of a parameter."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    name = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        hint = f"there are {', '.join(model.model_fields)}" if model.model_fields else "this path takes no parameters"
        return QueryError(f"there is no parameter {_short(name)}", hint=hint)
    if first["type"] == "missing":
        return QueryError("there is no question", hint=f"{name}: {model.model_fields[name].description}")
    problem = first["msg"].replace("Input should", "must").replace("String should", "must")
    problem = problem if problem.startswith("must") else f"cannot be read: {problem}"
    return QueryError(f"{name} {problem}", hint=model.model_fields[name].description)


def _short(name: str) -> str:
    return repr(name[:40])


_ESCAPES = re.compile(rb"\\\\|\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u[dD][89a-fA-F][\da-fA-F]{2}")


def replace_lone_surrogates(document: bytes) -> bytes:
    r"""JSON with U+FFFD for each escape of half a surrogate pair (`\ud83d` alone).

    A log that was cut somewhere has them. They are no Unicode text, and pydantic refuses the whole document for one.
    """
    return _ESCAPES.sub(lambda found: rb"\ufffd" if len(found[0]) == 6 else found[0], document)
