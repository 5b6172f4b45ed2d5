"""Here is an open base; give me a web server for it: a JSON API for programs and a page for people.

app        routes, and what each answers          guards     who may ask, how much, how long
asking     parameters of a request, checked       listen     the socket, slow clients, the loop
catalogue  issues by id and by project            metrics    figures for Prometheus
nodes      markdown as a tree that is safe        openapi    the contract, from the same tables
page       the page's files
"""

from __future__ import annotations

from kb.serve.app import create_app
from kb.serve.guards import Rules
from kb.serve.listen import serve

__all__ = ["Rules", "create_app", "serve"]
