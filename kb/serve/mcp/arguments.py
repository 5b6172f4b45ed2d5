"""What a tool can be given, as pydantic models: they check the arguments of a call and make the schema of the tool.

What does not fit raises QueryError with one line on what is wrong and one on what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kb.errors import QueryError
from kb.records import Lang

__all__ = [
    "MAX_TEXT",
    "Arguments",
    "ExplainArguments",
    "FeedbackArguments",
    "SearchArguments",
    "ShowArguments",
    "checked",
    "schema",
]

MAX_TEXT = 1_000_000  # characters; `kb.logs.read` reads the two ends of more than 64 Ki, and failures between them
MAX_RESULTS = 10  # issues of one answer: a model's context is expensive


class Arguments(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", allow_inf_nan=False)


Told = Annotated[Lang | None, Field(description="tell issues in this language; default: the question's")]
Project = Annotated[str | None, Field(max_length=200, description="only issues of this project or tag")]


class SearchArguments(Arguments):
    query: Annotated[str, Field(max_length=MAX_TEXT, description="error line, traceback or description")]
    k: Annotated[int, Field(ge=1, le=MAX_RESULTS, description="how many issues to name")] = 3
    lang: Told = None
    only: Annotated[Lang | None, Field(description="search articles in this language only")] = None
    project: Project = None


class ExplainArguments(Arguments):
    path: Annotated[str | None, Field(max_length=4096, description="the log's file")] = None
    text: Annotated[str | None, Field(max_length=MAX_TEXT, description="or the output itself")] = None
    lang: Told = None
    project: Project = None


class ShowArguments(Arguments):
    issue: Annotated[str, Field(max_length=300, description="its id, slug#n; or a slug for all issues of an article")]
    lang: Annotated[Lang | None, Field(description="the language to prefer")] = None


class FeedbackArguments(Arguments):
    issue: Annotated[str, Field(max_length=300, description="its id, slug#n")]
    verdict: Annotated[Literal["helped", "did_not_fit", "none"], Field(description="none takes a vote back")]
    question: Annotated[str | None, Field(max_length=MAX_TEXT, description="what was asked; kept masked")] = None


A = TypeVar("A", bound=Arguments)


def schema(model: type[Arguments], without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The JSON Schema of the arguments, short: no titles, and an argument that may be left out is not nullable too."""
    whole = model.model_json_schema()
    properties = {name: _short(one) for name, one in whole.get("properties", {}).items() if name not in without}
    required = [name for name in whole.get("required", ()) if name in properties]
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }


def _short(one: dict[str, Any]) -> dict[str, Any]:
    inner: dict[str, Any] = next((kind for kind in one.get("anyOf", ()) if kind.get("type") != "null"), {})
    rest = {key: value for key, value in one.items() if key not in ("title", "anyOf")}
    return {**inner, **{key: value for key, value in rest.items() if (key, value) != ("default", None)}}


def checked(given: Mapping[str, Any], model: type[A], tool: str) -> A:
    """Raises QueryError for the first thing that is wrong."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    name = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        known = ", ".join(model.model_fields)
        raise QueryError(
            f"{tool} has no argument {name[:40]!r}", hint=f"its arguments: {known}" if known else "it takes none"
        )
    if first["type"] == "missing":
        raise QueryError(f"{tool} needs {name}", hint=f"{name}: {model.model_fields[name].description}")
    value = given[name]
    if first["type"] == "string_too_long":
        most = schema(model)["properties"][name]["maxLength"]
        hint = (
            "give explain_log the log's path, or the part around the first error" if most == MAX_TEXT else "shorten it"
        )
        raise QueryError(f"{name} has {len(value):,} characters, and can have {most:,}", hint=hint)
    raise QueryError(f"{name} cannot be {_said(value)}", hint=f"it is {_can_be(schema(model)['properties'][name])}")


def _said(value: object) -> str:
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else value[:40] + "…")
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return repr(value)[:40]


def _can_be(one: Mapping[str, Any]) -> str:
    if "enum" in one:
        return " or ".join(f'"{value}"' for value in one["enum"])
    if one["type"] == "integer":
        return f"a whole number from {one['minimum']} to {one['maximum']}"
    return "a text"
