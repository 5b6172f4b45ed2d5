"""The application: one table of routes for each module that answers, behind the guard; run by `listen` or by a test.

A new door is a module with a function that gives its `Table`, and a line in `create_app`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from kb.serve import listing, page, searching, watching
from kb.serve.guards import RequestGuard, Rules
from kb.serve.metrics import Metrics
from kb.serve.routes import Handler, Table, application, has_tag

if TYPE_CHECKING:
    from kb.bases import AnyBase

__all__ = ["create_app"]


def create_app(base: AnyBase, rules: Rules | None = None) -> RequestGuard:
    """The guarded application. `rules` says who may ask; by default, only this machine."""
    metrics = Metrics(base)
    tables = [
        searching.table(base, metrics),
        listing.table(base),
        watching.table(base, metrics),
        _page(),
    ]
    bodies = [path for table in tables for path in table.bodies]
    return RequestGuard(application(tables), rules or Rules(), metrics.count_request, bodies=bodies)


def _page() -> Table:
    return Table({path: {"GET": _sends(file)} for path, file in page.files().items()})


def _sends(file: page.File) -> Handler:
    async def send(request: Request) -> Response:
        headers = {"etag": file.etag, "cache-control": "no-cache"}
        if has_tag(request, file.etag):
            return Response(status_code=304, headers=headers)
        return Response(file.body, headers=headers, media_type=file.media_type)

    return send
