"""What people say of the answers (`/api/feedback`), and what they ask that is not known.

Only where the server was given a file for it (`kb serve --feedback`). Who says something is the address that asks: a
person is not asked for a name, and whoever opens ten sessions has one voice. Behind a proxy that is the address that
the proxy tells, where the server was told to believe it, else the proxy's own: one voice for all.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from functools import partial
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from kb.errors import KbError, QueryError
from kb.feedback.gist import Gist, gist
from kb.feedback.told import Said, address_of, cast
from kb.logs.read import read
from kb.records import SearchResult
from kb.serve import params
from kb.serve.guards import App, Receive, Refusal, Scope, Send
from kb.serve.routes import Table, dumped, json_response
from kb.text.decode import decode

if TYPE_CHECKING:
    from kb.bases import AnyBase
    from kb.feedback.store import Feedback

__all__ = ["LOG_END", "Listening", "VoteBody", "asked_by"]

BURST, PER_S = 30, 0.5
"""votes of one address at once, and a second in the long run"""
LOG_END = 64 << 10
"""bytes of a log's end in which its failure is looked for"""
_MAX_CLIENTS = 4096  # that are remembered
_MAX_WAITING = 256  # questions that wait to be written down; more are not


class VoteBody(params.NoParams):
    issue: Annotated[str, Field(min_length=3, max_length=300, description="The issue, as slug#n.")]
    verdict: Annotated[Said, Field(description="What it was to the one who asked; none takes the vote back.")]
    question: Annotated[
        str | None,
        Field(min_length=1, description="What was asked. Its error lines are kept with the vote, masked."),
    ] = None


_ASKER = ContextVar("kb.asker", default="")
"""who asks, as in `kb.feedback.store.Feedback.person`"""


def asked_by(app: App) -> App:
    """The application; while it answers, `Listening` knows whose request that is, in other threads, too, where the
    context is handed on."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        _ASKER.set(address_of((scope.get("client") or ("",))[0]))
        await app(scope, receive, send)

    return answer


class Listening:
    """The handlers of `/api/feedback`, and the ear of the search. Without a file it hears nothing."""

    def __init__(self, base: AnyBase, feedback: Feedback | None) -> None:
        self._base = base
        self._feedback = feedback
        self._thread = ThreadPoolExecutor(1, "kb-feedback")  # one: what is written stays in order
        self._waiting = BoundedSemaphore(_MAX_WAITING)
        self._allowed = OrderedDict[str, tuple[float, float]]()

    def table(self) -> Table:
        return Table({"/api/feedback": {"GET": self.state, "POST": self.vote}})

    async def state(self, request: Request) -> Response:
        params.from_pairs(request.query_params.multi_items(), params.NoParams)
        return json_response(dumped({"on": self._feedback is not None}))

    async def vote(self, request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip().casefold() != "application/json":
            raise Refusal(415, "the body must be application/json", '{"issue": "slug#1", "verdict": "helped"}')
        if self._feedback is None:
            raise Refusal(404, "this server keeps no feedback", "kb serve --feedback FILE")
        given = params.from_json(await request.body(), VoteBody)
        vote = partial(self.cast, given.issue, given.verdict, given.question)
        issue, helped, against = await asyncio.get_running_loop().run_in_executor(
            self._thread, copy_context().run, vote
        )
        said = {"issue": issue, "verdict": given.verdict, "helped": helped, "did_not_fit": against}
        return json_response(dumped(said))

    def cast(self, issue: str, said: Said, question: str | None) -> tuple[str, float, float]:
        """A vote of whoever is asking; see `kb.feedback.told.cast`. Raises Refusal for too many."""
        assert self._feedback is not None
        who = _ASKER.get()
        self._require_patience(who)
        return cast(self._feedback, self._base, issue, said, who, question)

    def note(self, result: SearchResult) -> None:
        """Counts a question that was not known."""
        if result.verdict == "unknown":
            self._later(lambda: gist(result.query))

    def note_log(self, end: bytes) -> None:
        """The same for a log in which no issue was found, by its end, of `LOG_END` bytes at most."""
        self._later(lambda: gist(read(decode(end), printed=True)))

    def _later(self, asked: Callable[[], Gist | None]) -> None:
        """Whoever asks does not wait for what is written down."""
        if self._feedback is not None and self._waiting.acquire(blocking=False):
            self._thread.submit(self._note, _ASKER.get(), asked)

    def _note(self, who: str, asked: Callable[[], Gist | None]) -> None:
        assert self._feedback is not None
        try:
            if (found := asked()) is not None:
                self._feedback.note_miss(found, self._feedback.person(who))
        except QueryError:  # a log without words
            return
        except KbError as error:
            logging.getLogger("kb").warning("%s", error)
        finally:
            self._waiting.release()

    def _require_patience(self, who: str) -> None:
        now = time.monotonic()
        left, at = self._allowed.pop(who, (float(BURST), now))
        left = min(left + (now - at) * PER_S, float(BURST))
        self._allowed[who] = max(left - 1, 0.0), now
        while len(self._allowed) > _MAX_CLIENTS:
            self._allowed.popitem(last=False)
        if left < 1:
            raise Refusal(429, "too many votes from one address", "wait a little", [("retry-after", "2")])
