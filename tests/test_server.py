"""The server: what it answers, whom it refuses, how much and how long it listens."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from conftest import port_of, running
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from kb import KnowledgeBase, errors
from kb.cli import cli
from kb.serve import Rules, create_app, guards, nodes, params
from kb.serve.metrics import BUCKETS_S

NEEDS = 'needs the extra: pip install -e ".[serve,dev]"'
needs_uvicorn = pytest.mark.skipif(importlib.util.find_spec("uvicorn") is None, reason=NEEDS)
Write = Any
HOME = "http://localhost:8080"
QUESTION = "IndexError: pop from an empty deque"
XSS = (Path(__file__).parent / "cases/hostile_markup.txt").read_text("utf-8").splitlines()


@pytest.fixture(scope="module")
def base(index: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(index) as opened:
        yield opened


@pytest.fixture
def client(base: KnowledgeBase) -> TestClient:
    return TestClient(create_app(base), base_url=HOME)


def without_time(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer over HTTP repeats no question."""
    return {name: value for name, value in answer.items() if name not in ("took_ms", "query")}


# --- answers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{}, {"k": 2}, {"lang": "zh"}, {"project": "deepspeed"}, {"min_confidence": 0.99}, {"k": 1, "lang": "en"}],
)
def test_an_answer_is_that_of_the_base(base: KnowledgeBase, client: TestClient, options: dict[str, Any]) -> None:
    expected = without_time(base.search(QUESTION, **options).as_dict())
    assert without_time(client.get("/api/search", params={"q": QUESTION, **options}).json()) == expected
    assert without_time(client.post("/api/search", json={"query": QUESTION, **options}).json()) == expected


@pytest.mark.thorough
def test_a_long_log(base: KnowledgeBase, client: TestClient) -> None:
    log = "step 3 loss 0.4\n" * 60_000 + f"[rank3]: {QUESTION}\n" + "step 4 loss 0.4\n" * 50
    answer = client.post("/api/search", json={"query": log, "k": 1}).json()
    assert answer["results"][0]["issue"] == base.search(QUESTION).hits[0].issue


