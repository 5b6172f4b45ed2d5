"""Who has shown the token, how often one may try, what a proxy is believed, and what the access log holds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason='needs the extra: pip install -e ".[serve,dev]"')
from starlette.testclient import TestClient

from kb import KnowledgeBase
from kb.serve import Rules, access, create_app, session
from kb.serve import app as app_module
from kb.serve.attempts import FREE, MAX_CLIENTS, MOST_S, Attempts
from kb.serve.proxy import as_client_sent, networks
from kb.serve.routes import application

TOKEN = "a-token-of-some-length"
HOME = "http://localhost:8080"
BEARER = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def base(index: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(index) as opened:
        yield opened


def client_of(base: KnowledgeBase, home: str = HOME, token: str | None = TOKEN, **options: Any) -> TestClient:
    names = options.pop("names", ())
    log = options.pop("log", None)
    proxies = options.pop("proxies", ())
    app = create_app(base, Rules.of(names, token=token, proxies=proxies), log=log)
    return TestClient(app, base_url=home, follow_redirects=False, **options)


@pytest.fixture
def client(base: KnowledgeBase) -> TestClient:
    return client_of(base)


def start(client: TestClient, token: str = TOKEN, **headers: str) -> Any:
    return client.post("/api/session", json={"token": token}, headers=headers)


# --- the cookie -----------------------------------------------------------------------------------------------------


def test_the_token_once_and_then_a_cookie(client: TestClient) -> None:
    assert client.get("/api/projects").status_code == 401
    begun = start(client)
    assert begun.status_code == 204
    cookie = begun.headers["set-cookie"]
    assert "; HttpOnly; SameSite=Strict" in cookie
    assert "; Path=/;" in cookie
    assert "Secure" not in cookie  # over http a browser would throw it away
    assert TOKEN not in cookie
    assert client.get("/api/projects").status_code == 200
    assert client.get("/metrics").status_code == 200
    ended = client.delete("/api/session")
    assert ended.status_code == 204
    assert "Max-Age=0" in ended.headers["set-cookie"]
    assert client.get("/api/projects").status_code == 401


def test_every_worker_and_the_next_start_know_the_cookie(base: KnowledgeBase, client: TestClient) -> None:
    start(client)
    restarted = client_of(base, cookies=dict(client.cookies))
    assert restarted.get("/api/projects").status_code == 200
    another = client_of(base, token="another-token-of-some-length", cookies=dict(client.cookies))
    assert another.get("/api/projects").status_code == 401


def test_a_session_ends(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    start(client)
    now = session.time.time()
    monkeypatch.setattr(session.time, "time", lambda: now + session.COOKIE_S - 10)
    kept = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    assert client.get("/api/projects", headers={"cookie": kept}).status_code == 200
    monkeypatch.setattr(session.time, "time", lambda: now + session.COOKIE_S + 10)
    assert client.get("/api/projects", headers={"cookie": kept}).status_code == 401


def test_a_cookie_that_was_changed(client: TestClient) -> None:
    name, value = re.match(r"(kb_\w+)=([^;]+)", start(client).headers["set-cookie"]).groups()  # type: ignore[union-attr]
    until, signature = value.split(".")
    client.cookies.clear()
    forged = [
        f"{int(until) + 1}.{signature}",
        f"{until}.{signature[:-1]}",
        f"{until}.",
        f".{signature}",
        until,
        f"-1.{signature}",
        f"{until}.{'é' * 64}",
        f"٣.{signature}",
        "",
    ]
    for one in forged:
        assert client.get("/api/projects", headers={"cookie": f"{name}={one}".encode()}).status_code == 401, one
    both = f"a=b; {name}=x; {name}={value}; c"
    assert client.get("/api/projects", headers={"cookie": both}).status_code == 200


def test_a_cookie_alone_changes_nothing_for_another_page(client: TestClient) -> None:
    """The browser sends it by itself: who asks for a change must be our own page, or show the token."""
    start(client)
    ask = {"json": {"query": "pop from an empty deque"}}
    assert client.post("/api/search", **ask).status_code == 403
    for headers, status in [
        ({"origin": HOME}, 200),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "none"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"origin": "http://localhost:9090"}, 403),
        ({"origin": "null"}, 403),
        (BEARER, 200),
    ]:
        assert client.post("/api/search", headers=headers, **ask).status_code == status, headers


def test_another_page_starts_no_session(client: TestClient) -> None:
    assert start(client, origin="http://evil.example").status_code == 403
    assert start(client, **{"sec-fetch-site": "cross-site"}).status_code == 403
    form = client.post("/api/session", content=f'{{"token": "{TOKEN}"}}', headers={"content-type": "text/plain"})
    assert form.status_code == 415
    assert "set-cookie" not in form.headers


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"token": 7}', b'{"token": "x", "a": 1}', b"[" * 4000, b"\xff"])
def test_what_is_no_token(client: TestClient, body: bytes) -> None:
    refused = client.post("/api/session", content=body, headers={"content-type": "application/json"})
    assert refused.status_code == 400
    assert "token" in refused.json()["error"]


def test_a_stranger_may_send_a_token_and_not_a_log(client: TestClient) -> None:
    refused = client.post("/api/session", content=b" " * 5000, headers={"content-type": "application/json"})
    assert refused.status_code == 413
    assert "4 KiB" in refused.json()["error"]


def test_without_a_token_there_is_nothing_to_start(base: KnowledgeBase) -> None:
    begun = start(client_of(base, token=None))
    assert (begun.status_code, begun.headers.get("set-cookie")) == (204, None)


def test_over_tls_the_cookie_is_secure(base: KnowledgeBase) -> None:
    told = client_of(base, "https://localhost")
    assert "; Secure" in start(told).headers["set-cookie"]
    # a proxy that says nothing: the browser does
    assert "; Secure" in start(client_of(base, "http://localhost"), origin="https://localhost").headers["set-cookie"]


def test_two_servers_on_one_host_keep_their_cookies_apart(base: KnowledgeBase, client: TestClient) -> None:
    another = "another-token-of-some-length"
    first, second = start(client), start(client_of(base, token=another), another)
    names = [one.headers["set-cookie"].partition("=")[0] for one in (first, second)]
    assert names[0] != names[1]


def test_only_the_page_itself_needs_no_token(base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever routes there are: each wants the token, but for what holds nothing of the base."""
    routes: list[str] = []

    def noted(tables: Any) -> Any:
        routes.extend(path for table in tables for path in (*table.routes, *table.apps))
        return application(tables)

    monkeypatch.setattr(app_module, "application", noted)
    client = client_of(base)
    paths = [re.sub(r"\{\w+(:\w+)?\}", "1", path) for path in routes]
    assert {"/api/search", "/mcp"} <= {*paths}
    free = {path for path in paths if client.get(path).status_code not in (401, 303)}
    public = {"/", "/healthz", "/openapi.json", "/api/session", "/opensearch.xml"}
    assert {
        path for path in free - public if not re.fullmatch(r"/[\w-]+\.(js|css|svg|html|webmanifest)", path)
    } == set()


