"""Whoever asks gets one answer: ten questions through every door, each compared with the command line's answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kb import KnowledgeBase
from kb.cli import cli
from kb.hooks.guard import Guard

Answer = tuple[bool, str]
"""whether it was answered, and the first issue's id"""

SEEDS = ("q02", "q04", "q07", "q11", "q16", "q21", "q29", "q31", "q36", "q40")
CASES = map(json.loads, (Path(__file__).parent / "cases/questions.jsonl").read_text("utf-8").splitlines())
QUESTIONS = {case["id"]: case["query"] for case in CASES if case["id"] in SEEDS}


@cache
def by_command(index: Path, question: str) -> Answer:
    told = CliRunner().invoke(cli, ["search", "--json", "--index", str(index), "-"], input=question)
    return first(json.loads(told.stdout))


def by_python(index: Path, question: str) -> Answer:
    with KnowledgeBase.open(index) as base:
        return first(base.search(question).as_dict())


def by_mcp(index: Path, question: str) -> Answer:
    pytest.importorskip("mcp", reason='needs the extra: pip install -e ".[mcp]"')
    from mcp import Client

    from kb.serve.mcp import stdio_server
    from kb.serve.mcp.server import FACTS

    async def ask() -> Any:
        async with Client(stdio_server(lambda: KnowledgeBase.open(index))) as client:
            return ((await client.call_tool("search_issues", {"query": question})).meta or {})[FACTS]

    facts = asyncio.run(ask())
    return facts["verdict"] == "known", facts["issues"][0]["issue"]


def by_http(index: Path, question: str) -> Answer:
    from starlette.testclient import TestClient

    from kb.serve import create_app

    with KnowledgeBase.open(index) as base:
        client = TestClient(create_app(base), base_url="http://localhost")
        return first(client.post("/api/search", json={"query": question}).json())


def by_hint(index: Path, question: str) -> Answer:
    """The way of excepthook, log handler, IPython and pytest."""
    result = Guard(index).ask_in_time(lambda: question, seconds=60)
    assert result is not None
    return first(result.as_dict())


def first(answer: Any) -> Answer:
    """Of the public JSON form."""
    return answer["answered"], answer["results"][0]["issue"]


DOORS: dict[str, Callable[[Path, str], Answer]] = {"python": by_python, "hint": by_hint, "mcp": by_mcp, "http": by_http}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("door", DOORS)
def test_every_door_gives_the_command_lines_answer(door: str, seed: str, index: Path) -> None:
    assert DOORS[door](index, QUESTIONS[seed]) == by_command(index, QUESTIONS[seed])
