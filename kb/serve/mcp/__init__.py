"""The base for coding agents, over the Model Context Protocol: tools that only read, resources and a prompt.

In: something that gives an open base, and the folders of which an agent may name logs. Out: a server of the SDK, which
`transport` runs over stdin and stdout or puts at `/mcp` of an HTTP server.

tools      what each tool does, and how it says that it cannot     words   the fixed texts that an agent reads
arguments  what a tool can be given, checked                       told    answers as markdown for a model
server     tools, resources and prompt as the protocol has them    files   logs by path, within the allowed folders
transport  stdio, and /mcp over HTTP                           structure  the same for clients that show no text

What an article says arrives in an answer, never in a description. Some clients show their model only the text of a
result and others only its structure, so a search and a log have both: each can be acted on alone, and neither is a copy
of the other. What a program may want besides stands in the result's `_meta`, which no model pays for.
"""

from __future__ import annotations

from kb.serve.mcp.transport import create_mcp_app, serve_stdio, stdio_server, table

__all__ = ["create_mcp_app", "serve_stdio", "stdio_server", "table"]
