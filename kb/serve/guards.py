"""Here is a request that nobody has looked at yet; let it through, or say why not.

A server on loopback is asked not only by its owner: any page that he opens in a browser can send it requests, and by
rebinding a DNS name of its own to 127.0.0.1 read the answers. Such a page cannot choose the Host, Origin and
Sec-Fetch-Site that the browser sends, so these decide. Programs (curl) send no Origin and are let through. An address
that others reach is guarded by a token instead, which no foreign page has.
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

__all__ = ["MAX_BODY_BYTES", "MAX_HEAD_BYTES", "Guard", "Refusal", "Rules", "refuse"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = Sequence[tuple[bytes, bytes]]

MAX_BODY_BYTES = 2 << 20  # a log of 20,000 lines; of a longer one a search reads the ends anyway
MAX_HEAD_BYTES = 16 << 10
MAX_BUSY = 64  # requests answered at a time; more are told to come again, for a queue without end helps nobody
MAX_COMING = 128  # bodies on their way; of more, the one that has taken longest is given up
BODY_S = 10.0

_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9_.-]{0,251}[a-z0-9_])?)(?::[0-9]{1,5})?")
_ADDRESS = re.compile(r"\[[0-9a-f:.]+\]|(?:[0-9]{1,3}\.){3}[0-9]{1,3}")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_ALWAYS = "/healthz"  # whether the server is there must be told just when it is busy
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
    """Which names the server answers to, and what proves that one may ask."""

    names: frozenset[str] = field(default=_LOOPBACK)
    """host names and addresses in small letters, without port; `*` for any address (an address is no DNS name, so
    nobody can rebind it)"""
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
                421, "this server does not answer to that host name", "kb serve --allow-host NAME lets a name in"
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
    """The value of a header that is there once; of two, one is a lie."""
    values = [value for key, value in headers if key == name]
    return values[0].decode("latin-1").strip() if len(values) == 1 else None


def _is_own(origin: str | None, host: str) -> bool:
    """Does the origin name this very host and port? The scheme may differ: a proxy may speak TLS."""
    scheme, mark, authority = (origin or "").casefold().partition("://")
    return bool(mark) and scheme in ("http", "https") and authority == host.casefold()


class Guard:
    """ASGI around an application: what it passes on has been checked, and its body read within limits. A body is read
    only where one is taken, from somebody who may ask, and while it comes it is in nobody's way."""

    def __init__(
        self,
        app: App,
        rules: Rules,
        seen: Callable[[str, int, float], None] = lambda route, status, seconds: None,
        *,
        bodies: Iterable[str] = (),
        max_body: int = MAX_BODY_BYTES,
    ) -> None:
        """`bodies` are the paths that take one. `seen` is told of every request: its route (`scope["kb.route"]`, or
        "none"), status and seconds."""
        self._app = app
        self._rules = rules
        self._seen = seen
        self._bodies = frozenset(bodies)
        self._max_body = max_body
        self._busy = 0
        self._coming: dict[asyncio.Future[bytes], None] = {}  # in the order in which they began

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        if scope["type"] != "http":
            return
        started, status, at_work = time.perf_counter(), 0, False

        async def armoured(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *SECURITY_HEADERS]
            await send(message)

        try:
            _require_short(scope)
            self._rules.check(scope)
            if scope["method"] == "POST" and scope["path"] in self._bodies:
                receive = _replay(await self._whole(scope["headers"], receive), receive)
            if scope["path"] != _ALWAYS:
                if self._busy >= MAX_BUSY:
                    raise Refusal(503, "too many requests at a time", "ask again in a second", _AGAIN)
                self._busy += 1
                at_work = True
        except Refusal as refusal:
            await refuse(refusal, armoured)
        else:
            await self._app(scope, receive, armoured)
        finally:
            self._busy -= at_work
            self._seen(scope.get("kb.route", "none"), status, time.perf_counter() - started)

    def stop(self) -> None:
        """Waits for no further body."""
        for body in list(self._coming):
            body.cancel()

    async def _whole(self, headers: Headers, receive: Receive) -> bytes:
        """The body, whether its length is announced or not."""
        announced = _only(headers, b"content-length") or "0"
        if len(announced) > 12 or (announced.isdecimal() and int(announced) > self._max_body):
            raise self._too_long()
        if len(self._coming) >= MAX_COMING:
            oldest = next(iter(self._coming))
            del self._coming[oldest]
            oldest.cancel()
        body = asyncio.ensure_future(self._read(receive))
        self._coming[body] = None
        try:
            await asyncio.wait({body}, timeout=BODY_S)
            if not body.done():
                raise Refusal(408, "the body did not come in time", headers=[("connection", "close")])
            if body.cancelled():
                raise Refusal(503, "the body was not waited for any longer", "ask again in a second", _AGAIN)
            return body.result()
        finally:
            self._coming.pop(body, None)
            body.cancel()

    async def _read(self, receive: Receive) -> bytes:
        pieces: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise Refusal(400, "the body broke off")  # who asked is gone, and the answer goes nowhere
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            more = message.get("more_body", False)
            if size > self._max_body:
                raise self._too_long()
        return b"".join(pieces)

    def _too_long(self) -> Refusal:
        told = f"the body is longer than {self._max_body >> 20} MiB"
        return Refusal(413, told, "send the end of the log", [("connection", "close")])


def _require_short(scope: Scope) -> None:
    """h11 limits only what is not yet complete; a head that comes in one piece may be as long as the piece."""
    size = len(scope["query_string"]) + len(scope["path"]) + sum(len(a) + len(b) for a, b in scope["headers"])
    if size > MAX_HEAD_BYTES:
        raise Refusal(431, "address and headers are too long", "POST a long question", [("connection", "close")])


def _replay(body: bytes, receive: Receive) -> Receive:
    """Gives a body out again, in one piece."""
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
    body = json.dumps({"error": refusal.message, "hint": refusal.hint}).encode()
    headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("cache-control", "no-store")]
    raw = [(name.encode(), value.encode()) for name, value in (*headers, *refusal.headers)]
    await send({"type": "http.response.start", "status": refusal.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
