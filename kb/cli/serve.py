"""`kb serve`: the base over HTTP, for programs and for a browser."""

from __future__ import annotations

import ipaddress
import os
import platform
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

import click

from kb.cli.common import (
    Progress,
    ask_for_trust,
    base_option,
    complain,
    counted,
    echo,
    index_option,
    is_terminal,
    open_base,
    root_option,
)
from kb.cli.token import token_of
from kb.cli.words import say
from kb.errors import ExtraMissing

if TYPE_CHECKING:
    from kb.bases import AnyBase
    from kb.feedback.store import Feedback
    from kb.serve.asgi import Scope
    from kb.serve.guards import Rules
    from kb.serve.place import Place
    from kb.serve.proxy import Network
    from kb.serve.workers import Worker

__all__ = ["serve"]

_PACKAGES = {"serve": ("starlette", "uvicorn", "pydantic", "prometheus_client"), "mcp": ("mcp", "uvicorn")}
_MAKE_TOKEN = "export KB_TOKEN=$(python3 -c 'import secrets; print(secrets.token_urlsafe(24))')"


@click.command()
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    envvar="KB_HOST",
    show_envvar=True,
    help="Address to listen on; 0.0.0.0 is every one.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    envvar="KB_PORT",
    show_envvar=True,
    help="0 takes a free one.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    envvar="KB_WORKERS",
    show_envvar=True,
    help="Processes that answer: one for each core that is to work. Windows has only 1.",
)
@click.option(
    "--token",
    envvar="KB_TOKEN",
    show_envvar=True,
    help="Ask for this in every request. Better given in a file or by the variable: options can be seen.",
)
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="KB_TOKEN_FILE",
    show_envvar=True,
    help="Read the token from this file, which others must not be able to read.",
)
@click.option(
    "--allow-host",
    "names",
    multiple=True,
    metavar="NAME",
    envvar="KB_ALLOW_HOST",
    show_envvar=True,
    help="Also answer to this host name, as behind a proxy. May be repeated; spaces separate several in the variable.",
)
@click.option(
    "--behind-proxy",
    "proxies",
    is_flag=False,
    flag_value="loopback",
    metavar="[ADDRESSES]",
    envvar="KB_BEHIND_PROXY",
    show_envvar=True,
    help="Believe what a proxy on this machine says about the client (X-Forwarded-For, -Proto, -Host); also one at "
    "these addresses or networks, with commas: 10.0.0.0/8.",
)
@click.option(
    "--access-log", is_flag=True, envvar="KB_ACCESS_LOG", show_envvar=True, help="Print a line for each request."
)
@root_option
@click.option("--only-agents", is_flag=True, hidden=True, help="What kb mcp --http serves.")
@click.option(
    "--feedback",
    envvar="KB_FEEDBACK",
    show_envvar=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Keep votes (this helped, did not fit), and what is asked and not known, in this file: masked, never whole "
    "questions. Without it nothing is kept.",
)
@base_option
@index_option
def serve(
    host: str,
    port: int,
    workers: int,
    token: str | None,
    token_file: Path | None,
    names: tuple[str, ...],
    proxies: str | None,
    access_log: bool,
    roots: tuple[Path, ...],
    only_agents: bool,
    feedback: Path | None,
    bases: tuple[str, ...],
    index: str | Path | None,
) -> None:
    """Serve the base over HTTP: a page to search in, a JSON API, and /mcp for agents. Stop it with Ctrl-C.

    \b
      kb serve                                   http://127.0.0.1:8080/
      curl -G localhost:8080/api/search --data-urlencode "q=pop from an empty deque"
      KB_TOKEN=... kb serve --host 0.0.0.0       for others, who need the token
      kb serve --workers 4 --token-file FILE --behind-proxy --allow-host kb.example.com

    Without a token only this machine can ask, and no page of another site can. Nothing that is asked is logged, not
    even by --access-log. docs/deploy.md has files for systemd, containers, nginx and Kubernetes.
    """
    host = host.casefold()
    at_home = _is_loopback(host)
    token = token_of(token, token_file)
    if not at_home and token is None:
        raise click.UsageError(
            f"others can reach {host}, so a token is needed: --token-file, or $KB_TOKEN\n    {_MAKE_TOKEN}"
        )
    if workers > 1 and not hasattr(os, "fork"):
        raise click.BadParameter(say("this system cannot fork, so 1 is all"), param_hint="--workers")
    _require_extra(only_agents)
    # One question multiplies small matrices: threads of BLAS gain nothing, and on a busy machine they wait for each
    # other, which makes a question three times as slow. numpy reads these variables when it is imported.
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    from kb.serve.guards import Rules
    from kb.serve.place import bind

    own = {f"[{host}]" if ":" in host else host, "" if at_home else platform.node()} - {""}
    rules = Rules.of((*names, *own), any_address=not at_home, token=token, proxies=_networks(proxies))
    try:
        place = bind("127.0.0.1" if host == "localhost" else host, port)
    except OSError as error:
        raise _taken(host, port, error) from None
    with place, _ended_by(signal.SIGTERM):  # which the first process of a container would not be
        echo(say("kb: opening the base (the first time its index is made, which takes a while) ..."), err=True)
        worker = _fork(workers, place, index, bases) if workers > 1 else None
        with Progress(is_terminal(sys.stderr)) as progress:
            opened = open_base(index, bases, progress, votes=False)
        with opened as base:
            heard = _hears(base, feedback)
            base.search("warm up 预热")

            def ready(port: int) -> None:
                if worker is None or worker.first:
                    _welcome(base.size, host, port, rules, "mcp" if only_agents else "")
                if worker is not None:
                    worker.say_ready()

            try:
                _answer(base, rules, place, ready, access_log, roots, heard, only_agents=only_agents)
            except OSError as error:
                raise _taken(host, port, error) from None


