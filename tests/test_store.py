"""kb.arrays and kb.index (bm25, store, faiss) against oracles: naive loops, bm25s, the safetensors package."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import FakeEncoder, Write, article, examples
from hypothesis import given, settings
from hypothesis import strategies as st

from kb import arrays
from kb.arrays import Array
from kb.base import KnowledgeBase
from kb.errors import IndexCorrupt, IndexMissing
from kb.index import faiss as store_faiss
from kb.index import snapshot
from kb.index.bm25 import K1, B, Bag, bag, weigh
from kb.index.build import build
from kb.index.faiss import FaissStore
from kb.index.passages import VIEW_KINDS
from kb.index.store import Batch, rank
from kb.records import IssueRecord, Lang, Source

DIM = 4

# Multiples of 1/4: sums of their products are exact in float32 in any order, so that ties are ties.
quarters = st.integers(-4, 4).map(lambda n: n / 4)
vector = st.lists(quarters, min_size=DIM, max_size=DIM)
word = st.sampled_from(["cuda", "oom", "nccl", "loss", "nan", "内存", "死锁", "rank", "zero"])
one_bag = st.lists(word, max_size=12).map(bag)


def record(n: int, lang: Lang = "en", project: str | None = "Demo", issue: int | None = None) -> IssueRecord:
    name = f"a#{(n if issue is None else issue) + 1}"
    title, source = f"title {n} 标题", Source("en/a.md", n + 1, n + 1)
    return IssueRecord(f"{name}/{lang}", name, lang, project, title, "s", "c", "f", (f"E{n}",), (), (), (), (), source)


def kind_of(n: int) -> int:
    """What the n-th view of a record is in these tests."""
    return n % len(VIEW_KINDS)


def store_of(folder: Path, groups: Sequence[Sequence[Sequence[float]]], **more: Any) -> FaissStore:
    """An index whose record i has the vectors `groups[i]`."""
    records = more.pop("records", None) or [record(i) for i in range(len(groups))]
    flat = [one for group in groups for one in group]
    batch = Batch(
        records=records,
        bags=more.pop("bags", None) or [{} for _ in groups],
        views=np.array(flat, np.float32).reshape(len(flat), DIM),
        view_rows=np.repeat(np.arange(len(groups), dtype=np.int32), [len(group) for group in groups]),
        view_kinds=np.array([kind_of(n) for group in groups for n in range(len(group))], np.int32),
        han={},
        surprisal=lambda terms: [20.0] * len(terms),
        articles=[],
        manifest={"encoder": {"name": "fake", "dim": DIM, "probe": []}},
    )
    with snapshot.locked(folder):
        store_faiss.publish(folder, batch)
    return FaissStore(folder)


def naive_rank(scores: dict[int, float], k: int) -> list[tuple[int, float]]:
    found = [(row, score) for row, score in scores.items() if score > 0]
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:k]


# ranking


@given(st.lists(quarters, max_size=60), st.integers(-1, 70))
def test_rank_is_sorting(scores: list[float], k: int) -> None:
    found = rank(np.array(scores, np.float32), k)
    assert list(zip(found.rows, found.scores, strict=True)) == naive_rank(dict(enumerate(scores)), max(k, 0))


@given(st.dictionaries(st.integers(0, 500), quarters, max_size=60), st.integers(0, 70))
def test_rank_names_the_rows_it_was_given(scores: dict[int, float], k: int) -> None:
    rows = np.array(sorted(scores), np.int64)
    found = rank(np.array([scores[row] for row in sorted(scores)], np.float32), k, rows)
    assert list(zip(found.rows, found.scores, strict=True)) == naive_rank(scores, k)


# dense


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stores")


@settings(max_examples=examples(80))
@given(
    groups=st.lists(st.lists(vector, max_size=3), min_size=1, max_size=40),
    questions=st.lists(vector, max_size=4),
    k=st.integers(0, 45),
    data=st.data(),
)
def test_dense_is_a_naive_loop(
    shelf: Path, groups: list[list[list[float]]], questions: list[list[float]], k: int, data: st.DataObject
) -> None:
    store = store_of(shelf / "dense", groups)
    rows = data.draw(st.none() | st.sets(st.integers(0, len(groups) - 1)).map(sorted))
    naive = {}
    for row, group in enumerate(groups):
        cosines = [sum(x * y for x, y in zip(a, b, strict=True)) for a in group for b in questions]
        if cosines and (rows is None or row in rows):
            naive[row] = max(cosines)
    found = store.dense(
        np.array(questions, np.float32).reshape(-1, DIM), k, None if rows is None else np.array(rows, np.int64)
    )
    assert list(zip(found.rows, found.scores, strict=True)) == naive_rank(naive, k)
    store.close()


def test_dense_asks_on_until_it_is_sure(tmp_path: Path) -> None:
    """One record's many views, or another question's nearest, may hide a better record."""
    many = [[1.0, 0, 0, 0]] * 40
    store = store_of(tmp_path, [many, [[0.75, 0, 0, 0]], [[0, 0.5, 0, 0]], [[0, 0, 0, 0]], [[-1.0, 0, 0, 0]]])
    question = np.eye(DIM, dtype=np.float32)[:2]
    for k, rows in [(1, (0,)), (2, (0, 1)), (3, (0, 1, 2)), (4, (0, 1, 2)), (99, (0, 1, 2))]:
        assert store.dense(question, k).rows == rows
    store = store_of(tmp_path / "ties", [[[1.0, 0, 0, 0]] for _ in range(100)])
    assert store.dense(question, 3).rows == (0, 1, 2)
    many = [[[1.0, 0, 0, 0]] * 10] + [[[0.25, 0.75, 0, 0]]] + [[[0, 0.5 + i / 4, 0, 0]] for i in range(2)]
    store = store_of(tmp_path / "two", many)
    assert store.dense(question, 3).rows == (0, 1, 3)


@pytest.mark.parametrize("value", [0.0, math.nan, math.inf, -math.inf])
def test_no_signal_no_rows(tmp_path: Path, value: float) -> None:
    store = store_of(tmp_path, [[[1.0, 0, 0, 0]], [[0, 1.0, 0, 0]]])
    found = store.dense(np.full((1, DIM), value, np.float32), 5)
    assert -1 not in found.rows
    assert all(math.isfinite(score) for score in found.scores)
    if value == 0:
        assert found.rows == ()


def test_an_empty_index_has_nothing_to_say(tmp_path: Path) -> None:
    store = store_of(tmp_path, [])
    assert store.size == 0
    assert store.dense(np.ones((1, DIM), np.float32), 5).rows == ()
    assert store.lexical(["cuda"], 5).rows == ()
    assert store.records([]) == []


@settings(max_examples=examples(40))
@given(groups=st.lists(st.lists(vector, max_size=3), min_size=1, max_size=12), questions=st.lists(vector, max_size=3))
def test_cosines_are_what_dense_ranks_by(shelf: Path, groups: list[Any], questions: list[list[float]]) -> None:
    store = store_of(shelf / "cosines", groups)
    asked = np.array(questions, np.float32).reshape(-1, DIM)
    found = store.dense(asked, 99)
    assert store.cosines(asked, found.rows).max(axis=1, initial=0).tolist() == list(found.scores)
    others = [row for row in range(store.size) if row not in found.rows]
    assert (store.cosines(asked, others) <= 0).all()
    for row, kinds in enumerate(store.cosines(asked, range(store.size)).tolist()):
        for kind, cosine in enumerate(kinds):
            views = [view for n, view in enumerate(groups[row]) if kind_of(n) == kind]
            naive = [sum(x * y for x, y in zip(a, b, strict=True)) for a in views for b in questions]
            assert cosine == max([0.0, *naive])
    store.close()


# lexical


def naive_bm25(bags: Sequence[Bag], terms: Sequence[str]) -> list[float]:
    """Kamphuis, de Vries, Boytsov and Lin (ECIR 2020), table 1, Lucene's row, without the factor k1 + 1."""
    total = len(bags)
    mean = sum(sum(one.values()) for one in bags) / total if total else 0
    scores = []
    for one in bags:
        score = 0.0
        for term in terms:
            df = sum(term in other for other in bags)
            tf = one.get(term, 0)
            if tf:
                idf = math.log(1 + (total - df + 0.5) / (df + 0.5))
                score += idf * tf / (tf + K1 * (1 - B + B * sum(one.values()) / mean))
        scores.append(score)
    return scores


