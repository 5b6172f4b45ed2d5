"""The vectors of a segment: who is nearest, against a loop over all of them; and what is promised where that is too
slow: recall, exact cosines, equal bytes."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.arrays import Array
from kb.encoders import open_encoder
from kb.index import vectors
from kb.index.vectors import Vectors, _exact, _found, approximate

ROOT = Path(__file__).parent.parent


def _near(views: Array, starts: Array, vector: Array, k: int, allowed: Array | None = None) -> list[tuple[int, float]]:
    """The oracle: every record, one by one."""
    cosines = (views.astype(np.float32) @ vector).tolist()
    found = []
    for row, (start, end) in enumerate(pairwise(starts.tolist())):
        best = max(cosines[start:end], default=0.0)
        if best > 0 and (allowed is None or allowed[row]):
            found.append((row, best))
    return sorted(found, key=lambda one: (-one[1], one[0]))[:k]


def _segment(seed: int, records: int, dim: int = 8, most: int = 5) -> tuple[Array, Array]:
    """Views and starts; some views are zero, some equal, some records have none."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(rng.integers(0, most + 1, records))])
    views = rng.normal(size=(starts[-1], dim))
    views[rng.random(len(views)) < 0.1] = 0
    views[rng.random(len(views)) < 0.1] = np.eye(dim)[0]
    norms = np.linalg.norm(views, axis=1, keepdims=True)
    return (views / np.where(norms, norms, 1)).astype(np.float16), starts


def _recall(segment: Vectors) -> float:
    return _found(segment, *_exact(segment))


def _open(views: Array, starts: Array, near: Array | None = None) -> Vectors:
    return Vectors(views, starts, np.arange(len(views), dtype=np.int32) % 5, near)


@cache
def _real() -> tuple[Array, Array]:
    """(8000, 256) views of four to a record: lines of our articles as others would put them, some words left out."""
    lines = [
        line
        for path in sorted((ROOT / "articles").glob("*/*.md"))[::5]
        for line in path.read_text("utf-8").splitlines()
        if len(line) > 40
    ]
    rng = np.random.default_rng(3)
    texts = []
    for number in rng.integers(0, len(lines), 8_000).tolist():
        words = re.findall(r"[\u4e00-\u9fff]|\S+", lines[number])[:40]
        texts.append(" ".join(word for word, out in zip(words, rng.random(len(words)) < 0.3, strict=True) if not out))
    return open_encoder().encode(texts, kind="passage").astype(np.float16), np.arange(0, 8_001, 4)


@cache
def _approximate() -> Array:
    near = approximate(*_real(), many=1000)
    assert near is not None
    assert near.recall >= 0.98
    return near.data


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    records=st.integers(0, 40),
    k=st.integers(0, 50),
    share=st.sampled_from([None, 0, 0.4, 1]),
)
def test_a_few_are_searched_exactly(seed: int, records: int, k: int, share: float | None) -> None:
    views, starts = _segment(seed, records)
    rng = np.random.default_rng(seed)
    vector = views[rng.integers(len(views))].astype(np.float32) if len(views) else np.ones(8, np.float32)
    allowed = None if share is None else rng.random(records) < share
    ranking = _open(views, starts).nearest(vector, k, allowed)
    expected = _near(views, starts, vector, k, allowed) if vector.any() else []
    assert ranking.scores == pytest.approx([score for _, score in expected], abs=1e-5)
    values = dict(_near(views, starts, vector, records, allowed))
    assert [values[row] for row in ranking.rows] == pytest.approx(ranking.scores, abs=1e-5)
    assert len(set(ranking.rows)) == len(ranking.rows)
    order = list(zip((-score for score in ranking.scores), ranking.rows, strict=True))
    assert order == sorted(order), "ties are ordered by row"


