"""A base in Milvus against the same base in a folder. The engine is Milvus Lite, a server of its own."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from conftest import CORPUS, FakeEncoder, article, examples
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.base import KnowledgeBase
from kb.config import read_settings
from kb.errors import BaseUnreachable, IndexCorrupt, IndexMismatch, IndexMissing, QueryError, SettingsError
from kb.index import follow, pieces, trust
from kb.index.build import build
from kb.index.faiss import FaissStore
from kb.index.header import Filter
from kb.index.locate import locate
from kb.index.milvus import address, layout
from kb.index.user import config_folder

T = TypeVar("T")

CASES = Path(__file__).parent / "cases"
PASSWORD = "s3cret-of-nobody"


# addresses: no engine is needed


@pytest.mark.parametrize(
    ("text", "uri", "base", "database"),
    [
        ("milvus://milvus.intern/kb", "http://milvus.intern:19530", "kb", ""),
        ("milvus://127.0.0.1:29530/team_a", "http://127.0.0.1:29530", "team_a", ""),
        ("milvus+tls://m.example:443/ops/kb", "https://m.example:443", "kb", "ops"),
        ("milvus://[::1]:19530/kb", "http://[::1]:19530", "kb", ""),
        ("milvus:///srv/a b@c/team.db/kb", "/srv/a b@c/team.db", "kb", ""),
        ("milvus:///C:/x/team.db/kb", "C:/x/team.db", "kb", ""),
    ],
)
def test_an_address_says_where_and_which_base(text: str, uri: str, base: str, database: str) -> None:
    found = address.read_address(text)
    assert (found.uri, found.base, found.database) == (uri, base, database)
    assert locate(text).store == text


@pytest.mark.parametrize(
    "text",
    [
        f"milvus://root:{PASSWORD}@host/kb",
        f"milvus://{PASSWORD}@host:19530/kb",
        "milvus://host:19530",
        "milvus://host:70000/kb",
        "milvus://host/kb/../etc",
        "milvus://host/1kb",
        "milvus://host/kb?token=x",
        "milvus:host/kb",
        "milvus://host/\u202ekb",
        "milvus:///srv/team/kb",
    ],
)
def test_a_wrong_address_is_refused_and_never_repeated(text: str) -> None:
    with pytest.raises(QueryError) as error:
        locate(text)
    assert PASSWORD not in f"{error.value} {error.value.hint}"


@given(st.text(max_size=30))
def test_no_text_is_an_address_by_accident(text: str) -> None:
    for one in (f"milvus://{text}", f"milvus://host/{text}"):
        if address.wrong_address(one) is None:
            found = address.read_address(one)
            assert found.base.isidentifier()
            assert found.base.isascii()


def test_the_token_comes_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert address.token_for() == ""
    monkeypatch.setenv("KB_STORE_TOKEN", "root:word")
    assert address.token_for() == "root:word"
    file = tmp_path / "token"
    file.write_text(f"{PASSWORD}\n")
    assert address.token_for(file) == PASSWORD
    monkeypatch.setenv("KB_STORE_TOKEN_FILE", str(file))
    assert address.token_for() == PASSWORD
    for wrong in (b"two words", b"\xff", b"a\x1b[31mb"):
        file.write_bytes(wrong)
        with pytest.raises(BaseUnreachable, match="token"):
            address.token_for(file)


def test_kb_toml_names_a_store_and_a_foreign_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    said = '[bases]\nteam = "milvus://m.intern/kb"\n[bases.other]\nstore = "milvus://o.intern/kb"\ntoken-file = "t"\n'
    own = config_folder() / "kb.toml"
    own.parent.mkdir(parents=True)
    own.write_text(said)
    bases = read_settings().bases
    assert [(base.store, base.url, base.folder) for base in bases.values()] == [
        ("milvus://m.intern/kb", None, None),
        ("milvus://o.intern/kb", None, None),
    ]
    assert bases["other"].token_file == own.parent / "t"
    own.unlink()
    here = tmp_path / "here"
    (here / "kb.toml").write_text(said)
    trust.remember(here, True)
    assert read_settings().bases == {}
    assert "is an address and is not asked" in caplog.text


@pytest.mark.parametrize(
    "line", [f'"milvus://u:{PASSWORD}@h/kb"', '{store = "milvus://h"}', '{store = "milvus://h/kb", folder = "x"}']
)
def test_a_store_that_kb_toml_names_wrongly(line: str) -> None:
    own = config_folder() / "kb.toml"
    own.parent.mkdir(parents=True)
    own.write_text(f"[bases]\nteam = {line}\n")
    with pytest.raises(SettingsError, match=r"bases\.team") as error:
        read_settings()
    assert PASSWORD not in f"{error.value} {error.value.hint}"


@given(
    st.binary(max_size=300_000).map(bytes) | st.integers(0, 300_000).map(lambda n: np.random.default_rng(n).bytes(n))
)
@settings(max_examples=examples(40))
def test_bytes_survive_as_texts_that_a_field_takes(data: bytes) -> None:
    texts = layout.pack(data)
    assert layout.unpack(texts) == data
    assert all(len(text) <= 65_535 for text in texts)


@pytest.mark.parametrize(
    "texts", [["!"], ["AAAA"], [None], layout.pack(b"x" * 9000)[:1], [layout.pack(b"xyz")[0][:-4]]]
)
def test_what_kb_did_not_pack_is_refused(texts: Any) -> None:
    with pytest.raises(ValueError):
        layout.unpack(texts, 4096)


# with an engine

lite = pytest.mark.skipif(
    any(__import__("importlib.util").util.find_spec(name) is None for name in ("pymilvus", "milvus_lite")),
    reason="the packages pymilvus and milvus-lite are not installed",
)


class Server:
    """A Milvus Lite that can be killed and comes back with what it had. It listens on this machine alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-W", "ignore", "-m", "milvus_lite", "server", "--data-dir", str(self.folder)]
        self._process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert self._process.poll() is None, "Milvus Lite has ended"
            time.sleep(0.05)
        raise AssertionError("Milvus Lite does not start")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def at(self, base: str) -> str:
        return f"milvus://127.0.0.1:{self.port}/{base}"


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Server]:
    """One that a test may kill; it is gone afterwards, whatever the test found."""
    one = Server(tmp_path / "data")
    try:
        yield one
    finally:
        one.kill()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    one = Server(tmp_path_factory.mktemp("milvus") / "data")
    yield one
    one.kill()


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits for readers that it does not have."""
    from kb.index.milvus import engine, publish

    monkeypatch.setattr(publish, "GRACE_S", 0.0)
    monkeypatch.setattr(engine, "ASK_S", 30.0)  # on a busy machine
    monkeypatch.setattr(engine, "_AWAY_S", 0.1)


def put(index: Path, place: str, progress: Callable[[str, int, int], None] | None = None) -> Any:
    from kb.index.milvus.publish import publish

    return publish(index, place, progress=progress)


def opened(place: str) -> Any:
    from kb.index.milvus.store import MilvusStore

    return MilvusStore(place)


def soon(ask: Callable[[], T]) -> T:
    """The answer of an engine that has just come back: gRPC looks for one that was away only once in a while."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return ask()
        except BaseUnreachable:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def collections(server: Server) -> list[str]:
    from kb.index.milvus.engine import Engine

    engine = Engine(address.read_address(server.at("any")))
    try:
        return sorted(engine.collections())
    finally:
        engine.close()


