"""Checks on every request before the application sees it: who may ask, how much, and how long.

A server on loopback gets requests not only from its owner. Any page that the owner opens in a browser can send it
requests, and can read the answers by rebinding its own DNS name to 127.0.0.1. Such a page cannot choose the Host,
Origin and Sec-Fetch-Site that the browser sends, so these decide. Programs (curl) send no Origin and are let through.
An address that others can reach is guarded by a token instead, which no foreign page has.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["MAX_BODY_BYTES", "MAX_HEAD_BYTES", "Refusal", "RequestGuard", "Rules", "refuse"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = Sequence[tuple[bytes, bytes]]

MAX_BODY_BYTES = 2 << 20  # a log of 20,000 lines; a search reads only the two ends of a longer one
MAX_HEAD_BYTES = 16 << 10
MAX_BUSY = 64  # requests answered at a time; others get 503 at once, because an endless queue helps nobody
MAX_INCOMING = 128  # bodies being received; one more, and the oldest is dropped
BODY_S = 10.0  # seconds for a whole body

_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9_.-]{0,251}[a-z0-9_])?)(?::[0-9]{1,5})?")
_ADDRESS = re.compile(r"\[[0-9a-f:.]+\]|(?:[0-9]{1,3}\.){3}[0-9]{1,3}")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_ALWAYS = "/healthz"  # a health check must be answered also when the server is busy
_NEEDS_TOKEN = re.compile(r"/api(?:/|\Z)|/metrics\Z")

SECURITY_HEADERS = [
    (name.encode(), value.encode())
    for name, value in {
        "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": "camera=(), geolocation=(), microphone=()",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
    }.items()
]


class Refusal(Exception):
    """A request that is not answered: the HTTP status, and what the client reads."""

    def __init__(
        self, status: int, message: str, hint: str | None = None, headers: Iterable[tuple[str, str]] = ()
    ) -> None:
        super().__init__(message)
        self.status: int = status
        self.message: str = message
        self.hint: str | None = hint
        self.headers: tuple[tuple[str, str], ...] = tuple(headers)


_AGAIN = [("retry-after", "1"), ("connection", "close")]


@dataclass(frozen=True)
class Rules:
    """Which host names the server answers to, and the token that a client must send, if any."""

    names: frozenset[str] = field(default=_LOOPBACK)
    """host names and addresses in lower case, without port; `*` for any IP address (nobody can rebind an address, only
    a DNS name)"""
    token: str | None = None

    @classmethod
    def of(cls, names: Iterable[str] = (), *, any_address: bool = False, token: str | None = None) -> Rules:
        extra = {"*"} if any_address else set()
        return cls(_LOOPBACK | {name.strip().casefold() for name in names} | extra, token)

    def check(self, scope: Scope) -> None:
        """Raises Refusal: 421 for a foreign host, 403 for a foreign page, 401 without the token."""
        headers: Headers = scope["headers"]
        host = _only(headers, b"host")
        if not self.answers_to(host):
            raise Refusal(
                421, "this server does not answer to that host name", "kb serve --allow-host NAME adds a name"
            )
        origin = _only(headers, b"origin")
        if any(name == b"origin" for name, _ in headers) and not _is_own(origin, host or ""):
            raise Refusal(403, "a page of another origin may not ask")
        site = _only(headers, b"sec-fetch-site") or "none"
        visits = scope["method"] in ("GET", "HEAD") and _only(headers, b"sec-fetch-mode") == "navigate"
        if site not in ("same-origin", "none") and not (visits and not _NEEDS_TOKEN.match(scope["path"])):
            raise Refusal(403, "a page of another origin may not ask")
        if self.token is not None and _NEEDS_TOKEN.match(scope["path"]) and not self._proven(headers):
            raise Refusal(
                401,
                "a token is needed",
                "send it as `Authorization: Bearer TOKEN`",
                [("www-authenticate", 'Bearer realm="kb"')],
            )

    def answers_to(self, host: str | None) -> bool:
        found = _HOST.fullmatch(host.casefold()) if host else None
        if not found:
            return False
        return found[1] in self.names or ("*" in self.names and _ADDRESS.fullmatch(found[1]) is not None)

    def _proven(self, headers: Headers) -> bool:
        kind, _, given = (_only(headers, b"authorization") or "").partition(" ")
        same = hmac.compare_digest(given.strip().encode("utf-8"), (self.token or "").encode("utf-8"))
        return kind.casefold() == "bearer" and same


def _only(headers: Headers, name: bytes) -> str | None:
    """The value of a header that is there exactly once: of two, one may be forged."""
    values = [value for key, value in headers if key == name]
    return values[0].decode("latin-1").strip() if len(values) == 1 else None


def _is_own(origin: str | None, host: str) -> bool:
    """Has the origin this very host and port? The scheme may differ: a proxy may speak TLS."""
    scheme, mark, authority = (origin or "").casefold().partition("://")
    return bool(mark) and scheme in ("http", "https") and authority == host.casefold()


class RequestGuard:
    """An ASGI application around another one: it checks each request and reads its body within limits.

    A body is read only where the application takes one, and only from a client that may ask. A request whose body is
    still coming does not count as busy.
    """

    def __init__(
        self,
        app: App,
        rules: Rules,
        observe: Callable[[str, int, float], None] = lambda route, status, seconds: None,
        *,
        bodies: Iterable[str] = (),
        max_body: int = MAX_BODY_BYTES,
    ) -> None:
        """`bodies` are the paths that take a body of up to `max_body` bytes. `observe` is called once for each request,
        with its route (`scope["kb.route"]`, or "none"), status and seconds."""
        self._app = app
        self._rules = rules
        self._observe = observe
        self._bodies = frozenset(bodies)
        self._max_body = max_body
        self._busy = 0
        self._incoming: dict[asyncio.Future[bytes], None] = {}  # oldest first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        if scope["type"] != "http":
            return
        started, status, counted = time.perf_counter(), 0, False

        async def send_secured(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *SECURITY_HEADERS]
            await send(message)

        try:
            _require_short(scope)
            self._rules.check(scope)
            if scope["method"] == "POST" and scope["path"] in self._bodies:
                receive = _replay(await self._read_body(scope["headers"], receive), receive)
            if scope["path"] != _ALWAYS:
                if self._busy >= MAX_BUSY:
                    raise Refusal(503, "too many requests at a time", "ask again in a second", _AGAIN)
                self._busy += 1
                counted = True
        except Refusal as refusal:
            await refuse(refusal, send_secured)
        else:
            await self._app(scope, receive, send_secured)
        finally:
            self._busy -= counted
            self._observe(scope.get("kb.route", "none"), status, time.perf_counter() - started)

    def stop(self) -> None:
        """Drops all bodies that are still coming; their clients get 503."""
        for body in list(self._incoming):
            body.cancel()

    async def _read_body(self, headers: Headers, receive: Receive) -> bytes:
        """The whole body, with or without a Content-Length. Raises Refusal."""
        announced = _only(headers, b"content-length") or "0"
        if len(announced) > 12 or (announced.isdecimal() and int(announced) > self._max_body):
            raise self._too_long()
        if len(self._incoming) >= MAX_INCOMING:
            oldest = next(iter(self._incoming))
            del self._incoming[oldest]
            oldest.cancel()
        body = asyncio.ensure_future(self._read(receive))
        self._incoming[body] = None
        try:
            await asyncio.wait({body}, timeout=BODY_S)
            if not body.done():
                raise Refusal(408, "the body did not come in time", headers=[("connection", "close")])
            if body.cancelled():
                raise Refusal(503, "the body took too long while the server is busy", "ask again in a second", _AGAIN)
            return body.result()
        finally:
            self._incoming.pop(body, None)
            body.cancel()

    async def _read(self, receive: Receive) -> bytes:
        pieces: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise Refusal(400, "the body broke off")  # the client has gone and gets no answer
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            more = message.get("more_body", False)
            if size > self._max_body:
                raise self._too_long()
        return b"".join(pieces)

    def _too_long(self) -> Refusal:
        message = f"the body is longer than {self._max_body >> 20} MiB"
        return Refusal(413, message, "send the end of the log", [("connection", "close")])


def _require_short(scope: Scope) -> None:
    """Raises Refusal for too long a head: h11 limits only one that is not yet complete."""
    size = len(scope["query_string"]) + len(scope["path"]) + sum(len(a) + len(b) for a, b in scope["headers"])
    if size > MAX_HEAD_BYTES:
        raise Refusal(431, "address and headers are too long", "POST a long question", [("connection", "close")])


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns the body, which was read before, in one piece."""
    rest: bytes | None = body

    async def replay() -> Message:
        nonlocal rest
        if rest is None:
            return await receive()
        message: Message = {"type": "http.request", "body": rest, "more_body": False}
        rest = None
        return message

    return replay


async def refuse(refusal: Refusal, send: Send) -> None:
    """Sends the refusal as the response."""
    body = json.dumps({"error": refusal.message, "hint": refusal.hint}).encode()
    headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("cache-control", "no-store")]
    raw = [(name.encode(), value.encode()) for name, value in (*headers, *refusal.headers)]
    await send({"type": "http.response.start", "status": refusal.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
