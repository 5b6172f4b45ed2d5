"""/mcp over HTTP: what an agent of a team gets from `kb serve`, who may ask, and `kb mcp --http`, the same alone."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient

from kb import KnowledgeBase
from kb.serve import Rules, create_app
from kb.serve.guards import MAX_BODY_BYTES

pytest.importorskip("mcp", reason='needs the extra: pip install -e ".[mcp]"')

from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from test_mcp import ERROR, HELLO, TOOLS, call, command, questions, refusal, started, teardown

HOME = "http://localhost:8080"
TOKEN = "correct horse battery staple 24"
TAKES = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def base(index: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(index) as opened:
        yield opened


def ask(client: TestClient, tool: str, **arguments: Any) -> dict[str, Any]:
    """The result of one call, as any program would post it."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    response = client.post("/mcp", content=json.dumps(body).encode(), headers=TAKES)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("application/json")
    result = response.json()["result"]
    assert isinstance(result, dict)
    return result


# --- in kb serve ------------------------------------------------------------------------------------------------------


def test_it_answers_from_the_base_that_the_server_has_open(base: KnowledgeBase) -> None:
    client = TestClient(create_app(base), base_url=HOME)
    for case in questions():
        expected = base.search(case["query"], 3)
        facts = ask(client, "search_issues", query=case["query"])["_meta"]["kb/answer"]
        assert facts["verdict"] == expected.verdict
        assert [one["issue"] for one in facts["issues"]] == [hit.issue for hit in expected.hits]
    half = ask(client, "search_issues", query=f"{ERROR} \ud800")
    assert half["_meta"]["kb/answer"]["verdict"] == "known"
    assert client.get("/").status_code == 200  # and the page is there as well


def test_what_agents_ask_is_counted(base: KnowledgeBase) -> None:
    client = TestClient(create_app(base), base_url=HOME)
    ask(client, "search_issues", query=ERROR)
    ask(client, "explain_log", text=ERROR)
    ask(client, "search_issues", query="how do I fix a flat tyre")
    text = client.get("/metrics").text
    assert 'kb_questions_total{verdict="known"} 1.0' in text
    assert 'kb_scans_total{verdict="known"} 1.0' in text
    assert 'kb_questions_total{verdict="unknown"} 1.0' in text
    assert 'route="/mcp"' in text


def test_one_verdict_over_http(base: KnowledgeBase) -> None:
    client = TestClient(create_app(base), base_url=HOME)
    log = teardown()
    explained, found = ask(client, "explain_log", text=log), ask(client, "search_issues", query=log)
    assert "line 1008" in explained["content"][0]["text"]
    for result in (explained, found):
        assert "`ms-swift-ovis2-grpo#2`" in result["content"][0]["text"]


