"""Here is an application; let it be asked over a socket, by clients that may be slow on purpose."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from kb.serve.guards import MAX_HEAD_BYTES, App, Guard

__all__ = ["configured", "serve"]

# A person's browser needs a fraction of a second; who needs longer holds a place that others want.
HEAD_S = 10.0  # for request line and headers
READ_S = 20.0  # for taking the answer
IDLE_S = 15  # between two requests
STOP_S = 1  # for what is under way at the end
MAX_CONNECTIONS = 500


class _Impatient(H11Protocol):
    """uvicorn's own protocol waits for ever for the rest of a request's headers, and for a client to read on."""

    _head: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        # Headers and body are written apart; without this the body waits 40 ms for the headers' acknowledgement.
        # asyncio sees to it only where a socket names its protocol, which those of `create_server` do not.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = self.loop.call_later(HEAD_S, transport.abort)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        under_way = self.cycle is not None and not self.cycle.response_complete
        if under_way and self._head is not None:
            self._head.cancel()
            self._head = None
        elif not under_way and self._head is None:
            self._head = self.loop.call_later(HEAD_S, self.transport.abort)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(READ_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._head is not None:
            self._head.cancel()


def configured(app: App, *, lifespan: bool = False) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=_Impatient,
        loop="asyncio",
        ws="none",
        lifespan="on" if lifespan else "off",
        access_log=False,  # it would print what people ask
        log_level="error",
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=STOP_S,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        limit_concurrency=MAX_CONNECTIONS,
    )


class _Server(uvicorn.Server):
    def __init__(self, app: Guard, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._guard = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # what is cut off now is cut off on purpose
        self._guard.stop()
        await super().shutdown(sockets)


def serve(app: Guard, host: str, port: int, *, ready: Callable[[int], None], lifespan: bool = False) -> None:
    """Until SIGINT or SIGTERM. `port` 0 takes a free one; `ready` is told which. Raises OSError when it cannot be
    had."""
    config = configured(app, lifespan=lifespan)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=256) as listening:
        gc.enable()
        gc.freeze()  # the base stays; only what requests leave behind is looked through
        ready(listening.getsockname()[1])
        _Server(app, config).run(sockets=[listening])
