"""Here are the tables of parameters; give me the contract of the API: OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

from kb.serve import asking
from kb.serve.nodes import TAGS

__all__ = ["contract"]

Json = dict[str, Any]

_TEXT: Json = {"type": "string"}
_NUMBER: Json = {"type": "number"}
_LINE: Json = {"type": "integer", "minimum": 1}
_TEXTS: Json = {"type": "array", "items": _TEXT}
_SHARE: Json = {"type": "number", "minimum": 0, "maximum": 1}
_LANG: Json = {"type": "string", "enum": ["en", "zh"]}
_PROJECT: Json = {"type": ["string", "null"]}


def _object(optional: Json | None = None, **members: Json) -> Json:
    properties = {**members, **(optional or {})}
    return {"type": "object", "required": list(members), "properties": properties, "additionalProperties": False}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(item: Json) -> Json:
    return {"type": "array", "items": item}


_TOLD: Json = {
    "lang": _LANG,
    "project": _PROJECT,
    "title": _TEXT,
    "symptom": {**_TEXT, "description": "Markdown, as are cause and fix; cause and fix may be empty."},
    "cause": _TEXT,
    "fix": _TEXT,
    "errors": _TEXTS,
    "versions": _TEXTS,
    "tags": _TEXTS,
    "sources": _TEXTS,
}

_SCHEMAS: Json = {
    "Answer": _object(
        query=_TEXT,
        lang=_LANG,
        answered={"type": "boolean", "description": "False: nothing is near enough to be trusted as the answer."},
        took_ms=_NUMBER,
        snapshot=_TEXT,
        results=_list(_ref("Result")),
    ),
    "Result": _object(
        {"tree": _ref("Tree")},
        rank=_LINE,
        issue=_TEXT,
        **_TOLD,
        base={**_TEXT, "description": "Which base it comes from: bundled, or the path of another."},
        path=_TEXT,
        lines={"type": "array", "items": _LINE, "minItems": 2, "maxItems": 2},
        score=_NUMBER,
        confidence=_SHARE,
        similarity=_NUMBER,
        idf_coverage=_NUMBER,
        matched=_TEXTS,
    ),
    "Telling": _object(
        {"tree": _ref("Tree")},
        id=_TEXT,
        issue=_TEXT,
        **_TOLD,
        aliases={**_TEXTS, "description": "Other phrasings, by people who have no error line."},
        source=_object(path=_TEXT, first_line=_LINE, last_line=_LINE),
    ),
    "Issue": _object(issue=_TEXT, snapshot=_TEXT, tellings={**_list(_ref("Telling")), "minItems": 1}),
    "Issues": _object(
        snapshot=_TEXT,
        issues=_list(_object(issue=_TEXT, lang=_LANG, project=_PROJECT, title=_TEXT, tags=_TEXTS)),
    ),
    "Projects": _list(_object(project=_TEXT, issues=_LINE)),
    "Health": _object(status={"const": "ok"}, version=_TEXT, snapshot=_TEXT),
    "Tree": _object(**{name: _list(_ref("Node")) for name in ("symptom", "cause", "fix")}),
    "Node": {
        "oneOf": [
            _TEXT,
            _object(
                {"href": _TEXT, "lang": _TEXT, "start": {"type": "integer", "minimum": 0}},
                tag={"type": "string", "enum": list(TAGS)},
                children=_list({"$ref": "#/components/schemas/Node"}),
            ),
        ]
    },
    "Error": _object(error=_TEXT, hint={"type": ["string", "null"]}),
}

_ERRORS = {
    400: "The question or a parameter is not one.",
    401: "The server wants a token.",
    403: "A page of another origin may not ask.",
    404: "There is no such issue.",
    408: "The body did not come in time.",
    413: "The body is too long.",
    415: "The body is not application/json.",
    421: "The server does not answer to that host name.",
    431: "Address and headers are too long.",
    500: "A mistake in kb.",
    503: "Too busy, stopping, or the encoder cannot be had.",
}
_ANYWHERE = (401, 403, 421, 431, 500, 503)


def contract(version: str) -> Json:
    search = "Find the known issue for an error line, a log or a description"
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
                "get": _operation("ask", search, "Answer", {"q": asking.QUESTION, **asking.SEARCH}, errors=(400,)),
                "post": {
                    **_operation("askLong", search, "Answer", {}, errors=(400, 408, 413, 415)),
                    "requestBody": {
                        "required": True,
                        "content": {
                            "application/json": {"schema": _object(dict(asking.SEARCH), query=asking.QUESTION)}
                        },
                    },
                },
            },
            "/api/issues": {
                "get": _operation("listIssues", "All issues, or those of a project", "Issues", asking.LISTING, (400,))
            },
            "/api/issues/{slug}/{number}": {
                "get": _operation("showIssue", "The whole of an issue", "Issue", asking.ISSUES, (400, 404)),
                "parameters": [
                    {"name": "slug", "in": "path", "required": True, "schema": {**_TEXT, "minLength": 1}},
                    {"name": "number", "in": "path", "required": True, "schema": _LINE},
                ],
            },
            "/api/projects": {"get": _operation("listProjects", "What the base knows about", "Projects", {}, (400,))},
            "/healthz": {"get": _operation("health", "Is the server there, and what does it serve?", "Health", {})},
        },
        "components": {
            "schemas": _SCHEMAS,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "Only if the server was given one."}
            },
        },
        "security": [{}, {"token": []}],
    }


def _operation(name: str, summary: str, answer: str, table: asking.Table, errors: tuple[int, ...] = ()) -> Json:
    def content(schema: str) -> Json:
        return {"application/json": {"schema": _ref(schema)}}

    parameters = [
        {
            "name": parameter,
            "in": "query",
            "required": parameter == "q",
            **{key: value for key, value in schema.items() if key == "description"},
            "schema": {key: value for key, value in schema.items() if key != "description"},
        }
        for parameter, schema in table.items()
    ]
    failures = {str(status): {"description": _ERRORS[status], "content": content("Error")} for status in errors}
    return {
        "operationId": name,
        "summary": summary,
        **({"parameters": parameters} if parameters else {}),
        "responses": {"200": {"description": "OK", "content": content(answer)}, **failures}
        | {str(status): {"description": _ERRORS[status], "content": content("Error")} for status in _ANYWHERE},
    }
