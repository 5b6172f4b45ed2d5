"""Runs an application on a socket with uvicorn, and cuts off clients that are too slow, perhaps on purpose.

uvicorn has no option for the time limits below, so this module overrides methods of its `H11Protocol` and `Server`.
Those are no public interface: pyproject.toml therefore names the last version that the tests passed with.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import sys
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from kb.serve.guards import MAX_HEAD_BYTES, App, RequestGuard
from kb.serve.place import Place, bind

__all__ = ["configured", "serve", "serve_at"]

# Seconds. A browser needs a fraction of one; a slower client holds a connection that others want.
HEAD_S = 10.0  # for the request line and headers
READ_S = 20.0  # for the client to read the response
IDLE_S = 15  # between two requests of a connection
STOP_S = 2  # for running requests when the server stops; one that only waits for the next request ends at once
FIRST_S = 0.5  # then, for the first request of a connection that was taken and has sent none yet
MAX_CONNECTIONS = 500
SWITCH_S = 0.0005  # after so long a thread with a log lets short questions go on; after 0.005 they took twice as long


class _TimedProtocol(H11Protocol):
    """uvicorn's protocol with limits: its own waits for ever for the rest of the headers, and for a client to read."""

    _head: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _stopping = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        # Headers and body are written one after the other: without this the body waits 40 ms until the client has
        # acknowledged the headers. asyncio sets it only on sockets that name their protocol, which these do not.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = self.loop.call_later(HEAD_S, transport.abort)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._stopping and self.cycle is not None:
            self.cycle.keep_alive = False
        under_way = self.cycle is not None and not self.cycle.response_complete
        if under_way and self._head is not None:
            self._head.cancel()
            self._head = None
        elif not under_way and self._head is None:
            self._head = self.loop.call_later(HEAD_S, self.transport.abort)

    def shutdown(self) -> None:
        """As uvicorn's, but it would close a connection whose first request is on its way: to a client that is a lost
        answer, while another worker would have given it."""
        if self.cycle is None and not self._stopping:
            self._stopping = True
            self.loop.call_later(FIRST_S, self.shutdown)
        else:
            super().shutdown()

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
    """uvicorn's configuration for `app`; `lifespan` for an application that must be started and stopped."""
    return uvicorn.Config(
        app,
        http=_TimedProtocol,
        loop="asyncio",
        ws="none",
        lifespan="on" if lifespan else "off",
        access_log=False,  # it would print the questions
        log_level="error",
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=STOP_S,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        limit_concurrency=MAX_CONNECTIONS,
    )


class _Server(uvicorn.Server):
    def __init__(self, app: RequestGuard, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._guard = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # requests are cut off on purpose now
        self._guard.stop()
        await super().shutdown(sockets)


def serve(app: RequestGuard, host: str, port: int, *, ready: Callable[[int], None], lifespan: bool = False) -> None:
    """Serves until SIGINT or SIGTERM. `port` 0 takes a free one; `ready` gets the port. Raises OSError when the address
    cannot be used."""
    serve_at(bind(host, port), app, ready=ready, lifespan=lifespan)


def serve_at(place: Place, app: RequestGuard, *, ready: Callable[[int], None], lifespan: bool = False) -> None:
    """The same on a socket from `bind`, which other processes may serve, too."""
    config = configured(app, lifespan=lifespan)
    config.backlog = 1  # see Place
    with place:
        gc.enable()
        gc.freeze()  # the base stays in memory: the collector need not look through it
        sys.setswitchinterval(SWITCH_S)
        place.listen()
        ready(place.getsockname()[1])
        _Server(app, config).run(sockets=[place])
