"""The index seam against oracles: naive loops, the library bm25s, the safetensors package, a second store."""

from __future__ import annotations

import json
import math
import struct
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chunks import DIM, Bag, chunk_of, kind_of, lexicon_of, record
from conftest import EMPTY_RECORD, FakeEncoder, Write, article, examples
from hypothesis import given, settings
from hypothesis import strategies as st

from kb import arrays
from kb.arrays import Array
from kb.base import KnowledgeBase
from kb.errors import IndexCorrupt, IndexMissing
from kb.index import snapshot
from kb.index.bm25 import K1, B, idf
from kb.index.build import build, publish
from kb.index.chunk import Chunk
from kb.index.faiss import FaissStore
from kb.index.header import Filter, Header, Vocabulary
from kb.index.pieces import Piece, joined
from kb.index.prints import Prints, prints_of_records
from kb.index.profile import Profile, unpack
from kb.index.rank import rank
from kb.index.store import Store, Views
from kb.index.writer import SegmentWriter
from kb.records import Branch, IssueRecord, Lang, Ranking
from kb.search.searcher import Searcher
from kb.search.terms import TermInformation

# Multiples of 1/4: sums of their products are exact in float32 in any order, so that ties are ties.
quarters = st.integers(-4, 4).map(lambda n: n / 4)
vector = st.lists(quarters, min_size=DIM, max_size=DIM)
word = st.sampled_from(["cuda", "oom", "nccl", "loss", "nan", "内存", "死锁", "rank", "zero"])
one_bag = st.lists(word, max_size=12).map(lambda terms: dict(Counter(terms)))


def store_of(
    folder: Path,
    groups: Sequence[Sequence[Sequence[float]]],
    *,
    records: Sequence[IssueRecord] = (),
    bags: Sequence[Bag] = (),
    cuts: Sequence[int] = (),
) -> FaissStore:
    """An index whose record i has the vectors `groups[i]`; a segment ends before every row in `cuts`."""
    records = records or [record(i) for i in range(len(groups))]
    bags = bags or [{} for _ in groups]
    pieces = []
    ends = [0, *sorted(set(cuts) - {0, len(groups)}), len(groups)]
    with snapshot.locked(folder):
        for a, b in pairwise(ends):
            writer = SegmentWriter(folder, DIM)
            writer.add(chunk_of(bags[a:b], groups[a:b], records[a:b]))
            pieces.append(Piece.of(folder, writer.finish()))
        publish(folder, pieces, {"encoder": {"name": "fake", "dim": DIM, "probe": []}})
    return FaissStore(folder)


def some_of(data: st.DataObject, size: int) -> tuple[list[int], list[IssueRecord], Filter | None, list[int]]:
    """Cuts, records, a filter, and the rows that it lets pass."""
    cuts = data.draw(st.lists(st.integers(1, size), max_size=3))
    inside = data.draw(st.none() | st.sets(st.integers(0, size - 1)).map(sorted))
    records = [record(i, project="In" if inside is None or i in inside else "out") for i in range(size)]
    rows = list(range(size)) if inside is None else inside
    return cuts, records, None if inside is None else Filter(project="in"), rows


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
    question=vector,
    k=st.integers(0, 45),
    data=st.data(),
)
def test_dense_is_a_naive_loop(
    shelf: Path, groups: list[list[list[float]]], question: list[float], k: int, data: st.DataObject
) -> None:
    cuts, records, within, rows = some_of(data, len(groups))
    store = store_of(shelf / "dense", groups, records=records, cuts=cuts)
    naive = {
        row: max(dot(view, question) for view in group) for row, group in enumerate(groups) if group and row in rows
    }
    found = store.dense(np.array(question, np.float32), k, within)
    assert list(zip(found.rows, found.scores, strict=True)) == naive_rank(naive, k)
    store.close()


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def test_dense_asks_on_until_it_is_sure(tmp_path: Path) -> None:
    """One record's many views may hide a better record."""
    many = [[1.0, 0, 0, 0]] * 40
    store = store_of(tmp_path, [many, [[0.75, 0, 0, 0]], [[0.5, 0, 0, 0]], [[0, 0, 0, 0]], [[-1.0, 0, 0, 0]]])
    question = np.eye(DIM, dtype=np.float32)[0]
    for k, rows in [(1, (0,)), (2, (0, 1)), (3, (0, 1, 2)), (4, (0, 1, 2)), (99, (0, 1, 2))]:
        assert store.dense(question, k).rows == rows
    store = store_of(tmp_path / "ties", [[[1.0, 0, 0, 0]] for _ in range(100)])
    assert store.dense(question, 3).rows == (0, 1, 2)


