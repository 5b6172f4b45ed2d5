"""`kb serve`: the base over HTTP, for programs and for a browser."""

from __future__ import annotations

import ipaddress
import os
import platform
from pathlib import Path

import click

from kb.cli.common import base_option, echo, index_option, open_base
from kb.errors import ExtraMissing

__all__ = ["serve"]


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 is every one.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0 takes a free one.")
@click.option(
    "--token", envvar="KB_TOKEN", help="Ask for this in every request. Better given as $KB_TOKEN: options can be seen."
)
@click.option(
    "--allow-host",
    "names",
    multiple=True,
    metavar="NAME",
    help="Also answer to this host name, as behind a proxy. May be repeated.",
)
@base_option
@index_option
def serve(
    host: str, port: int, token: str | None, names: tuple[str, ...], bases: tuple[str, ...], index: Path | None
) -> None:
    """Serve the base over HTTP: a page to search in, and a JSON API. Stop it with Ctrl-C.

    \b
      kb serve                                   http://127.0.0.1:8080/
      curl -G localhost:8080/api/search --data-urlencode "q=pop from an empty deque"
      KB_TOKEN=... kb serve --host 0.0.0.0       for others, who need the token

    Without --token only this machine can ask, and no page of another site can. Nothing that is asked is logged.
    """
    host = host.casefold()
    at_home = _is_loopback(host)
    if token is not None and (
        not token.strip() or not (token.isascii() and token.isprintable()) or token != token.strip()
    ):
        raise click.BadParameter("it must be printable ASCII and not empty", param_hint="--token")
    if not at_home and token is None:
        raise click.UsageError(
            f"others can reach {host}, so a token is needed: --token, or better $KB_TOKEN\n"
            f"    export KB_TOKEN=$(python3 -c 'import secrets; print(secrets.token_urlsafe(24))')"
        )
    # One question multiplies small matrices: threads of BLAS gain nothing, and on a busy machine they wait for each
    # other, which makes a question three times as slow. numpy reads these variables when it is imported.
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    try:
        from kb.serve import Rules, create_app
        from kb.serve import serve as listen
    except ModuleNotFoundError:
        raise ExtraMissing("kb serve needs the extra `serve`", hint='pip install "kb-issues[serve]"') from None

    own = {f"[{host}]" if ":" in host else host, "" if at_home else platform.node()} - {""}
    rules = Rules.of((*names, *own), any_address=not at_home, token=token)
    with open_base(index, bases) as base:
        base.search("warm up 预热")

        def ready(port: int) -> None:
            shown = platform.node() if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
            echo(f"kb: {base.size} issues at http://{shown}:{port}/  (Ctrl-C stops / 按 Ctrl-C 停止)", err=True)
            if token is not None:
                echo("    the page asks for the token; programs send it as `Authorization: Bearer`", err=True)
                echo("    页面会询问令牌；程序用请求头 Authorization: Bearer 携带", err=True)
            if not at_home:
                echo("    the token travels unencrypted: put a proxy with TLS before it", err=True)
                echo("    令牌以明文传输：请在前面加一层 TLS 代理", err=True)

        try:
            listen(create_app(base, rules), "127.0.0.1" if host == "localhost" else host, port, ready=ready)
        except OSError as error:
            reason = error.strerror or str(error)
            raise click.BadParameter(
                f"{host}:{port} cannot be listened on: {reason}", param_hint="--host/--port"
            ) from None


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
