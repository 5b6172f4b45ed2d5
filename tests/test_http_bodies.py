"""The API beside its JSON: logs as they are, packed ones, scans, short answers, what a client keeps, who has gone."""

from __future__ import annotations

import asyncio
import gzip
import importlib.util
import json
import logging
import random
import shutil
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from conftest import THOROUGH
from starlette.testclient import TestClient
from test_server import HOME, QUESTION, exchanged, listening, without_time

from kb import KnowledgeBase
from kb.brief import steps_of
from kb.cli import cli
from kb.serve import create_app
from kb.serve.bodies import MAX_UNPACKED, unpacked
from kb.serve.guards import MAX_BODY_BYTES, Refusal
from kb.serve.work import ClientGone, Gone, Work

needs_uvicorn = pytest.mark.skipif(importlib.util.find_spec("uvicorn") is None, reason="needs the extra `serve`")
TEXT = {"content-type": "text/plain"}
FORM = {"content-type": "application/x-www-form-urlencoded"}
PACKED = {**TEXT, "content-encoding": "gzip"}


def _packed(data: bytes) -> bytes:
    """The same each time: it names the test's cases, which all workers must see alike."""
    return gzip.compress(data, mtime=0)


LOG = "step 1 loss 0.4\n" * 30 + f"[rank3]: {QUESTION}\n" + "step 2 loss 0.4\n" * 5


@pytest.fixture(scope="module")
def base(index: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(index) as opened:
        yield opened


@pytest.fixture
def client(base: KnowledgeBase) -> TestClient:
    return TestClient(create_app(base), base_url=HOME)


def counted(client: TestClient, name: str) -> float:
    lines = client.get("/metrics").text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


# --- logs as they are -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (LOG.encode(), TEXT),
        (LOG.encode(), FORM),  # as curl --data-binary sends it
        (LOG.encode(), {"content-type": "Text/Plain ; charset=utf-8"}),
        (LOG.encode(), {"content-type": "text/plain; charset=no-such-thing"}),
        (LOG.encode(), {"content-type": "text/plain; charset=punycode"}),
        (LOG.encode("utf-16"), TEXT),  # PowerShell
        (("训练失败 " + LOG).encode("gb18030"), {"content-type": "text/plain; charset=utf-8"}),
        (LOG.encode() + b"\xff\xfe\x80 half a letter \xe6", TEXT),
        (LOG.replace("loss", "lo\0ss").encode() + b"\0" * 1000, TEXT),
        (_packed(LOG.encode()), PACKED),
        (_packed(LOG[:99].encode()) + _packed(LOG[99:].encode()), PACKED),
        (_packed(LOG.encode()) + b"\0" * 100, PACKED),
        (_packed(LOG.encode()), {**FORM, "content-encoding": "X-GZIP"}),
        (_packed(json.dumps({"query": LOG}).encode()), {**PACKED, "content-type": "application/json"}),
        (LOG.encode(), {**TEXT, "content-encoding": "identity"}),
    ],
)
def test_a_log_is_asked_as_it_is(client: TestClient, body: bytes, headers: dict[str, str]) -> None:
    answer = client.post("/api/search?k=1&lang=zh", content=body, headers=headers)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["answered"]
    assert [(one["issue"], one["lang"]) for one in found["results"]] == [("ms-swift-ovis2-grpo#2", "zh")]


@pytest.mark.parametrize("path", ["/api/search", "/api/scan"])
@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"x", {"content-type": "multipart/form-data; boundary=x"}, 415),
        (b"x", {"content-type": "application/gzip"}, 415),
        (b"x", {}, 415),
        (b"x", {**TEXT, "content-encoding": "br"}, 415),
        (b"x", {**TEXT, "content-encoding": "gzip, gzip"}, 415),
        (b"not gzip at all", PACKED, 400),
        (b"", PACKED, 400),
        (_packed(LOG.encode())[:-4], PACKED, 400),
        (_packed(LOG.encode())[:40], PACKED, 400),
        (_packed(LOG.encode())[:40] + b"\xff" * 40, PACKED, 400),
        (_packed(LOG.encode()) + b"more", PACKED, 400),
        (zlib.compress(LOG.encode()), PACKED, 400),
        (_packed(b"") * 2000, PACKED, 400),
        (_packed(b"a" * (MAX_UNPACKED + 1)), PACKED, 413),
        *([(_packed(b"\n" * (MAX_UNPACKED + 1)), PACKED, 413)] if THOROUGH else []),  # takes seconds
        (_packed(b"a" * (MAX_UNPACKED // 2)) * 3, PACKED, 413),
        (b"x" * (MAX_BODY_BYTES + 1), TEXT, 413),
    ],
)
def test_bodies_that_are_refused(
    client: TestClient, path: str, body: bytes, headers: dict[str, str], status: int
) -> None:
    answer = client.post(path, content=body, headers=headers)
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"error", "hint"}


