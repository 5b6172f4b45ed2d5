"""The contract of the API: OpenAPI 3.1, made from the models that check requests and from the shapes of the answers.

Answers are not validated when they are sent. A test compares them with these shapes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel
from pydantic.json_schema import models_json_schema

from kb.records import IssueRecord, Lang, Verdict
from kb.search.verdict import MOST_LIKELY
from kb.serve import params
from kb.serve.nodes import TAGS

__all__ = ["contract"]

Json = dict[str, Any]
Line = Annotated[int, Field(ge=1)]


class _Shape(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


class Element(_Shape):
    tag: Annotated[str, Field(json_schema_extra={"enum": list(TAGS)})]
    children: list[str | Element]
    href: str | None = None
    lang: str | None = None
    start: Annotated[int, Field(ge=0)] | None = None


class Tree(_Shape):
    summary: list[str | Element]
    symptom: list[str | Element]
    cause: list[str | Element]
    fix: list[str | Element]
    triage: list[str | Element]


OptionalTree = Annotated[Tree | None, Field(description="Only with render=tree.")]


class Cure(_Shape):
    """The one command or setting to try first; the code is empty where the fix has none."""

    says: str
    code: str
    warnings: list[str]


OptionalCure = Annotated[Cure | None, Field(description="Only with render=tree.")]


class Counted(_Shape):
    value: float
    weight: Annotated[float, Field(description="What it adds to the log odds of being right.")]


class Disagreement(_Shape):
    question: list[str]
    issue: list[str]


class Why(_Shape):
    evidence: Annotated[dict[str, Counted], Field(description="By name; what counts most comes first.")]
    conditions: Annotated[dict[str, bool | None], Field(description="Does it hold? Null: the question does not say.")]
    conflicts: Annotated[
        dict[str, Disagreement], Field(description="Kinds of codes, GPUs and libraries in which both differ.")
    ]
    ruled_out: Annotated[bool, Field(description="A condition does not hold.")]


class Result(_Shape):
    rank: Line
    issue: str
    lang: Lang
    project: str | None
    title: str
    summary: Annotated[str, Field(description="The cause in a sentence and what to try first; may be empty.")]
    symptom: Annotated[str, Field(description="Markdown, as are cause and fix; cause and fix may be empty.")]
    cause: str
    fix: str
    triage: Annotated[str, Field(description="Which circumstance leads to which issue; empty for most.")]
    leads_to: Annotated[list[str], Field(description="The issues of `triage` whose condition the question meets.")]
    only_when: Annotated[str, Field(description="By which numbers of its message one knows it; may be empty.")]
    confusable: Annotated[str, Field(description="What looks alike and is another issue; may be empty.")]
    errors: list[str]
    versions: list[str]
    tags: list[str]
    sources: list[str]
    base: Annotated[str, Field(description="The base it comes from: bundled, or the path of another.")]
    path: str
    lines: Annotated[list[Line], Field(min_length=2, max_length=2)]
    score: float
    confidence: Annotated[float, Field(ge=0, le=1)]
    similarity: float
    idf_coverage: float
    matched: list[str]
    tree: OptionalTree = None
    cure: OptionalCure = None
    tells_apart: Annotated[
        str | None, Field(description="Only with render=tree, of a likely issue: by what one sees that it is this one.")
    ] = None
    why: Annotated[Why | None, Field(description="Only with why=true.")] = None


class Silent(_Shape):
    base: str
    why: str


class Answer(_Shape):
    query: str
    lang: Lang
    answered: Annotated[bool, Field(description="The verdict is known: the first result is the answer.")]
    verdict: Annotated[
        Verdict,
        Field(
            description="known; likely: it may be one of those named in `likely`; unknown: the results are the nearest."
        ),
    ]
    likely: Annotated[list[str], Field(max_length=MOST_LIKELY, description="Issues, the best first.")]
    took_ms: float
    snapshot: str
    bases: Annotated[list[str], Field(description="Those that answered, in the order in which they are asked.")]
    silent: Annotated[list[Silent], Field(description="Those that did not.")]
    results: list[Result]


@dataclass(frozen=True)
class Translation(IssueRecord):
    """One issue in one language."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    tree: OptionalTree = None
    cure: OptionalCure = None


