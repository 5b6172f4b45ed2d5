"""`kb mcp`: the base for coding agents, over the Model Context Protocol."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import click

from kb.cli.common import base_option, forbid_network, index_option, root_option
from kb.cli.serve import serve
from kb.errors import ExtraMissing

__all__ = ["mcp"]

_PORT = 8766
_SKILL = Path(__file__).parents[1] / "serve" / "skill" / "SKILL.md"


@click.command()
@click.option("--http", is_flag=True, help="Serve over HTTP instead of stdin and stdout: kb serve without the page.")
@click.option("--host", metavar="HOST", help="With --http, as of kb serve: the address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=_PORT, show_default=True, help="With --http.")
@click.option("--allow-host", "names", multiple=True, metavar="NAME", help="With --http, as of kb serve.")
@root_option
@click.option("--skill", is_flag=True, help="Print SKILL.md, which teaches an agent when to ask, and end.")
@base_option
@index_option
def mcp(
    http: bool,
    host: str | None,
    port: int,
    names: tuple[str, ...],
    roots: tuple[Path, ...],
    skill: bool,
    bases: tuple[str, ...],
    index: str | Path | None,
) -> None:
    """Serve the base to coding agents over the Model Context Protocol (needs kb-issues[mcp]).

    \b
      claude mcp add kb -- kb mcp                 a client starts it and talks over stdin and stdout
      kb serve                                    has it too, for a team: http://HOST:8080/mcp
      kb mcp --http                               or alone: http://127.0.0.1:8766/mcp ($KB_TOKEN guards it)
      kb mcp --skill > .claude/skills/kb/SKILL.md

    Tools: explain_log, search_issues, get_issue, list_projects; all of them only read. explain_log reads logs in the
    current folder and what --root names; over HTTP only in what --root names. docs/mcp.md sets up the usual clients.
    """
    if skill:
        click.echo(_SKILL.read_text("utf-8"), nl=False)
        return
    if not find_spec("mcp"):
        raise ExtraMissing("kb mcp needs the extra `mcp`", hint='pip install "kb-issues[mcp]"')
    if http:
        options: dict[str, Iterable[object]] = {
            "--host": [host] if host else [],
            "--port": [port],
            "--allow-host": names,
        }
        options |= {"--root": roots, "--base": bases, "--index": [index] if index else []}
        given = [str(word) for option, values in options.items() for value in values for word in (option, value)]
        above = click.get_current_context().parent
        with serve.make_context("mcp --http", ["--only-agents", *given], parent=above) as context:
            serve.invoke(context)
        return
    gc.enable()
    forbid_network()
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # as kb serve: for one question they only wait
        os.environ.setdefault(name, "1")
    from kb.bases import open_bases
    from kb.serve.mcp import serve_stdio, stdio_server

    here = Path.cwd()
    own = [] if here == here.parent else [here]  # some clients start it in the root of the file system
    serve_stdio(stdio_server(lambda: open_bases(bases, index=index), [*own, *roots]))