def test_a_link_from_elsewhere_leads_to_the_page(client: TestClient) -> None:
    """The browser sends no cookie with it (SameSite=Strict); the page's own requests have it."""
    visit = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    for path, place in [("/issue/a/2", "../../#/issue/a/2"), ("/issue/a/b%23/2", "../../../#/issue/a/b%23/2")]:
        led = client.get(path, headers=visit)
        assert (led.status_code, led.headers["location"]) == (303, place)
    assert client.get("/api/projects", headers=visit).status_code == 403


# --- wrong tokens ---------------------------------------------------------------------------------------------------


def test_wrong_tokens_are_slowed_down(base: KnowledgeBase) -> None:
    client = client_of(base)
    in_session = client_of(base)
    in_session.app = client.app
    start(in_session)
    for number in range(FREE):
        assert client.get("/api/projects", headers={"authorization": f"Bearer wrong-{number}"}).status_code == 401
    for refused in (client.get("/api/projects", headers=BEARER), start(client), start(client, "x")):
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["retry-after"]) <= MOST_S
    assert in_session.get("/api/projects").status_code == 200  # a cookie cannot be guessed
    assert client.get("/healthz").status_code == 200


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_wait_doubles_up_to_a_minute_and_is_forgotten() -> None:
    clock = Clock()
    attempts = Attempts(clock)
    waits = []
    for number in range(FREE + 8):
        assert attempts.wait_s("10.0.0.7") == 0
        attempts.note_wrong("10.0.0.7", f"wrong {number}")
        waits.append(attempts.wait_s("10.0.0.7"))
        clock.now += waits[-1]
    assert waits[: FREE - 1] == [0] * (FREE - 1)
    assert waits[FREE - 1 :] == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert attempts.wait_s("10.0.0.8") == 0
    clock.now += 1000
    attempts.note_wrong("10.0.0.7", "wrong again")
    assert attempts.wait_s("10.0.0.7") == 0


