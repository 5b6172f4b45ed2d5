"""The contract of the API: OpenAPI 3.1, made from the models that check requests (`params`) and the shapes of the
answers (`shapes`)."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from kb.serve import params
from kb.serve.shapes import (
    Answer,
    Error,
    FeedbackState,
    Health,
    Issue,
    Issues,
    Login,
    Projects,
    Report,
    ShortAnswer,
    Vote,
)
from kb.serve.voting import VoteBody

__all__ = ["contract"]

Json = dict[str, Any]
_SHAPES = (
    *(Answer, ShortAnswer, Report, Issue, Issues, Projects, Health, Vote, FeedbackState, Error),
    *(params.SearchBody, params.ScanBody, VoteBody, Login),
)
_ERRORS = {
    400: "The question, a parameter or the packing of the body cannot be used.",
    401: "The server wants a token.",
    403: "A page of another origin may not ask.",
    404: "There is no such issue.",
    408: "The body did not come in time.",
    413: "The body is too long.",
    415: "The body is of a kind that is not read here.",
    421: "The server does not answer to that host name.",
    429: "Too many wrong tokens, or votes, came from this address.",
    431: "Address and headers are too long.",
    500: "A mistake in kb.",
    503: "Too busy, stopping, or the base cannot be searched.",
}
_POSTED = (400, 408, 413, 415)
_KEPT = {"304": {"description": "The client has it already: its ETag is the one in If-None-Match."}}
_ANYWHERE = (401, 403, 421, 429, 431, 500, 503)
_SEARCH = "Find the known issue for an error line, a log or a description"
_LIST, _PROJECTS = "All issues, or those of a project", "The projects of the base"
_METRICS = "Counts and times of requests, in the text format of Prometheus"
_DOCUMENT = "This document"
_LOGIN, _LOGOUT = "Start a session of the page with the token", "End the session of this browser"
_SCAN = "List the issues that occur in a log, each with its lines"


def contract(version: str) -> Json:
    """The OpenAPI document for this version of kb."""
    _, schemas = models_json_schema([(shape, "validation") for shape in _SHAPES], ref_template=_REF)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "kb",
            "version": version,
            "description": "Paste an error, get the known issue, its cause and its fix, or an honest “not known”. "
            "Beside this API there are pages for people (/, /issue/{slug}/{number}) and /mcp, which speaks the Model "
            "Context Protocol.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            "/api/search": {
                "get": _operation("ask", _SEARCH, (Answer, ShortAnswer), params.SearchParams, 400),
                "post": _operation("askLong", _SEARCH, (Answer, ShortAnswer), params.SearchOptions, *_POSTED)
                | _body(params.SearchBody),
            },
            "/api/scan": {
                "post": _operation("scan", _SCAN, (Report,), params.ScanOptions, *_POSTED) | _body(params.ScanBody)
            },
            "/api/issues": {"get": _operation("listIssues", _LIST, (Issues,), params.ListParams, 400, kept=True)},
            "/api/issues/{slug}/{number}": {
                "get": _operation("showIssue", "One whole issue", (Issue,), params.IssueParams, 400, 404, kept=True),
                "parameters": [
                    _parameter("path", "slug", {"type": "string", "minLength": 1}, required=True),
                    _parameter("path", "number", {"type": "integer", "minimum": 1}, required=True),
                ],
            },
            "/api/projects": {
                "get": _operation("listProjects", _PROJECTS, (Projects,), params.NoParams, 400, kept=True)
            },
            "/api/feedback": {
                "get": _operation(
                    "feedbackState", "Does this server keep votes?", (FeedbackState,), params.NoParams, 400
                ),
                "post": _operation("vote", "Say whether an issue helped", (Vote,), params.NoParams, 404, 429, *_POSTED)
                | {"requestBody": {"required": True, "content": _content(VoteBody)}},
            },
            "/api/session": {
                "post": _operation("login", _LOGIN, (), params.NoParams, *_POSTED)
                | {"requestBody": {"required": True, "content": _content(Login)}},
                "delete": _operation("logout", _LOGOUT, ()),
            },
            "/healthz": {"get": _operation("health", "Is the server up, and what does it serve?", (Health,))},
            "/metrics": {"get": _operation("metrics", _METRICS, text="text/plain")},
            "/openapi.json": {"get": _operation("contract", _DOCUMENT, text="application/json", kept=True)},
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


def _content(*models: type[BaseModel]) -> Json:
    schemas = [{"$ref": _REF.format(model=model.__name__)} for model in models]
    return {"application/json": {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}}}


def _body(model: type[BaseModel]) -> Json:
    """A JSON object, or the text itself with its options in the query string."""
    text = {"schema": {"type": "string", "description": "Any encoding of a log: UTF-8, GB 18030, UTF-16 with a mark."}}
    content = {**_content(model), "text/plain": text, "application/x-www-form-urlencoded": text}
    said = "May be packed (Content-Encoding: gzip). In an object an option counts before the query string's."
    return {"requestBody": {"required": True, "description": said, "content": content}}


def _operation(
    name: str,
    summary: str,
    answers: tuple[type[BaseModel], ...] = (),
    model: type[params.NoParams] = params.NoParams,
    *errors: int,
    kept: bool = False,
    text: str = "",
) -> Json:
    """`kept`: the answer has an ETag. `text`: the kind of an answer of which no shape is promised; without it and
    without `answers` there is nothing to answer."""
    schema = model.model_json_schema()
    fields = schema["properties"].items()
    content = _content(*answers) if answers else {text: {"schema": {}}}
    done = {"200": {"description": "OK", "content": content}} if answers or text else {"204": {"description": "Done."}}
    responses = {**done, **(_KEPT if kept else {})}
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
