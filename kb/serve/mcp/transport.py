"""How an agent reaches the server: over stdin and stdout, or at `/mcp` over HTTP.

HTTP is behind the same guard as every other path: Host, Origin, token, limits. It keeps no session: the tools only
read, so there is nothing to keep between two requests, and nothing to leak. The SDK is imported at the first request
(it takes half a second), because most people who start `kb serve` want the page.
"""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from kb.errors import KbError, QueryError
from kb.serve.params import replace_lone_surrogates

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from kb.bases import AnyBase
    from kb.serve.asgi import Receive, Scope, Send

    Log = Callable[[Scope, int, float], None]
    from kb.serve.guards import RequestGuard, Rules
    from kb.serve.mcp.tools import Counts, Votes
    from kb.serve.routes import Table

__all__ = ["create_mcp_app", "serve_stdio", "stdio_server", "table"]

PATH = "/mcp"


# --- HTTP -------------------------------------------------------------------------------------------------------------


def table(
    base: AnyBase, *, roots: Sequence[Path] = (), counts: Counts | None = None, votes: Votes | None = None
) -> Table:
    """`/mcp` for an HTTP server around an open base. `roots`, `counts` and `votes` as in `Tools`."""
    from kb.serve.routes import Table

    return Table(apps={PATH: _Door(base, roots, counts, votes) if find_spec("mcp") else _closed})


def create_mcp_app(
    base: AnyBase, rules: Rules | None = None, *, log: Log | None = None, roots: Sequence[Path] = ()
) -> RequestGuard:
    """`/mcp` and `/healthz` alone, behind the guard: what `kb mcp --http` serves. As `create_app`."""
    from kb.serve import watching
    from kb.serve.guards import RequestGuard, Rules
    from kb.serve.routes import application

    app = application([table(base, roots=roots), watching.table(base, None)])
    return RequestGuard(app, rules or Rules(), bodies=[PATH], log=log or (lambda *_: None))


class _Door:
    """The ASGI application at `/mcp`."""

    def __init__(self, base: AnyBase, roots: Sequence[Path], counts: Counts | None, votes: Votes | None) -> None:
        self._base, self._roots, self._counts, self._votes = base, roots, counts, votes
        self._lock = threading.Lock()

    @cached_property
    def _server(self) -> Server[Any]:
        from kb.serve.mcp.server import make_server
        from kb.serve.mcp.tools import Tools

        def base() -> AnyBase:
            return self._base

        return make_server(Tools(base, roots=self._roots, counts=self._counts, votes=self._votes), base)

    def _prepare(self) -> None:
        with self._lock:
            _ = self._server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        import anyio.to_thread

        from kb.serve.asgi import Refusal, refuse

        if scope["method"] != "POST":
            # Without sessions the server never sends anything unasked, and a GET would be an endless empty stream.
            hint = "it speaks the Model Context Protocol: claude mcp add --transport http kb URL"
            await refuse(Refusal(405, "POST only", hint, [("allow", "POST")]), send)
            return
        if "_server" not in vars(self):
            await anyio.to_thread.run_sync(self._prepare)
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        # One for each request: it is made in no time, and holds nothing that has to be started or stopped.
        manager = StreamableHTTPSessionManager(self._server, json_response=True, stateless=True)
        async with manager.run():
            await manager.handle_request(scope, _mended(receive), send)


async def _closed(scope: Scope, receive: Receive, send: Send) -> None:
    from kb.serve.asgi import Refusal, refuse

    await refuse(Refusal(501, "agents are not served here", 'pip install "kb-issues[mcp]" on the server'), send)


def _mended(receive: Receive) -> Receive:
    """A `receive` without lone surrogates. The body comes in one piece from the guard."""

    async def mended() -> Any:
        message = await receive()
        if message["type"] == "http.request":
            message = {**message, "body": replace_lone_surrogates(message.get("body", b""))}
        return message

    return mended


# --- stdin and stdout -------------------------------------------------------------------------------------------------


class _LateBase:
    """What `open_base` gives: opened at first use, then kept; it follows new builds by itself.

    A failure to open is not kept: the next use tries again. Safe between threads.
    """

    def __init__(self, open_base: Callable[[], AnyBase]) -> None:
        self._open_base = open_base
        self._base: AnyBase | None = None
        self._lock = threading.Lock()

    def __call__(self) -> AnyBase:
        """Raises KbError."""
        with self._lock:
            if self._base is None:
                try:
                    self._base = self._open_base()
                except KbError as error:  # with its path, which the owner of this machine may read
                    raise KbError(str(error), hint=error.hint) from None
            return self._base


def stdio_server(open_base: Callable[[], AnyBase], roots: Sequence[Path] = ()) -> Server[Any]:
    """A server for one client. The base is opened at the first call; while there is none, each call says so."""
    from kb.serve.mcp.server import make_server
    from kb.serve.mcp.tools import Tools

    base = _LateBase(open_base)
    return make_server(Tools(base, roots=roots, votes=_own_votes(base)), base)


def _own_votes(base: Callable[[], AnyBase]) -> Votes | None:
    """The user's own file of votes, where there is one already: an agent does not begin it."""
    from kb.feedback import place

    path = place.feedback_file()
    if path is None or not path.is_file():
        return None
    from kb.feedback.told import cast, this_user

    return lambda issue, said, question: cast(place.opened(path), base(), issue, said, this_user(), question)


def serve_stdio(server: Server[Any]) -> None:
    """Serves the client at the other end of stdin and stdout, until it closes one of them."""
    import anyio
    from mcp.server.stdio import stdio_server as streams

    async def serve() -> None:
        async with streams() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    if sys.stdin is None or sys.stdout is None:
        raise QueryError("an agent talks over stdin and stdout, and one of them is closed", hint="kb mcp --http")
    sys.stdin = _MendedStdin(sys.stdin.buffer)
    try:
        anyio.run(serve)
    except Exception as error:
        if not _is_disconnect(error):
            raise


class _MendedLines(io.RawIOBase):
    """Reads line by line, without lone surrogates: the SDK's parser refuses a line with one and does not answer it."""

    def __init__(self, source: BinaryIO) -> None:
        self._source, self._rest = source, b""

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        piece = self._rest or replace_lone_surrogates(self._source.readline())
        count = min(len(piece), len(into))
        into[:count], self._rest = piece[:count], piece[count:]
        return count


class _MendedStdin(io.TextIOWrapper):
    """Takes the place of stdin. It has no descriptor, so that the SDK reads from it and not from the one below."""

    def __init__(self, source: BinaryIO) -> None:
        super().__init__(io.BufferedReader(_MendedLines(source)), encoding="utf-8", errors="replace")


def _is_disconnect(error: BaseException) -> bool:
    """Has the client closed its end? Nested task groups wrap that error in as many groups."""
    inner: Sequence[BaseException] | None = getattr(error, "exceptions", None)
    if inner is not None:
        return all(map(_is_disconnect, inner))
    return isinstance(error, BrokenPipeError | ConnectionResetError)
