"""Whoever asks gets one answer: ten questions and some logs through every door, each compared with the command line's
answer."""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
from collections.abc import Callable
from functools import cache
from itertools import product
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
    facts = facts_of_agent(index, "search_issues", {"query": question})
    return facts["verdict"] == "known", facts["issues"][0]["issue"]


def facts_of_agent(index: Path, tool: str, arguments: dict[str, Any], *roots: Path) -> dict[str, Any]:
    pytest.importorskip("mcp", reason='needs the extra: pip install -e ".[mcp]"')
    from mcp import Client

    from kb.serve.mcp import stdio_server
    from kb.serve.mcp.server import FACTS

    async def ask() -> Any:
        async with Client(stdio_server(lambda: KnowledgeBase.open(index), roots)) as client:
            return ((await client.call_tool(tool, arguments)).meta or {})[FACTS]

    found = asyncio.run(ask())
    assert isinstance(found, dict)
    return found


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


# --- logs -----------------------------------------------------------------------------------------------------------

Verdict = tuple[str, str | None]
"""the verdict on a log, and the issue where it is known"""

TRAINING = "".join(f"{{'loss': {2 - n / 900:.4f}, 'grad_norm': 0.71, 'epoch': {n / 500:.3f}}}\n" for n in range(995))
STACK = """\
Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/swift/llm/train/rlhf.py", line 90, in main
    return trainer.train()
  File "/opt/venv/lib/python3.11/site-packages/deepspeed/runtime/zero/parameter_offload.py", line 410, in hook
    self.fetch(module)
IndexError: pop from an empty deque
"""
TEARDOWN = """\
W1120 03:19:01.123000 281 torch/distributed/elastic/api.py:897] Sending process 30{rank} closing signal SIGTERM
[rank{rank}]: Traceback (most recent call last):
[rank{rank}]:   File "/opt/venv/lib/python3.11/site-packages/torch/distributed/c10d.py", line 4100, in barrier
[rank{rank}]:     work.wait()
[rank{rank}]: RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.{rank}]:3421
"""
START = """\
[INFO|2025-03-01 08:00:01] llamafactory.model.loader:157 >> trainable params: 19,988,480 || all params: 7,741,313,024
Loading checkpoint shards: 100%|██████████| 4/4 [00:03<00:00,  1.21it/s]
[INFO:swift] Loading the model using model_dir: /models/Qwen2.5-7B-Instruct
[INFO:swift] model_kwargs: {'device_map': 'cuda:0'}
[INFO:swift] target_modules: ['q_proj', 'k_proj', 'v_proj']
[INFO:swift] model.hf_device_map: {'': device(type='cuda', index=0)}
"""
LOGS = {
    "an error in the middle, then 63 ranks' teardown": TRAINING
    + STACK.replace("\n", "\n[rank0]: ")
    + "\n"
    + "".join(TEARDOWN.format(rank=rank) for rank in range(1, 64)),
    "a start that fails": START
    + 'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    step()\n'
    + "IndexError: pop from an empty deque\n",
    "a start": START,
    "Chinese, with Windows line ends": (START + "训练失败\n" + STACK).replace("\n", "\r\n"),
    "training": TRAINING,
}


def said(answer: Any) -> Verdict:
    """Of the public JSON form of a search or of a scanned log."""
    known = answer["verdict"] == "known"
    if "findings" in answer:
        surest = max(answer["findings"], key=lambda one: one["confidence"], default=None)
        return answer["verdict"], surest["issue"] if known and surest else None
    return answer["verdict"], answer["results"][0]["issue"] if known else None


@cache
def log_by_search(index: Path, log: str) -> Verdict:
    told = CliRunner().invoke(cli, ["search", "--json", "--index", str(index), "-"], input=log)
    return said(json.loads(told.stdout))


def log_by_scan(index: Path, log: str, tmp_path: Path) -> Verdict:
    (tmp_path / "train.log").write_bytes(log.encode())
    told = CliRunner().invoke(cli, ["scan", "--json", "--index", str(index), str(tmp_path / "train.log")])
    return said(json.loads(told.stdout)["logs"][0])


def log_by_run(index: Path, log: str, tmp_path: Path) -> Verdict:
    import subprocess

    (tmp_path / "train.log").write_bytes(log.encode())
    fails = "import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read()); sys.exit(3)"
    command = [sys.executable, "-m", "kb", "run", "--index", str(index), "--report", str(tmp_path / "why.json"), "--"]
    done = subprocess.run([*command, sys.executable, "-c", fails, str(tmp_path / "train.log")], capture_output=True)
    assert done.returncode == 3
    found = json.loads((tmp_path / "why.json").read_text("utf-8"))
    return found["verdict"], found["record"]["issue"] if found["verdict"] == "known" else None


def log_over_http(path: str, **how: Any) -> Callable[[Path, str, Path], Verdict]:
    def ask(index: Path, log: str, tmp_path: Path) -> Verdict:
        from starlette.testclient import TestClient

        from kb.serve import create_app

        body = how.get("body", lambda log: log.encode())(log)
        headers = {"content-type": how.get("kind", "text/plain"), **how.get("headers", {})}
        with KnowledgeBase.open(index) as base:
            client = TestClient(create_app(base), base_url="http://localhost")
            return said(client.post(path, content=body, headers=headers).json())

    return ask


def log_by_agent(tool: str, argument: str) -> Callable[[Path, str, Path], Verdict]:
    def ask(index: Path, log: str, tmp_path: Path) -> Verdict:
        (tmp_path / "train.log").write_bytes(log.encode())
        given = {argument: "train.log" if argument == "path" else log}
        facts = facts_of_agent(index, tool, given, tmp_path)
        return said({"results": facts.get("issues"), **facts})

    return ask


def packed(log: str) -> bytes:
    return gzip.compress(log.encode())


FORM, JSON = "application/x-www-form-urlencoded", "application/json"
LOG_DOORS: dict[str, Callable[[Path, str, Path], Verdict]] = {
    "kb scan": log_by_scan,
    "kb run": log_by_run,
    "search, JSON": log_over_http("/api/search", kind=JSON, body=lambda log: json.dumps({"query": log}).encode()),
    "search, text": log_over_http("/api/search"),
    "search, brief": log_over_http("/api/search?brief=true"),
    "search, packed": log_over_http("/api/search", kind=FORM, body=packed, headers={"content-encoding": "gzip"}),
    "scan, JSON": log_over_http("/api/scan", kind=JSON, body=lambda log: json.dumps({"text": log}).encode()),
    "scan, form": log_over_http("/api/scan", kind=FORM),
    "an agent's search": log_by_agent("search_issues", "query"),
    "an agent's log": log_by_agent("explain_log", "path"),
    "an agent's text": log_by_agent("explain_log", "text"),
    "scan, packed": log_over_http("/api/scan?brief=true", body=packed, headers={"content-encoding": "gzip"}),
}


@pytest.mark.parametrize(("door", "log"), list(product(LOG_DOORS, LOGS)))
def test_every_door_says_the_same_of_a_log(door: str, log: str, index: Path, tmp_path: Path) -> None:
    expected = log_by_search(index, LOGS[log])
    assert expected == (("unknown", None) if log in ("a start", "training") else ("known", "ms-swift-ovis2-grpo#2"))
    assert LOG_DOORS[door](index, LOGS[log], tmp_path) == expected
