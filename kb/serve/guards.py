"""Checks on every request before the application sees it: who may ask, how much, and how long.

A server on loopback gets requests not only from its owner. Any page that the owner opens in a browser can send it
requests, and can read the answers by rebinding its own DNS name to 127.0.0.1. Such a page cannot choose the Host,
Origin and Sec-Fetch-Site that the browser sends, so these decide. Programs (curl) send no Origin and are let through.
An address that others can reach is guarded by a token instead (`kb.serve.session`), which no foreign page has. Behind a
proxy, what it says about the client counts where it is believed (`kb.serve.proxy`).
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kb.serve.asgi import App, Headers, Message, Receive, Refusal, Scope, Send, only, refuse
from kb.serve.proxy import Network, as_client_sent
from kb.serve.session import PATH, Gate

__all__ = [
    "MAX_BODY_BYTES",
    "MAX_HEAD_BYTES",
    "App",
    "Receive",
    "Refusal",
    "RequestGuard",
    "Rules",
    "Scope",
    "Send",
    "refuse",
]

MAX_BODY_BYTES = 2 << 20  # a log of 20,000 lines; a search reads only the two ends of a longer one
MAX_HEAD_BYTES = 16 << 10
MAX_BUSY = 64  # requests answered at a time; others get 503 at once, because an endless queue helps nobody
MAX_INCOMING = 128  # bodies being received; one more, and the oldest is dropped
MAX_TOKEN_BYTES = 4 << 10  # a body from somebody who has not shown the token yet
BODY_S = 10.0  # seconds for a whole body

_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9_.-]{0,251}[a-z0-9_])?)(?::[0-9]{1,5})?")
_ADDRESS = re.compile(r"\[[0-9a-f:.]+\]|(?:[0-9]{1,3}\.){3}[0-9]{1,3}")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_FOR_PROGRAMS = re.compile(r"/(?:api|mcp|metrics)(?:/|\Z)")  # nobody follows a link to these
_ALWAYS = "/healthz"  # a health check must be answered also when the server is busy

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


_AGAIN = [("retry-after", "1"), ("connection", "close")]


@dataclass(frozen=True)
class Rules:
    """Which host names the server answers to, the token that a client must show, if any, and whose word counts."""

    names: frozenset[str] = field(default=_LOOPBACK)
    """host names and addresses in lower case, without port; `*` for any IP address (nobody can rebind an address, only
    a DNS name)"""
    token: str | None = None
    proxies: tuple[Network, ...] = ()
    """proxies that are believed about the client; none: headers of proxies mean nothing"""

    @classmethod
    def of(
        cls,
        names: Iterable[str] = (),
        *,
        any_address: bool = False,
        token: str | None = None,
        proxies: Iterable[Network] = (),
    ) -> Rules:
        extra = {"*"} if any_address else set()
        return cls(_LOOPBACK | {name.strip().casefold() for name in names} | extra, token, tuple(proxies))

    def check(self, scope: Scope) -> None:
        """Raises Refusal: 421 for a foreign host, 403 for a foreign page."""
        self.check_host(scope)
        headers: Headers = scope["headers"]
        if any(name == b"origin" for name, _ in headers) and not _is_own(scope):
            raise Refusal(403, "a page of another origin may not ask")
        sites = {value for name, value in headers if name == b"sec-fetch-site"} or {b"none"}
        visits = scope["method"] in ("GET", "HEAD") and only(headers, b"sec-fetch-mode") == "navigate"
        if not sites <= {b"same-origin", b"none"} and not (visits and not _FOR_PROGRAMS.match(scope["path"])):
            raise Refusal(403, "a page of another origin may not ask")

    def check_host(self, scope: Scope) -> None:
        """Raises Refusal, 421."""
        if not self.answers_to(only(scope["headers"], b"host")):
            raise Refusal(
                421, "this server does not answer to that host name", "kb serve --allow-host NAME adds a name"
            )

    def answers_to(self, host: str | None) -> bool:
        found = _HOST.fullmatch(host.casefold()) if host else None
        if not found:
            return False
        return found[1] in self.names or ("*" in self.names and _ADDRESS.fullmatch(found[1]) is not None)


def _is_own(scope: Scope) -> bool:
    """Has the origin this very host and port? And the scheme, where a proxy said which; else a proxy may speak TLS."""
    scheme, mark, authority = (only(scope["headers"], b"origin") or "").casefold().partition("://")
    schemes = (scope["kb.scheme"],) if "kb.scheme" in scope else ("http", "https")
    return bool(mark) and scheme in schemes and authority == (only(scope["headers"], b"host") or "").casefold()


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
        gate: Gate | None = None,
        log: Callable[[Scope, int, float], None] = lambda scope, status, seconds: None,
    ) -> None:
        """`bodies` are the paths that take a body of up to `max_body` bytes. `observe` is called once for each request,
        with its route (`scope["kb.route"]`, or "none"), status and seconds; `log` with its scope, status and seconds.
        `gate`: who has shown the token; by default one for `rules.token`."""
        self._app = app
        self._rules = rules
        self._observe = observe
        self._log = log
        self._gate = gate or Gate(rules.token)
        self._bodies = frozenset(bodies)
        self._max_body = max_body
        self._busy = 0
        self._incoming: dict[asyncio.Future[bytes], None] = {}  # oldest first
        self._logins: dict[asyncio.Future[bytes], None] = {}  # from strangers, who must not push out the others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        if scope["type"] != "http":
            return
        started, status, counted = time.perf_counter(), 0, False
        came, scope = scope, as_client_sent(scope, self._rules.proxies)

        async def send_secured(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *SECURITY_HEADERS]
            await send(message)

        try:
            _require_clear(scope)
            # The Host that came must be ours as well: a rebound page can send X-Forwarded-Host, but not Host.
            self._rules.check_host(came)
            self._rules.check(scope)
            self._gate.check(scope)
            if scope["method"] == "POST" and scope["path"] in self._bodies:
                receive = _replay(await self._read_body(scope, receive), receive)
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
            seconds = time.perf_counter() - started
            self._observe(scope.get("kb.route", "none"), status, seconds)
            self._log(scope, status, seconds)

    def stop(self) -> None:
        """Drops all bodies that are still coming; their clients get 503."""
        for body in [*self._incoming, *self._logins]:
            body.cancel()

    async def _read_body(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body, with or without a Content-Length. Raises Refusal."""
        login = scope["path"] == PATH
        most, incoming = (MAX_TOKEN_BYTES, self._logins) if login else (self._max_body, self._incoming)
        announced = only(scope["headers"], b"content-length") or "0"
        if len(announced) > 12 or (announced.isdecimal() and int(announced) > most):
            raise _too_long(most)
        if len(incoming) >= MAX_INCOMING:
            oldest = next(iter(incoming))
            del incoming[oldest]
            oldest.cancel()
        body = asyncio.ensure_future(_read(receive, most))
        incoming[body] = None
        try:
            await asyncio.wait({body}, timeout=BODY_S)
            if not body.done():
                raise Refusal(408, "the body did not come in time", headers=[("connection", "close")])
            if body.cancelled():
                raise Refusal(503, "the body took too long while the server is busy", "ask again in a second", _AGAIN)
            return body.result()
        finally:
            incoming.pop(body, None)
            body.cancel()


async def _read(receive: Receive, most: int) -> bytes:
    pieces: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise Refusal(400, "the body broke off")  # the client has gone and gets no answer
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        more = message.get("more_body", False)
        if size > most:
            raise _too_long(most)
    return b"".join(pieces)


def _too_long(most: int) -> Refusal:
    """The connection stays: what still comes is thrown away for a while (`listen`). A client, and more so a proxy, to
    which it is closed while it is sending does not read why."""
    size = f"{most >> 20} MiB" if most >> 20 else f"{most >> 10} KiB"
    return Refusal(413, f"the body is longer than {size}", "send it packed with gzip, or its end")


def _require_clear(scope: Scope) -> None:
    """Raises Refusal for too long a head (h11 limits only one that is not yet complete), and for one that tells the
    length of the body twice: a proxy may believe the other one, and take a request for a part of it (RFC 9112, 6.1)."""
    names = {name for name, _ in scope["headers"]}
    if {b"content-length", b"transfer-encoding"} <= names:
        raise Refusal(400, "Content-Length and Transfer-Encoding exclude each other", headers=[("connection", "close")])
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
