"""What modules with handlers share: a table of routes, the application made of such tables, and how an answer is sent.

A module gives a `Table`, and `app` has a line for it. So a new door needs nothing of the others.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import kb
from kb.errors import IndexMissing, KbError, QueryError
from kb.serve.gone import missing
from kb.serve.guards import App, Receive, Refusal, Scope, Send
from kb.serve.work import ClientGone

__all__ = [
    "NOT_KEPT",
    "Handler",
    "Table",
    "application",
    "dumped",
    "has_tag",
    "json_response",
    "origin",
    "tagged_response",
]

Handler = Callable[[Request], Awaitable[Response]]

_WORTH_PACKING = 1024  # bytes
NOT_KEPT = {"cache-control": "no-store"}


@dataclass(frozen=True)
class Table:
    """The routes that a module brings."""

    routes: Mapping[str, Mapping[str, Handler]] = field(default_factory=dict[str, Mapping[str, Handler]])
    """path (as Starlette writes it) -> method -> handler. GET answers HEAD, too; OPTIONS is answered for all; what a
    handler raises becomes an answer. The guard reads a body only for a path that has POST here, one without a
    parameter"""
    apps: Mapping[str, App] = field(default_factory=dict[str, App])
    """path -> an ASGI application that answers it in every method; the guard reads its POST bodies"""
    lifespan: Callable[[], AbstractAsyncContextManager[Any]] | None = None
    """entered when the server starts (`listen` runs it only when told so), left when it stops"""

    @property
    def bodies(self) -> list[str]:
        """The paths that take a body."""
        return [*(path for path, handlers in self.routes.items() if "POST" in handlers), *self.apps]


def application(tables: Sequence[Table]) -> App:
    """One ASGI application that answers what the tables say."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for table in tables:
                if table.lifespan is not None:
                    await stack.enter_async_context(table.lifespan())
            yield

    app = Starlette(
        routes=[
            *(_route(path, handlers) for table in tables for path, handlers in table.routes.items()),
            *(Route(path, _Named(path, inner)) for table in tables for path, inner in table.apps.items()),
        ],
        exception_handlers={HTTPException: _no_such_route},
        # A packed answer may tell by its length what secret stands beside what somebody else chose (BREACH). Nothing in
        # an answer is secret, and no answer repeats the question.
        middleware=[Middleware(GZipMiddleware, minimum_size=_WORTH_PACKING, compresslevel=1)],
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app


class _Named:
    """An application that notes by which route it was reached. An object: Starlette takes a function for a handler."""

    def __init__(self, path: str, app: App) -> None:
        self._path, self._app = path, app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["kb.route"] = self._path
        await self._app(scope, receive, send)


def _route(path: str, handlers: Mapping[str, Handler]) -> Route:
    """A route that answers OPTIONS and turns every error into an answer."""
    allowed = ", ".join(sorted({*handlers, "OPTIONS"} | ({"HEAD"} if "GET" in handlers else set())))

    async def answer(request: Request) -> Response:
        request.scope["kb.route"] = path
        if request.method == "OPTIONS":
            return Response(status_code=204, headers={"allow": allowed})
        try:
            return await handlers["GET" if request.method == "HEAD" else request.method](request)
        except ClientGone:
            return Response(status_code=499)  # nginx's number for it; it is counted, and nobody reads it
        except Exception as error:
            return _explained(error, path)

    return Route(path, answer, methods=[*handlers, "OPTIONS"])


def json_response(body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer that nobody keeps."""
    return Response(body, status, {**NOT_KEPT, **(headers or {})}, media_type="application/json")


def tagged_response(
    request: Request, tag: str, body: Callable[[], bytes], *, media_type: str = "application/json"
) -> Response:
    """An answer that is another one only when `tag` is: a client that has it is told so, and `body` is not made."""
    found = f'W/"{hashlib.sha256(f"{kb.__version__} {tag}".encode()).hexdigest()[:24]}"'
    headers = {"etag": found, "cache-control": "private, no-cache"}
    if has_tag(request, found):
        return Response(status_code=304, headers=headers)
    return Response(body(), headers=headers, media_type=media_type)


def origin(request: Request) -> str:
    """The address of this server as the client has it, without a `/` at its end. The guard has checked the host."""
    return f"{request.url.scheme}://{request.url.netloc}"


def has_tag(request: Request, tag: str) -> bool:
    """Does the client have what bears this tag? Weak and strong ones are one: a proxy that packs makes them weak."""
    listed = ",".join(request.headers.getlist("if-none-match")).split(",")
    known = {one.strip().removeprefix("W/") for one in listed}
    return not known.isdisjoint({tag.removeprefix("W/"), "*"})


def dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def _explained(error: Exception, path: str) -> Response:
    """The response for an error: `{"error": ..., "hint": ...}` and the status of its kind. It names no file of ours."""
    headers: dict[str, str] = {}
    if isinstance(error, Refusal):
        status, message, hint = error.status, error.message, error.hint
        headers = dict(error.headers)
    elif isinstance(error, KbError):
        unknown = isinstance(error, IndexMissing) and error.path is None  # an issue, not the index
        status = 400 if isinstance(error, QueryError) else 404 if unknown else 503
        message, hint = error.message, error.hint
    else:
        # The message may contain the question, and questions are never logged.
        logging.getLogger("kb").error("a bug in kb: %s at %s", type(error).__name__, path)
        status, message, hint = 500, "this is a bug in kb, not a mistake of yours", "please report it"
    return json_response(dumped({"error": message, "hint": hint}), status, headers)


async def _no_such_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404 and "text/html" in request.headers.get("accept", ""):
        return Response(missing(request, what="page"), 404, NOT_KEPT, media_type="text/html")
    message = "there is nothing here" if error.status_code == 404 else error.detail.lower()
    body = dumped({"error": message, "hint": "/openapi.json"})
    return json_response(body, error.status_code, dict(error.headers or {}))
