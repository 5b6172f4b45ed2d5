"""Terms and postings of a segment against oracles: Python's own lists and dictionaries, BM25 as a naive loop, bm25s."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from chunks import Bag, lexicon_of
from conftest import THOROUGH, examples
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.arrays import Array, dump, open_arrays
from kb.index import bm25, maxscore
from kb.index import postings as made
from kb.index.bm25 import K1, B
from kb.index.postings import Postings
from kb.index.terms import Terms
from kb.text.tokens import Segmenter

anything = st.text(max_size=12) | st.text("ab\0\n内存", max_size=20)
word = st.sampled_from(["cuda", "oom", "nccl", "loss", "nan", "内存", "死锁", "rank", "zero"])
one_bag = st.lists(word, max_size=30).map(lambda terms: dict(Counter(terms)))
some_bags = st.lists(one_bag, max_size=25)


def naive(bags: Sequence[Bag], wanted: dict[str, float], mean: float) -> list[float]:
    """BM25 sums, of which `wanted` gives the weights."""
    return [
        sum(w * bag[t] / (bag[t] + K1 * (1 - B + B * sum(bag.values()) / mean)) for t, w in wanted.items() if t in bag)
        for bag in bags
    ]


def idf(df: int, size: int) -> float:
    return math.log(1 + (size - df + 0.5) / (df + 0.5))


def postings_of(bags: Sequence[Bag], size: int = 3) -> tuple[Terms, Postings]:
    lexicon = lexicon_of(bags, size=size)
    return lexicon.terms, lexicon.postings


def mapped(folder: Path, terms: Terms, postings: Postings) -> tuple[Terms, Postings]:
    """The same, from a file."""
    path = folder / "lexical.safetensors"
    path.write_bytes(dump({**terms.arrays("terms"), **postings.arrays()}))
    arrays = open_arrays(path)
    return Terms.among(arrays, "terms"), Postings.among(arrays)


# Terms


@given(st.sets(anything | st.text(st.characters(), max_size=3)), st.lists(anything))
def test_terms_are_a_sorted_list_of_strings(names: set[str], others: list[str]) -> None:
    names_in_order = sorted(names)
    terms = Terms.of(names_in_order)
    assert list(terms) == names_in_order == [terms[i - len(names)] for i in range(len(names))]
    assert terms[1:4] == names_in_order[1:4]
    asked = [*names_in_order, *others]
    assert terms.numbers(asked).tolist() == [names_in_order.index(t) if t in names else -1 for t in asked]
    assert [terms.find(t) for t in asked] == terms.numbers(asked).tolist()
    assert [bisect_left(terms, t) for t in asked] == [bisect_left(names_in_order, t) for t in asked]


def test_terms_that_begin_alike_are_told_apart() -> None:
    names = sorted(
        {"outofmemory" + tail for tail in ("", "\0", "error", "errors", "内存")} | {"outofmem", "outofmem\0"}
    )
    terms = Terms.of(names)
    assert terms.numbers(names).tolist() == list(range(len(names)))
    assert terms.numbers(["outofmemoryerr", "outofmemo", "", "\0"]).tolist() == [-1] * 4


def test_a_segmenter_reads_its_words_from_terms() -> None:
    words = {"内存": -8.0, "不足": -9.0, "内存不足": -7.0}
    names = sorted([*words, "cuda", "zero"])
    log_p = [words.get(name, 0.0) for name in names]
    one, other = (Segmenter.from_vocabulary([(known, log_p)]) for known in (Terms.of(names), names))
    assert (
        one.for_search("显存内存不足") == other.for_search("显存内存不足") == ["显", "存", "内存", "不足", "内存不足"]
    )


@pytest.mark.parametrize("starts", [[], [0], [1, 3], [0, 1, 2], [0, 4]])
def test_terms_that_do_not_belong_together_are_refused(starts: list[int]) -> None:
    with pytest.raises(ValueError, match="belong together"):
        Terms(np.zeros(3, np.uint8), np.array(starts, np.int64), np.zeros(1, np.uint64))


# Postings


@given(st.lists(st.dictionaries(anything, st.integers(1, 9)), max_size=8), st.integers(1, 4))
def test_bags_are_the_inverse_of_postings(bags: list[Bag], chunk: int) -> None:
    terms, postings = postings_of(bags, chunk)
    starts, numbers, counts = postings.by_record()
    spans = [range(first, last) for first, last in pairwise(starts.tolist())]
    assert [{terms[numbers[at]]: int(counts[at]) for at in span} for span in spans] == bags
    assert list(terms) == sorted({term for bag in bags for term in bag})
    assert postings.lengths.tolist() == [sum(bag.values()) for bag in bags]
    assert postings.df(np.arange(-1, len(terms))).tolist() == [0, *(sum(t in bag for bag in bags) for t in terms)]
    for number, term in enumerate(terms):
        rows = postings.rows[postings.starts[number] : postings.starts[number + 1]].tolist()
        assert rows == [row for row, bag in enumerate(bags) if term in bag]


def test_a_build_in_small_steps_gives_the_same_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    bags = made_up(300)
    terms, postings = postings_of(bags)
    monkeypatch.setattr(made, "_BLOCK", 7)
    again_terms, again = postings_of(bags, 300)
    assert same(terms, again_terms, postings, again)


def same(terms: Terms, other_terms: Terms, postings: Postings, other: Postings) -> bool:
    pairs = zip(
        [*terms.arrays("x").values(), *postings.arrays().values()],
        [*other_terms.arrays("x").values(), *other.arrays().values()],
        strict=True,
    )
    return all(a.dtype == b.dtype and a.tolist() == b.tolist() for a, b in pairs)


@settings(max_examples=examples(100))
@given(
    bags=some_bags,
    wanted=st.dictionaries(word | st.just("unseen"), st.integers(1, 64).map(lambda n: n / 16), max_size=9),
    mean=st.sampled_from([0.5, 3.0, 40.0]),
    k=st.integers(0, 12),
    tight=st.booleans(),
    look_up=st.sampled_from([0, 1, 1000]),
    common=st.sampled_from([0, 3, 1000]),
    data=st.data(),
)
def test_the_best_are_those_of_a_full_evaluation(
    bags: list[Bag],
    wanted: dict[str, float],
    mean: float,
    k: int,
    tight: bool,
    look_up: int,
    common: int,
    data: st.DataObject,
) -> None:
    terms, postings = postings_of(bags)
    allowed = data.draw(st.none() | st.lists(st.booleans(), min_size=len(bags), max_size=len(bags)))
    question = [(terms.find(term), weight) for term, weight in wanted.items()]
    scores = [float(np.float32(score)) for score in naive(bags, wanted, mean)]
    expected = [(row, s) for row, s in enumerate(scores) if s > 0 and (allowed is None or allowed[row])]
    expected = sorted(expected, key=lambda pair: (-pair[1], pair[0]))[:k]
    with pytest.MonkeyPatch.context() as patch:
        if tight:  # so that small examples reach the last, pruned part
            patch.setattr(maxscore, "_GROUP", 1)
            for name, value in {"_LOOK_UP": look_up, "_ONE_TERM": -99, "_FEW": 1, "_COMMON": common}.items():
                patch.setattr(maxscore, name, value)
        keep = None if allowed is None else np.array(allowed, bool)
        found = postings.best(question, mean, k, keep)
        assert list(zip(found.rows, found.scores, strict=True)) == expected
        if len(expected) == k > 0:
            again = postings.best(question, mean, k, keep, floor=expected[-1][1])
            assert again == found


def made_up(size: int, seed: int = 0) -> list[Bag]:
    """Bags with few common and many rare words, of very different lengths."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 120, size)
    drawn = np.minimum(random.zipf(1.3, int(lengths.sum())), 5000)
    return [dict(Counter(f"w{n}" for n in part)) for part in np.split(drawn, np.cumsum(lengths)[:-1])]