@pytest.mark.parametrize("value", [0.0, math.nan, math.inf, -math.inf])
def test_no_signal_no_rows(tmp_path: Path, value: float) -> None:
    store = store_of(tmp_path, [[[1.0, 0, 0, 0]], [[0, 1.0, 0, 0]]])
    found = store.dense(np.full(DIM, value, np.float32), 5)
    assert -1 not in found.rows
    assert all(math.isfinite(score) for score in found.scores)
    if value == 0:
        assert found.rows == ()


def test_an_empty_index_has_nothing_to_say(tmp_path: Path) -> None:
    store = store_of(tmp_path, [])
    assert store.header.columns.size == 0
    assert store.dense(np.ones(DIM, np.float32), 5).rows == ()
    assert store.lexical(["cuda"], 5).rows == ()
    assert store.records([]) == []


@settings(max_examples=examples(40))
@given(groups=st.lists(st.lists(vector, max_size=3), min_size=1, max_size=12), data=st.data())
def test_views_of_rows_are_those_that_were_published(shelf: Path, groups: list[Any], data: st.DataObject) -> None:
    store = store_of(shelf / "views", groups, cuts=data.draw(st.lists(st.integers(1, len(groups)), max_size=3)))
    rows = data.draw(st.sets(st.integers(0, len(groups) - 1)).map(sorted))
    found = store.views(np.array(rows, np.int64))
    expected = [(view, row, kind_of(n)) for row in rows for n, view in enumerate(groups[row])]
    assert [*zip(found.vectors.tolist(), found.rows.tolist(), found.kinds.tolist(), strict=True)] == expected
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


def scores_of(bags: Sequence[Bag], terms: Sequence[str]) -> Array:
    """(bags,): the sum of the weights of `terms`, by the postings."""
    lexicon = lexicon_of(bags)
    numbers, postings = lexicon.terms.numbers(terms), lexicon.postings
    asked = list(zip(numbers.tolist(), idf(postings.df(numbers), len(bags)).tolist(), strict=True))
    mean = postings.total / len(bags) or 1.0
    weights = postings.weights(asked, mean, np.arange(len(bags)))
    found = postings.best(asked, mean, len(bags))
    total: Array = np.zeros(len(bags), np.float32)
    total[list(found.rows)] = found.scores
    np.testing.assert_allclose(total, weights.sum(axis=1), rtol=1e-5)
    return total


@settings(max_examples=examples(100))
@given(bags=st.lists(one_bag, min_size=1, max_size=20), terms=st.lists(word | st.just("unseen"), max_size=6))
def test_lexical_scores_are_the_cited_formula(bags: list[Bag], terms: list[str]) -> None:
    np.testing.assert_allclose(scores_of(bags, terms), naive_bm25(bags, terms), rtol=1e-5)


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
    cuts, records, within, rows = some_of(data, len(bags))
    store = store_of(shelf / "lexical", [[] for _ in bags], bags=bags, records=records, cuts=cuts)
    scores = naive_bm25(bags, terms)
    naive = naive_rank({row: scores[row] for row in rows}, k)
    found = store.lexical(terms, k, within)
    assert [*found.scores] == pytest.approx([score for _, score in naive], rel=1e-4)
    assert dict(zip(found.rows, found.scores, strict=True)) == pytest.approx(
        {row: scores[row] for row in found.rows}, rel=1e-4
    )
    weights = store.weights(terms, np.arange(len(bags)))
    every = [[naive_bm25(bags, [term])[row] for term in terms] for row in range(len(bags))]
    np.testing.assert_allclose(weights, np.array(every).reshape(weights.shape), rtol=1e-4)
    store.close()