@settings(max_examples=examples(100))
@given(bags=st.lists(one_bag, min_size=1, max_size=20), terms=st.lists(word | st.just("unseen"), max_size=6))
def test_lexical_scores_are_the_cited_formula(bags: list[Bag], terms: list[str]) -> None:
    np.testing.assert_allclose(weigh(bags).scores(terms), naive_bm25(bags, terms), rtol=1e-5)


@settings(max_examples=examples(60))
@given(
    bags=st.lists(one_bag, min_size=1, max_size=15),
    terms=st.lists(word, max_size=5),
    k=st.integers(0, 20),
    data=st.data(),
)
def test_lexical_ranking_is_a_naive_loop(
    shelf: Path, bags: list[Bag], terms: list[str], k: int, data: st.DataObject
) -> None:
    store = store_of(shelf / "lexical", [[] for _ in bags], bags=bags)
    rows = data.draw(st.none() | st.sets(st.integers(0, len(bags) - 1)).map(sorted))
    scores = weigh(bags).scores(terms)
    naive = {row: float(scores[row]) for row in (range(len(bags)) if rows is None else rows)}
    found = store.lexical(terms, k, None if rows is None else np.array(rows, np.int64))
    assert list(zip(found.rows, found.scores, strict=True)) == naive_rank(naive, k)
    weights = store.weights(terms, range(len(bags)))
    told = store.information(terms)
    for column, term in enumerate(terms):
        plain = weigh(bags).scores([term])
        df = sum(term in one for one in bags)
        idf = math.log(1 + (len(bags) - df + 0.5) / (df + 0.5))
        np.testing.assert_allclose(weights[:, column] * idf, plain * told[column], rtol=1e-4)
    for row, one in enumerate(bags):
        assert [term in one for term in terms] == (weights[row] > 0).tolist()
    store.close()


