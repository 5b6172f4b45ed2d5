"""Tools, resources and prompt as the protocol has them.

It stands on the SDK's lower server: the upper one makes tools of functions, answers a wrong argument with pydantic's
text, and gives each result a second time, as JSON.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar
from urllib.parse import unquote

from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from mcp.types import Tool as ListedTool

import kb
from kb.bases import AnyBase
from kb.errors import KbError
from kb.serve.mcp import words
from kb.serve.mcp.told import issues_text
from kb.serve.mcp.tools import Answer, Tools, said
from kb.text import visible

__all__ = ["FACTS", "make_server"]

FACTS = "kb/answer"
"""where in the `_meta` of a result its facts stand"""

T = TypeVar("T")

_THREADS = 2  # searches at a time: a machine's cores are there for others, too
_ISSUE = "kb://issue/"


def make_server(tools: Tools, base: Callable[[], AnyBase]) -> Server[Any]:
    """`base` gives the open base, or raises KbError."""
    logging.getLogger("mcp").setLevel(logging.ERROR)  # what goes wrong in a call is told to the caller
    threads = ThreadPoolExecutor(_THREADS, "kb-agent")
    listed = ListToolsResult(tools=_listed(tools))

    async def in_thread(ask: Callable[..., T], *given: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(threads, copy_context().run, ask, *given)

    async def list_tools(context: object, params: object) -> ListToolsResult:
        return listed

    async def call_tool(context: object, params: CallToolRequestParams) -> CallToolResult:
        return await in_thread(_called, tools, params.name, params.arguments or {})

    async def list_resources(context: object, params: object) -> ListResourcesResult:
        return ListResourcesResult(resources=[])  # hundreds: search_issues finds them

    async def list_templates(context: object, params: object) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=_TEMPLATES)

    async def read_resource(context: object, params: ReadResourceRequestParams) -> ReadResourceResult:
        uri = str(params.uri)
        text = await in_thread(_resource, base, uri)
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, text=text, mime_type="text/markdown")])

    async def list_prompts(context: object, params: object) -> ListPromptsResult:
        return ListPromptsResult(prompts=[_DIAGNOSE])

    async def get_prompt(context: object, params: GetPromptRequestParams) -> GetPromptResult:
        return _prompt(params.name, params.arguments or {})

    return Server(
        "kb",
        version=kb.__version__,
        instructions=words.INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


def _listed(tools: Tools) -> list[ListedTool]:
    return [
        ListedTool(
            name=name,
            title=tool.title,
            description=tool.description,
            input_schema=dict(tool.schema),
            annotations=ToolAnnotations(
                read_only_hint=tool.only_reads, destructive_hint=False, idempotent_hint=True, open_world_hint=False
            ),
        )
        for name, tool in tools.by_name.items()
    ]


def _called(tools: Tools, name: str, given: Mapping[str, Any]) -> CallToolResult:
    """What a tool cannot do is an answer, too: the model reads it and asks better."""
    try:
        answer = tools.call(name, given)
    except KbError as error:
        return CallToolResult(content=[TextContent(text=visible(said(error)))], is_error=True)
    except Exception as error:
        # Its message may contain the question, and questions are never logged.
        logging.getLogger("kb").error("a bug in kb: %s in a tool", type(error).__name__)
        bug = "this is a bug in kb, not a mistake of yours\nplease report it"
        return CallToolResult(content=[TextContent(text=bug)], is_error=True)
    return _result(answer)


def _result(answer: Answer) -> CallToolResult:
    structure = None if answer.structure is None else dict(answer.structure)
    return CallToolResult(
        content=[TextContent(text=answer.text)], structured_content=structure, _meta={FACTS: dict(answer.facts)}
    )


_TEMPLATES = [
    ResourceTemplate(
        uri_template=uri,
        name=name,
        title=title,
        description="symptom, cause and fix of a known issue, whose id is slug#n",
        mime_type="text/markdown",
    )
    for uri, name, title in (
        (_ISSUE + "{slug}/{n}", "issue", "A known issue"),
        (_ISSUE + "{slug}/{n}/{lang}", "issue-in", "A known issue, in English (en) or Chinese (zh)"),
    )
]


def _resource(base: Callable[[], AnyBase], uri: str) -> str:
    """The markdown of the issue that the URI names. A slug may have slashes. Raises MCPError."""
    parts = unquote(uri.removeprefix(_ISSUE)).split("/")
    lang = parts.pop() if parts[-1] in ("en", "zh") else None
    number = parts.pop()
    if not uri.startswith(_ISSUE) or not parts or not (number.isascii() and number.isdecimal()):
        message = f"there is no such resource; an issue's is {_ISSUE}SLUG/N"
        raise MCPError(INVALID_PARAMS, message, {"uri": uri})
    issue = "/".join(parts) + f"#{number}"
    try:
        return issues_text(base().show(f"{issue}/{lang}" if lang else issue))
    except KbError as error:
        raise MCPError(INVALID_PARAMS, visible(said(error)), {"uri": uri}) from None


_DIAGNOSE = Prompt(
    name="diagnose",
    title="Diagnose a failure · 排查故障",
    description="Finds out why something failed: asks kb, compares, and says honestly what is known.",
    arguments=[
        PromptArgument(name="failure", description="an error, the path of a log, or what happens", required=True)
    ],
)


def _prompt(name: str, given: Mapping[str, str]) -> GetPromptResult:
    """Raises MCPError."""
    failure = given.get("failure", "").strip()
    wrong = ""
    if name != _DIAGNOSE.name:
        wrong = f"there is no prompt {name[:40]!r}\nthere is {_DIAGNOSE.name}"
    elif given.keys() - {"failure"}:
        wrong = "diagnose has one argument, failure\ngive no other"
    elif not failure:
        wrong = "diagnose needs failure\nfailure: an error, the path of a log, or what happens"
    if wrong:
        raise MCPError(INVALID_PARAMS, visible(wrong))
    text = words.DIAGNOSE.format(failure=failure)
    return GetPromptResult(
        description=_DIAGNOSE.description, messages=[PromptMessage(role="user", content=TextContent(text=text))]
    )
