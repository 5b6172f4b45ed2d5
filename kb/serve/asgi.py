"""ASGI's types, and how a request is refused, for the modules that look at it before the application does."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from typing import Any

__all__ = ["App", "Headers", "Message", "Receive", "Refusal", "Scope", "Send", "only", "refuse"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = Sequence[tuple[bytes, bytes]]


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


async def refuse(refusal: Refusal, send: Send) -> None:
    """Sends the refusal as the response."""
    body = json.dumps({"error": refusal.message, "hint": refusal.hint}).encode()
    headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("cache-control", "no-store")]
    raw = [(name.encode(), value.encode()) for name, value in (*headers, *refusal.headers)]
    await send({"type": "http.response.start", "status": refusal.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


def only(headers: Headers, name: bytes) -> str | None:
    """The value of a header that is there exactly once: of two, one may be forged."""
    values = [value for key, value in headers if key == name]
    return values[0].decode("latin-1").strip() if len(values) == 1 else None
