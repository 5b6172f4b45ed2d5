"""The contract of the API: OpenAPI 3.1, made from the models that check requests and from the shapes of the answers.

The answers are not validated when they are sent. A test compares them with these shapes.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.json_schema import models_json_schema

from kb.records import Lang
from kb.serve import params
from kb.serve.nodes import TAGS

__all__ = ["contract"]

Json = dict[str, Any]

Line = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Element(_Shape):
    tag: Annotated[str, Field(json_schema_extra={"enum": list(TAGS)})]
    children: list[Node]
    href: str | None = None
    lang: str | None = None
    start: Annotated[int, Field(ge=0)] | None = None


Node = str | Element


class Tree(_Shape):
    symptom: list[Node]
    cause: list[Node]
    fix: list[Node]


class _Content(_Shape):
    """What a record says, in one language."""

    issue: str
    lang: Lang
    project: str | None
    title: str
    symptom: Annotated[str, Field(description="Markdown, as are cause and fix; cause and fix may be empty.")]
    cause: str
    fix: str
    errors: list[str]
    versions: list[str]
    tags: list[str]
    sources: list[str]
    tree: Annotated[Tree | None, Field(description="Only with render=tree.")] = None


class Result(_Content):
    rank: Line
    base: Annotated[str, Field(description="The base it comes from: bundled, or the path of another.")]
    path: str
    lines: Annotated[list[Line], Field(min_length=2, max_length=2)]
    score: float
    confidence: Share
    similarity: float
    idf_coverage: float
    matched: list[str]


class Answer(_Shape):
    query: str
    lang: Lang
    answered: Annotated[bool, Field(description="False: nothing is near enough to be trusted as the answer.")]
    took_ms: float
    snapshot: str
    results: list[Result]


class Source(_Shape):
    path: str
    first_line: Line
    last_line: Line


class Translation(_Content):
    id: str
    aliases: Annotated[list[str], Field(description="Other phrasings, by people who have no error line.")]
    source: Source


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


class Health(_Shape):
    status: Literal["ok"]
    version: str
    snapshot: str


class Error(_Shape):
    error: str
    hint: str | None


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


def contract(version: str) -> Json:
    """The OpenAPI document for this version of kb."""
    shapes = (Answer, Issue, Issues, Project, Health, Error, params.SearchBody)
    _, schemas = models_json_schema([(shape, "validation") for shape in shapes], ref_template=_REF)
    search = "Find the known issue for an error line, a log or a description"
    number = TypeAdapter(Line).json_schema()
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
                "get": _operation("ask", search, _ref(Answer), params.SearchParams, (400,)),
                "post": {
                    **_operation("askLong", search, _ref(Answer), params.NoParams, (400, 408, 413, 415)),
                    "requestBody": {"required": True, "content": _json(_ref(params.SearchBody))},
                },
            },
            "/api/issues": {
                "get": _operation(
                    "listIssues", "All issues, or those of a project", _ref(Issues), params.ListParams, (400,)
                )
            },
            "/api/issues/{slug}/{number}": {
                "get": _operation("showIssue", "One whole issue", _ref(Issue), params.IssueParams, (400, 404)),
                "parameters": [
                    {"name": "slug", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}},
                    {"name": "number", "in": "path", "required": True, "schema": number},
                ],
            },
            "/api/projects": {
                "get": _operation(
                    "listProjects",
                    "The projects that the base has issues of",
                    {"type": "array", "items": _ref(Project)},
                    params.NoParams,
                    (400,),
                )
            },
            "/healthz": {
                "get": _operation("health", "Is the server up, and what does it serve?", _ref(Health), params.NoParams)
            },
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


def _ref(model: type[BaseModel]) -> Json:
    return {"$ref": _REF.format(model=model.__name__)}


def _json(schema: Json) -> Json:
    return {"application/json": {"schema": schema}}


def _operation(
    name: str, summary: str, answer: Json, model: type[params.NoParams], errors: tuple[int, ...] = ()
) -> Json:
    failures = {
        str(status): {"description": _ERRORS[status], "content": _json(_ref(Error))} for status in (*errors, *_ANYWHERE)
    }
    return {
        "operationId": name,
        "summary": summary,
        "parameters": _parameters(model),
        "responses": {"200": {"description": "OK", "content": _json(answer)}, **failures},
    }


def _parameters(model: type[params.NoParams]) -> list[Json]:
    """The fields of a model as parameters of a query string, which knows no null."""
    schema = model.model_json_schema()
    found = []
    for name, field in schema["properties"].items():
        kind = {key: value for key, value in field.items() if key not in ("anyOf", "description", "title")}
        kind |= field.get("anyOf", [{}])[0]
        if kind.get("default", "") is None:
            del kind["default"]
        required = name in schema.get("required", ())
        found.append(
            {"name": name, "in": "query", "required": required, "description": field["description"], "schema": kind}
        )
    return found