def test_what_a_word_tells_in_a_small_base(tmp_path: Path) -> None:
    """Of two records one has it: in a base of two that is nothing, and among four hundred issues it is a name."""
    store = store_of(tmp_path, [[], []], bags=[{"nccl": 1}, {"cuda": 1, "oom": 1}])
    tells = store.information(["nccl", "unseen", "cuda"]).tolist()
    assert tells[0] == tells[2] == pytest.approx(math.log(1 + 399.5 / 1.5))
    assert tells[1] == pytest.approx(math.log(1 + 400.5 / 0.5))


@settings(max_examples=examples(50))
@given(bags=st.lists(one_bag.filter(bool), min_size=1, max_size=20), terms=st.lists(word, min_size=1, max_size=5))
def test_lexical_scores_are_those_of_bm25s(bags: list[Bag], terms: list[str]) -> None:
    bm25s = pytest.importorskip("bm25s")
    known = {term for one in bags for term in one}
    terms = [term for term in terms if term in known]
    if not terms:
        return
    texts = [[term for term, n in one.items() for _ in range(n)] for one in bags]
    oracle = bm25s.BM25(method="lucene", k1=K1, b=B)
    oracle.index(texts, show_progress=False)
    np.testing.assert_allclose(weigh(bags).scores(terms), oracle.get_scores(terms), rtol=1e-4, atol=1e-6)


@given(st.lists(st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), st.integers(1, 9)), max_size=8))
def test_bags_are_the_inverse_of_weigh(bags: list[Bag]) -> None:
    assert weigh(bags).bags() == bags


def test_idf_falls_with_frequency_and_is_highest_for_the_unknown() -> None:
    postings = weigh([{"a": 1, "b": 1}, {"a": 3}, {"a": 1}])
    assert 0 < postings.idf_of("a") < postings.idf_of("b") < postings.idf_of("never seen")


# filters, tellings, records


@pytest.fixture
def bilingual(tmp_path: Path) -> FaissStore:
    records = [
        record(0, "en", "Demo"),
        record(1, "zh", "Demo", issue=0),
        record(2, "en", "Other", issue=1),
        record(3, "zh", None, issue=2),
        record(4, "zh", "other", issue=3),
    ]
    return store_of(tmp_path / "bilingual", [[[1.0, 0, 0, 0]]] * 5, records=records)


@pytest.mark.parametrize(
    ("lang", "project", "rows"),
    [
        (None, None, None),
        ("en", None, [0, 2]),
        ("zh", None, [1, 3, 4]),
        (None, "Demo", [0, 1]),
        (None, "DEMO", [0, 1]),
        (None, "other", [2, 4]),
        ("zh", "Other", [4]),
        ("en", "nobody", []),
        (None, "", []),
    ],
)
def test_rows_by_language_and_project(bilingual: FaissStore, lang: Lang, project: str, rows: list[int] | None) -> None:
    found = bilingual.rows(lang=lang, project=project)
    assert (None if found is None else found.tolist()) == rows


def test_tellings_of_one_issue_find_each_other(bilingual: FaissStore) -> None:
    assert [bilingual.telling(row, "en") for row in range(5)] == [0, 0, 2, 3, 4]
    assert [bilingual.telling(row, "zh") for row in range(5)] == [1, 1, 2, 3, 4]
    rows, issues = bilingual.tellings(range(5))
    assert sorted(rows.tolist()) == [0, 1, 2, 3, 4]
    assert issues.tolist() == sorted(issues.tolist())
    number = dict(zip(rows.tolist(), issues.tolist(), strict=True))
    assert number[0] == number[1]
    assert len(set(number.values())) == 4
    for asked in ([0], [1], [1, 0]):
        assert bilingual.tellings(asked)[0].tolist() == [0, 1]
    assert bilingual.tellings([0], np.array([1, 2]))[0].tolist() == [1]