def information_of(bags: Sequence[Bag], surprisal: float = 20.0) -> tuple[TermInformation, Vocabulary]:
    vocabulary = Vocabulary([lexicon_of(bags, surprisal)])
    return TermInformation(vocabulary, len(bags)), vocabulary


@pytest.mark.thorough
@given(bags=st.lists(one_bag, min_size=1, max_size=15), terms=st.lists(word | st.just("unseen"), max_size=5))
def test_a_scaled_weight_counts_information_in_the_place_of_idf(bags: list[Bag], terms: list[str]) -> None:
    information, _ = information_of(bags)
    scale, of = information.scale(terms).tolist(), information.of(terms).tolist()
    for term, factor, value in zip(terms, scale, of, strict=True):
        df = sum(term in one for one in bags)
        idf = math.log(1 + (len(bags) - df + 0.5) / (df + 0.5))
        if df:
            assert factor * idf == pytest.approx(value, rel=1e-4)
        else:
            assert factor == 0
            assert value == pytest.approx(information.unseen)


def test_the_information_of_a_term_in_a_small_base() -> None:
    """Of two records one has it: in a base of two that is nothing, and among four hundred issues it is a name."""
    information, _ = information_of([{"nccl": 1}, {"cuda": 1, "oom": 1}])
    rare = math.log(1 + 399.5 / 1.5)
    assert information.of(["nccl", "unseen", "cuda"]).tolist() == pytest.approx([rare, math.log(1 + 400.5 / 0.5), rare])


@pytest.mark.parametrize(("surprisal", "share"), [(0.0, 0.15), (5.0, 0.15), (8.0, 0.5), (11.0, 1.0), (20.0, 1.0)])
def test_a_term_that_is_common_in_technical_text_has_less(surprisal: float, share: float) -> None:
    common, rare = information_of([{"nccl": 1}], surprisal)[0], information_of([{"nccl": 1}])[0]
    assert common.of(["nccl"])[0] == pytest.approx(share * rare.of(["nccl"])[0])


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
    np.testing.assert_allclose(scores_of(bags, terms), oracle.get_scores(terms), rtol=1e-4, atol=1e-6)


# filters, translations, records


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
    found = np.flatnonzero(bilingual.header.columns.passing(Filter(lang, project))).tolist()
    assert found == (list(range(5)) if rows is None else rows)


def test_translations_of_one_issue_find_each_other(bilingual: FaissStore) -> None:
    columns = bilingual.header.columns
    assert [columns.translation(row, "en") for row in range(5)] == [0, 0, 2, 3, 4]
    assert [columns.translation(row, "zh") for row in range(5)] == [1, 1, 2, 3, 4]
    rows, issues = columns.tellings(range(5))
    assert sorted(rows.tolist()) == [0, 1, 2, 3, 4]
    assert issues.tolist() == sorted(issues.tolist())
    number = dict(zip(rows.tolist(), issues.tolist(), strict=True))
    assert number[0] == number[1]
    assert len(set(number.values())) == 4
    for some in ([0], [1], [1, 0]):
        assert columns.tellings(some)[0].tolist() == [0, 1]


def test_records_by_offset_in_any_order(bilingual: FaissStore) -> None:
    found = bilingual.records([4, 0, 4])
    assert [r.title for r in found] == ["title 4 标题", "title 0 标题", "title 4 标题"]
    assert found[1] == record(0, "en", "Demo")


AWKWARD = '\u2028\u2029\x85\x0b\x0c\r\n\t"\\\0\x1b[31m\u202e 标题 🙂 \ud800'


def test_any_text_survives(tmp_path: Path) -> None:
    """Line separators that are none in JSON lines, controls, lone surrogates."""
    texts = dict.fromkeys(("project", "title", "summary", "symptom", "triage", "only_when", "confusable"), AWKWARD)
    lists = {"errors": (AWKWARD,) * 2, "conditions": (AWKWARD,), "branches": (Branch(AWKWARD, AWKWARD),)}
    one = replace(EMPTY_RECORD, aliases=(AWKWARD,), **texts, **lists)
    store = store_of(tmp_path, [[[1.0, 0, 0, 0]]] * 2, records=[one, record(1)])
    assert store.records([0, 1]) == [one, record(1)]
    (contents,) = contents_of(store)
    assert contents.ids == [one.id, record(1).id]


