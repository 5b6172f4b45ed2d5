"""What the server says of itself: `/healthz`, `/metrics`, `/openapi.json`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

import kb
from kb.bases import Bases
from kb.errors import QueryError
from kb.serve.routes import NOT_KEPT, Handler, Table, dumped, json_response, tagged_response

if TYPE_CHECKING:
    from kb.base import KnowledgeBase
    from kb.bases import AnyBase
    from kb.serve.metrics import Metrics

__all__ = ["table"]

TRY_EVERY_S = 10.0


def table(base: AnyBase, metrics: Metrics | None) -> Table:
    """Without `metrics`, for a server that has no API, only `/healthz`."""
    watching = _Watching(base)
    health: dict[str, dict[str, Handler]] = {"/healthz": {"GET": watching.health}}
    if metrics is None:
        return Table(health)
    return Table({**health, "/metrics": {"GET": _sends(metrics)}, "/openapi.json": {"GET": watching.contract}})


def _sends(metrics: Metrics) -> Handler:
    from kb.serve.metrics import CONTENT_TYPE

    async def send(request: Request) -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE, headers=NOT_KEPT)

    return send


class _Watching:
    def __init__(self, base: AnyBase) -> None:
        self._base = base
        self._since = time.monotonic()
        self._try_at = self._since

    async def health(self, request: Request) -> Response:
        self._try_to_answer()
        stale = self._base.stale
        remote, silent = (self._base.remote, self._base.silent) if isinstance(self._base, Bases) else ([], ())
        away = [base.name for base in remote if base.kept.away()]
        answering = [base.name for base in self._local()] + [base.name for base in remote if base.name not in away]
        told = {
            "status": "stale" if stale else "ok",
            "why": stale or None,
            "version": kb.__version__,
            "snapshot": self._base.snapshot,
            "uptime_s": round(time.monotonic() - self._since, 1),
            "bases": [_public(name) for name in answering],
            "silent": [_public(name) for name in (*away, *(one.base for one in silent))],
        }
        return json_response(dumped(told))

    def _local(self) -> Sequence[KnowledgeBase]:
        return self._base.local if isinstance(self._base, Bases) else [self._base]

    def _try_to_answer(self) -> None:
        """Asks each base on this machine a question, now and then: one that cannot be searched answers nobody. Raises
        what the search raises."""
        if time.monotonic() < self._try_at:
            return
        for base in self._local():
            with suppress(QueryError):
                base.search("error", 1)
        self._try_at = time.monotonic() + TRY_EVERY_S

    async def contract(self, request: Request) -> Response:
        return tagged_response(request, "contract", _contract)


def _public(name: str) -> str:
    """A base's name for everybody, also without the token: of a folder, only how it is called."""
    return PurePath(name).name if PurePath(name).is_absolute() else name


@cache
def _contract() -> bytes:
    from kb.serve import openapi  # at first use: to build its models takes 50 ms

    return dumped(openapi.contract(kb.__version__))
