"""`kb mcp`: the base for coding agents, over the Model Context Protocol."""

from __future__ import annotations

import gc
from pathlib import Path

import click

from kb.cli.common import base_option, echo, forbid_network, index_option
from kb.errors import ExtraMissing

__all__ = ["mcp"]

_PORT = 8766
_SKILL = Path(__file__).parents[1] / "serve" / "skill" / "SKILL.md"


@click.command()
@click.option("--http", is_flag=True, help="Serve streamable HTTP on 127.0.0.1 instead of stdin and stdout.")
@click.option("--port", type=click.IntRange(1, 65535), default=_PORT, show_default=True, help="With --http.")
@click.option("--skill", is_flag=True, help="Print SKILL.md, which teaches an agent when to ask, and end.")
@base_option
@index_option
def mcp(http: bool, port: int, skill: bool, bases: tuple[str, ...], index: Path | None) -> None:
    """Serve the base to coding agents over the Model Context Protocol (needs kb-issues[mcp]).

    \b
      claude mcp add kb -- kb mcp                 a client starts it and talks over stdin and stdout
      kb mcp --http --port 8766                   or it runs by itself: http://127.0.0.1:8766/mcp
      kb mcp --skill > .claude/skills/kb/SKILL.md

    Tools: search_issues, get_issue, list_projects; all of them only read. docs/mcp.md sets up the usual clients.
    """
    if skill:
        click.echo(_SKILL.read_text("utf-8"), nl=False)
        return
    gc.enable()
    forbid_network()
    try:
        from kb.serve.mcp import make_server, serve_http, serve_stdio

        server = make_server(index, bases)
    except ImportError:
        raise ExtraMissing("kb mcp needs the extra `mcp`", hint='pip install "kb-issues[mcp]"') from None
    if not http:
        serve_stdio(server)
        return
    try:
        serve_http(server, port, ready=lambda port: echo(f"kb: http://127.0.0.1:{port}/mcp", err=True))
    except OSError as error:
        reason = error.strerror or str(error)
        raise click.BadParameter(f"127.0.0.1:{port} cannot be listened on: {reason}", param_hint="--port") from None