def contents_of(store: FaissStore) -> list[Chunk]:
    found = []
    for segment in store.segments:
        found += [chunk for _, chunk in segment.chunks([(0, len(segment.articles()))])]
    return found


def test_a_segment_gives_what_it_was_made_from(tmp_path: Path) -> None:
    bags: list[Bag] = [{"cuda": 2, "内存": 1}, {}, {"nccl": 7}]
    store = store_of(tmp_path, [[[1.0, 0, 0, 0]], [], [[0, 1.0, 0, 0], [0, 0, 0, 0]]], bags=bags)
    (found,) = contents_of(store)
    assert [json.loads(line)["id"] for line in found.lines] == list(found.ids) == [record(i).id for i in range(3)]
    assert bags_of(found) == bags
    assert found.views.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert found.view_counts.tolist() == [1, 0, 2]
    assert found.profiles == [b"profile 0", b"profile 1", b"profile 2"]
    assert found.projects == ["Demo"] * 3


def bags_of(chunk: Chunk) -> list[Bag]:
    ends = np.cumsum([0, *chunk.bag_counts])
    pairs = [(chunk.terms[n], int(count)) for n, count in zip(chunk.bag_terms, chunk.counts, strict=True)]
    return [dict(pairs[a:b]) for a, b in pairwise(ends.tolist())]


@pytest.mark.thorough
@settings(max_examples=examples(30))
@given(bags=st.lists(one_bag, min_size=1, max_size=12), data=st.data())
def test_joined_segments_are_one_that_was_written_at_once(shelf: Path, bags: list[Bag], data: st.DataObject) -> None:
    """Byte for byte, however the articles were divided, and in whatever order they came."""
    groups = data.draw(st.lists(st.lists(vector, max_size=2), min_size=len(bags), max_size=len(bags)))
    records = [replace(record(i), id=f"a{i:02}#1/en", issue=f"a{i:02}#1") for i in range(len(bags))]
    chunks = [chunk_of(bags[i : i + 1], groups[i : i + 1], records[i : i + 1]) for i in range(len(bags))]
    of = data.draw(st.lists(st.integers(0, 2), min_size=len(bags), max_size=len(bags)))
    made = []
    folder = shelf / "joined"
    with snapshot.locked(folder):
        for part in ([*range(len(bags))], *([i for i in range(len(bags)) if of[i] == n] for n in range(3))):
            writer = SegmentWriter(folder, DIM)
            for i in part:
                writer.add(chunks[i])
            made.append(Piece.of(folder, writer.finish()))
        whole, *parts = made
        (again,) = joined(folder, parts)
    assert again.files == whole.files


@pytest.mark.parametrize("views", [[[math.nan, 0, 0, 0]], [[math.inf, 0, 0, 0]]], ids=str)
def test_vectors_that_are_no_numbers_are_refused(tmp_path: Path, views: list[list[float]]) -> None:
    with pytest.raises(IndexCorrupt):
        store_of(tmp_path, [views])


# another store