def test_the_same_wrong_token_again_is_no_try() -> None:
    """A script that still has the old token keeps nobody out who shares its address."""
    attempts = Attempts(Clock())
    for _ in range(1000):
        attempts.note_wrong("10.0.0.7", "the old one")
    assert attempts.wait_s("10.0.0.7") == 0


def test_many_addresses_take_little_memory() -> None:
    attempts = Attempts(Clock())
    for number in range(2 * MAX_CLIENTS):
        attempts.note_wrong(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", "x")
    assert len(attempts._clients) == MAX_CLIENTS


def test_a_network_of_ipv6_is_one_client() -> None:
    attempts = Attempts(Clock())
    for number in range(FREE):
        attempts.note_wrong(f"2001:db8::{number:x}", f"wrong {number}")
    assert attempts.wait_s("2001:db8::ffff:1") == 1
    assert attempts.wait_s("2001:db8:0:1::1") == 0


# --- behind a proxy -------------------------------------------------------------------------------------------------

PROXIES = networks(["10.1.0.0/16"])


@pytest.mark.parametrize(
    ("peer", "forwarded", "seen"),
    [
        ("127.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("127.0.0.1", ["198.51.100.1, 203.0.113.9"], "203.0.113.9"),  # what the client itself claims stands to the left
        ("10.1.2.3", ["203.0.113.9, 10.1.0.1"], "203.0.113.9"),  # two proxies of ours
        ("10.1.2.3", ["198.51.100.1", "203.0.113.9"], "203.0.113.9"),  # two headers are one list
        ("127.0.0.1", ["2001:db8::1"], "2001:db8::1"),
        ("127.0.0.1", ["[2001:db8::1]:443"], "2001:db8::1"),
        ("127.0.0.1", ["203.0.113.9:5555"], "203.0.113.9"),
        ("::ffff:127.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("127.0.0.1", ["10.1.0.9"], "10.1.0.9"),  # somebody on the proxy itself
        ("127.0.0.1", ["203.0.113.9, unknown"], "127.0.0.1"),
        ("127.0.0.1", ["'; drop table"], "127.0.0.1"),
        ("127.0.0.1", [], "127.0.0.1"),
        ("10.2.0.1", ["203.0.113.9"], "10.2.0.1"),  # nobody's proxy
        ("203.0.113.1", ["127.0.0.1"], "203.0.113.1"),
    ],
)
def test_whose_address_counts(peer: str, forwarded: list[str], seen: str) -> None:
    headers = [(b"host", b"localhost"), *((b"x-forwarded-for", one.encode()) for one in forwarded)]
    scope = {"client": (peer, 4711), "headers": headers, "scheme": "http"}
    assert as_client_sent(scope, PROXIES)["client"][0] == seen
    assert as_client_sent(scope, ())["client"][0] == peer


def behind(base: KnowledgeBase, peer: str = "127.0.0.1", **options: Any) -> TestClient:
    home = options.pop("home", "http://kb.example.com")
    return client_of(base, home, names=["kb.example.com"], proxies=PROXIES, client=(peer, 1), **options)


def test_a_proxy_tells_host_and_scheme(base: KnowledgeBase) -> None:
    told = {"x-forwarded-proto": "https", "x-forwarded-host": "kb.example.com:8443"}
    own = {"origin": "https://kb.example.com:8443"}
    client = behind(base)
    begun = start(client, **told, **own)
    assert begun.status_code == 204
    assert "; Secure" in begun.headers["set-cookie"]
    assert start(client, **told, origin="http://kb.example.com:8443").status_code == 403
    assert start(client, **told, origin="https://kb.example.com").status_code == 403
    assert start(behind(base, "10.2.0.1"), **told, **own).status_code == 403  # nobody's proxy is not believed


def test_a_rebound_page_cannot_name_our_host(base: KnowledgeBase) -> None:
    """It can send X-Forwarded-Host, and a proxy may pass that on; it cannot choose Host."""
    rebound = behind(base, home="http://evil.example")
    assert rebound.get("/", headers={"x-forwarded-host": "kb.example.com"}).status_code == 421
    assert behind(base).get("/", headers={"x-forwarded-host": "evil.example"}).status_code == 421
    assert behind(base).get("/", headers={"x-forwarded-host": "kb.example.com"}).status_code == 200


def test_each_client_behind_the_proxy_has_its_own_tries(base: KnowledgeBase) -> None:
    client = behind(base)
    for number in range(FREE):
        wrong = {"authorization": f"Bearer wrong-{number}", "x-forwarded-for": "203.0.113.9"}
        assert client.get("/api/projects", headers=wrong).status_code == 401
    assert client.get("/api/projects", headers=BEARER | {"x-forwarded-for": "203.0.113.9"}).status_code == 429
    # what the client writes to the left of its own address gives it no further tries
    claimed = BEARER | {"x-forwarded-for": "198.51.100.7, 203.0.113.9"}
    assert client.get("/api/projects", headers=claimed).status_code == 429
    assert client.get("/api/projects", headers=BEARER | {"x-forwarded-for": "203.0.113.10"}).status_code == 200


# --- the access log -------------------------------------------------------------------------------------------------


def test_the_access_log_holds_no_question(base: KnowledgeBase) -> None:
    lines: list[str] = []
    client = behind(base, log=lambda *what: lines.append(access.line(*what, now=0)))
    headers = BEARER | {"x-forwarded-for": "203.0.113.9"}
    client.get("/api/search?q=secret-question", headers=headers)
    client.post("/api/search", json={"query": "secret-question"}, headers=headers)
    client.get("/api/issues/secret-question/1", headers=headers)
    client.get("/secret-question", headers=headers)
    client.request("SECRET", "/api/search", headers=headers)
    client.get("/api/projects", headers={"authorization": "Bearer secret-question"})
    client.get("/", headers={"host": "secret-question.example", "x-forwarded-for": "203.0.113.9"})
    assert "secret" not in "\n".join(lines).lower()
    shapes = [re.sub(r"[\d.]+ms$", "ms", one) for one in lines]
    assert shapes == [
        "1970-01-01T00:00:00Z 203.0.113.9 GET /api/search 200 ms",
        "1970-01-01T00:00:00Z 203.0.113.9 POST /api/search 200 ms",
        "1970-01-01T00:00:00Z 203.0.113.9 GET /api/issues/{slug:path}/{number} 404 ms",
        "1970-01-01T00:00:00Z 203.0.113.9 GET none 404 ms",
        "1970-01-01T00:00:00Z 203.0.113.9 - none 405 ms",
        "1970-01-01T00:00:00Z 127.0.0.1 GET none 401 ms",
        "1970-01-01T00:00:00Z 203.0.113.9 GET none 421 ms",
    ]
