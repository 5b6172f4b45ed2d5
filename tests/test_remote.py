"""A base over HTTP: it is asked in limited time, believed in nothing, and never holds up the others."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kb import KnowledgeBase
from kb.bases import Bases
from kb.config import BaseSettings
from kb.errors import BaseUnreachable, IndexCorrupt
from kb.records import SearchResult
from kb.remote import RemoteBase, client, kept

DEQUE = "IndexError: pop from an empty deque"
Answer = Callable[[str, bytes, dict[str, str]], tuple[int, bytes]]


@contextmanager
def server(answer: Answer) -> Iterator[str]:
    """A server that answers (path, body, headers) -> (status, body), and its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            status, said = answer(self.path, body, {name.casefold(): value for name, value in self.headers.items()})
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("location", said.decode())
                said = b""
            self.send_header("content-length", str(len(said)))
            self.end_headers()
            with suppress(OSError):  # the client gave up
                self.wfile.write(said)

        do_POST = do_GET  # noqa: N815  the name that http.server looks for

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        httpd.daemon_threads = True
        threading.Thread(target=httpd.serve_forever, args=[0.01], daemon=True).start()
        try:
            yield f"http://127.0.0.1:{httpd.server_address[1]}"
        finally:
            httpd.shutdown()


@pytest.fixture(scope="module")
def base(index: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(index) as opened:
        yield opened


@pytest.fixture
def asked() -> list[tuple[str, bytes, dict[str, str]]]:
    """What the server of a test was asked."""
    return []


@pytest.fixture
def team(base: KnowledgeBase, asked: list[tuple[str, bytes, dict[str, str]]]) -> Iterator[str]:
    """A server that answers as `kb serve` does."""

    def answer(path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        asked.append((path, body, headers))
        if path == "/api/search":
            given = json.loads(body)
            found = base.search(given.pop("query"), **given)
            return 200, json.dumps(found.as_dict()).encode()
        if path == "/api/projects":
            return 200, json.dumps([{"project": name, "issues": n} for name, n in base.projects()]).encode()
        if path == "/healthz":
            return 200, json.dumps({"status": "ok", "version": "0", "snapshot": base.snapshot}).encode()
        slug, _, number = path.removeprefix("/api/issues/").partition("/")
        try:
            records = base.show(f"{slug}#{number}")
        except Exception:
            return 404, b'{"error": "there is no such issue", "hint": null}'
        return 200, json.dumps({"translations": [record.as_dict() for record in records]}).encode()

    with server(answer) as url:
        yield url


def remote(url: str, **more: Any) -> RemoteBase:
    return RemoteBase(BaseSettings("team", url=url, **{"seconds": 20.0, **more}))


def search(base: RemoteBase, text: str = DEQUE, **wanted: object) -> tuple[SearchResult | None, str]:
    from kb.logs.read import read

    result, silence = base.ask(read(text), wanted).answer()
    return result, silence.why if silence else ""


# --- what it says ---------------------------------------------------------------------------------------------------


def test_its_answer_is_the_answer_of_the_base_it_has(team: str, base: KnowledgeBase) -> None:
    result, why = search(remote(team), k=3)
    assert why == ""
    assert result is not None
    expected = base.search(DEQUE, 3).as_dict()
    found = result.as_dict()
    assert found["bases"] == ["team"]
    for one, other in zip(found["results"], expected["results"], strict=True):
        assert one == {**other, "base": "team"}
    for name in ("query", "lang", "verdict", "answered", "likely", "snapshot"):
        assert found[name] == expected[name]


def test_records_projects_and_health(team: str, base: KnowledgeBase) -> None:
    found = remote(team)
    issue = base.records()[0].issue
    assert found.show(issue) == base.show(issue)
    assert found.show("there-is-none#1") == found.show("../../etc/passwd") == []
    assert found.projects() == base.projects()
    assert found.health() == {"version": "0", "snapshot": base.snapshot}


def test_it_is_asked_beside_the_others(team: str, base: KnowledgeBase) -> None:
    both = Bases([base, remote(team)])
    answer = both.search(DEQUE)
    assert answer.answered
    assert answer.bases == (base.name, "team")
    assert len({hit.issue for hit in answer.hits}) == len(answer.hits)  # the same issues, each once
    assert {hit.base for hit in answer.hits} == {base.name}


def test_an_answer_is_kept_for_a_while(
    team: str, asked: list[tuple[str, bytes, dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = remote(team)
    first, _ = search(found)
    again, why = search(found)
    assert len(asked) == 1
    assert (again, why) == (first, "")
    search(found, "another question")
    assert len(asked) == 2
    monkeypatch.setattr(client, "FRESH_S", -1.0)
    search(found)
    assert len(asked) == 3


def test_what_is_kept_is_private_bounded_and_holds_no_question(
    team: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "MAX_KEPT", 3)
    found = RemoteBase(BaseSettings("team", url=team, seconds=20.0), cache=tmp_path / "kept")
    for number in range(6):
        search(found, f"{DEQUE} my-secret-host {number}")
    (folder,) = (tmp_path / "kept").iterdir()
    files = list(folder.glob("*.json"))
    assert len(files) == 3
    for file in files:
        assert "my-secret-host" not in json.dumps({**json.loads(file.read_text()), "results": []})
    if os.name != "nt":
        assert folder.stat().st_mode & 0o077 == 0


# --- when it does not answer ----------------------------------------------------------------------------------------


def test_a_server_that_is_away_gives_its_earlier_answer_with_its_age(
    team: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = remote(team)
    first, _ = search(found)
    monkeypatch.setattr(client, "FRESH_S", -1.0)
    gone = remote(team, seconds=0.5)
    monkeypatch.setattr(gone, "request", lambda *_: (_ for _ in ()).throw(gone.unreachable("Connection refused")))
    again, why = search(gone)
    assert again == first
    assert why.startswith("Connection refused; this is its answer of ")


def test_a_closed_port_costs_nothing_the_second_time(base: KnowledgeBase) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    both = Bases([base, remote(url)])
    answer = both.search(DEQUE)
    assert answer.answered
    assert answer.bases == (base.name,)
    assert [silence.base for silence in answer.silent] == ["team"]
    assert "did not answer within the last" in both.search(DEQUE).silent[0].why


def test_a_base_that_does_not_answer_is_not_an_empty_one(
    team: str, base: KnowledgeBase, caplog: pytest.LogCaptureFixture
) -> None:
    """A script would read that there is no such issue, while the team's server is down."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        away = remote(f"http://127.0.0.1:{free.getsockname()[1]}")
    with pytest.raises(BaseUnreachable):
        Bases([away]).projects()
    for bases in ([away], [base, away]):
        with pytest.raises(BaseUnreachable, match="there-is-none#1"):
            Bases(bases).show("there-is-none#1")
    issue = base.records()[0].issue
    assert Bases([base, away]).show(issue) == base.show(issue)
    assert Bases([base, away]).projects() == base.projects()
    assert "left out" in caplog.text
    assert dict(Bases([remote(team)]).projects()) == dict(base.projects())
    with pytest.raises(BaseUnreachable):
        away.health()


def test_a_damaged_base_does_not_take_away_the_answers_of_others(base: KnowledgeBase, tmp_path: Path) -> None:
    class Damaged(KnowledgeBase):
        def search(self, *_: Any, **__: Any) -> SearchResult:
            raise IndexCorrupt("holds no record")

        def show(self, issue: str) -> Any:
            raise IndexCorrupt("holds no record")

    damaged = Damaged(base.searcher.store, base.searcher.encoder)
    answer = Bases([damaged, base]).search(DEQUE)
    assert answer.answered
    assert [silence.why for silence in answer.silent] == ["holds no record"]
    assert Bases([damaged, base]).show(answer.hits[0].issue)
    with pytest.raises(IndexCorrupt):
        Bases([damaged]).search(DEQUE)


def test_a_slow_server_is_waited_for_no_longer_than_its_seconds(base: KnowledgeBase) -> None:
    held = threading.Event()

    def slow(path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        held.wait(30)
        return 200, b"{}"

    with server(slow) as url:
        both = Bases([base, remote(url, seconds=0.3)])
        began = time.monotonic()
        answer = both.search(DEQUE)
        assert time.monotonic() - began < 10  # it would be 30
        held.set()
    assert answer.answered
    assert answer.silent[0].why == "no answer within 0.3 s"


@pytest.mark.thorough
def test_a_server_that_drips_is_waited_for_no_longer_either(base: KnowledgeBase) -> None:
    """Each byte comes in time, the answer never does."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
                while not stop.wait(0.05):
                    try:
                        connection.sendall(b" ")
                    except OSError:
                        return

        threading.Thread(target=drip, daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        began = time.monotonic()
        answer = Bases([base, remote(url, seconds=0.5)]).search(DEQUE)
        assert time.monotonic() - began < 15
        stop.set()
    assert answer.answered
    assert answer.silent


def test_a_refusal_is_in_its_own_words_and_does_not_count_as_away(team: str) -> None:
    def refuse(path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        return 400, b'{"error": "no article is about the project COBOL", "hint": null}'

    with server(refuse) as url:
        found = remote(url)
        assert search(found) == (None, "no article is about the project COBOL")
        assert not found.kept.away()


# --- what it is not believed ----------------------------------------------------------------------------------------

GOOD: dict[str, Any] = {
    "rank": 1,
    "issue": "a#1",
    "lang": "en",
    "project": None,
    "title": "T",
    **dict.fromkeys(("summary", "symptom", "cause", "fix", "triage", "only_when", "confusable"), "x"),
    **{name: [] for name in ("errors", "versions", "tags", "sources", "leads_to", "matched")},
    "base": "bundled",
    "path": "articles/en/a.md",
    "lines": [1, 2],
    "score": 0.5,
    "confidence": 0.9,
    "similarity": 0.5,
    "idf_coverage": 0.5,
}
WHOLE: dict[str, Any] = {"verdict": "known", "likely": [], "snapshot": "s", "took_ms": 1.0, "results": [GOOD]}

BAD: list[Any] = [
    [],
    {},
    None,
    3,
    {**WHOLE, "results": {}},
    {**WHOLE, "results": [3]},
    {**WHOLE, "verdict": "sure"},
    {**WHOLE, "results": []},
    {**WHOLE, "took_ms": "1"},
    {**WHOLE, "likely": [3]},
    *({**WHOLE, "results": [{**GOOD, name: 3}]} for name in ("title", "fix", "lang", "issue", "path", "errors")),
    *({**WHOLE, "results": [{**GOOD, name: "x"}]} for name in ("confidence", "lines", "score")),
    {**WHOLE, "results": [{**GOOD, "confidence": float("nan")}]},
    {**WHOLE, "results": [{**GOOD, "errors": [3]}]},
    {**WHOLE, "results": [{name: value for name, value in GOOD.items() if name != "fix"}]},
]


@pytest.mark.parametrize("form", BAD, ids=range(len(BAD)))
def test_another_form_is_refused(form: Any) -> None:
    with server(lambda path, body, headers: (200, json.dumps(form).encode())) as url:
        found = remote(url)
        assert search(found)[0] is None
        assert list(Path(found.kept._folder).glob("*.json")) == []


def test_the_good_form_is_not(tmp_path: Path) -> None:
    with server(lambda path, body, headers: (200, json.dumps(WHOLE).encode())) as url:
        assert search(remote(url))[0] is not None


@pytest.mark.parametrize("body", [b"<html>", b"", b"[" * 100_000, b"\xff\xfe", b'{"a":' + b"1" * 5000 + b"}"])
def test_what_is_no_answer_is_refused(body: bytes) -> None:
    with server(lambda path, asked, headers: (200, body)) as url:
        result, why = search(remote(url))
        assert result is None
        assert why


def test_an_endless_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_ANSWER", 1000)
    with server(lambda path, body, headers: (200, b" " * 5000)) as url:
        assert "larger than" in search(remote(url))[1]


def test_a_damaged_kept_answer_is_not_shown(team: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = remote(team)
    search(found)
    (file,) = Path(found.kept._folder).glob("*.json")
    for text in ("{", "[]", '{"results": 3}'):
        file.write_text(text)
        result, _ = search(found)
        assert result is None or result.hits


# --- the token ------------------------------------------------------------------------------------------------------


def test_the_token_goes_to_its_own_address_and_no_further(
    team: str, asked: list[tuple[str, bytes, dict[str, str]]], tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret-token\n")
    search(remote(team, token_file=token))
    assert asked[-1][2]["authorization"] == "Bearer s3cret-token"
    search(remote(team), "without a token")
    assert "authorization" not in asked[-1][2]
    count = len(asked)
    with server(lambda path, body, headers: (302, f"{team}/api/search".encode())) as url:
        result, why = search(remote(url, token_file=token), "moved")
    assert result is None
    assert "HTTP 302" in why
    assert len(asked) == count  # the redirect was not followed


@pytest.mark.parametrize("content", [None, b"two words", b"line\nbreak", b"\xff"])
def test_a_token_that_cannot_be_one_is_an_error(team: str, tmp_path: Path, content: bytes | None) -> None:
    token = tmp_path / "token"
    if content is not None:
        token.write_bytes(content)
    with pytest.raises(BaseUnreachable):
        remote(team, token_file=token).request("/healthz", None)


def test_a_log_is_not_sent(team: str, base: KnowledgeBase, asked: list[tuple[str, bytes, dict[str, str]]]) -> None:
    assert Bases([base, remote(team)]).scan([DEQUE]).findings
    assert asked == []