@pytest.fixture(scope="module")
def segmented(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of three segments, some of whose records are dead: the corpus, 250 made-up articles, and edits."""
    root = tmp_path_factory.mktemp("segmented")
    articles, index = root / "articles", root / "index"
    shutil.copytree(CORPUS, articles)
    rng = np.random.default_rng(17)
    words = "nccl timeout cuda memory loss nan rank deadlock gradient bucket 连接 超时 内存 显存 死锁 梯度".split()
    for n in range(250):
        said = " ".join(rng.choice(words, 6))
        project = str(rng.choice(["Demo", "DeepSpeed", "vLLM"]))
        folder = articles / ("zh" if n % 3 == 0 else "en")
        (folder / f"made-{n}.md").write_text(article(f"E{n} {said}", title=said, project=project), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "ONE_UP_TO", 1)
        build(articles, index)
        for n in range(0, 60, 4):
            (articles / "en" / f"made-{n}.md").unlink(missing_ok=True)
        for n in (1, 2, 4, 5, 7):
            (articles / "en" / f"made-{n}.md").write_text(article(f"F{n} edited 内存", project="Demo"), "utf-8")
        build(articles, index)
        (articles / "zh" / "late.md").write_text(article("G 连接 超时 nccl timeout"), "utf-8")
        build(articles, index)
    manifest = json.loads((index / "manifest.json").read_text("utf-8"))
    assert len(manifest["segments"]) == 3
    assert "dead" in manifest["files"]
    return index


@pytest.fixture(scope="module")
def both(server: Server, segmented: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, FaissStore]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        put(segmented, server.at("contract"))
        there, here = opened(server.at("contract")), FaissStore(segmented)
    yield there, here
    there.close()
    here.close()


filters = st.sampled_from(
    [None, Filter("zh"), Filter("en"), Filter(project="Demo"), Filter("en", "DEEPSPEED"), Filter("zh", "nobody")]
)


def same(there: Any, here: Any) -> None:
    """The same rows in the same order; rows of equal scores may differ in their last bits, and so in their order."""
    np.testing.assert_allclose(there.scores, here.scores, atol=1e-4)
    if there.rows != here.rows:
        at = dict(zip(here.rows, here.scores, strict=True))
        last = min(here.scores)
        for row, score in zip(there.rows, there.scores, strict=True):
            assert at.get(row, last) == pytest.approx(score, abs=1e-4)


@lite
@settings(max_examples=examples(40))
@given(data=st.data(), k=st.integers(0, 80), within=filters)
def test_dense_is_that_of_the_folder(both: Any, data: st.DataObject, k: int, within: Filter | None) -> None:
    there, here = both
    rows = here.header.columns.rows()
    row = data.draw(st.sampled_from(rows.tolist()))
    views = here.views(np.array([row]))
    other = data.draw(st.sampled_from([0.0, 0.1, 1.0]))
    vector = views.vectors[0] + other * np.eye(1, views.vectors.shape[1], row % 50, dtype=np.float32)[0]
    same(there.dense(vector, k, within), here.dense(vector, k, within))


@lite
@settings(max_examples=examples(40))
@given(data=st.data(), k=st.integers(0, 80), within=filters)
def test_lexical_is_that_of_the_folder(both: Any, data: st.DataObject, k: int, within: Filter | None) -> None:
    there, here = both
    known = here.segments[0].lexicon.terms
    word = st.integers(0, len(known) - 1).map(lambda n: known[n]) | st.sampled_from(
        ["nccl", "内存", "edited", "unseen"]
    )
    terms = data.draw(st.lists(word, max_size=8))  # a term may come twice, and then counts twice
    same(there.lexical(terms, k, within), here.lexical(terms, k, within))
    rows = np.array(sorted(data.draw(st.sets(st.sampled_from(here.header.columns.rows().tolist()), max_size=20))), int)
    np.testing.assert_allclose(there.weights(terms, rows), here.weights(terms, rows), atol=1e-6)


@lite
def test_records_profiles_and_views_are_those_of_the_folder(both: Any) -> None:
    there, here = both
    rows = here.header.columns.rows()
    assert there.records(rows.tolist()) == here.records(rows.tolist())
    assert there.records([rows[5], rows[2], rows[5]]) == here.records([rows[5], rows[2], rows[5]])
    assert there.records([]) == []
    for one, other in zip(there.profiles(rows[:9].tolist()), here.profiles(rows[:9].tolist()), strict=True):
        assert vars(one).keys() == vars(other).keys()
    mine, theirs = here.views(rows), there.views(rows)
    assert np.array_equal(mine.vectors, theirs.vectors)
    assert np.array_equal(mine.rows, theirs.rows)
    assert np.array_equal(mine.kinds, theirs.kinds)
    assert there.header.snapshot == here.header.snapshot
    assert there.header.columns.subjects() == here.header.columns.subjects()
    nothing = np.zeros(mine.vectors.shape[1], np.float32)
    for vector in (nothing, nothing + np.nan, nothing + np.inf):
        assert there.dense(vector, 5).rows == ()


@lite
def test_a_large_base_is_searched_by_a_graph(server: Server, segmented: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "EXACT_UP_TO", 0)
    put(segmented, server.at("graph"))
    there, here = opened(server.at("graph")), FaissStore(segmented)
    questions = here.views(here.header.columns.rows()[::20]).vectors
    found = [(set(there.dense(one, 10).rows), set(here.dense(one, 10).rows)) for one in questions]
    shared = sum(len(mine & theirs) for mine, theirs in found) / sum(len(theirs) for _, theirs in found)
    assert shared > 0.9
    assert there.dense(questions[0], 5, Filter("zh")).rows
    there.close()


@lite
def test_the_same_hits_for_every_question(server: Server, both: Any, segmented: Path) -> None:
    questions = [json.loads(line) for line in (CASES / "questions.jsonl").read_text("utf-8").splitlines()]
    with KnowledgeBase.open(segmented) as here, KnowledgeBase.open(server.at("contract")) as there:
        for number, one in enumerate(questions[: examples(60)]):
            options: list[dict[str, Any]] = [
                {},
                {"only": "zh"},
                {"project": "PyTorch"},
                {"only": "en", "project": "demo"},
            ]
            asked = options[number % 4]
            mine, theirs = here.search(one["query"], **asked), there.search(one["query"], **asked)
            assert [hit.issue for hit in theirs.hits] == [hit.issue for hit in mine.hits], one["id"]
            assert theirs.verdict == mine.verdict
            for hit, other in zip(mine.hits, theirs.hits, strict=True):
                assert other.record == hit.record
                assert other.score == pytest.approx(hit.score, abs=1e-4)
                assert other.confidence == pytest.approx(hit.confidence, abs=1e-4)
                assert other.matched == hit.matched


def small(folder: Path, fix: str, encoder: FakeEncoder | None = None) -> Path:
    """The index of one article whose fix is `fix`."""
    (folder / "articles" / "en").mkdir(parents=True, exist_ok=True)
    (folder / "articles" / "en" / "a.md").write_text(article("pop from an empty deque", fix=fix), "utf-8")
    build(folder / "articles", folder / "index", encoder=encoder or FakeEncoder())
    return folder / "index"


def fix_of(base: KnowledgeBase) -> str:
    return base.search("pop from an empty deque").hits[0].record.fix


@lite
def test_readers_move_to_the_next_build_and_the_last_one_is_dropped(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "LOOK_EVERY_S", 0.0)
    place = server.at("moves")
    first = put(small(tmp_path, "One."), place)
    assert first.rows > 0
    with KnowledgeBase.open(place, encoder=FakeEncoder()) as base:
        assert base.name == place
        assert fix_of(base) == "One."
        again = put(tmp_path / "index", place)
        assert (again.rows, again.collection) == (0, first.collection)  # it was there already
        second = put(small(tmp_path, "Two."), place)
        assert second.dropped == 2
        assert fix_of(base) == "Two."
    ours = [name for name in collections(server) if name.startswith("kb_moves_")]
    assert sorted(ours) == sorted([second.collection, second.collection.replace("_records", "_views")])


@lite
def test_one_snapshot_stays_as_it_was_opened(server: Server, tmp_path: Path) -> None:
    """What another build has dropped is an error that says so, never an answer without hits."""
    place = server.at("stays")
    put(small(tmp_path, "One."), place)
    store = opened(place)
    put(small(tmp_path, "Two."), place)
    for ask in (lambda: store.lexical(["deque"], 5), lambda: store.records([0])):
        with pytest.raises(BaseUnreachable) as error:
            ask()
        assert error.value.hint
    store.close()


@lite
def test_an_engine_that_is_killed_while_a_build_is_published(mortal: Server, tmp_path: Path) -> None:
    server = mortal
    place = server.at("kb")
    put(small(tmp_path, "One."), place)

    def die(stage: str, done: int, total: int) -> None:
        if stage == "index":
            server.kill()

    with pytest.raises(BaseUnreachable, match="does not answer") as error:
        put(small(tmp_path, "Two."), place, die)
    assert error.value.exit_code == 69
    assert error.value.hint
    with pytest.raises(BaseUnreachable, match="does not answer"):
        KnowledgeBase.open(place, encoder=FakeEncoder())
    server.start()
    with soon(lambda: KnowledgeBase.open(place, encoder=FakeEncoder())) as base:
        assert fix_of(base) == "One."
    assert len(collections(server)) == 4  # two of them nobody will ever name
    assert put(tmp_path / "index", place).dropped == 4
    assert len(collections(server)) == 2
    with KnowledgeBase.open(place, encoder=FakeEncoder()) as base:
        assert fix_of(base) == "Two."


@lite
def test_a_store_that_goes_away_says_so_at_the_next_question_and_comes_back(mortal: Server, tmp_path: Path) -> None:
    server = mortal
    put(small(tmp_path, "One."), server.at("kb"))
    with KnowledgeBase.open(server.at("kb"), encoder=FakeEncoder()) as base:
        assert fix_of(base) == "One."
        server.kill()
        with pytest.raises(BaseUnreachable, match="does not answer"):
            base.search("another question about a deque")
        server.start()
        assert soon(lambda: base.search("another question about a deque")).hits


@lite
def test_names_that_are_somebody_elses_are_left_alone(server: Server, tmp_path: Path) -> None:
    from kb.index.milvus.engine import Engine

    index = small(tmp_path, "One.")
    engine = Engine(address.read_address(server.at("any")))
    engine.call("create_collection", "theirs", dimension=4)
    engine.call("create_collection", "kb_named_0123456789ab_01234567_records", dimension=4)
    engine.call("create_alias", "theirs", "pointed")
    for base, said in [("theirs", "is not kb's"), ("pointed", "is not kb's")]:
        with pytest.raises(BaseUnreachable, match=said):
            put(index, server.at(base))
    with pytest.raises(IndexCorrupt, match="is not kb's"):
        opened(server.at("pointed"))
    with pytest.raises(IndexMissing, match="there is no base 'absent'"):
        opened(server.at("absent"))
    put(index, server.at("named"))  # the name is like ours, and what is in it is not
    assert "kb_named_0123456789ab_01234567_records" in collections(server)
    for name in ("theirs", "kb_named_0123456789ab_01234567_records"):
        engine.call("drop_collection", name)
    engine.close()


@lite
@pytest.mark.parametrize("damage", ["no manifest", "a row has gone", "other bytes", "half a header"])
def test_what_is_not_whole_is_no_base(server: Server, tmp_path: Path, damage: str) -> None:
    from kb.index.milvus.engine import Engine

    place = server.at("damaged")
    done = put(small(tmp_path, f"Fix for {damage}."), place)
    engine = Engine(address.read_address(place))
    row = {"no manifest": -1, "a row has gone": 0, "other bytes": 0, "half a header": -2}[damage]
    found = dict(engine.call("query", done.collection, filter=f"row == {row}", output_fields=["*"])[0])
    engine.call("delete", done.collection, ids=[row])
    if damage in ("other bytes", "half a header"):
        found["record"] = layout.pack(layout.unpack(found["record"])[:-1])
        engine.call("insert", done.collection, [found])
    engine.close()
    with pytest.raises(IndexCorrupt) as error:
        opened(place).records([0])
    assert "publishes it anew" in (error.value.hint or "")
    assert put(tmp_path / "index", place).rows == (0 if damage in ("other bytes", "half a header") else done.rows)


@lite
def test_an_index_of_another_encoder_is_refused(server: Server, tmp_path: Path) -> None:
    put(small(tmp_path, "One."), server.at("encoder"))
    with pytest.raises(IndexMismatch):
        KnowledgeBase.open(server.at("encoder"), encoder=FakeEncoder(seed=1))


@lite
def test_a_file_is_a_store_too_and_one_process_has_it(tmp_path: Path) -> None:
    place = f"milvus://{tmp_path}/team.db/kb"
    put(small(tmp_path, "One."), place)
    with KnowledgeBase.open(place, encoder=FakeEncoder()) as base:
        assert fix_of(base) == "One."
    code = f"from kb.index.milvus.store import MilvusStore; MilvusStore({place!r})"
    other = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert "this file of Milvus Lite cannot be opened" in other.stderr
    with pytest.raises(BaseUnreachable, match="no such folder"):
        opened("milvus:///nowhere/at/all/team.db/kb")


@lite
def test_the_doors_take_an_address(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = server.at("doors")

    def kb(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "ignore", "-m", "kb", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, encoding="utf-8")

    index = str(tmp_path / "index")
    built = json.loads(kb("build", "--articles", str(CORPUS), "--index", index, "--store", place, "--json").stdout)
    assert built["published"]["snapshot"] == built["snapshot"]
    question = "CUDA error: invalid device ordinal"
    answers = [
        kb("search", option, name, "--json", question) for option, name in [("--store", place), ("--index", index)]
    ]
    there, here = (json.loads(one.stdout) for one in answers)
    assert [hit["issue"] for hit in there["results"]] == [hit["issue"] for hit in here["results"]]
    assert answers[0].returncode == 0
    monkeypatch.setenv("KB_STORE", place)
    assert kb("projects").stdout == kb("projects", "--index", index).stdout
    monkeypatch.setenv("KB_STORE", "milvus://127.0.0.1:1/kb")
    away = kb("search", question)
    assert (away.returncode, away.stdout) == (69, "")
    assert "does not answer" in away.stderr