def test_records_by_offset_in_any_order(bilingual: FaissStore) -> None:
    found = bilingual.records([4, 0, 4])
    assert [r.title for r in found] == ["title 4 标题", "title 0 标题", "title 4 标题"]
    assert found[1] == record(0, "en", "Demo")


AWKWARD = '\u2028\u2029\x85\x0b\x0c\r\n\t"\\\0\x1b[31m\u202e 标题 🙂 \ud800'


def test_any_text_survives(tmp_path: Path) -> None:
    """Line separators that are none in JSON lines, controls, lone surrogates."""
    one = IssueRecord(
        "a#1/en",
        "a#1",
        "en",
        AWKWARD,
        AWKWARD,
        AWKWARD,
        "",
        "",
        (AWKWARD,) * 2,
        (AWKWARD,),
        (),
        (),
        (),
        Source("a", 1, 1),
    )
    store = store_of(tmp_path, [[[1.0, 0, 0, 0]]] * 2, records=[one, record(1)])
    assert store.records([0, 1]) == [one, record(1)]
    assert store.batch()[0] == [one, record(1)]


def test_a_published_batch_is_what_the_next_build_starts_from(tmp_path: Path) -> None:
    bags: list[Bag] = [{"cuda": 2, "内存": 1}, {}, {"nccl": 7}]
    store = store_of(tmp_path, [[[1.0, 0, 0, 0]], [], [[0, 1.0, 0, 0], [0, 0, 0, 0]]], bags=bags)
    records, found, views, rows, _, han = store.batch()
    assert records == [record(i) for i in range(3)]
    assert found == bags
    assert views.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert rows.tolist() == [0, 2, 2]
    assert han == {}


@pytest.mark.parametrize("views", [[[math.nan, 0, 0, 0]], [[math.inf, 0, 0, 0]]], ids=str)
def test_vectors_that_are_no_numbers_are_refused(tmp_path: Path, views: list[list[float]]) -> None:
    with pytest.raises(IndexCorrupt):
        store_of(tmp_path, [views])


# threads


def test_eight_threads_get_the_answers_of_one(tmp_path: Path, write: Write) -> None:
    errors = [f"{what} at step {n}" for n in range(8) for what in ("boom", "crash", "hang")]
    articles = write({"en/a.md": article(*errors), "zh/b.md": article(*errors[::-1])})
    build(articles, tmp_path / "index", encoder=FakeEncoder())
    questions = [f"RuntimeError: {error}" for error in errors[:10]]
    with KnowledgeBase.open(tmp_path / "index", encoder=FakeEncoder()) as base:

        def ask(question: str) -> Any:
            return {**base.search(question, k=5).as_dict(), "took_ms": 0}

        alone = [ask(question) for question in questions]
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(ask, questions * 16))
    assert together == alone * 16
    assert len({json.dumps(answer) for answer in alone}) == len(questions)


# arrays


NUMPY = {np.dtype(t) for t in ("<f2", "<f4", "<f8", "<i4", "<i8", "|u1", "<u4")}


@st.composite
def some_arrays(draw: st.DrawFn) -> dict[str, Array]:
    names = draw(st.lists(st.text(st.characters(codec="utf-8"), max_size=8), max_size=5, unique=True))
    found: dict[str, Array] = {}
    for name in names:
        if name != "__metadata__":
            shape = tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=3)))
            source = draw(st.binary(min_size=8 * math.prod(shape), max_size=8 * math.prod(shape)))
            dtype = draw(st.sampled_from(sorted(NUMPY, key=str)))
            found[name] = np.frombuffer(source, dtype, math.prod(shape)).reshape(shape)
    return found


@given(some_arrays())
def test_arrays_are_those_of_the_safetensors_package(given_arrays: dict[str, Array]) -> None:
    from safetensors.numpy import load

    data = arrays.dump(given_arrays)
    ours, theirs = arrays.load(data, "x"), load(data)
    assert ours.keys() == theirs.keys() == given_arrays.keys()
    for name, one in given_arrays.items():
        assert ours[name].dtype == theirs[name].dtype == one.dtype
        assert ours[name].shape == theirs[name].shape == one.shape
        assert ours[name].tobytes() == theirs[name].tobytes() == one.tobytes()
        assert not ours[name].flags.writeable or not ours[name].size


