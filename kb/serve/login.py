"""`POST /api/session` starts a session of the page, `DELETE` ends it in this browser (`kb.serve.session`)."""

from __future__ import annotations

import json

from starlette.requests import Request
from starlette.responses import Response

from kb.errors import QueryError
from kb.serve.asgi import Refusal
from kb.serve.routes import NOT_KEPT, Table
from kb.serve.session import PATH, Gate

__all__ = ["table"]

_EXAMPLE = '{"token": "..."}'


def table(gate: Gate) -> Table:
    async def start(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip().casefold() != "application/json":
            raise Refusal(415, "the body must be application/json", _EXAMPLE)
        token = _token_in(await request.body())
        if gate.is_open:
            return Response(status_code=204, headers=NOT_KEPT)
        gate.show(request.scope, token)
        return Response(status_code=204, headers={**NOT_KEPT, "set-cookie": gate.cookie(request.scope)})

    async def end(request: Request) -> Response:
        headers = {} if gate.is_open else {"set-cookie": gate.no_cookie(request.scope)}
        return Response(status_code=204, headers={**NOT_KEPT, **headers})

    return Table({PATH: {"POST": start, "DELETE": end}})


def _token_in(body: bytes) -> str:
    """Raises QueryError, which does not repeat what was sent."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict) or given.keys() != {"token"} or not isinstance(given["token"], str):
        raise QueryError("the body must be a JSON object with the token", hint=_EXAMPLE)
    return str(given["token"]).strip()