@pytest.mark.thorough
@pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
@pytest.mark.parametrize("is_exact", [True, False])
def test_filters_of_any_share_give_the_nearest_that_pass(
    share: float, is_exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "_FEW", 100)  # 8,000 views are few
    views, starts = _real()
    segment = _open(views, starts, None if is_exact else _approximate())
    allowed = np.random.default_rng(1).random(segment.size) < share
    found = expected = 0
    for at in range(0, len(views), 801):
        vector = views[at].astype(np.float32)
        if not vector.any():
            continue
        ranking = segment.nearest(vector, 10, allowed)
        wanted = _near(views, starts, vector, 10, allowed)
        assert len(ranking.rows) == len(wanted)
        assert allowed[list(ranking.rows)].all()
        found += sum(score >= wanted[-1][1] - 1e-5 for score in ranking.scores)
        expected += len(wanted)
    assert found == expected if is_exact else found >= 0.95 * expected


@pytest.mark.thorough
def test_the_approximate_index_finds_what_is_near() -> None:
    """Also for questions that are no view of the segment."""
    views, starts = _real()
    segment = _open(views, starts, _approximate())
    assert _recall(segment) >= 0.98
    texts = [
        "CUDA out of memory",
        "训练 loss 变成 NaN",
        "NCCL timeout on rank 3",
        "no module named torch",
        "进程 卡住 不动",
    ]
    found = 0
    for vector in open_encoder().encode(texts, kind="query"):
        ranking, wanted = segment.nearest(vector, 10), _near(views, starts, vector, 10)
        found += len(set(ranking.rows) & {row for row, _ in wanted})
        values = dict(_near(views, starts, vector, segment.size))
        assert ranking.scores == pytest.approx([values[row] for row in ranking.rows], abs=1e-5), "cosines are exact"
    assert found >= 45


@pytest.mark.thorough
def test_recall_sees_an_index_that_finds_little() -> None:
    views, starts = _real()
    other = approximate(views[::-1].copy(), starts, many=1000)
    assert other is not None
    assert _recall(_open(views, starts, other.data)) < 0.9


@pytest.mark.thorough
@pytest.mark.parametrize("k", [1, 1900, 5000])
def test_more_is_read_until_k_records_are_found(k: int) -> None:
    views, starts = _real()
    vector = views[8].astype(np.float32)
    ranking = _open(views, starts, _approximate()).nearest(vector, k)
    assert len(ranking.rows) == len(_near(views, starts, vector, k))


@pytest.mark.thorough
def test_equal_views_give_equal_bytes() -> None:
    seen: list[tuple[int, int]] = []
    again = approximate(*_real(), lambda done, of: seen.append((done, of)), many=1000)
    assert again is not None
    assert again.data.tobytes() == _approximate().tobytes()
    assert seen[-1] == (8_000, 8_000)
    assert approximate(*_real()) is None, "so few are searched exactly"


@pytest.mark.parametrize("kept", [0, 1 << 24])
def test_the_vectors_of_rows(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "_MOST_KEPT", kept)
    views, starts = _segment(5, 30)
    segment = _open(views, starts)
    for rows in ([], [0], [3, 4, 5], [2, 9, 29], list(range(30))):
        expected = [at for row in rows for at in range(starts[row], starts[row + 1])]
        for _ in range(2):  # the second time they may be kept
            got = segment.of(np.array(rows, int))
            assert got.vectors.dtype == np.float32
            assert (got.vectors == views[expected].astype(np.float32)).all()
            assert got.rows.tolist() == [row for row in rows for _ in range(starts[row], starts[row + 1])]
            assert got.kinds.tolist() == [at % 5 for at in expected]


def test_opening_and_searching_maps_what_lies_in_a_file(tmp_path: Path) -> None:
    views, starts = _segment(9, 200)
    (tmp_path / "views").write_bytes(views.tobytes())
    mapped = np.memmap(tmp_path / "views", np.float16, "r", shape=views.shape)
    vector = np.eye(8, dtype=np.float32)[3]
    assert _open(mapped, starts).nearest(vector, 7) == _open(views, starts).nearest(vector, 7)


@pytest.mark.parametrize("starts", [[], [0], [1, 4], [0, 3], [0, 5], [0, 3, 2, 4], [[0, 4]]], ids=str)
def test_what_does_not_belong_together_is_refused(starts: list[int]) -> None:
    with pytest.raises(ValueError, match="belong together"):
        Vectors(np.zeros((4, 8), np.float16), np.array(starts, np.int64), np.zeros(4, np.int32))