class NaiveStore:
    """The whole seam in loops: what another engine must do. `Searcher` takes it like any other."""

    def __init__(self, other: FaissStore) -> None:
        self.header: Header = other.header
        self._other = other
        chunks = contents_of(other)
        self._bags = [bag for chunk in chunks for bag in bags_of(chunk)]
        self._profiles = [one for chunk in chunks for one in chunk.profiles]
        every = other.views(np.arange(len(self._bags)))
        self._views = Views(every.vectors, every.rows, every.kinds)

    def dense(self, vector: Array, k: int, within: Filter | None = None) -> Ranking:
        best: dict[int, float] = {}
        rows = self._rows(within)
        for view, row in zip(self._views.vectors, self._views.rows.tolist(), strict=True):
            if row in rows:
                best[row] = max(best.get(row, -1.0), float((view * vector).sum()))
        return self._ranking(best, k)

    def near(
        self, vector: Array, terms: Sequence[str], k: int, within: Filter | None = None
    ) -> tuple[Ranking, Ranking]:
        return self.dense(vector, k, within), self.lexical(terms, k, within)

    def lexical(self, terms: Sequence[str], k: int, within: Filter | None = None) -> Ranking:
        scores, rows = naive_bm25(self._bags, terms), self._rows(within)
        return self._ranking({row: s for row, s in enumerate(scores) if row in rows}, k)

    def _rows(self, within: Filter | None) -> set[int]:
        return set(np.flatnonzero(self.header.columns.passing(within or Filter())).tolist())

    def views(self, rows: Array) -> Views:
        at = [n for row in rows.tolist() for n, owner in enumerate(self._views.rows.tolist()) if owner == row]
        return Views(self._views.vectors[at], self._views.rows[at], self._views.kinds[at])

    def weights(self, terms: Sequence[str], rows: Array) -> Array:
        columns = [[naive_bm25(self._bags, [term])[row] for row in rows.tolist()] for term in terms]
        return np.array(columns, np.float32).reshape(len(terms), len(rows)).T

    def profiles(self, rows: Sequence[int]) -> list[Profile]:
        return [unpack(self._profiles[row], "x") for row in rows]

    def records(self, rows: Sequence[int]) -> list[IssueRecord]:
        return self._other.records(rows)

    def prints(self) -> list[tuple[int, Prints]]:
        return [(0, prints_of_records(self.records(range(len(self._bags)))))]

    def _ranking(self, scores: dict[int, float], k: int) -> Ranking:
        found = naive_rank(scores, k)
        return Ranking(tuple(row for row, _ in found), tuple(score for _, score in found))


@pytest.mark.thorough
def test_another_store_gives_the_same_answers(tmp_path: Path, write: Write) -> None:
    errors = [f"{what} at step {n}" for n in range(6) for what in ("boom", "crash", "hang")]
    articles = write({"en/a.md": article(*errors), "zh/a.md": article(*errors), "en/b.md": article("oops", "alas")})
    build(articles, tmp_path / "index", encoder=FakeEncoder())
    store = FaissStore(tmp_path / "index")
    ours, theirs = Searcher(store, FakeEncoder()), Searcher(NaiveStore(store), FakeEncoder())
    filters: list[dict[str, Any]] = [{}, {"lang": "zh"}, {"project": "demo"}, {"k": 1}]
    for question in (*(f"RuntimeError: {error}" for error in errors[:6]), "the setting behind alas", "step", "循环"):
        for options in filters:
            one, other = (searcher.search(question, **options).hits for searcher in (ours, theirs))
            assert [hit.record.id for hit in one] == [hit.record.id for hit in other], (question, options)
            assert [hit.confidence for hit in one] == pytest.approx([hit.confidence for hit in other], abs=1e-4)


def test_both_are_stores() -> None:
    asked = ["dense", "lexical", "near", "prints", "profiles", "records", "views", "weights"]
    assert sorted(name for name in vars(Store) if not name.startswith("_")) == sorted(["header", *asked])
    assert all(hasattr(kind, name) for kind in (FaissStore, NaiveStore) for name in asked)


# threads


@pytest.mark.thorough
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


@pytest.mark.parametrize("name", ["records", "profiles"])
def test_a_file_that_is_cut_short_under_a_reader(name: str, tmp_path: Path, write: Write) -> None:
    build(write({"en/a.md": article("boom", "crash", "hang")}), tmp_path / "index", encoder=FakeEncoder())
    store = FaissStore(tmp_path / "index")
    read = getattr(store, name)
    assert len(read([0, 2])) == 2
    (path,) = (tmp_path / "index").glob(f"{name}-*")
    with path.open("r+b") as file:
        file.truncate(10)
    with pytest.raises(IndexCorrupt, match="damaged"):
        read([2])
    store.close()
    with pytest.raises(IndexMissing, match="closed"):
        read([0])