@pytest.mark.parametrize("count", [1, 3, 20, 200])
@pytest.mark.parametrize("group", [1, 8192])
def test_the_best_of_many_records(count: int, group: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maxscore, "_GROUP", group)
    bags = made_up(1000 if THOROUGH else 400)
    terms, postings = postings_of(bags)
    mean = float(postings.lengths.mean())
    random = np.random.default_rng(count)
    for _ in range(5):
        numbers = random.permutation(np.unique(np.minimum(random.zipf(1.2, count), len(terms)) - 1)).tolist()
        question = {terms[n]: idf(int(postings.df(np.array([n]))[0]), len(bags)) for n in numbers}
        scores = np.array(naive(bags, question, mean)).astype(np.float32)
        order = np.lexsort((np.arange(len(bags)), -scores))[:20]
        found = postings.best([(terms.find(t), w) for t, w in question.items()], mean, 20)
        positive = scores[order] > 0
        assert list(found.rows) == order[positive].tolist()
        assert list(found.scores) == scores[order][positive].tolist()


@pytest.mark.thorough
def test_a_common_term_beside_rare_ones_is_looked_up_for_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many postings are read: a growth law, since milliseconds say nothing on a busy machine."""
    bags: list[Bag] = [{"common": 1 + row % 3, "also": 1} for row in range(4000)]
    for row in range(0, 4000, 100):
        bags[row]["rare"] = 2
    terms, postings = postings_of(bags)
    read = []
    saturation = Postings.saturation

    def counting(self: Postings, rows: Array, counts: Array, mean_length: float) -> Array:
        found = saturation(self, rows, counts, mean_length)
        read.append(len(found))
        return found

    monkeypatch.setattr(Postings, "saturation", counting)
    monkeypatch.setattr(maxscore, "_GROUP", 64)  # the segment is a small one
    monkeypatch.setattr(maxscore, "_ONE_TERM", 100)
    df = {"common": 4000, "also": 4000, "rare": 40}
    question = [(terms.find(term), idf(n, len(bags))) for term, n in df.items()]
    found = postings.best(question, float(postings.lengths.mean()), 5)
    assert all(row % 100 == 0 for row in found.rows)
    assert sum(read) <= 3 * 40


@settings(max_examples=examples(60))
@given(bags=some_bags, wanted=st.lists(word | st.just("unseen"), max_size=9, unique=True), data=st.data())
def test_weights_are_those_of_single_terms(bags: list[Bag], wanted: list[str], data: st.DataObject) -> None:
    terms, postings = postings_of(bags)
    rows = data.draw(st.lists(st.integers(0, len(bags) - 1), max_size=9, unique=True)) if bags else []
    question = [(terms.find(term), 0.5 + i) for i, term in enumerate(wanted)]
    expected = [[naive([bags[row]], {t: 0.5 + i}, 7.0)[0] for i, t in enumerate(wanted)] for row in rows]
    for short in (0, made._SHORT):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(made, "_SHORT", short)
            found = postings.weights(question, 7.0, np.array(rows, np.int64))
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, np.array(expected).reshape(len(rows), len(wanted)), rtol=1e-6)


@settings(max_examples=examples(60))
@given(st.lists(one_bag.filter(bool), min_size=1, max_size=20), st.lists(word, min_size=1, max_size=5, unique=True))
def test_scores_are_those_of_bm25s(bags: list[Bag], wanted: list[str]) -> None:
    bm25s = pytest.importorskip("bm25s")
    terms, postings = postings_of(bags)
    wanted = [term for term in wanted if term in terms]
    if not wanted:
        return
    oracle = bm25s.BM25(method="lucene", k1=K1, b=B)
    oracle.index([[term for term, n in one.items() for _ in range(n)] for one in bags], show_progress=False)
    numbers = terms.numbers(wanted)
    idfs = bm25.idf(postings.df(numbers), len(bags)).tolist()
    found = postings.best(list(zip(numbers.tolist(), idfs, strict=True)), float(postings.lengths.mean()), len(bags))
    scores = np.zeros(len(bags))
    scores[list(found.rows)] = found.scores
    np.testing.assert_allclose(scores, oracle.get_scores(wanted), rtol=1e-4, atol=1e-6)


# Several segments


@settings(max_examples=examples(40))
@given(some_bags, some_bags, st.dictionaries(word, st.floats(0.01, 8), max_size=9))
def test_a_score_does_not_depend_on_the_segment(one: list[Bag], other: list[Bag], wanted: dict[str, float]) -> None:
    """To the last bit: records are compared across segments."""

    def asked(bags: list[Bag]) -> dict[int, float]:
        terms, postings = postings_of(bags)
        found = postings.best([(terms.find(t), w) for t, w in wanted.items()], 11.0, len(bags))
        return dict(zip(found.rows, found.scores, strict=True))

    apart = asked(one) | {row + len(one): score for row, score in asked(other).items()}
    assert apart == asked(one + other)


# Files


def test_a_mapped_segment_answers_the_same(tmp_path: Path) -> None:
    terms, postings = postings_of(made_up(200))
    from_file = mapped(tmp_path, terms, postings)
    assert not from_file[1].rows.flags.writeable
    assert same(terms, from_file[0], postings, from_file[1])
    question = [(number, 1.0 + number % 7) for number in range(0, len(terms), 5)]
    assert from_file[1].best(question, 50.0, 9) == postings.best(question, 50.0, 9)
    rows = np.array([3, 199, 5])
    assert (from_file[1].weights(question, 50.0, rows) == postings.weights(question, 50.0, rows)).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rows", np.zeros(2, np.int32)),
        ("rows", np.zeros(3, np.int64)),
        ("counts", np.zeros(4, np.uint16)),
        ("most", np.zeros(1, np.uint16)),
        ("least", np.zeros(3, np.float32)),
        ("starts", np.zeros(0, np.int64)),
        ("starts", np.array([0, 2, 4])),
        ("starts", np.array([1, 2, 3])),
        ("lengths", np.zeros((2, 1), np.int32)),
    ],
)
def test_arrays_that_do_not_belong_together_are_refused(name: str, value: Array) -> None:
    _, postings = postings_of([{"a": 1, "b": 2}, {"b": 1}])
    with pytest.raises(ValueError, match="belong together"):
        Postings(**{**postings.arrays(), name: value})


@pytest.mark.parametrize(
    "wrong",
    [
        {"rows": [0, 0, 9]},
        {"rows": [0, -1, 1]},
        {"rows": [0, 9, 1]},
        {"rows": [2**31 - 1, 0, 1]},
        {"starts": [0, -5, 3]},
        {"starts": [0, 2**60, 3]},
        {"starts": [0, 4, 3]},
    ],
    ids=str,
)
def test_a_strangers_file_reads_nothing_outside(wrong: dict[str, list[int]]) -> None:
    _, good = postings_of([{"a": 1, "b": 2}, {"b": 1}])
    arrays = good.arrays()
    bad = Postings(**{**arrays, **{name: np.array(value, arrays[name].dtype) for name, value in wrong.items()}})
    question = [(0, 1.0), (1, 2.0)]
    for ask in (
        lambda: bad.best(question, 2.0, 1),
        lambda: bad.weights(question, 2.0, np.array([0, 1])),
        bad.by_record,
    ):
        with pytest.raises((ValueError, IndexError)):
            ask()


def test_lengths_and_bounds_that_are_wrong_give_no_score_that_is_none() -> None:
    _, good = postings_of([{"a": 1, "b": 2}, {"b": 1}])
    wrong: dict[str, Array] = {
        "lengths": np.array([-7, -(2**31)], np.int32),
        "counts": np.zeros(3, np.uint16),
        "most": np.zeros(2, np.uint16),
        "least": np.array([np.nan, -np.inf], np.float32),
    }
    for name, value in wrong.items():
        bad = Postings(**{**good.arrays(), name: value})
        found = bad.best([(0, 1.0), (1, 2.0)], 2.0, 1)
        assert all(0 < score < 3 for score in found.scores)
        assert np.isfinite(bad.weights([(0, 1.0), (1, 2.0)], 2.0, np.array([1, 0]))).all()


def test_a_number_that_is_no_term_is_an_error() -> None:
    _, postings = postings_of([{"a": 1}])
    with pytest.raises(IndexError):
        postings.best([(1, 1.0)], 1.0, 1)
