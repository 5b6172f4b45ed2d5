"""Long work beside the event loop: in a thread, after a short queue, and only for clients that still wait for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

from starlette.requests import Request

from kb.serve.guards import Refusal

__all__ = ["ClientGone", "Gone", "Work"]

T = TypeVar("T")
Gone = Callable[[], bool]
"""has the client hung up? Work that takes long asks now and then"""

# Threads of Python take turns: more of them than one make nothing faster, and short questions wait for all.
_THREADS = 1
_WAITING = 32
_AGAIN = (("retry-after", "1"),)


class ClientGone(Exception):
    """The client hung up before its answer was ready; nobody reads what is sent now."""


class Work:
    def __init__(self, *, threads: int = _THREADS, waiting: int = _WAITING) -> None:
        """At most `waiting` requests wait for one of the `threads`."""
        self._pool = ThreadPoolExecutor(threads, "kb-work")
        self._places = threading.BoundedSemaphore(threads + waiting)

    async def run(self, request: Request, work: Callable[[Gone], T]) -> T:
        """What `work` returns. When the client hangs up, work that waits is never begun, and work under way hears of
        it. Raises ClientGone, Refusal when too many wait or the server stops, and what `work` raises."""
        if not self._places.acquire(blocking=False):
            raise Refusal(503, "too many long questions at a time", "ask again in a second", _AGAIN)
        gone = threading.Event()

        def begin() -> T:
            try:
                if gone.is_set():
                    raise ClientGone
                return work(gone.is_set)
            finally:
                self._places.release()  # not before: the queue holds the body until then

        ready = asyncio.wrap_future(self._pool.submit(copy_context().run, begin))
        left = asyncio.ensure_future(_hung_up(request))
        try:
            waited: set[asyncio.Future[Any]] = {ready, left}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not ready.done():
                raise ClientGone
            return ready.result()
        except asyncio.CancelledError:  # the server stops, and this has taken too long
            raise Refusal(503, "the server is being stopped", "ask again in a second", _AGAIN) from None
        finally:
            if not ready.done():
                # Whatever the work ends with, nobody is told any more; asyncio would print it as forgotten.
                ready.add_done_callback(lambda done: done.cancelled() or done.exception())
            gone.set()
            left.cancel()


async def _hung_up(request: Request) -> None:
    """Returns when the client has gone; the body was read before."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