def _require_extra(only_agents: bool) -> None:
    """Before the base is opened, which may take a while. Looks for the packages and imports none of them yet."""
    name = "mcp" if only_agents else "serve"
    if not all(map(find_spec, _PACKAGES[name])):
        raise ExtraMissing(f"this needs the extra `{name}`", hint=f'pip install "kb-issues[{name}]"')


def _fork(workers: int, place: Place, index: str | Path | None, bases: tuple[str, ...]) -> Worker:
    """Returns in each worker; see `kb.serve.workers`."""
    from kb.serve.workers import fork

    ask_for_trust(index, bases)  # once, and not in each worker
    try:
        return fork(workers, place, lambda text, values: complain(say(text, **values)))
    except OSError as error:
        why = error.strerror or str(error)
        raise click.UsageError(say("several workers need a folder for temporary files: {why}", why=why)) from None


def _welcome(size: int, host: str, port: int, rules: Rules, path: str) -> None:
    at_home = _is_loopback(host)
    shown = platform.node() if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    echo(f"kb: {counted(size, 'issue')} at http://{shown}:{port}/{path}  (Ctrl-C stops / 按 Ctrl-C 停止)", err=True)
    if rules.token is not None and not path:
        echo("    the page asks for the token; programs send it as `Authorization: Bearer`", err=True)
        echo("    页面会询问令牌；程序用请求头 Authorization: Bearer 携带", err=True)
    if not at_home and not rules.proxies:
        echo("    the token travels unencrypted: put a proxy with TLS before it", err=True)
        echo("    令牌以明文传输：请在前面加一层 TLS 代理", err=True)


def _hears(base: AnyBase, path: Path | None) -> Feedback | None:
    """The file of `--feedback`, whose votes count from now on. Raises FeedbackError for one that cannot be used."""
    from kb.feedback import place

    if path is None or str(path) == place.OFF:
        return None
    from kb.feedback.voices import Voiced

    feedback = place.opened(path)
    feedback.person("")  # a file that cannot be used is told now, and not at the first vote
    base.votes = Voiced(feedback)
    return feedback


def _answer(
    base: AnyBase,
    rules: Rules,
    place: Place,
    ready: Callable[[int], None],
    access_log: bool,
    roots: Sequence[Path],
    feedback: Feedback | None,
    *,
    only_agents: bool,
) -> None:
    """Until a signal comes: the whole server, or one of its workers."""
    from kb.serve.access import line
    from kb.serve.listen import serve_at

    def log(scope: Scope, status: int, seconds: float) -> None:
        echo(line(scope, status, seconds), err=True)

    told = log if access_log else None
    if only_agents:
        from kb.serve.mcp import create_mcp_app

        app = create_mcp_app(base, rules, log=told, roots=roots)
    else:
        from kb.serve import create_app

        app = create_app(base, rules, feedback=feedback, log=told, roots=roots)
    with _ended_by(signal.SIGINT):  # the server ends its requests, then raises the signal again
        serve_at(place, app, ready=ready, lifespan=True)


@contextmanager
def _ended_by(number: signal.Signals) -> Iterator[None]:
    """The signal ends the process at once: Python would wait for threads that read a log, and give back each piece of
    memory."""

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        if number == signal.SIGINT:
            complain(say("interrupted"))
        os._exit(128 + number)

    before = signal.signal(number, leave)
    try:
        yield
    finally:
        signal.signal(number, before)


def _networks(proxies: str | None) -> tuple[Network, ...]:
    if proxies is None:
        return ()
    from kb.serve.proxy import networks

    try:
        return networks(proxies.split(","))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--behind-proxy") from None


def _taken(host: str, port: int, error: OSError) -> click.BadParameter:
    reason = error.strerror or str(error)
    return click.BadParameter(f"{host}:{port} cannot be listened on: {reason}", param_hint="--host/--port")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
