"""The base over HTTP (a JSON API for programs, a page for people) and over the Model Context Protocol.

In: an open base, or several, and `Rules` that say who may ask. Out: `create_app` gives an ASGI application, and `serve`
runs it on a socket until it is told to stop. `kb mcp` uses `kb.serve.mcp`, which is at `/mcp` of the application, too.

app        the tables of routes, behind the guard         guards    who may ask, how much, how long: a threat model
routes     what a table is, and how an answer is sent     listen    the socket, slow clients, how it stops
searching  /api/search and /api/scan                      listing   issues and projects
bodies     what a request asks: JSON, a log, packed       work      long work in a thread, for clients that still wait
watching   health, metrics, contract                      metrics   counts and times for Prometheus
params     parameters of requests, checked                openapi   the contract, with the shapes of answers (shapes)
nodes      markdown as a tree that a page can show        page      HTML, CSS and JavaScript of the page
sources    how a source is named; links to them           code      light highlighting
issue_page /issue/...: an issue without a script          html      elements for it    opensearch  for browsers
gone       what a person reads where nothing is
session    who has shown the token; the cookie            attempts  slows down wrong tokens
login      /api/session                                   proxy     what a proxy says of the client
asgi       types, and how a request is refused            access    the access log
place      the socket                                     workers   several processes on it
voting     /api/feedback, and what is asked and not known
mcp        tools, resources and prompt for agents         skill     SKILL.md, which teaches an agent to ask

The names below are imported at first use: `kb.serve.mcp` needs neither starlette nor prometheus_client for itself, and
an application can be tested without uvicorn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kb.serve.app import create_app as create_app
    from kb.serve.guards import Rules as Rules
    from kb.serve.listen import serve as serve

__all__ = ["Rules", "create_app", "serve"]

_MODULES = {"Rules": "kb.serve.guards", "create_app": "kb.serve.app", "serve": "kb.serve.listen"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
