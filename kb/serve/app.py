"""Here is an open base; give me the application that answers for it: ASGI, to be run by `listen` or by a test."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import kb
from kb.errors import IndexMissing, KbError, QueryError
from kb.records import IssueRecord
from kb.serve import asking, nodes, openapi, page
from kb.serve.catalogue import Catalogue
from kb.serve.guards import App, Guard, Refusal, Rules
from kb.serve.metrics import CONTENT_TYPE, Metrics

if TYPE_CHECKING:
    from kb.base import KnowledgeBase

__all__ = ["create_app"]

Handler = Callable[[Request], Awaitable[Response]]

# A short question takes a few milliseconds, and a thread would cost it one more; a log may take a hundred, during
# which the others are not to wait.
_INLINE_CHARS = 4000
_THREADS = 2


def create_app(base: KnowledgeBase, rules: Rules | None = None) -> Guard:
    """The guarded application. `rules` says who may ask; by default, whoever sits at this machine."""
    metrics = Metrics()
    return Guard(_Answers(base, metrics).app, rules or Rules(), metrics.request, bodies=["/api/search"])


class _Answers:
    """The handlers, and what they share."""

    def __init__(self, base: KnowledgeBase, metrics: Metrics) -> None:
        self._base = base
        self._catalogue = Catalogue(base)
        self._metrics = metrics
        self._threads = ThreadPoolExecutor(_THREADS, "kb-search")
        self._contract = json.dumps(openapi.contract(kb.__version__), ensure_ascii=False).encode("utf-8")
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
        if request.method == "POST":
            if request.headers.get("content-type", "").partition(";")[0].strip().casefold() != "application/json":
                raise Refusal(415, "the body must be application/json", '{"query": "the error message"}')
            asked = asking.from_json(await request.body(), {"query": asking.QUESTION, **asking.SEARCH})
            name = "query"
        else:
            asked = asking.from_pairs(request.query_params.multi_items(), {"q": asking.QUESTION, **asking.SEARCH})
            name = "q"
        if name not in asked:
            raise QueryError("there is no question", hint=f"{name} is the error line, the log or the description")
        text = asked.pop(name)
        if len(text) <= _INLINE_CHARS:
            return _json(self._found(text, **asked))
        loop = asyncio.get_running_loop()
        return _json(await loop.run_in_executor(self._threads, lambda: self._found(text, **asked)))

    def _found(self, text: str, *, render: str | None = None, **asked: Any) -> bytes:
        result = self._base.search(text, **asked)
        self._metrics.answer(result.answered)
        answer = result.as_dict()
        if render:
            for one, hit in zip(answer["results"], result.hits, strict=True):
                one["tree"] = _tree(hit.record)
        return _dumped(answer)

    async def issue(self, request: Request) -> Response:
        asked = asking.from_pairs(request.query_params.multi_items(), asking.ISSUES)
        shelf = self._catalogue.now()
        issue = f"{request.path_params['slug']}#{request.path_params['number']}"
        told = [r for r in shelf.tellings.get(issue.casefold(), ()) if asked.get("lang", r.lang) == r.lang]
        if not told:
            near = shelf.near(issue)
            raise Refusal(404, "there is no such issue in this base", f"near it: {', '.join(near)}" if near else None)
        tellings = [{**r.as_dict(), **({"tree": _tree(r)} if asked.get("render") else {})} for r in told]
        return _json(_dumped({"issue": told[0].issue, "snapshot": shelf.snapshot, "tellings": tellings}))

    async def issues(self, request: Request) -> Response:
        asked = asking.from_pairs(request.query_params.multi_items(), asking.LISTING)
        shelf = self._catalogue.now()
        project, lang = asked.get("project", "").casefold(), asked.get("lang", "en")
        chosen = [next((r for r in told if r.lang == lang), told[0]) for told in shelf.tellings.values()]
        found = [
            {"issue": r.issue, "lang": r.lang, "project": r.project, "title": r.title, "tags": r.tags}
            for r in chosen
            if not project or project == (r.project or "").casefold()
        ]
        return _json(_dumped({"snapshot": shelf.snapshot, "issues": found}))

    async def projects(self, request: Request) -> Response:
        asking.from_pairs(request.query_params.multi_items(), {})
        projects = self._catalogue.now().projects
        return _json(_dumped([{"project": project, "issues": count} for project, count in projects]))

    async def health(self, request: Request) -> Response:
        return _json(_dumped({"status": "ok", "version": kb.__version__, "snapshot": self._base.snapshot}))

    async def metrics(self, request: Request) -> Response:
        return Response(self._metrics.tell(self._base), media_type=CONTENT_TYPE, headers=_NOT_KEPT)

    async def contract(self, request: Request) -> Response:
        return _json(self._contract)


_NOT_KEPT = {"cache-control": "no-store"}


def _json(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(body, status, {**_NOT_KEPT, **(headers or {})}, media_type="application/json")


def _dumped(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    except UnicodeEncodeError:  # half of a surrogate pair in a question; JSON has an escape for it
        return json.dumps(value, separators=(",", ":")).encode("ascii")


def _tree(record: IssueRecord) -> dict[str, Any]:
    return {name: nodes.parse(getattr(record, name)) for name in ("symptom", "cause", "fix")}


def _explained(error: Exception, path: str) -> Response:
    """The answer for an error: `{"error": ..., "hint": ...}` and the status of its kind. No path of the server's."""
    headers: dict[str, str] = {}
    if isinstance(error, Refusal):
        status, message, hint = error.status, error.message, error.hint
        headers = dict(error.headers)
    elif isinstance(error, KbError):
        unknown = isinstance(error, IndexMissing) and error.path is None  # an issue, not the index
        status = 400 if isinstance(error, QueryError) else 404 if unknown else 503
        message, hint = error.message, error.hint
    else:
        # What was asked may stand in the message of an error, and stays out of the log.
        logging.getLogger("kb").error("a mistake in kb: %s at %s", type(error).__name__, path)
        status, message, hint = 500, "this is a mistake in kb, not yours", "please report it"
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