def test_files_only_where_a_folder_is_named(base: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(ERROR)
    without, within = (TestClient(create_app(base, roots=roots), base_url=HOME) for roots in ([], [tmp_path]))
    for path in ("train.log", str(tmp_path / "train.log"), "/etc/passwd"):
        refused = ask(without, "explain_log", path=path)
        assert refused["isError"]
        assert "reads no files" in refused["content"][0]["text"]
    assert ask(within, "explain_log", path="train.log")["_meta"]["kb/answer"]["verdict"] == "known"
    assert ask(within, "explain_log", path="/etc/passwd")["isError"]


GUARDED = {
    "no token": ({}, 401),
    "another token": ({"authorization": "Bearer guess"}, 401),
    "another scheme": ({"authorization": f"Basic {TOKEN}"}, 401),
    "the token": ({"authorization": f"Bearer {TOKEN}"}, 200),
    "a foreign host": ({"authorization": f"Bearer {TOKEN}", "host": "evil.example"}, 421),
    "a foreign page": ({"authorization": f"Bearer {TOKEN}", "origin": "https://evil.example"}, 403),
    "a page in a sandbox": ({"authorization": f"Bearer {TOKEN}", "origin": "null"}, 403),
    "another site": ({"authorization": f"Bearer {TOKEN}", "sec-fetch-site": "cross-site"}, 403),
}


@pytest.mark.parametrize("name", GUARDED)
def test_the_guards_of_the_server_hold_here(base: KnowledgeBase, name: str) -> None:
    headers, status = GUARDED[name]
    client = TestClient(create_app(base, Rules.of(token=TOKEN)), base_url=HOME)
    response = client.post("/mcp", content=json.dumps(HELLO).encode(), headers={**TAKES, **headers})
    assert response.status_code == status
    if status == 401:
        assert response.headers["www-authenticate"].startswith("Bearer")


def test_limits_and_methods(base: KnowledgeBase) -> None:
    client = TestClient(create_app(base), base_url=HOME)
    assert client.post("/mcp", content=b" " * (MAX_BODY_BYTES + 1), headers=TAKES).status_code == 413
    assert client.post("/mcp", content=b"???", headers=TAKES).status_code == 400
    assert client.post("/mcp", content=b"{}", headers={**TAKES, "content-type": "text/plain"}).status_code == 400
    for method in ("GET", "DELETE", "PUT"):
        assert client.request(method, "/mcp", headers=TAKES).status_code == 405
    assert client.post("/mcp/", content=b"{}", headers=TAKES).status_code == 404


def test_without_the_extra_there_is_a_hint(base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    response = TestClient(create_app(base), base_url=HOME).post("/mcp", content=b"{}", headers=TAKES)
    assert response.status_code == 501
    assert "kb-issues[mcp]" in response.json()["hint"]


def test_the_sdk_is_not_loaded_before_an_agent_comes(index: Path) -> None:
    program = f"""
import sys
from kb import KnowledgeBase
from kb.serve import create_app
create_app(KnowledgeBase.open({str(index)!r}))
print("mcp" in sys.modules)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ended.stdout == "False\n", ended.stderr


def test_many_agents_at_a_time(base: KnowledgeBase) -> None:
    app = create_app(base)

    async def use() -> list[int]:
        transport = httpx2.ASGITransport(app)  # type: ignore[arg-type]
        async with httpx2.AsyncClient(transport=transport, base_url=HOME, headers=TAKES) as client:
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
            wanted = [{"name": "search_issues", "arguments": {"query": case["query"]}} for case in questions() * 3]
            answers = await asyncio.gather(*(client.post("/mcp", json={**body, "params": one}) for one in wanted))
            return [answer.status_code for answer in answers]

    assert set(asyncio.run(use())) == {200}


# --- processes --------------------------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        assert process.poll() is None
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)


@contextmanager
def served(arguments: Sequence[str], env: dict[str, str]) -> Iterator[int]:
    """`kb ARGUMENTS` with a free port, until the block is left."""
    port = free_port()
    program = [sys.executable, "-m", "kb", *arguments, "--port", str(port)]
    with subprocess.Popen(program, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(port, process)
            yield port
        finally:
            process.terminate()
            process.wait()


@pytest.mark.parametrize("door", [["serve"], ["mcp", "--http"]], ids=["kb serve", "kb mcp --http"])
def test_a_team_asks_with_the_sdk_and_a_token(door: list[str], index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(port: int) -> Any:
        http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30)
        async with http, Client(streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http)) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
            assert "nothing to look for" in await refusal(client, "search_issues", query="?")
            assert "reads no files" in await refusal(client, "explain_log", path="/etc/passwd")
            assert (await client.read_resource("kb://issue/ms-swift-ovis2-grpo/2")).contents
            return [await call(client, "search_issues", query=case["query"], k=1) for case in questions()]

    with served([*door, "--index", str(index)], {**os.environ, "KB_TOKEN": TOKEN}) as port:
        with KnowledgeBase.open(index) as base:
            for case, (_, facts) in zip(questions(), asyncio.run(use(port)), strict=True):
                expected = base.search(case["query"], 1)
                assert (facts["verdict"], facts["issues"][0]["issue"]) == (expected.verdict, expected.hits[0].issue)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10) as health:
            assert json.load(health)["status"] == "ok"
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/mcp", b"{}", timeout=10)


@pytest.fixture(scope="module")
def port(index: Path) -> Iterator[int]:
    number = free_port()
    with started("--http", "--port", str(number), index=index, stderr=subprocess.DEVNULL) as process:
        wait_for(number, process)
        yield number


def exchange(port: int, head: str, body: bytes = b"") -> int:
    """The status of one request, its head as it stands."""
    with socket.create_connection(("127.0.0.1", port), 10) as wire:
        wire.sendall(head.replace("\n", "\r\n").encode("latin-1") + body)
        return int(wire.recv(4096).split()[1])


ORDINARY = "Content-Type: application/json\nAccept: application/json, text/event-stream\n"
OTHERS = {
    "evil.example": (421, "Host: evil.example\n"),
    "evil.example with the port": (421, "Host: evil.example:{port}\n"),
    "a subdomain": (421, "Host: localhost.evil.example:{port}\n"),
    "127.0.0.1.nip.io": (421, "Host: 127.0.0.1.nip.io:{port}\n"),
    "all interfaces": (421, "Host: 0.0.0.0:{port}\n"),
    "a web page": (403, "Host: 127.0.0.1:{port}\nOrigin: https://evil.example\n"),
    "a page in a sandbox": (403, "Host: localhost:{port}\nOrigin: null\n"),
    "a page of another port": (403, "Host: localhost:{port}\nOrigin: http://localhost:1\n"),
    "another site, as the browser says": (403, "Host: 127.0.0.1:{port}\nSec-Fetch-Site: cross-site\n"),
    "ours": (200, "Host: localhost:{port}\nOrigin: http://localhost:{port}\n"),
    "no page at all": (200, "Host: 127.0.0.1:{port}\n"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_who_may_ask_over_http(name: str, port: int) -> None:
    status, who = OTHERS[name]
    body = json.dumps(HELLO).encode()
    head = f"POST /mcp HTTP/1.1\n{who.format(port=port)}{ORDINARY}Content-Length: {len(body)}\n\n"
    assert exchange(port, head, body) == status


def test_what_http_refuses(port: int) -> None:
    host = f"Host: 127.0.0.1:{port}\n"
    assert exchange(port, f"POST /mcp HTTP/1.1\n{host}Content-Type: text/plain\nContent-Length: 2\n\n", b"{}") == 400
    assert exchange(port, f"POST /mcp HTTP/1.1\n{host}{ORDINARY}Content-Length: 99999999\n\n") == 413
    assert exchange(port, f"POST /mcp HTTP/1.1\n{host}{ORDINARY}Content-Length: 3\n\n", b"???") == 400
    assert exchange(port, f"GET /other HTTP/1.1\n{host}\n") == 404
    assert exchange(port, f"GET / HTTP/1.1\n{host}\n") == 404  # the page is for kb serve
    assert exchange(port, f"GET /healthz HTTP/1.1\n{host}\n") == 200
    assert exchange(port, f"GET /mcp HTTP/1.1\n{host}{ORDINARY}\n") == 405


def test_a_body_that_breaks_off_or_never_comes_is_quiet(index: Path) -> None:
    number = free_port()
    half = f"POST /mcp HTTP/1.1\nHost: 127.0.0.1:{number}\n{ORDINARY}Content-Length: 99\n\n".replace("\n", "\r\n")
    with started("--http", "--port", str(number), index=index) as process:
        assert process.stderr
        assert any(f":{number}/mcp".encode() in line for line in iter(process.stderr.readline, b""))
        socket.create_connection(("127.0.0.1", number), 10).close()
        with socket.create_connection(("127.0.0.1", number), 10) as leaver:
            leaver.sendall(half.encode() + b"{")
            time.sleep(0.2)
        with socket.create_connection(("127.0.0.1", number), 10) as waiter:
            waiter.sendall(half.encode() + b"{")
            time.sleep(0.2)
            begun = time.monotonic()
            process.send_signal(signal.SIGTERM)
            assert waiter.recv(4096).startswith(b"HTTP/1.1 503 ")
            assert process.wait(10) in (-signal.SIGTERM, 128 + signal.SIGTERM)
        assert time.monotonic() - begun < 2
        assert process.stderr.read().strip() in (b"", b"kb: interrupted")


def test_only_loopback_is_listened_on(port: int) -> None:
    ours = {found[4][0] for found in socket.getaddrinfo(socket.gethostname(), port, socket.AF_INET)}
    for address in ours - {"127.0.0.1", "127.0.1.1"}:
        with pytest.raises(OSError), socket.create_connection((address, port), 2):
            pass


def test_a_port_that_is_taken(index: Path, port: int) -> None:
    ended = subprocess.run(command(index, "--http", "--port", str(port)), capture_output=True, timeout=60)
    assert ended.returncode == 2
    assert b"cannot be listened on" in ended.stderr
    assert ended.stdout == b""


def test_others_reach_it_only_with_a_token(index: Path) -> None:
    env = {name: value for name, value in os.environ.items() if name != "KB_TOKEN"}
    ended = subprocess.run(command(index, "--http", "--host", "0.0.0.0"), capture_output=True, timeout=60, env=env)
    assert ended.returncode == 2
    assert b"a token is needed" in ended.stderr


def test_an_agent_says_whether_it_helped(index: Path, tmp_path: Path) -> None:
    from kb.feedback import place

    with KnowledgeBase.open(index) as base:
        client = TestClient(create_app(base, feedback=place.opened(tmp_path / "votes.sqlite")), base_url=HOME)
        issue = ask(client, "search_issues", query=ERROR)["_meta"]["kb/answer"]["issues"][0]["issue"]
        told = {"issue": issue, "verdict": "helped", "question": ERROR}
        for _ in range(3):  # one client is one voice
            text = ask(client, "give_feedback", **told)["content"][0]["text"]
            assert issue in text and "1 say that it helped" in text
        assert ask(client, "give_feedback", issue="no-such#1", verdict="helped")["isError"]
        for _ in range(40):
            last = ask(client, "give_feedback", **told)
        assert "too" in last["content"][0]["text"]
        silent = TestClient(create_app(base), base_url=HOME)
        assert ask(silent, "give_feedback", **told)["isError"], "where nothing is kept there is no such tool"