class Issue(_Shape):
    issue: str
    snapshot: str
    translations: Annotated[list[Translation], Field(min_length=1)]


class Title(_Shape):
    issue: str
    lang: Lang
    project: str | None
    title: str
    tags: list[str]


class Issues(_Shape):
    snapshot: str
    issues: list[Title]


class Project(_Shape):
    project: str
    issues: Line


class Projects(RootModel[list[Project]]):
    """The answer of `/api/projects`."""


class Health(_Shape):
    status: Literal["ok"]
    version: str
    snapshot: str


class Error(_Shape):
    error: str
    hint: str | None


_SHAPES = (Answer, Issue, Issues, Projects, Health, Error, params.SearchBody)
_ERRORS = {
    400: "The question or a parameter cannot be used.",
    401: "The server wants a token.",
    403: "A page of another origin may not ask.",
    404: "There is no such issue.",
    408: "The body did not come in time.",
    413: "The body is too long.",
    415: "The body is not application/json.",
    421: "The server does not answer to that host name.",
    431: "Address and headers are too long.",
    500: "A mistake in kb.",
    503: "Too busy, stopping, or the encoder is not available.",
}
_ANYWHERE = (401, 403, 421, 431, 500, 503)
_SEARCH = "Find the known issue for an error line, a log or a description"


def contract(version: str) -> Json:
    """The OpenAPI document for this version of kb."""
    _, schemas = models_json_schema([(shape, "validation") for shape in _SHAPES], ref_template=_REF)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "kb",
            "version": version,
            "description": "Paste an error, get the known issue, its cause and its fix, or an honest “not known”.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            "/api/search": {
                "get": _operation("ask", _SEARCH, Answer, params.SearchParams, 400),
                "post": _operation("askLong", _SEARCH, Answer, params.NoParams, 400, 408, 413, 415)
                | {"requestBody": {"required": True, "content": _content(params.SearchBody)}},
            },
            "/api/issues": {
                "get": _operation("listIssues", "All issues, or those of a project", Issues, params.ListParams, 400)
            },
            "/api/issues/{slug}/{number}": {
                "get": _operation("showIssue", "One whole issue", Issue, params.IssueParams, 400, 404),
                "parameters": [
                    _parameter("path", "slug", {"type": "string", "minLength": 1}, required=True),
                    _parameter("path", "number", {"type": "integer", "minimum": 1}, required=True),
                ],
            },
            "/api/projects": {
                "get": _operation("listProjects", "The projects of the base", Projects, params.NoParams, 400)
            },
            "/healthz": {"get": _operation("health", "Is the server up, and what does it serve?", Health)},
        },
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "Only if the server was given one."}
            },
        },
        "security": [{}, {"token": []}],
    }


_REF = "#/components/schemas/{model}"


def _content(model: type[BaseModel]) -> Json:
    return {"application/json": {"schema": {"$ref": _REF.format(model=model.__name__)}}}


def _operation(
    name: str, summary: str, answer: type[BaseModel], model: type[params.NoParams] = params.NoParams, *errors: int
) -> Json:
    schema = model.model_json_schema()
    fields = schema["properties"].items()
    responses = {"200": {"description": "OK", "content": _content(answer)}}
    for status in (*errors, *_ANYWHERE):
        responses[str(status)] = {"description": _ERRORS[status], "content": _content(Error)}
    return {
        "operationId": name,
        "summary": summary,
        "parameters": [_parameter("query", key, field, key in schema.get("required", ())) for key, field in fields],
        "responses": responses,
    }


def _parameter(place: str, name: str, field: Json, required: bool) -> Json:
    """A parameter of a path or a query string, which knows no null."""
    schema = {**field, **field.get("anyOf", [{}])[0]}
    described = {"description": schema.pop("description")} if "description" in schema else {}
    for key in ("anyOf", "title") if schema.get("default", "") is not None else ("anyOf", "title", "default"):
        schema.pop(key, None)
    return {"name": name, "in": place, "required": required, **described, "schema": schema}