def test_half_a_surrogate_pair(client: TestClient) -> None:
    response = client.post(
        "/api/search",
        content=b'{"query": "\\ud83d pop from an empty deque"}',
        headers={"content-type": "application/json"},
    )
    assert response.status_code == 200
    assert response.json()["answered"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", "no question"),
        ("q=", "q must have"),
        ("q=%20%0a", "nothing to look for"),
        ("q=x&k=0", "k must be"),
        ("q=x&k=101", "k must be"),
        ("q=x&k=two", "k must be"),
        ("q=x&k=" + "9" * 5000, "k cannot be read"),
        ("q=x&lang=de", "lang must be 'en' or 'zh'"),
        ("q=x&min_confidence=nan", "min_confidence must be"),
        ("q=x&min_confidence=2", "min_confidence must be"),
        ("q=x&project=no-such-thing", "no article is about"),
        ("q=x&q=y", "given twice"),
        ("q=x&size=3", "no parameter 'size'"),
        ("q=x&render=html", "tree"),
    ],
)
def test_what_is_no_question(client: TestClient, query: str, said: str) -> None:
    response = client.get(f"/api/search?{query}")
    assert response.status_code == 400
    assert said in response.json()["error"]
    assert set(response.json()) == {"error", "hint"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"pop from an empty deque",
        b"[]",
        b"[" * 100_000,
        b'{"query": 7}',
        b'{"query": "x", "k": true}',
        b'{"query": "x", "k": 1.5}',
        b'{"query": "x", "min_confidence": NaN}',
        b'{"query": "x", "q": "y"}',
        b'{"q": "x"}',
        b'{"query": "\xff\xfe"}',
        b'{"query": "x", "\xed\xa0\xbd": 1}',
        b'{"query": "x", "\\ud83d": 1}',
        b'{"query": "x", "k": ' + b"9" * 5000 + b"}",
        b'{"query": "x", "k": "5"}',
        b'{"query": "x", "k": 1e400}',
    ],
)
def test_what_is_no_body(client: TestClient, body: bytes) -> None:
    response = client.post("/api/search", content=body, headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert response.json()["error"]


def test_a_form_of_another_page_is_no_question(client: TestClient) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        for origin in ("http://evil.example", "null"):  # a browser never leaves it out of a POST
            headers = {"content-type": kind, "origin": origin}
            for path in ("/api/search", "/api/scan"):
                assert client.post(path, content=b"pop from an empty deque", headers=headers).status_code == 403


def test_an_issue_in_both_languages(base: KnowledgeBase, client: TestClient) -> None:
    found = client.get("/api/issues/ms-swift-ovis2-grpo/2").json()
    shown = [json.loads(json.dumps(record.as_dict())) for record in base.show("ms-swift-ovis2-grpo#2")]
    assert found == {"issue": "ms-swift-ovis2-grpo#2", "snapshot": base.snapshot, "translations": shown}
    (chinese,) = client.get("/api/issues/ms-swift-ovis2-grpo/2?lang=zh").json()["translations"]
    assert chinese["lang"] == "zh"
    assert client.get("/api/issues/MS-SWIFT-ovis2-grpo/2").json()["issue"] == "ms-swift-ovis2-grpo#2"


@pytest.mark.parametrize(
    "path",
    [
        "ms-swift-ovis2-grpo/99",
        "ms-swift-ovis2-grpo/two",
        "ms-swift-ovis2-grpo/" + "9" * 5000,
        "..%2f..%2fetc%2fpasswd",
        "..%2f..%2fetc%2fpasswd/1",
        "%2e%2e/%2e%2e/1",
        "%00/1",
        "%ff%fe/1",
        "<script>alert(1)</script>/1",
        "a" * 9000 + "/1",
    ],
)
def test_an_issue_that_is_not_there(client: TestClient, path: str) -> None:
    response = client.get(f"/api/issues/{path}")
    assert response.status_code == 404
    assert "passwd" not in response.text
    assert "script" not in response.text


def test_an_id_that_was_mistyped(client: TestClient) -> None:
    assert "ms-swift-ovis2-grpo#2" in client.get("/api/issues/ms-swift-ovis-grpo/2").json()["hint"]


def test_projects_and_their_issues(base: KnowledgeBase, client: TestClient) -> None:
    projects = client.get("/api/projects").json()
    assert [(one["project"], one["issues"]) for one in projects] == base.projects()
    every = client.get("/api/issues").json()["issues"]
    assert len(every) == base.size
    first = projects[0]
    listed = client.get("/api/issues", params={"project": first["project"].upper(), "lang": "zh"}).json()["issues"]
    assert len(listed) == first["issues"]
    assert {one["project"] for one in listed} == {first["project"]}
    assert "zh" in {one["lang"] for one in listed}
    assert client.get("/api/issues?project=no-such-thing").json()["issues"] == []


def test_health(base: KnowledgeBase, client: TestClient) -> None:
    assert client.get("/healthz").json()["snapshot"] == base.snapshot


def test_methods(client: TestClient) -> None:
    head = client.head("/api/projects")
    assert head.status_code == 200
    assert head.headers["content-length"] == client.get("/api/projects").headers["content-length"]
    options = client.options("/api/search")
    assert (options.status_code, options.headers["allow"]) == (204, "GET, HEAD, OPTIONS, POST")
    for method in ("PUT", "DELETE", "PATCH", "TRACE", "BREW"):
        refused = client.request(method, "/api/projects")
        assert refused.status_code == 405
        assert set(refused.headers["allow"].split(", ")) == {"GET", "HEAD", "OPTIONS"}
        assert refused.json()["error"] == "method not allowed"
    for path in ("/nothing", "/api", "/api/search/", "/kb.html", "//evil.example/"):
        assert client.get(HOME + path).status_code == 404


def test_a_new_snapshot_is_served(write: Write, tmp_path: Path) -> None:
    from conftest import article

    KnowledgeBase.build(write({"en/a.md": article("alpha beta gamma failed")}), tmp_path / "index")
    with KnowledgeBase.open(tmp_path / "index") as opened:
        client = TestClient(create_app(opened), base_url=HOME)
        assert client.get("/api/issues/b/1").status_code == 404
        KnowledgeBase.build(write({"en/b.md": article("delta epsilon zeta failed")}), tmp_path / "index")
        end = time.monotonic() + 20
        while time.monotonic() < end and client.get("/api/issues/b/1").status_code != 200:
            client.get("/api/search?q=delta+epsilon+zeta+failed")
            time.sleep(0.1)
        assert client.get("/api/issues/b/1").status_code == 200


@pytest.mark.parametrize("body", [b'{"query": "x", "k": 1.0}', b'\xef\xbb\xbf{"query": "x", "k": 1, "lang": null}'])
def test_other_forms_of_a_body(client: TestClient, body: bytes) -> None:
    response = client.post("/api/search", content=body, headers={"content-type": "application/json"})
    assert len(response.json()["results"]) == 1


def test_the_catalogue_is_read_once_for_each_snapshot(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from conftest import article

    KnowledgeBase.build(write({"en/a.md": article("alpha beta gamma failed")}), tmp_path / "index")
    monkeypatch.setattr("kb.index.follow.LOOK_EVERY_S", 0.0)
    with KnowledgeBase.open(tmp_path / "index") as opened:
        first = opened.catalogue()
        assert opened.catalogue() is first
        assert first.issues["a#1"] == opened.show("a") == opened.show("A#1") == opened.show("a#1/en")
        KnowledgeBase.build(write({"en/b.md": article("delta epsilon zeta failed")}), tmp_path / "index")
        assert opened.show("b#1")
        assert opened.catalogue().snapshot == opened.snapshot != first.snapshot
        assert sum(count for _, count in opened.projects()) == len(opened.catalogue().issues) == 2


# --- errors ---------------------------------------------------------------------------------------------------------

STATUS = {
    errors.QueryError: 400,
    errors.IndexMissing: 503,
    errors.IndexCorrupt: 503,
    errors.IndexMismatch: 503,
    errors.EncoderUnavailable: 503,
    errors.IndexBusy: 503,
    KeyError: 500,
}


@pytest.mark.parametrize(("kind", "status"), STATUS.items(), ids=lambda value: getattr(value, "__name__", value))
def test_every_error_has_a_status(
    base: KnowledgeBase, kind: Any, status: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(self: Any, text: str, **options: Any) -> Any:
        raise kind(f"about {text}") if kind is KeyError else kind(f"about {text}", path="/srv/secret/index", hint="h")

    monkeypatch.setattr(KnowledgeBase, "search", fails)
    with caplog.at_level(logging.DEBUG):
        response = TestClient(create_app(base), base_url=HOME).get("/api/search?q=my+own+words")
    assert response.status_code == status
    assert "secret" not in response.text
    assert "my own words" not in caplog.text
    if status == 500:
        assert "my own words" not in response.text
        assert "KeyError at /api/search" in caplog.text


# --- whom it answers ------------------------------------------------------------------------------------------------

GOOD_HOSTS = ["localhost", "LocalHost:8080", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8080", "localhost:65535"]
BAD_HOSTS = [
    *("evil.example", "localhost.evil.example", "evil.example:8080", "127.0.0.1.nip.io", "xn--localhost-", "null"),
    *("0.0.0.0", "0.0.0.0:8080", "[::]", "[::ffff:127.0.0.1]", "::1", "127.1", "2130706433", "0x7f.1", "127.0.0.2"),
    *("localhost.", "localhost.:8080", "local host", "localhost:", "localhost:port", "localhost:999999", "[::1"),
    *(
        "user@localhost",
        "localhost/evil",
        "localhost#evil",
        "localhost,evil.example",
        "http://localhost",
        "192.168.0.1",
    ),
    *("", " ", "*", "-", ".", "lоcalhost"),
]


def test_hosts_that_are_answered(client: TestClient) -> None:
    for host in GOOD_HOSTS:
        assert client.get("/healthz", headers={"host": host}).status_code == 200, host


@pytest.mark.parametrize("path", ["/", "/api/projects", "/metrics", "/no-such-thing"])
def test_hosts_that_are_not(client: TestClient, path: str) -> None:
    for host in BAD_HOSTS:
        response = client.get(path, headers={"host": host.encode()})
        assert response.status_code == 421, host
        assert response.headers["x-frame-options"] == "DENY"


def test_hosts_twice_or_never() -> None:
    scope = {"method": "GET", "path": "/", "headers": [(b"host", b"localhost"), (b"host", b"localhost")]}
    for headers in (scope["headers"], []):
        with pytest.raises(guards.Refusal) as refused:
            Rules().check({**scope, "headers": headers})
        assert refused.value.status == 421


def test_names_and_addresses_that_were_allowed() -> None:
    rules = Rules.of(["KB.example.com", "node-7"], any_address=True, token="t")
    for host in ("kb.example.com", "KB.EXAMPLE.COM:443", "node-7:8080", "10.1.2.3", "[fe80::1]:80", "localhost"):
        assert rules.answers_to(host)
    for host in ("example.com", "a.kb.example.com", "node-70", "10.1.2.3.evil.example", "*"):
        assert not rules.answers_to(host)
    assert not Rules.of(["kb.example.com"]).answers_to("10.1.2.3")


@pytest.mark.parametrize("origin", [HOME, "HTTP://LOCALHOST:8080", "https://localhost:8080"])
def test_the_own_page_may_ask(client: TestClient, origin: str) -> None:
    headers = {"origin": origin, "sec-fetch-site": "same-origin"}
    assert client.post("/api/search", json={"query": QUESTION}, headers=headers).status_code == 200


BAD_ORIGINS = [
    *("http://evil.example", "null", "", "http://localhost", "http://localhost:3000", "http://127.0.0.1:8080"),
    *("http://localhost:8080.evil.example", "http://evil.example/http://localhost:8080", "file://", "localhost:8080"),
    *("chrome-extension://localhost:8080", "http://localhost:8080/", "http://user@localhost:8080"),
]


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_other_pages_may_not(client: TestClient, method: str) -> None:
    for origin in BAD_ORIGINS:
        response = client.request(method, "/api/search?q=x", headers={"origin": origin})
        assert response.status_code == 403, origin
        assert not [name for name in response.headers if name.startswith("access-control")]


# Who asks -> the status with which every route answers it; None: as the route does for everybody.
WHO: list[tuple[int | None, list[tuple[str, str]]]] = [
    *((None, [("host", host)]) for host in GOOD_HOSTS),
    *((421, [("host", host)]) for host in BAD_HOSTS),
    (421, []),
    (421, [("host", "localhost"), ("host", "localhost")]),
    (421, [("host", "localhost"), ("host", "evil.example")]),
    (421, [("host", "evil.example"), ("x-forwarded-host", "localhost")]),
    (None, [("host", "localhost"), ("x-forwarded-host", "evil.example")]),  # from nobody's proxy: no word of it counts
    (None, [("host", "localhost:8080"), ("origin", HOME)]),
    *((403, [("host", "localhost:8080"), ("origin", origin)]) for origin in BAD_ORIGINS),
    (403, [("host", "localhost:8080"), ("origin", HOME), ("origin", HOME)]),
    (403, [("host", "localhost:8080"), ("origin", HOME), ("origin", "null")]),
    (403, [("host", "localhost:8080"), ("sec-fetch-site", "cross-site")]),
    (403, [("host", "localhost:8080"), ("sec-fetch-site", "same-site")]),
    (403, [("host", "localhost:8080"), ("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")]),
    (403, [("host", "localhost:8080"), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")]),
    (None, [("host", "localhost:8080"), ("sec-fetch-site", "same-origin")]),
]


def with_routes(base: KnowledgeBase, patch: pytest.MonkeyPatch, **options: Any) -> tuple[Any, list[tuple[str, str]]]:
    """The application, and (method, path) of all that its modules bring."""
    from kb.serve import app

    tables: list[Any] = []
    application = app.application
    patch.setattr(app, "application", lambda found: tables.extend(found) or application(found))
    made = create_app(base, **options)
    routes = [
        (method, re.sub(r"\{\w+(:\w+)?\}", "1", path))
        for table in tables
        for path, methods in [*table.routes.items(), *((path, ["GET", "POST"]) for path in table.apps)]
        for method in [*methods, "OPTIONS", "HEAD"]
    ]
    return made, routes


def test_on_every_route_the_same_may_ask(base: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused before the route is looked at, with nothing that lets another page read the answer."""
    from kb.feedback.place import opened

    app, brought = with_routes(base, monkeypatch, feedback=opened(tmp_path / "votes.sqlite"))
    routes = [*brought, ("GET", "/no-such-thing"), ("DELETE", "/api/search")]
    assert {"/", "/mcp", "/metrics", "/api/search", "/api/feedback", "/api/session", "/healthz"} <= {
        path for _, path in routes
    }
    assert len(routes) > 25 and len(WHO) > 60

    async def ask(method: str, path: str, headers: list[tuple[str, str]]) -> tuple[int, list[bytes]]:
        sent: list[Any] = []
        heads = [(name.encode(), value.encode()) for name, value in headers]
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
            "root_path": "", "scheme": "http", "client": ("127.0.0.1", 5000), "server": ("127.0.0.1", 8080),
            "headers": [*heads, (b"content-type", b"application/json")],
        }  # fmt: skip

        body = [b"{}"]

        async def receive() -> Any:
            if not body:
                await asyncio.Event().wait()  # the client stays
            return {"type": "http.request", "body": body.pop(), "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await asyncio.wait_for(app(scope, receive, send), 10)
        return sent[0]["status"], [name for name, _ in sent[0]["headers"]]

    async def all_of_them() -> None:
        for method, path in routes:
            usual, _ = await ask(method, path, [("host", "localhost:8080")])
            assert usual not in (403, 421), (method, path)
            for status, headers in WHO:
                if status is None and (method, path) not in (("GET", "/api/projects"), ("GET", "/")):
                    continue  # what is let through is the same for all, and some of it takes its time
                found, names = await ask(method, path, headers)
                assert found == (status or usual), (method, path, headers)
                assert not [name for name in names if name.lower().startswith(b"access-control")]
                assert b"content-security-policy" in names

    asyncio.run(all_of_them())


@pytest.mark.parametrize(
    ("path", "site", "mode", "status"),
    [
        ("/api/projects", "cross-site", "no-cors", 403),
        ("/api/projects", "same-site", "cors", 403),
        ("/api/projects", "cross-site", "navigate", 403),
        ("/metrics", "cross-site", "navigate", 403),
        ("/", "cross-site", "no-cors", 403),
        ("/", "cross-site", "navigate", 200),  # a link in a chat
        ("/", "none", "navigate", 200),
        ("/kb.js", "same-origin", "cors", 200),
    ],
)
def test_what_browsers_say_of_the_asking_page(client: TestClient, path: str, site: str, mode: str, status: int) -> None:
    headers = {"sec-fetch-site": site, "sec-fetch-mode": mode}
    assert client.get(path, headers=headers).status_code == status


def test_a_token(base: KnowledgeBase) -> None:
    client = TestClient(create_app(base, Rules.of(any_address=True, token="s3cret")), base_url="http://10.0.0.7")
    for path in ("/", "/kb.js", "/healthz", "/openapi.json"):
        assert client.get(path).status_code == 200
    for path in ("/api/projects", "/api/search?q=x", "/metrics", "/api/nothing"):
        refused = client.get(path)
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Bearer")
    for given in ("", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3cret2", "Basic s3cret", "s3cret", "Bearer é"):
        assert client.get("/api/projects", headers={"authorization": given.encode()}).status_code == 401
    for given in ("Bearer s3cret", "bearer  s3cret"):
        assert client.get("/api/projects", headers={"authorization": given}).status_code == 200
    assert client.get("/api/projects?token=s3cret").status_code == 401


def test_every_answer_has_the_security_headers(client: TestClient) -> None:
    for response in (
        client.get("/"),
        client.get("/api/projects"),
        client.get("/nothing"),
        client.get("/api/search?q="),
        client.get("/", headers={"host": "evil.example"}),
        client.delete("/"),
    ):
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "require-trusted-types-for 'script'" in policy
        assert "trusted-types 'none'" in policy
        sources = {word for rule in policy.split(";") if "-src " in rule for word in rule.split()[1:]}
        assert sources == {"'none'", "'self'"}
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "no-referrer"
        assert "server" not in response.headers
        assert "access-control-allow-origin" not in response.headers


# --- how much and how long ------------------------------------------------------------------------------------------


def post(app: Any, pieces: list[bytes], announced: int | None = None, pause_s: float = 0) -> list[dict[str, Any]]:
    """What the application sends to a client that sends its body in pieces."""
    sent: list[dict[str, Any]] = []
    rest = list(pieces)
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    if announced is not None:
        headers.append((b"content-length", str(announced).encode()))

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(pause_s)
        if not rest:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": rest.pop(0), "more_body": bool(rest)}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    scope = {"type": "http", "method": "POST", "path": "/api/search", "query_string": b"", "headers": headers}
    asyncio.run(app(scope, receive, send))
    return sent


def test_a_body_that_is_too_long(base: KnowledgeBase) -> None:
    app = create_app(base)
    piece = b"x" * (1 << 19)
    assert post(app, [piece] * 5)[0]["status"] == 413
    assert post(app, [piece] * 5, announced=len(piece) * 5)[0]["status"] == 413
    assert post(app, [b"{}"], announced=10**30)[0]["status"] == 413
    assert post(app, [piece, b"x"])[0]["status"] == 400


def test_a_body_in_pieces(base: KnowledgeBase) -> None:
    body = json.dumps({"query": QUESTION}).encode()
    sent = post(create_app(base), [body[i : i + 1] for i in range(len(body))])
    assert sent[0]["status"] == 200
    assert json.loads(sent[1]["body"])["answered"]


def test_a_body_that_does_not_come(base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "BODY_S", 0.05)
    assert post(create_app(base), [b"{", b"}"] * 100, pause_s=0.02)[0]["status"] == 408


def test_too_many_at_a_time(base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "MAX_BUSY", 0)
    client = TestClient(create_app(base), base_url=HOME)
    response = client.get("/api/projects")
    assert response.status_code == 503
    assert response.headers["retry-after"] == "1"
    assert client.get("/healthz").status_code == 200


def held(app: Any, path: str, *, headers: Any = ()) -> tuple[asyncio.Future[Any], list[Any]]:
    """A request under way whose body never comes, and what is sent to it."""
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message.get("status", message.get("body")))

    heads = [(b"host", b"localhost"), (b"content-type", b"application/json"), *headers]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": heads, "root_path": ""}
    return asyncio.ensure_future(app(scope, receive, send)), sent


@pytest.mark.parametrize(("path", "status"), [("/nothing", 404), ("/", 405), ("/api/projects", 405), ("/healthz", 405)])
def test_a_body_that_nobody_takes_is_not_waited_for(base: KnowledgeBase, path: str, status: int) -> None:
    async def use() -> None:
        under_way, sent = held(create_app(base), path)
        await asyncio.wait_for(under_way, 5)
        assert sent[0] == status

    asyncio.run(use())


def test_a_body_without_the_token_is_not_waited_for(base: KnowledgeBase) -> None:
    async def use() -> None:
        under_way, sent = held(create_app(base, Rules.of(token="t")), "/api/search")
        await asyncio.wait_for(under_way, 5)
        assert sent[0] == 401

    asyncio.run(use())


def test_half_sent_bodies_shut_nobody_out(base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    """64 of them took every place for ten seconds. Now the one that has waited longest makes room."""
    monkeypatch.setattr(guards, "MAX_BUSY", 2)
    monkeypatch.setattr(guards, "MAX_INCOMING", 3)
    app = create_app(base)

    async def use() -> None:
        half = [held(app, "/api/search") for _ in range(5)]
        await asyncio.sleep(0.05)
        assert [sent[:1] for _, sent in half] == [[503], [503], [], [], []]
        assert (await asyncio.to_thread(post, create_app(base), [b'{"query": "x"}']))[0]["status"] == 200
        app.stop()
        await asyncio.wait_for(asyncio.gather(*(one for one, _ in half)), 5)
        assert {sent[0] for _, sent in half} == {503}

    asyncio.run(use())


@contextmanager
def listening(base: KnowledgeBase) -> Iterator[int]:
    import uvicorn

    from kb.serve import listen

    server = uvicorn.Server(listen.configured(create_app(base)))
    with socket.create_server(("127.0.0.1", 0)) as place:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [place]})
        thread.start()
        try:
            yield place.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(10)
            assert not thread.is_alive()


def exchanged(port: int, *pieces: bytes, pause_s: float = 0.0) -> bytes:
    """Everything that comes back until the server hangs up."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        try:
            for piece in pieces:
                client.sendall(piece)
                time.sleep(pause_s)
            found = b""
            while more := client.recv(1 << 16):
                found += more
        except ConnectionError:
            return b"cut"
        return found


@needs_uvicorn
def test_clients_that_are_slow_or_rude(base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kb.serve.listen.HEAD_S", 0.3)
    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    with listening(base) as port:
        assert exchanged(port, head + b"\r\n").startswith(b"HTTP/1.1 200 ")
        started = time.monotonic()
        assert exchanged(port) in (b"", b"cut")  # says nothing
        assert exchanged(port, *[b"GET /", b"h", b"e", b"a", b"l"] * 9, pause_s=0.05) in (b"", b"cut")
        alive = head.replace(b"close", b"keep-alive")
        slow_second = exchanged(port, alive + b"\r\n", *[b"GET /"] + [b"x"] * 20, pause_s=0.05)
        assert slow_second.startswith(b"HTTP/1.1 200 ") or slow_second == b"cut"
        assert time.monotonic() - started < 8
        assert exchanged(port, head + b"X: " + b"x" * 70_000 + b"\r\n\r\n")[:12] in (
            b"HTTP/1.1 431",
            b"HTTP/1.1 400",
            b"cut",
        )
        assert exchanged(port, b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n").startswith(b"HTTP/1.1 4")
        assert exchanged(port, b"\x16\x03\x01\x02\x00\x01\x00").startswith(b"HTTP/1.1 400")
        two = head + b"Host: evil.example\r\n\r\n"
        assert exchanged(port, two).startswith(b"HTTP/1.1 4")
        chunked = b"POST /api/search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        chunk = b"80000\r\n" + b"x" * 0x80000 + b"\r\n"
        assert exchanged(port, chunked, *[chunk] * 6)[:12] in (b"HTTP/1.1 413", b"cut")
        assert exchanged(port, head + b"\r\n").startswith(b"HTTP/1.1 200 ")  # and it is still there


@needs_uvicorn
def test_nothing_waits_for_an_acknowledgement(base: KnowledgeBase) -> None:
    """Headers and body went out in two packets, and the second one waited 40 ms."""
    with listening(base) as port, socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        started = time.monotonic()
        for _ in range(20):
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            found = b""
            while b'"snapshot"' not in found:
                found += client.recv(1 << 16)
        assert time.monotonic() - started < 0.5


@needs_uvicorn
@pytest.mark.parametrize("path", ["/api/issues", "/api/projects", "/api/issues/no-such/1", "/issue/no-such/1"])
def test_nobody_waits_for_what_looks_at_the_whole_base(
    base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(ask: Any) -> Any:
        def asked(*given: Any) -> Any:
            begun.set()
            assert go_on.wait(10)
            return ask(*given)

        return asked

    monkeypatch.setattr(base, "near", slow(base.near))
    monkeypatch.setattr(base, "catalogue", slow(base.catalogue))
    rest = b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with listening(base) as port, socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(b"GET " + path.encode() + rest)
        try:
            assert begun.wait(10)
            assert b'"status":"ok"' in exchanged(port, b"GET /healthz" + rest)
        finally:
            go_on.set()
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 404" if "no-such" in path else b"HTTP/1.1 200")


# --- the command ----------------------------------------------------------------------------------------------------


@needs_uvicorn
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_the_command(index: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kb", "serve", "--port", "0", "--index", str(index)]
    with running(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr and process.stdout
        assert "opening the base" in process.stderr.readline()  # at once, before it is open
        port = port_of(process)
        request = b"GET /api/search?q=pop+from+an+empty+deque HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        assert b'"answered":true' in exchanged(port, request)
        other = CliRunner().invoke(cli, ["serve", "--port", str(port), "--index", str(index)])
        assert other.exit_code == 2
        assert "cannot be listened on" in other.output
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=10)
        assert time.monotonic() - started < 5
    assert process.returncode in (-signal.SIGTERM, 128 + signal.SIGTERM)
    assert out == ""
    assert err == ""


@needs_uvicorn
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_it_stops_quietly_while_a_body_comes(index: Path) -> None:
    command = [sys.executable, "-m", "kb", "serve", "--port", "0", "--index", str(index)]
    with running(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        port = port_of(process)
        half = b"POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"
        with socket.create_connection(("127.0.0.1", port), 10) as client:
            client.sendall(half)
            time.sleep(0.2)
            started = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert client.recv(1 << 16).startswith(b"HTTP/1.1 503 ")
            _, err = process.communicate(timeout=10)
        assert time.monotonic() - started < 2
    assert err.strip() in ("", "kb: interrupted")
    assert process.returncode in (130, -signal.SIGINT)


PATIENT = """
import sys
from kb.serve import listen
listen.FIRST_S = listen.STOP_S = 30
sys.argv = ["kb", "serve", *sys.argv[1:]]
from kb.cli import main
main()
"""


@needs_uvicorn
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_who_was_taken_before_the_stop_is_answered(index: Path) -> None:
    """A client whose connection was accepted may have its request on the way: another worker would have answered it."""
    with running(
        [sys.executable, "-c", PATIENT, "--port", "0", "--index", str(index)], stderr=-1, text=True
    ) as process:
        port = port_of(process)
        with socket.create_connection(("127.0.0.1", port), 30) as client:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=30) as later:
                assert later.status == 200  # so the first connection was taken
            process.send_signal(signal.SIGTERM)
            with pytest.raises(OSError):
                while True:
                    socket.create_connection(("127.0.0.1", port), 10).close()
                    time.sleep(0.02)
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            told = b"".join(iter(lambda: client.recv(1 << 16), b""))
        assert told.startswith(b"HTTP/1.1 200 ")
        process.wait(10)


SLOW = """
import sys, time
from kb.serve import searching
def feed(self, piece):
    print("reading", file=sys.stderr, flush=True)
    time.sleep(30)
searching.Scans.feed = feed
sys.argv = ["kb", "serve", *sys.argv[1:]]
from kb.cli import main
main()
"""


@needs_uvicorn
@pytest.mark.thorough
@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_it_stops_soon_while_a_log_is_read(index: Path, number: signal.Signals, workers: str) -> None:
    """Containers and services are killed when they take long."""
    command = [sys.executable, "-c", SLOW, "--port", "0", "--index", str(index), "--workers", workers]
    with running(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        port = port_of(process)
        with socket.create_connection(("127.0.0.1", port), 10) as client:
            client.sendall(
                b"POST /api/scan HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\n"
                b"ERROR: x\n"
            )
            assert process.stderr.readline() == "reading\n"
            started = time.monotonic()
            process.send_signal(number)
            assert client.recv(1 << 16).startswith(b"HTTP/1.1 503 ")
            process.wait(10)
        assert time.monotonic() - started < 4
    assert process.returncode in (-number, 128 + number)


SLOW_FORK = """
import os, sys, time
fork, asked = os.fork, []
def slowly():
    asked.append(1)
    pid = fork()
    if pid == 0 and len(asked) == 2:
        print("forked", file=sys.stderr, flush=True)
        time.sleep(1)
    return pid
os.fork = slowly
sys.argv = ["kb", "serve", *sys.argv[1:]]
from kb.cli import main
main()
"""


@needs_uvicorn
@pytest.mark.thorough
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_it_stops_soon_while_a_worker_starts(index: Path) -> None:
    """The new worker gets the signal before it has its own handlers."""
    command = [sys.executable, "-c", SLOW_FORK, "--port", "0", "--index", str(index), "--workers", "2"]
    with running(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        while process.stderr.readline() != "forked\n":
            assert process.poll() is None
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait(10)
        assert time.monotonic() - started < 4
    assert process.returncode == -signal.SIGTERM


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "node-7", "localhost.evil.example"])
def test_others_need_a_token(host: str) -> None:
    refused = CliRunner().invoke(cli, ["serve", "--host", host])
    assert refused.exit_code == 2
    assert "token is needed" in refused.output


@pytest.mark.parametrize("token", ["", " ", "令牌", "a b ", "a\nb", "a\x1bb"])
def test_tokens_that_are_none(token: str) -> None:
    assert CliRunner().invoke(cli, ["serve", "--token", token]).exit_code == 2


@needs_uvicorn
@pytest.mark.parametrize(
    ("host", "header"), [("127.0.0.2", "127.0.0.2:8080"), ("LOCALHOST", "localhost"), ("::1", "[::1]:8080")]
)
def test_it_answers_to_the_address_it_listens_on(
    index: Path, host: str, header: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import kb.serve.listen

    rules: list[Rules] = []
    monkeypatch.setattr(kb.serve, "create_app", lambda base, given, **more: rules.append(given))
    monkeypatch.setattr(kb.serve.listen, "serve_at", lambda place, app, ready, lifespan: None)
    ended = CliRunner().invoke(cli, ["serve", "--host", host, "--port", "0", "--index", str(index)])
    assert ended.exit_code == 0, ended.output
    assert rules[0].answers_to(header)
    assert not rules[0].answers_to("evil.example")


# --- figures --------------------------------------------------------------------------------------------------------


def test_metrics(client: TestClient, base: KnowledgeBase) -> None:
    client.get("/api/search?q=my+own+words+about+a+flat+tyre")
    client.get("/api/search", params={"q": QUESTION})
    client.get("/api/search?q=")
    client.get("/secret-path")
    client.get("/", headers={"host": "evil.example"})
    response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = list(text_string_to_metric_families(response.text))
    samples = {(one.name, *one.labels.values()): one.value for family in found for one in family.samples}
    search = "/api/search"
    for name, value in {
        ("kb_requests_total", search, "200"): 2,
        ("kb_requests_total", search, "400"): 1,
        ("kb_requests_total", "none", "404"): 1,
        ("kb_requests_total", "none", "421"): 1,
        ("kb_questions_total", "known"): 1,
        ("kb_questions_total", "likely"): 0,
        ("kb_questions_total", "unknown"): 1,
        ("kb_request_seconds_count", search): 3,
        ("kb_issues",): base.size,
        ("kb_snapshot_info", base.snapshot): 1,
    }.items():
        assert samples[name] == value, name
    assert not re.search("tyre|secret|evil", response.text)
    labels = {one.name: set(one.labels) for family in found for one in family.samples}
    if sys.platform == "linux":
        for name in ("cpu_seconds_total", "resident_memory_bytes", "start_time_seconds", "open_fds"):
            assert samples[f"process_{name}",] > 0
    assert {name: value for name, value in labels.items() if not name.startswith("process_")} == {
        "kb_requests_total": {"route", "status"},
        "kb_questions_total": {"verdict"},
        "kb_scans_total": {"verdict"},
        "kb_drafts_total": set(),
        "kb_request_seconds_bucket": {"route", "le"},
        "kb_request_seconds_sum": {"route"},
        "kb_request_seconds_count": {"route"},
        "kb_issues": set(),
        "kb_snapshot_info": {"snapshot"},
    }
    (times,) = [family for family in found if family.name == "kb_request_seconds"]
    buckets = [one for one in times.samples if one.name.endswith("_bucket") and one.labels["route"] == search]
    assert [one.labels["le"] for one in buckets] == [*map(str, BUCKETS_S), "+Inf"]
    assert [one.value for one in buckets] == sorted(one.value for one in buckets)
    assert buckets[-1].value == 3


def test_each_server_counts_for_itself(base: KnowledgeBase) -> None:
    one, other = (TestClient(create_app(base), base_url=HOME) for _ in range(2))
    one.get("/api/projects")
    assert "/api/projects" in one.get("/metrics").text
    assert "/api/projects" not in other.get("/metrics").text


# --- markup ---------------------------------------------------------------------------------------------------------


def flat(tree: list[Any]) -> Iterator[dict[str, Any]]:
    for node in tree:
        if isinstance(node, dict):
            yield node
            yield from flat(node["children"])


@pytest.mark.parametrize("payload", XSS)
def test_an_article_brings_no_markup(payload: str) -> None:
    for text in (payload, f"- {payload}", f"> {payload}", f"`{payload}`", f"```\n{payload}\n```", f"a {payload} b"):
        for node in flat(nodes.parse(text)):
            assert node["tag"] in nodes.TAGS
            assert set(node) <= {"tag", "children", "href", "lang", "start"}
            assert re.match(r"https?://|#/issue/", node.get("href", "https://"))


def test_payloads_are_text_all_the_way(write: Write, tmp_path: Path) -> None:
    fix = "\n\n".join(XSS)
    symptom = "### Symptom\n\n```\nRuntimeError: abcdef\n```"
    text = f"---\nproject: Demo\n---\n\n# Notes\n\n## It stops\n\n{symptom}\n\n### Fix\n\n{fix}\n"
    KnowledgeBase.build(write({"en/a.md": text}), tmp_path / "index")
    with KnowledgeBase.open(tmp_path / "index") as opened:
        client = TestClient(create_app(opened), base_url=HOME)
        for query in ("RuntimeError: abcdef", *XSS):
            response = client.get("/api/search", params={"q": query, "render": "tree"})
            assert response.headers["content-type"] == "application/json"
            assert response.status_code in (200, 400)
        tree = client.get("/api/issues/a/1?render=tree").json()["translations"][0]["tree"]
        assert all(node["tag"] in nodes.TAGS for node in flat(tree["fix"]))


def test_markdown() -> None:
    found = nodes.parse("Do **this** with `x`:\n\n1. a\n   ```bash\n   pip install x\n   ```\n2. [b](other.md)")
    assert found == [
        {
            "tag": "p",
            "children": [
                "Do ",
                {"tag": "strong", "children": ["this"]},
                " with ",
                {"tag": "code", "children": ["x"]},
                ":",
            ],
        },
        {
            "tag": "ol",
            "children": [
                {"tag": "li", "children": ["a", {"tag": "pre", "lang": "bash", "children": ["pip install x"]}]},
                {"tag": "li", "children": [{"tag": "a", "href": "#/issue/other/1", "children": ["b"]}]},
            ],
        },
    ]
    (table,) = nodes.parse("| a | b |\n|---|---|\n| 1 | <b> |")
    assert [node["tag"] for node in flat([table])] == "table thead tr th th tbody tr td td".split()


def test_steps_go_on_counting_after_a_fence() -> None:
    lists = [
        node for node in flat(nodes.parse("1. a\n\n```\nx\n```\n\n2. b\n\n```\ny\n```\n\n3. c")) if node["tag"] == "ol"
    ]
    assert [node.get("start") for node in lists] == [None, 2, 3]


@pytest.mark.parametrize(
    ("target", "href"),
    [
        ("https://example.com/a?b=c#d", "https://example.com/a?b=c#d"),
        ("HTTP://EXAMPLE.COM", "HTTP://EXAMPLE.COM"),
        ("other-slug.md#2", "#/issue/other-slug/1"),
        ("javascript:alert(1)", None),
        ("data:text/html,x", None),
        ("//evil.example", None),
        ("/etc/passwd", None),
        ("../../x.md", None),
        ("file:///etc/passwd", None),
        ("vbscript:x", None),
        ("#top", None),
    ],
)
def test_links(target: str, href: str | None) -> None:
    found = [node for node in flat(nodes.parse(f"[words](<{target}>)")) if node["tag"] == "a"]
    assert [node["href"] for node in found] == ([href] if href else [])


def test_deep_nesting_is_not_lost() -> None:
    text = "".join("  " * depth + f"- item{depth}\n" for depth in range(20))
    words = json.dumps(nodes.parse(text))
    assert all(f'"item{depth}"' in words for depth in range(20))
    nodes.parse(">" * 5000 + " a")
    nodes.parse("*a " * 5000)


# --- the page's files -----------------------------------------------------------------------------------------------


def test_the_page_is_sent_once(client: TestClient) -> None:
    first = client.get("/")
    assert first.headers["content-type"].startswith("text/html")
    again = client.get("/", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    for path in re.findall(r'(?:src|href)="([\w.]+)"', first.text):
        assert client.get(f"/{path}").status_code == 200


# --- the contract ---------------------------------------------------------------------------------------------------


def test_the_contract_names_what_there_is(client: TestClient) -> None:
    contract = client.get("/openapi.json").json()
    assert contract["openapi"] == "3.1.0"
    for path, operations in contract["paths"].items():
        allowed = client.options(re.sub(r"\{\w+\}", "1", path)).headers["allow"].lower().split(", ")
        assert {name for name in operations if name != "parameters"} == set(allowed) - {"head", "options"}
    parameters = {one["name"] for one in contract["paths"]["/api/search"]["get"]["parameters"]}
    assert parameters == set(params.SearchParams.model_fields)


def test_the_contract_names_all_that_programs_use(base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    app, routes = with_routes(base, monkeypatch)
    contract = TestClient(app, base_url=HOME).get("/openapi.json").json()
    named = {
        (method.upper(), re.sub(r"\{\w+\}", "1", path))
        for path, operations in contract["paths"].items()
        for method in operations
        if method != "parameters"
    }
    used = {
        (method, path)
        for method, path in routes
        if method not in ("HEAD", "OPTIONS")
        and (path.startswith("/api/") or path in ("/healthz", "/metrics", "/openapi.json"))
    }
    assert named == used


def test_the_contract_is_kept(base: KnowledgeBase) -> None:
    """Answers against their schemas, whatever schemathesis asks; the command line of it asks for longer."""
    schemathesis = pytest.importorskip("schemathesis", reason=NEEDS)
    from hypothesis import HealthCheck, Phase, given, settings

    host = {"Host": "localhost"}
    # "!" is a string, and no question; a project may be one that nobody wrote of.
    excluded = [schemathesis.checks.positive_data_acceptance]
    few = settings(
        max_examples=12,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    statuses = set()

    def holds(case: Any) -> None:
        response = case.call(headers=host)
        statuses.add(response.status_code)
        case.validate_response(response, excluded_checks=excluded)

    schema = schemathesis.openapi.from_asgi("/openapi.json", create_app(base), headers=host)
    for operation in schema.get_all_operations():
        for mode in schemathesis.GenerationMode:
            if mode is schemathesis.GenerationMode.POSITIVE or operation.ok().query.items:
                few(given(case=operation.ok().as_strategy(generation_mode=mode))(holds))()
    assert {200, 204, 400, 404} <= statuses <= {200, 204, 400, 404, 415}