@pytest.mark.thorough
def test_a_bomb_is_not_unpacked_whole() -> None:
    bomb = gzip.compress(b"\0" * (300 << 20), 1)
    assert len(bomb) < MAX_BODY_BYTES
    seen = 0
    with pytest.raises(Refusal):
        for piece in unpacked(bomb):
            seen += len(piece)
    assert seen <= MAX_UNPACKED


def test_unpacking_gives_back_what_was_packed() -> None:
    dice = random.Random(16)
    for size in (0, 1, 65535, 65536, 65537, 400_000):
        data = dice.randbytes(size // 2) + b"abc " * (size // 8)
        assert b"".join(unpacked(_packed(data))) == data


@needs_uvicorn
@pytest.mark.parametrize("announced", [3, 10**6, -1])
def test_a_body_that_lies_about_its_length(
    base: KnowledgeBase, announced: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kb.serve.guards.BODY_S", 0.3)
    head = f"POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: {announced}\r\n"
    head += "Content-Type: text/plain\r\n"
    with listening(base) as port:
        said = exchanged(port, f"{head}Connection: close\r\n\r\n{QUESTION}".encode())
        assert said[:12] in (b"HTTP/1.1 408", b"HTTP/1.1 400", b"HTTP/1.1 200", b"cut")
        assert said.count(b"HTTP/1.1 ") <= 1  # what stands behind the body is no request
        alive = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        assert exchanged(port, alive).startswith(b"HTTP/1.1 200 ")


@needs_uvicorn
def test_a_body_with_two_lengths_is_refused_and_the_connection_ends(base: KnowledgeBase) -> None:
    """A proxy that believes the first takes the second request for a part of the body."""
    head = b"POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
    hidden = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with listening(base) as port:
        two = b"Content-Length: 52\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        said = exchanged(port, head + two + hidden)
        assert said.startswith(b"HTTP/1.1 400 ")
        assert said.count(b"HTTP/1.1 ") == 1


def test_options_of_a_text_stand_in_the_query_string(client: TestClient) -> None:
    def post(query: str, body: bytes = LOG.encode(), kind: dict[str, str] = TEXT) -> Any:
        return client.post(f"/api/search?{query}", content=body, headers=kind)

    assert len(post("k=2").json()["results"]) == 2
    assert post("k=0").status_code == post("size=3").status_code == post("query=x").status_code == 400
    body, kind = json.dumps({"query": LOG, "k": 3}).encode(), {"content-type": "application/json"}
    assert len(post("k=2", body, kind).json()["results"]) == 3  # the body counts first
    assert {one["lang"] for one in post("lang=zh", body, kind).json()["results"][:1]} == {"zh"}
    assert post("k=two", body, kind).status_code == 400


def test_no_answer_repeats_the_question(client: TestClient) -> None:
    mark = "zebra-7f3a"
    for path in ("/api/search", "/api/search?brief=true", "/api/scan", "/api/search?why=true&render=tree"):
        answer = client.post(path, content=f"{LOG}{mark} is here\n".encode(), headers=TEXT)
        assert answer.status_code == 200
        assert mark not in answer.text
    assert mark not in client.get("/api/search", params={"q": f"{QUESTION} {mark}"}).text


# --- scans ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"lang": "zh"}, {"project": "DeepSpeed"}, {"min_confidence": 0.99}])
def test_a_scan_is_that_of_the_command_line(
    client: TestClient, index: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    (tmp_path / "train.log").write_text(LOG, "utf-8")
    flags = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    told = CliRunner().invoke(cli, ["scan", "--json", "--index", str(index), *flags, str(tmp_path / "train.log")])
    expected = json.loads(told.stdout)["logs"][0]
    del expected["log"], expected["took_ms"]
    by_text = client.post("/api/scan", params=options, content=LOG.encode(), headers=TEXT).json()
    by_json = client.post("/api/scan", json={"text": LOG, **options}).json()
    assert without_time(by_text) == without_time(by_json) == expected
    if not options:
        (found,) = expected["findings"]
        assert (found["first_line"], found["verdict"], found["text"]) == (31, "known", f"[rank3]: {QUESTION}")


def test_a_scan_of_nothing(client: TestClient) -> None:
    for body in (b"", b"\n", b"\0\0\0", b"all is well\n"):
        answer = client.post("/api/scan", content=body, headers=TEXT)
        assert (answer.json()["verdict"], answer.json()["findings"]) == ("unknown", [])
    assert client.post("/api/scan?project=no-such", content=LOG.encode(), headers=TEXT).status_code == 400
    assert client.post("/api/scan", json={"query": LOG}).status_code == 400
    assert client.get("/api/scan").status_code == 405


# --- in short -------------------------------------------------------------------------------------------------------


def test_an_answer_in_short(client: TestClient, base: KnowledgeBase) -> None:
    short = client.get("/api/search", params={"q": QUESTION, "brief": "true"}).json()
    whole = client.get("/api/search", params={"q": QUESTION}).json()
    assert [one["issue"] for one in short["results"]] == [one["issue"] for one in whole["results"]]
    assert short["results"][0]["verdict"] == "known"
    assert {one["verdict"] for one in short["results"][1:]} == {"unknown"}
    first = short["results"][0]
    (record,) = [one for one in base.show(first["issue"]) if one.lang == first["lang"]]
    steps = steps_of(record.fix)
    assert [one["says"] for one in first["try"]] == [one.says for one in steps[:3]]
    assert [one["warnings"] for one in first["try"]] == [list(one.warnings) for one in steps[:3]]
    assert len(json.dumps(short)) < len(json.dumps(whole)) / 3


def test_the_day_of_an_article_is_in_every_answer(client: TestClient) -> None:
    day = client.get("/api/issues/ms-swift-ovis2-grpo/2?lang=en").json()["translations"][0]["updated"]
    assert day.startswith("20") and len(day) == 10
    assert client.get("/api/search", params={"q": QUESTION, "lang": "en"}).json()["results"][0]["updated"] == day
    found = client.post("/api/scan?lang=en", content=LOG.encode(), headers=TEXT).json()["findings"]
    assert found[0]["updated"] == day


# --- what a client keeps, and how much it loads ---------------------------------------------------------------------

KEPT = ["/api/issues", "/api/issues?lang=zh", "/api/issues/ms-swift-ovis2-grpo/2", "/api/projects", "/openapi.json"]


@pytest.mark.parametrize("path", KEPT)
def test_what_has_not_changed_is_not_sent_again(client: TestClient, path: str) -> None:
    tag = client.get(path).headers["etag"]
    for known in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
        again = client.get(path, headers={"if-none-match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    for other in ('"other"', "", tag[:-2] + '"'):
        assert client.get(path, headers={"if-none-match": other}).status_code == 200


def test_a_new_snapshot_has_another_tag(write: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from conftest import article

    monkeypatch.setattr("kb.index.follow.LOOK_EVERY_S", 0.0)
    KnowledgeBase.build(write({"en/a.md": article("alpha beta gamma failed")}), tmp_path / "index")
    with KnowledgeBase.open(tmp_path / "index") as opened:
        client = TestClient(create_app(opened), base_url=HOME)
        tag = client.get("/api/issues").headers["etag"]
        KnowledgeBase.build(write({"en/b.md": article("delta epsilon zeta failed")}), tmp_path / "index")
        again = client.get("/api/issues", headers={"if-none-match": tag})
        assert (again.status_code, len(again.json()["issues"])) == (200, 2)


def test_long_answers_are_packed_for_who_wants_it(client: TestClient) -> None:
    packed = client.get("/api/issues", headers={"accept-encoding": "gzip"})
    plain = client.get("/api/issues", headers={"accept-encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"])
    assert "content-encoding" not in plain.headers
    assert packed.json() == plain.json()
    assert "accept-encoding" in packed.headers["vary"].lower()
    assert "content-encoding" not in client.get("/healthz", headers={"accept-encoding": "gzip"}).headers


# --- who has gone ---------------------------------------------------------------------------------------------------


class Waiting:
    """A request whose client hangs up when told so."""

    def __init__(self) -> None:
        self.leave = asyncio.Event()

    async def receive(self) -> dict[str, str]:
        await self.leave.wait()
        return {"type": "http.disconnect"}


def test_work_that_nobody_waits_for_is_not_begun() -> None:
    done: list[str] = []
    begun, go_on = threading.Event(), threading.Event()

    def long(gone: Gone) -> str:
        begun.set()
        go_on.wait(10)
        done.append("heard" if gone() else "long")
        return "long"

    def next_one(name: str) -> Callable[[Gone], str]:
        return lambda gone: done.append(name) or name

    async def use() -> None:
        work = Work(threads=1, waiting=3)
        requests: list[Any] = [Waiting() for _ in range(5)]
        first = asyncio.ensure_future(work.run(requests[0], long))
        await asyncio.to_thread(begun.wait, 10)
        rest = [asyncio.ensure_future(work.run(requests[n], next_one(str(n)))) for n in (1, 2, 3)]
        await asyncio.sleep(0)
        with pytest.raises(Refusal) as refused:
            await work.run(requests[4], next_one("4"))
        assert refused.value.status == 503
        for n in (0, 2):
            requests[n].leave.set()
        for gone in (first, rest[1]):
            with pytest.raises(ClientGone):
                await asyncio.wait_for(gone, 10)
        go_on.set()
        assert await asyncio.wait_for(asyncio.gather(rest[0], rest[2]), 10) == ["1", "3"]
        assert await work.run(requests[4], next_one("4")) == "4"  # there is room again

    asyncio.run(use())
    assert done == ["heard", "1", "3", "4"]


@needs_uvicorn
def test_a_scan_stops_when_its_client_hangs_up(base: KnowledgeBase) -> None:
    lines = b"".join(b"ERROR worker %d: cannot do that\n" % n for n in range(450_000))
    body = _packed(lines[: MAX_UNPACKED - 1])
    head = b"POST /api/scan HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\n"
    request = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    assert len(body) < MAX_BODY_BYTES

    def metrics(port: int) -> bytes:
        return exchanged(port, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")

    with listening(base) as port:
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port), timeout=10) as sender:
                sender.sendall(request)
                time.sleep(0.05)
        end = time.monotonic() + 10
        while b'kb_requests_total{route="/api/scan",status="499"} 3.0' not in (told := metrics(port)):
            assert time.monotonic() < end, told
            time.sleep(0.05)
        small = b"POST /api/scan HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nConnection: close\r\n"
        assert b'"lines":1' in exchanged(port, small + b"Content-Length: 2\r\n\r\nx\n")
        assert b'kb_scans_total{verdict="unknown"} 1.0' in metrics(port)  # the three came to no end


# --- what the server says of itself ---------------------------------------------------------------------------------


def test_what_is_typed_is_no_question_yet(client: TestClient) -> None:
    for text in ("pop", "pop from", "pop from an"):
        client.post("/api/search", json={"query": text, "draft": True})
    client.get("/api/search", params={"q": QUESTION})
    client.get("/api/search", params={"q": QUESTION, "draft": "true"})
    client.post("/api/scan", content=LOG.encode(), headers=TEXT)
    assert counted(client, "kb_questions_total") == 1
    assert counted(client, "kb_drafts_total") == 4
    assert counted(client, "kb_scans_total") == 1


def test_health_says_when_the_index_has_gone(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kb.index.follow.LOOK_EVERY_S", 0.0)
    monkeypatch.setattr("kb.index.follow.TRY_AGAIN_S", 0.0)
    place = tmp_path / "secret-place" / "index"
    shutil.copytree(index, place)
    with KnowledgeBase.open(place) as opened, caplog.at_level(logging.CRITICAL):
        client = TestClient(create_app(opened), base_url=HOME)
        healthy = client.get("/healthz").json()
        assert (healthy["status"], healthy["why"], healthy["bases"]) == ("ok", None, ["index"])
        shutil.move(place, tmp_path / "away")
        gone = client.get("/healthz")
        assert (gone.status_code, gone.json()["status"], gone.json()["why"]) == (200, "stale", "the index has gone")
        assert gone.json()["snapshot"] == healthy["snapshot"]
        assert client.get("/api/search", params={"q": QUESTION}).json()["answered"]
        shutil.copytree(tmp_path / "away", place)
        (place / "manifest.json").write_text("{", "utf-8")
        broken = client.get("/healthz").json()
        assert broken["status"] == "stale"
        assert broken["why"] not in ("", "the index has gone")
        assert "secret-place" not in json.dumps([gone.json(), broken])
        shutil.copy2(tmp_path / "away" / "manifest.json", place)
        assert client.get("/healthz").json()["status"] == "ok"


def test_health_fails_when_no_search_is_possible(base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    from kb.errors import EncoderUnavailable

    client = TestClient(create_app(base), base_url=HOME)

    def fails(*_: Any, **__: Any) -> Any:
        raise EncoderUnavailable("the model cannot be read", path="/srv/secret")

    with monkeypatch.context() as patch:
        patch.setattr(KnowledgeBase, "search", fails)
        answer = client.get("/healthz")
        assert (answer.status_code, answer.json()["error"]) == (503, "the model cannot be read")
        assert "secret" not in answer.text
    assert client.get("/healthz").status_code == 200


def test_health_names_the_bases_that_do_not_answer(index: Path) -> None:
    from kb.bases import Bases
    from kb.records import Silence

    with KnowledgeBase.open(index) as opened:
        bases = Bases([opened], [Silence("/home/somebody/notes", "damaged"), Silence("team", "no answer")])
        told = TestClient(create_app(bases), base_url=HOME).get("/healthz").json()
    assert told["silent"] == ["notes", "team"]
    assert told["bases"] == [index.name]