@given(some_arrays())
def test_same_arrays_same_bytes(given_arrays: dict[str, Array]) -> None:
    assert arrays.dump(given_arrays) == arrays.dump(dict(reversed(given_arrays.items())))


@settings(max_examples=examples(200))
@given(some_arrays(), st.data())
def test_damaged_arrays_are_refused_or_read_in_bounds(given_arrays: dict[str, Array], data: st.DataObject) -> None:
    whole = arrays.dump(given_arrays)
    at = data.draw(st.integers(0, len(whole) - 1))
    damaged = data.draw(
        st.one_of(
            st.just(whole[:at]),
            st.just(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :]),
            st.binary(max_size=20).map(lambda more: whole[:at] + more + whole[at:]),
        )
    )
    try:
        found = arrays.load(damaged, "x")
    except IndexCorrupt:
        return
    assert sum(one.nbytes for one in found.values()) <= len(damaged) * len(found)


def file_of(header: Any, body: bytes = b"\0" * 16) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def tensor(dtype: Any = "F32", shape: Any = (4,), offsets: Any = (0, 16)) -> dict[str, Any]:
    return {"a": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


HOSTILE = {
    "nothing": b"",
    "seven bytes": b"\0" * 7,
    "size zero": b"\0" * 8,
    "size beyond the file": struct.pack("<Q", 100) + b"{}",
    "size of a bomb": struct.pack("<Q", 2**64 - 1) + b"{}",
    "no JSON": file_of(b"{"),
    "not UTF-8": file_of(b'{"\xff": 1}'),
    "a list": file_of([]),
    "a number": file_of(7),
    "a string": file_of("x"),
    "null": file_of(None),
    "deep": file_of(b'{"a":' * 50_000 + b"1" + b"}" * 50_000),
    "entry null": file_of({"a": None}),
    "entry a list": file_of({"a": ["F32", [4], [0, 16]]}),
    "no dtype": file_of({"a": {"shape": [4], "data_offsets": [0, 16]}}),
    "object dtype": file_of(tensor("O")),
    "dtype a list": file_of(tensor(["F32"])),
    "shape a number": file_of(tensor(shape=4)),
    "shape a string": file_of(tensor(shape="4")),
    "shape with text": file_of(tensor(shape=["4"])),
    "shape with fractions": file_of(tensor(shape=[4.0])),
    "negative shape": file_of(tensor(shape=[-4], offsets=[16, 0])),
    "two negatives": file_of(tensor(shape=[-2, -2])),
    "shape too large": file_of(tensor(shape=[2**62])),
    "shape beyond C": file_of(tensor(shape=[0, 2**70], offsets=[0, 0])),
    "shape beyond memory": file_of(tensor(shape=[0, 2**40, 2**40], offsets=[0, 0])),
    "too many dimensions": file_of(tensor(shape=[1] * 100, offsets=[0, 4])),
    "offsets beyond": file_of(tensor(offsets=[8, 24])),
    "offsets reversed": file_of(tensor(offsets=[16, 0])),
    "negative offsets": file_of(tensor(offsets=[-16, 0])),
    "one offset": file_of(tensor(offsets=[0])),
    "three offsets": file_of(tensor(offsets=[0, 8, 16])),
    "offsets null": file_of(tensor(offsets=None)),
    "offsets with fractions": file_of(tensor(offsets=[0.0, 16.0])),
    "too small": file_of(tensor(shape=[3])),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_arrays_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(IndexCorrupt) as caught:
        arrays.load(HOSTILE[name], path)
    assert caught.value.path == str(path)
    assert len(str(caught.value)) < 1000
    with pytest.raises(IndexCorrupt):
        arrays.open_arrays(path)


def test_a_sound_file_is_read(tmp_path: Path) -> None:
    """The table above can fail."""
    assert arrays.load(file_of({**tensor(), "__metadata__": {"a": "b"}}), "x")["a"].tolist() == [0, 0, 0, 0]


def test_a_mapped_file_is_read_only(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(arrays.dump({"a": np.arange(5, dtype=np.int32)}))
    found = arrays.open_arrays(path)["a"]
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 1
    with pytest.raises(FileNotFoundError):
        arrays.open_arrays(tmp_path / "nowhere")


def test_records_that_are_cut_short_under_a_reader(tmp_path: Path) -> None:
    store = store_of(tmp_path, [[], [], []])
    assert store.records([0]) == [record(0)]
    (path,) = tmp_path.glob("records-*")
    with path.open("r+b") as file:
        file.truncate(10)
    with pytest.raises(IndexCorrupt, match="damaged"):
        store.records([2])
    store.close()
    with pytest.raises(IndexMissing, match="closed"):
        store.records([0])
