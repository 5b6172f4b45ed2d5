"""The application: one table of routes for each module that answers, behind the guard; run by `listen` or by a test.

A new door is a module with a function that gives its `Table`, and a line in `create_app`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from kb.serve import issue_page, listing, login, mcp, opensearch, page, searching, watching
from kb.serve.guards import RequestGuard, Rules, Scope
from kb.serve.metrics import Metrics
from kb.serve.routes import Handler, Table, application, has_tag
from kb.serve.session import Gate
from kb.serve.voting import Listening, asked_by
from kb.serve.work import Work

if TYPE_CHECKING:
    from kb.bases import AnyBase
    from kb.feedback.store import Feedback

__all__ = ["create_app"]

Log = Callable[[Scope, int, float], None]


def create_app(
    base: AnyBase,
    rules: Rules | None = None,
    *,
    feedback: Feedback | None = None,
    log: Log | None = None,
    roots: Sequence[Path] = (),
) -> RequestGuard:
    """The guarded application. `rules` says who may ask; by default, only this machine. `feedback`: where votes and
    what is not known are kept; None: nowhere. `log` is called after each request with its scope, status and seconds.
    `roots`: the folders in which an agent may name a log by its path; without any, none can."""
    metrics, hears = Metrics(base), Listening(base, feedback)
    rules = rules or Rules()
    gate = Gate(rules.token)
    aside = Work()  # beside the long questions, which have a thread of their own
    tables = [
        searching.table(base, metrics, hears),
        listing.table(base, aside),
        issue_page.table(base, aside),
        opensearch.table(),
        watching.table(base, metrics),
        login.table(gate),
        mcp.table(base, roots=roots, counts=metrics, votes=hears.cast if feedback else None),
        hears.table(),
        _page(),
    ]
    bodies = [path for table in tables for path in table.bodies]
    app, observe = asked_by(application(tables)), metrics.count_request
    return RequestGuard(app, rules, observe, bodies=bodies, gate=gate, log=log or (lambda *_: None))


def _page() -> Table:
    return Table({path: {"GET": _sends(file)} for path, file in page.files().items()})


def _sends(file: page.File) -> Handler:
    async def send(request: Request) -> Response:
        headers = {"etag": file.etag, "cache-control": "no-cache"}
        if has_tag(request, file.etag):
            return Response(status_code=304, headers=headers)
        return Response(file.body, headers=headers, media_type=file.media_type)

    return send
