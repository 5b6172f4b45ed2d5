"""The routes of the server as an ASGI application around an open base, to be run by `listen` or by a test."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import kb
from kb.brief import likely_hits, tells_apart
from kb.errors import IndexMissing, KbError, QueryError
from kb.records import IssueRecord
from kb.serve import nodes, page, params
from kb.serve.guards import App, Refusal, RequestGuard, Rules
from kb.serve.metrics import CONTENT_TYPE, Metrics
from kb.why import answer_with_why

if TYPE_CHECKING:
    from kb.bases import AnyBase

__all__ = ["create_app"]

Handler = Callable[[Request], Awaitable[Response]]

# A short question takes a few milliseconds, and a thread would add one more. A log may take a hundred, and other
# requests must not wait for it.
_INLINE_CHARS = 4000
_THREADS = 2


def create_app(base: AnyBase, rules: Rules | None = None) -> RequestGuard:
    """The guarded application. `rules` says who may ask; by default, only this machine."""
    metrics = Metrics(base)
    return RequestGuard(_Handlers(base, metrics).app, rules or Rules(), metrics.count_request, bodies=["/api/search"])


class _Handlers:
    """The handlers, and what they share."""

    def __init__(self, base: AnyBase, metrics: Metrics) -> None:
        self._base = base
        self._metrics = metrics
        self._threads = ThreadPoolExecutor(_THREADS, "kb-search")
        routes: dict[str, dict[str, Handler]] = {
            "/api/search": {"GET": self.search, "POST": self.search},
            "/api/issues": {"GET": self.issues},
            "/api/issues/{slug:path}/{number}": {"GET": self.issue},
            "/api/projects": {"GET": self.projects},
            "/healthz": {"GET": self.health},
            "/metrics": {"GET": self.metrics},
            "/openapi.json": {"GET": self.contract},
            **{path: {"GET": _sends(file)} for path, file in page.files().items()},
        }
        application = Starlette(
            routes=[self._route(path, handlers) for path, handlers in routes.items()],
            exception_handlers={HTTPException: _no_such_route},
        )
        application.router.redirect_slashes = False
        self.app: App = application

    def _route(self, path: str, handlers: dict[str, Handler]) -> Route:
        """A route that answers OPTIONS and turns every error into an answer."""
        allowed = ", ".join(sorted({*handlers, "OPTIONS"} | ({"HEAD"} if "GET" in handlers else set())))

        async def answer(request: Request) -> Response:
            request.scope["kb.route"] = path
            if request.method == "OPTIONS":
                return Response(status_code=204, headers={"allow": allowed})
            try:
                return await handlers["GET" if request.method == "HEAD" else request.method](request)
            except Exception as error:
                return _explained(error, path)

        return Route(path, answer, methods=[*handlers, "OPTIONS"])

    async def search(self, request: Request) -> Response:
        options: params.SearchOptions
        if request.method == "POST":
            if request.headers.get("content-type", "").partition(";")[0].strip().casefold() != "application/json":
                raise Refusal(415, "the body must be application/json", '{"query": "the error message"}')
            options = body = params.from_json(await request.body(), params.SearchBody)
            text = body.query
        else:
            options = pairs = params.from_pairs(request.query_params.multi_items(), params.SearchParams)
            text = pairs.q
        if len(text) <= _INLINE_CHARS:
            return _json(self._answer(text, options))
        return _json(await asyncio.get_running_loop().run_in_executor(self._threads, self._answer, text, options))

    def _answer(self, text: str, options: params.SearchOptions) -> bytes:
        result = self._base.search(
            text,
            k=options.k,
            lang=options.lang,
            only=options.only,
            project=options.project,
            min_confidence=options.min_confidence,
        )
        self._metrics.count_answer(result.verdict)
        answer = answer_with_why(result) if options.why else result.as_dict()
        if options.render:
            likely = [hit.record for hit in likely_hits(result)]
            for one, hit in zip(answer["results"], result.hits, strict=True):
                one["tree"] = _tree(hit.record)
                if hit.record in likely:
                    one["tells_apart"] = tells_apart(hit.record, [other for other in likely if other is not hit.record])
        return _dumped(answer)

    async def issue(self, request: Request) -> Response:
        given = params.from_pairs(request.query_params.multi_items(), params.IssueParams)
        catalogue = self._base.catalogue()
        issue = f"{request.path_params['slug']}#{request.path_params['number']}"
        records = [r for r in catalogue.issues.get(issue.casefold(), ()) if given.only in (None, r.lang)]
        records = [r for r in records if r.lang == given.lang] or records
        if not records:
            near = catalogue.near(issue)
            raise Refusal(404, "there is no such issue in this base", f"near it: {', '.join(near)}" if near else None)
        translations = [{**r.as_dict(), **({"tree": _tree(r)} if given.render else {})} for r in records]
        return _json(_dumped({"issue": records[0].issue, "snapshot": catalogue.snapshot, "translations": translations}))

    async def issues(self, request: Request) -> Response:
        given = params.from_pairs(request.query_params.multi_items(), params.ListParams)
        catalogue = self._base.catalogue()
        project = (given.project or "").casefold()
        chosen = [
            next((r for r in records if r.lang == given.lang), records[0]) for records in catalogue.issues.values()
        ]
        found = [
            {"issue": r.issue, "lang": r.lang, "project": r.project, "title": r.title, "tags": r.tags}
            for r in chosen
            if not project or project == (r.project or "").casefold()
        ]
        return _json(_dumped({"snapshot": catalogue.snapshot, "issues": found}))

    async def projects(self, request: Request) -> Response:
        params.from_pairs(request.query_params.multi_items(), params.NoParams)
        return _json(_dumped([{"project": project, "issues": count} for project, count in self._base.projects()]))

    async def health(self, request: Request) -> Response:
        return _json(_dumped({"status": "ok", "version": kb.__version__, "snapshot": self._base.snapshot}))

    async def metrics(self, request: Request) -> Response:
        return Response(self._metrics.text(), media_type=CONTENT_TYPE, headers=_NOT_KEPT)

    async def contract(self, request: Request) -> Response:
        return _json(_contract())


_NOT_KEPT = {"cache-control": "no-store"}


def _json(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(body, status, {**_NOT_KEPT, **(headers or {})}, media_type="application/json")


@cache
def _contract() -> bytes:
    from kb.serve import openapi  # at first use: to build its models takes 50 ms

    return _dumped(openapi.contract(kb.__version__))


def _dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def _tree(record: IssueRecord) -> dict[str, Any]:
    return {name: nodes.parse(getattr(record, name)) for name in ("summary", "symptom", "cause", "fix", "triage")}


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
    return _json(_dumped({"error": message, "hint": hint}), status, headers)


async def _no_such_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = "there is nothing here" if error.status_code == 404 else error.detail.lower()
    return _json(_dumped({"error": message, "hint": "/openapi.json"}), error.status_code, dict(error.headers or {}))


def _sends(file: page.File) -> Handler:
    async def send(request: Request) -> Response:
        headers = {"etag": file.etag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == file.etag:
            return Response(status_code=304, headers=headers)
        return Response(file.body, headers=headers, media_type=file.media_type)

    return send
