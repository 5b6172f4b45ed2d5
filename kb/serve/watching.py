"""What the server says of itself: `/healthz`, `/metrics`, `/openapi.json`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

import kb
from kb.serve.metrics import CONTENT_TYPE, Metrics
from kb.serve.routes import NOT_KEPT, Table, dumped, json_response

if TYPE_CHECKING:
    from kb.bases import AnyBase

__all__ = ["table"]


def table(base: AnyBase, metrics: Metrics) -> Table:
    watching = _Watching(base, metrics)
    return Table(
        {
            "/healthz": {"GET": watching.health},
            "/metrics": {"GET": watching.metrics},
            "/openapi.json": {"GET": watching.contract},
        }
    )


class _Watching:
    def __init__(self, base: AnyBase, metrics: Metrics) -> None:
        self._base = base
        self._metrics = metrics

    async def health(self, request: Request) -> Response:
        return json_response(dumped({"status": "ok", "version": kb.__version__, "snapshot": self._base.snapshot}))

    async def metrics(self, request: Request) -> Response:
        return Response(self._metrics.text(), media_type=CONTENT_TYPE, headers=NOT_KEPT)

    async def contract(self, request: Request) -> Response:
        return json_response(_contract())


@cache
def _contract() -> bytes:
    from kb.serve import openapi  # at first use: to build its models takes 50 ms

    return dumped(openapi.contract(kb.__version__))
