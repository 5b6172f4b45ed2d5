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
MAX_BUSY = 64  # requests at a time; more are told to come again, for a queue without end helps nobody
BODY_S = 10.0

_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9_.-]{0,251}[a-z0-9_])?)(?::[0-9]{1,5})?")
_ADDRESS = re.compile(r"\[[0-9a-f:.]+\]|(?:[0-9]{1,3}\.){3}[0-9]{1,3}")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
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


_TOO_LONG = Refusal(
    413, f"the body is longer than {MAX_BODY_BYTES >> 20} MiB", "send the end of the log", [("connection", "close")]
)


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
    """ASGI around an application: what it passes on has been checked, and its body read within limits."""

    def __init__(self, app: App, rules: Rules, seen: Callable[[str, int, float], None]) -> None:
        """`seen` is told of every request: its route (`scope["kb.route"]`, or "none"), status and seconds."""
        self._app = app
        self._rules = rules
        self._seen = seen
        self._busy = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        self._busy += 1
        started, status = time.perf_counter(), 0

        async def armoured(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *SECURITY_HEADERS]
            await send(message)

        try:
            if self._busy > MAX_BUSY:
                raise Refusal(503, "too many requests at a time", "ask again in a second", [("retry-after", "1")])
            _require_short(scope)
            self._rules.check(scope)
            if scope["method"] == "POST":
                receive = await _whole(scope["headers"], receive)
        except Refusal as refusal:
            await refuse(refusal, armoured)
        else:
            await self._app(scope, receive, armoured)
        finally:
            self._busy -= 1
            self._seen(scope.get("kb.route", "none"), status, time.perf_counter() - started)


def _require_short(scope: Scope) -> None:
    """h11 limits only what is not yet complete; a head that comes in one piece may be as long as the piece."""
    size = len(scope["query_string"]) + len(scope["path"]) + sum(len(a) + len(b) for a, b in scope["headers"])
    if size > MAX_HEAD_BYTES:
        raise Refusal(431, "address and headers are too long", "POST a long question", [("connection", "close")])


async def _whole(headers: Headers, receive: Receive) -> Receive:
    """Reads the body, whether its length is announced or not, and gives it out again in one piece."""
    announced = _only(headers, b"content-length") or "0"
    if len(announced) > 12 or (announced.isdecimal() and int(announced) > MAX_BODY_BYTES):
        raise _TOO_LONG
    try:
        body: bytes | None = await asyncio.wait_for(_read(receive), BODY_S)
    except (TimeoutError, asyncio.TimeoutError):  # before 3.11 these are two
        raise Refusal(408, "the body did not come in time", headers=[("connection", "close")]) from None

    async def replay() -> Message:
        nonlocal body
        if body is None:
            return await receive()
        message: Message = {"type": "http.request", "body": body, "more_body": False}
        body = None
        return message

    return replay


async def _read(receive: Receive) -> bytes:
    pieces: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            break  # who asked is gone, and the answer goes nowhere
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        more = message.get("more_body", False)
        if size > MAX_BODY_BYTES:
            raise _TOO_LONG
    return b"".join(pieces)


async def refuse(refusal: Refusal, send: Send) -> None:
    body = json.dumps({"error": refusal.message, "hint": refusal.hint}).encode()
    headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("cache-control", "no-store")]
    raw = [(name.encode(), value.encode()) for name, value in (*headers, *refusal.headers)]
    await send({"type": "http.response.start", "status": refusal.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
