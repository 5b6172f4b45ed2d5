"""The access log: a line for each request. It never holds what was asked: the route comes from our own table, and
neither address nor body are in it."""

from __future__ import annotations

import time

from kb.serve.asgi import Scope

__all__ = ["line"]

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def line(scope: Scope, status: int, seconds: float, now: float | None = None) -> str:
    """`2026-11-23T04:05:06Z 10.0.0.7 POST /api/search 200 12.3ms`; route `none` for what was refused or is not there,
    status 0 when the client left before the answer."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    client = (scope.get("client") or ("-", 0))[0]
    method = scope["method"] if scope["method"] in _METHODS else "-"
    return f"{at} {client} {method} {scope.get('kb.route', 'none')} {status} {seconds * 1000:.1f}ms"
