"""`kb eval`: figures against naive loops, the forms of a question, what the command prints, refuses and exits with."""

from __future__ import annotations

import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from conftest import CORPUS, Write, article, examples
from hypothesis import given, settings
from hypothesis import strategies as st

from kb import KnowledgeBase
from kb.cli import cli
from kb.cli.common import table
from kb.errors import IndexWriteFailed, KbError, QueryError
from kb.evaluate import (
    DEPTH,
    METRICS,
    Judged,
    Question,
    Summary,
    calibrate,
    evaluate,
    judge,
    read_questions,
    summarise,
    wilson,
)
from kb.evaluate.leave_out import left_out
from kb.search.verdict import KNOWN_AT

POP = "IndexError: pop from an empty deque"
DEQUE = "ms-swift-ovis2-grpo#2"
TYRE = "how do I fix a flat tyre on my bicycle"


def question(
    issue: str | None = "a#1", *also: str, query: str = "boom", kind: str = "line", lang: str = "en"
) -> Question:
    return Question("q", query, issue, also, kind, lang, "q.jsonl", 1)


def judged(
    issue: str | None, found: Sequence[str], *also: str, sure: float | None = 0.7, took_ms: float = 1.0
) -> Judged:
    """A base with the articles a to e, of three issues each, that speaks from 0.5 on."""
    known = {f"{slug}{number}" for slug in "abcde" for number in ("", "#1", "#2", "#3")}
    sure = sure if found else None
    answered = sure is not None and sure >= 0.5
    return judge(question(issue, *also), found, known, confidence=sure, answered=answered, took_ms=took_ms)


# --- figures against naive loops ------------------------------------------------------------------------------------

ISSUES = [f"{slug}#{number}" for slug in "abcde" for number in (1, 2, 3)]
RANKINGS = st.lists(st.sampled_from(ISSUES), unique=True, max_size=DEPTH + 3)
ASKED = st.builds(
    judged,
    st.sampled_from([*ISSUES, "a", "b", None]),
    RANKINGS,
    sure=st.floats(0, 1),
    took_ms=st.floats(0.01, 100),
)
few = settings(max_examples=examples(50))  # each is a handful of questions
MANY = st.lists(ASKED, min_size=1, max_size=10)
KNOWN = st.lists(ASKED.filter(lambda one: one.wanted > 0), min_size=1, max_size=10)


def first(one: Judged) -> float:
    """Where the first right issue stands, by looking."""
    for place, issue in enumerate(one.found, 1):
        if issue == one.question.issue or issue.split("#")[0] == one.question.issue:
            return place
    return math.inf


@few
@given(KNOWN)
def test_recall_and_mrr_are_those_of_a_loop(asked: list[Judged]) -> None:
    found = summarise(asked).known
    assert found is not None
    for depth, value in ((1, found.recall_at_1), (3, found.recall_at_3), (10, found.recall_at_10)):
        assert value == pytest.approx(sum(first(one) <= depth for one in asked) / len(asked))
    assert found.mrr_at_10 == pytest.approx(sum(1 / first(one) for one in asked) / len(asked))
    assert found.answered == pytest.approx(sum(one.answered for one in asked) / len(asked))
    assert found.answered_right == pytest.approx(sum(one.answered and first(one) == 1 for one in asked) / len(asked))


@given(st.sets(st.sampled_from(ISSUES), min_size=1), RANKINGS)
def test_ndcg_is_that_of_a_loop(right: set[str], found: list[str]) -> None:
    gain = sum(1 / math.log2(1 + place) for place, issue in enumerate(found[:10], 1) if issue in right)
    best = sum(1 / math.log2(1 + place) for place in range(1, min(len(right), 10) + 1))
    issue, *also = sorted(right)
    known = summarise([judged(issue, found, *also)]).known
    assert known is not None
    assert known.ndcg_at_10 == pytest.approx(gain / best)


@pytest.mark.parametrize(
    ("issue", "also", "found", "ranks", "wanted"),
    [
        ("a#1", (), ["a#1", "a#2"], (1,), 1),
        ("a#1", (), ["a#2", "a#1"], (2,), 1),
        ("a#1", ("b#1",), ["b#1", "c#1", "a#1"], (1, 3), 2),
        ("a", (), ["c#1", "a#3", "a#1"], (2,), 1),  # any issue of the article, once
        ("a", ("a#1",), ["a#1", "a#2"], (1, 2), 2),
        ("a#1", ("gone#1",), ["b#1", "a#1"], (2,), 1),  # what is not in the base cannot be missed
        ("gone#1", ("a#1",), ["a#1"], (1,), 1),
        ("a#1", (), [], (), 1),
        (None, (), ["a#1"], (), 0),
        ("a#1", (), [*(f"b#{n}" for n in range(10)), "a#1"], (), 1),  # eleventh
    ],
)
def test_what_is_right(
    issue: str | None, also: tuple[str, ...], found: list[str], ranks: tuple[int, ...], wanted: int
) -> None:
    one = judged(issue, found, *also)
    assert (one.ranks, one.wanted) == (ranks, wanted)


@pytest.mark.parametrize(
    ("issue", "found", "sure", "wrong"),
    [
        ("a#1", ["a#1"], 0.5, None),
        ("a#1", ["a#1"], 0.4, "not answered"),
        ("a#1", ["b#1"], 0.9, "wrong answer"),
        ("a#1", ["b#1"], 0.4, "wrong first"),
        ("a#1", [], None, "wrong first"),
        (None, ["a#1"], 0.9, "answered"),
        (None, ["a#1"], 0.1, None),
        (None, [], None, None),
    ],
)
def test_what_went_wrong(issue: str | None, found: list[str], sure: float | None, wrong: str | None) -> None:
    assert judged(issue, found, sure=sure).wrong == wrong


# --- laws -----------------------------------------------------------------------------------------------------------


@few
@given(KNOWN)
def test_recall_grows_with_depth_and_mrr_lies_between(asked: list[Judged]) -> None:
    found = summarise(asked).known
    assert found is not None
    assert 0 <= found.recall_at_1 <= found.recall_at_3 <= found.recall_at_10 <= 1
    assert found.recall_at_1 <= found.mrr_at_10 <= found.recall_at_10
    assert found.recall_at_1 <= found.ndcg_at_10 + 1e-12 <= found.recall_at_10 + 2e-12
    assert found.answered_right <= min(found.answered, found.recall_at_1)


@few
@given(MANY, st.randoms(use_true_random=False))
def test_the_order_of_questions_changes_nothing(asked: list[Judged], rng: random.Random) -> None:
    shuffled = list(asked)
    rng.shuffle(shuffled)
    assert summarise(shuffled) == summarise(asked)


@few
@given(MANY)
def test_known_and_unknown_are_counted_apart(asked: list[Judged]) -> None:
    found = summarise(asked)
    unknown = [one for one in asked if one.question.issue is None]
    assert (found.known.n if found.known else 0) == len(asked) - len(unknown)
    assert (found.unknown.n if found.unknown else 0) == len(unknown)
    if found.unknown:
        assert found.unknown.abstention_rate == pytest.approx(sum(not one.answered for one in unknown) / len(unknown))
    assert summarise(one for one in asked if one.wanted).known == found.known


@few
@given(MANY)
def test_latency_is_that_of_questions(asked: list[Judged]) -> None:
    times = sorted(one.took_ms for one in asked)
    found = summarise(asked).latency_ms
    assert found is not None
    assert found.p50 <= found.p95 <= found.p99 <= found.max == times[-1]
    for percent, value in ((50, found.p50), (95, found.p95), (99, found.p99)):
        assert sum(time <= value for time in times) >= percent / 100 * len(times)
        assert sum(time < value for time in times) < percent / 100 * len(times)


def test_of_nothing_there_are_no_figures() -> None:
    assert summarise([]) == Summary(None, None, None, None)
    assert summarise([]).metrics() == dict.fromkeys(METRICS)
    assert calibrate([]) is None


# --- calibration ----------------------------------------------------------------------------------------------------

SEEN = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=20)


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 4)), min_size=1, max_size=8))
def test_a_perfect_confidence_has_no_error(groups: list[tuple[int, int]]) -> None:
    """Of 8 first hits at a confidence of right/8, as many are right."""
    seen = [(right / 8, n < right) for right, times in groups for n in range(8)] * groups[0][1]
    found = calibrate(seen)
    assert found is not None
    assert found.error == pytest.approx(0, abs=1e-12)


@given(SEEN)
def test_the_calibration_error_is_that_of_a_loop(seen: list[tuple[float, bool]]) -> None:
    found = calibrate(seen)
    assert found is not None
    rights = sum(right for _, right in seen)
    error, balanced = 0.0, 0.0
    for number in range(10):
        inside = [(c, r) for c, r in seen if min(int(c * 10), 9) == number]
        error += abs(sum(c - r for c, r in inside)) / len(seen)
        if 0 < rights < len(seen):
            balanced += abs(sum((c - r) * 0.5 / (rights if r else len(seen) - rights) for c, r in inside))
        one = found.bins[number]
        assert (one.n, one.low) == (len(inside), number / 10)
        assert one.confidence == (pytest.approx(sum(c for c, _ in inside) / len(inside)) if inside else None)
        assert one.right == (pytest.approx(sum(r for _, r in inside) / len(inside)) if inside else None)
    assert found.error == pytest.approx(error)
    assert found.balanced_error == (pytest.approx(balanced) if 0 < rights < len(seen) else None)
    assert 0 <= found.error <= 1


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=12))
def test_where_half_is_right_both_errors_are_one(pairs: list[tuple[float, float]]) -> None:
    found = calibrate(
        [(confidence, right) for pair in pairs for confidence, right in zip(pair, (True, False), strict=True)]
    )
    assert found is not None
    assert found.balanced_error == pytest.approx(found.error)


def test_wilson() -> None:
    """Newcombe, "Two-sided confidence intervals for the single proportion" (1998), table I, method 3."""
    for hits, n, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        assert wilson(hits, n) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


# --- questions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            {"id": "q1", "issue": "a#1", "kind": "line", "lang": "en", "query": "boom", "also": ["b#2"], "why": "x"},
            ("q1", ("a#1", "b#2"), "line", "en"),
        ),
        ({"id": "q2", "issue": None, "kind": "far", "lang": "zh", "query": "x"}, ("q2", (), "far", "zh")),
        (
            {"qid": "A1", "slug": "a", "record": 2, "kind": "nl", "lang": "en", "query": "x"},
            ("A1", ("a#2",), "nl", "en"),
        ),
        (
            {"qid": "A2", "slug": "a", "record": 1, "query": "x", "also": [["b", 3]]},
            ("A2", ("a#1", "b#3"), "any", "en"),
        ),
        ({"qid": "N1", "kind": "near", "lang": "en", "query": "x"}, ("N1", (), "near", "en")),
        ({"issue": "a", "query": "训练卡住"}, ("1", ("a",), "any", "zh")),
        ({"id": 7, "slug": "a", "query": "x"}, ("7", ("a",), "any", "en")),
        ({"id": "q", "issue": "a#1", "also": ["a#1"], "query": "x"}, ("q", ("a#1",), "any", "en")),
    ],
)
def test_a_question_is_read(line: dict[str, Any], told: tuple[str, tuple[str, ...], str, str]) -> None:
    (one,) = read_questions(json.dumps(line).encode(), "q.jsonl")
    assert (one.id, one.wanted, one.kind, one.lang) == told
    assert (one.query, one.path, one.line) == (line["query"], "q.jsonl", 1)


def test_what_has_no_query_is_no_question() -> None:
    data = b'\xef\xbb\xbf{"slug": "a", "title": "t"}\r\n\r\n{"issue": "a#1", "query": "one\\u2028two"}\r\n'
    (one,) = read_questions(data, "q.jsonl")
    assert (one.query, one.line) == ("one\u2028two", 3)
    assert read_questions(b"", "q.jsonl") == read_questions(b"\n \n", "q.jsonl") == []


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"what is this", "no JSON"),
        (b'{"query": "x"', "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b'{"query": "\xff"}', "UTF-8"),
        (b'["query"]', "no object"),
        (b'"query"', "no object"),
        (b'{"query": "x"}', '"issue"'),
        (b'{"query": "x", "kind": "line"}', '"issue"'),
        (b'{"query": 1, "issue": null}', '"query" is no text'),
        (b'{"query": " ", "issue": null}', '"query" is no text'),
        (b'{"query": "x", "issue": 3}', '"issue" is no text'),
        (b'{"query": "x", "issue": "a#1", "kind": []}', '"kind" is no text'),
        (b'{"query": "x", "issue": "a#1", "also": "b#1"}', '"also" is no list'),
        (b'{"query": "x", "issue": "a#1", "also": [1]}', "1 is no issue"),
        (b'{"query": "x", "issue": null, "also": ["b#1"]}', "says that nothing is"),
        (b'{"query": "x", "slug": "a", "record": 0}', "0 is not the number"),
        (b'{"query": "x", "slug": "a", "record": true}', "True is not the number"),
        (b'{"query": "x", "slug": null}', '"slug" is no text'),
    ],
)
def test_a_bad_line_is_named(line: bytes, what: str) -> None:
    with pytest.raises(QueryError) as raised:
        read_questions(b'{"issue": "a#1", "query": "x"}\n\n' + line, "dir/q.jsonl")
    assert str(raised.value).startswith("dir/q.jsonl:3: ")
    assert what in raised.value.message
    assert '{"id": "q1"' in (raised.value.hint or "")


# --- a base ---------------------------------------------------------------------------------------------------------

LINES = [
    {"id": "known", "issue": DEQUE, "kind": "line", "lang": "en", "query": POP},
    {"id": "article", "issue": "ms-swift-ovis2-grpo", "kind": "mixed", "lang": "zh", "query": f"多机训练报错 {POP}"},
    {"id": "wrong", "issue": "vlm-r1-training-errors#1", "kind": "line", "lang": "en", "query": POP},
    {"id": "far", "issue": None, "kind": "far", "lang": "en", "query": TYRE},
    {"id": "gone", "issue": "no-such-article#1", "kind": "line", "lang": "en", "query": "boom\x1b[31m"},
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in LINES), "utf-8")
    return path


def run(*arguments: str | Path, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(cli, ["eval", *map(str, arguments)], input=stdin)


def test_a_base_is_measured(index: Path, file: Path) -> None:
    moved: list[tuple[str, int, int]] = []
    with KnowledgeBase.open(index) as base:
        found = evaluate(base, read_questions(file.read_bytes(), "q"), progress=lambda *step: moved.append(step))
        single = base.search(POP, 10)
        assert (found.issues, found.snapshot, found.min_confidence) == (base.size, base.snapshot, KNOWN_AT)
    by_id = {one.question.id: one for one in found.judged}
    assert by_id["known"].found == tuple(hit.issue for hit in single.hits)
    assert by_id["known"].confidence == single.hits[0].confidence
    assert {name: one.wrong for name, one in by_id.items()} == {
        "known": None,
        "article": None,
        "wrong": "wrong answer",
        "far": None,
    }
    assert [one.id for one in found.absent] == ["gone"]
    assert moved == [("ask", done, 4) for done in (1, 2, 3, 4)]
    assert found.all.known is not None
    assert found.all.known.n == 3
    assert set(found.by_kind) == {"line", "mixed", "far"}
    assert found.by_kind["far"].known is None
    assert set(found.by_lang) == {"en", "zh"}
    assert found.recall_at_1_interval == wilson(2, 3)


@pytest.mark.thorough
def test_the_confidence_from_which_it_speaks(index: Path, file: Path) -> None:
    questions = read_questions(file.read_bytes(), "q")
    with KnowledgeBase.open(index) as base:
        always, never = (evaluate(base, questions, min_confidence=p).all for p in (0.0, 1.0))
        empty = evaluate(base, questions[-1:]).all
    assert always.known is not None and always.unknown is not None
    assert (always.known.answered, always.unknown.abstention_rate) == (1.0, 0.0)
    assert never.known is not None and never.unknown is not None
    assert (never.known.answered, never.unknown.abstention_rate) == (0.0, 1.0)
    assert empty == Summary(None, None, None, None)


def test_a_question_that_cannot_be_asked_is_named(index: Path) -> None:
    with (
        KnowledgeBase.open(index) as base,
        pytest.raises(QueryError, match=r"q\.jsonl:2: there is nothing to look for"),
    ):
        evaluate(base, read_questions(b'\n{"issue": null, "query": "?!"}', "q.jsonl"))


# --- the command ----------------------------------------------------------------------------------------------------


def test_the_command_prints_tables(index: Path, file: Path) -> None:
    ran = run(file, "--index", index, "--misses")
    assert ran.exit_code == 0, ran.output
    lines = [line.split() for line in ran.output.splitlines()]
    assert ["all", "3", "0.667", "0.667", "0.667", "0.667", "0.667", "1.000", "0.667"] in lines
    assert ["far", "1", "1.000"] in lines
    assert "not in this base, and not counted: 1: gone (no-such-article#1)" in ran.output
    assert f"wrong  wrong answer: wants vlm-r1-training-errors#1, finds {DEQUE}" in ran.output
    assert "1 went wrong" in ran.output
    assert "\x1b" not in ran.output
    heads = next(line for line in ran.output.splitlines() if "recall@1" in line)
    row = next(line for line in ran.output.splitlines() if line.startswith("all "))
    assert len(heads) == len(row)  # aligned


def test_a_terminal_gets_the_same_cells(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    heads, rows = ("", "n", "recall@1"), [("all", "12", "0.917"), ("[red]描述", "3", "1.000")]
    table(heads, rows)
    plain = capsys.readouterr().out
    assert plain.splitlines() == ["            n  recall@1", "all        12     0.917", "[red]描述   3     1.000"]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    for variable in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    table(heads, rows)
    coloured = capsys.readouterr().out
    assert "\x1b[1;36m" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured).split() == plain.split()
    monkeypatch.setenv("NO_COLOR", "1")
    table(heads, rows)
    assert "36m" not in capsys.readouterr().out


def test_json_has_stable_keys(index: Path, file: Path) -> None:
    ran = run(file, "--index", index, "--json")
    found = json.loads(ran.output)
    assert list(found) == [
        "snapshot",
        "issues",
        "only",
        "min_confidence",
        "questions",
        "all",
        "by_kind",
        "by_lang",
        "recall@1_interval",
        "misses",
        "not_in_base",
    ]
    assert list(found["all"]) == ["known", "unknown", "calibration", "latency_ms"]
    assert list(found["all"]["known"]) == ["n", *METRICS[:-1]]
    assert list(found["all"]["unknown"]) == ["n", "abstention_rate"]
    assert list(found["all"]["calibration"]) == ["error", "balanced_error", "bins"]
    assert list(found["all"]["calibration"]["bins"][0]) == ["low", "high", "n", "confidence", "right"]
    assert list(found["all"]["latency_ms"]) == ["p50", "p95", "p99", "max"]
    assert list(found["misses"][0]) == ["id", "wrong", "wanted", "found", "confidence", "query"]
    assert found["not_in_base"] == [{"id": "gone", "wanted": ["no-such-article#1"]}]
    assert found["by_kind"]["far"]["known"] is None


def test_stdin_and_files_add_up(index: Path, file: Path) -> None:
    ran = run(file, "-", "--index", index, "--json", stdin=file.read_bytes())
    assert json.loads(ran.output)["questions"] == 8


def test_one_language_only(index: Path, file: Path) -> None:
    found = json.loads(run(file, "--index", index, "--only", "zh", "--json").output)
    assert found["only"] == "zh"
    assert found["all"]["known"]["recall@1"] > 0.5


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("limits", "code", "said"),
    [
        (["recall@1=0.6"], 0, ""),
        (["recall@1=0.6", "abstention_rate=1"], 0, ""),
        (["Recall@1=0.9"], 1, "kb: recall@1 is 0.667, wanted 0.9"),
        (["recall@1=0.6", "answered_right=0.7"], 1, "kb: answered_right is 0.667, wanted 0.7"),
        (["recall@2=0.6"], 2, "mrr@10"),
        (["recall@1"], 2, "recall@1=0.9"),
        (["recall@1=high"], 2, "recall@1=0.9"),
        (["recall@1=90"], 2, "recall@1=0.9"),
        (["recall@1=nan"], 2, "recall@1=0.9"),
    ],
)
def test_fail_under(limits: list[str], code: int, said: str, index: Path, file: Path) -> None:
    ran = run(file, "--index", index, *(word for limit in limits for word in ("--fail-under", limit)))
    assert ran.exit_code == code, ran.output
    assert said in ran.stderr


def test_what_is_not_measured_fails(index: Path) -> None:
    ran = run("-", "--index", index, "--fail-under", "abstention_rate=0", stdin=json.dumps(LINES[0]))
    assert ran.exit_code == 1
    assert "abstention_rate is not measured by any question" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "stdin", "error", "said"),
    [
        (["-"], "", QueryError, "stdin: there is no question"),
        (["-"], '{"title": "t"}\n', QueryError, "stdin: there is no question"),
        (["-"], "boom\n", QueryError, "stdin:1: this is no JSON"),
        (["-", "--plot", "no/such/folder/a.svg"], json.dumps(LINES[0]), IndexWriteFailed, "cannot be written"),
    ],
)
def test_what_goes_wrong_is_said(
    arguments: list[str], stdin: str, error: type[KbError], said: str, index: Path
) -> None:
    if "--plot" in arguments:
        pytest.importorskip("matplotlib", reason="drawing needs kb-issues[plot]")
    ran = run(*arguments, "--index", index, stdin=stdin)
    assert isinstance(ran.exception, error)
    assert said in str(ran.exception)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such-file.jsonl"], "does not exist"),
        (["."], "is a directory"),
        (["-", "--min-confidence", "2"], "--min-confidence"),
        (["-", "--plot", "a.pdf"], "neither .svg nor .png"),
    ],
)
def test_wrong_usage(arguments: list[str], said: str) -> None:
    ran = run(*arguments)
    assert ran.exit_code == 2
    assert said in ran.stderr


def test_without_matplotlib_there_is_word_of_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ran = run("-", "--plot", "a.svg", stdin=json.dumps(LINES[0]))
    assert ran.exit_code == 2
    assert 'pip install "kb-issues[plot]"' in ran.stderr


@pytest.mark.parametrize("name", ["figures.svg", "figures.PNG"])
def test_a_picture(name: str, index: Path, file: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="drawing needs kb-issues[plot]")
    lines = [*LINES, {**LINES[0], "kind": "$描述_{"}]  # neither mathematics nor, in the font, there
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    ran = run(file, "--index", index, "--plot", tmp_path / name)
    assert ran.exit_code == 0, ran.output
    data = (tmp_path / name).read_bytes()
    if name.endswith(".svg"):
        assert "$描述_{ (1)" in data.decode("utf-8")
        assert b"calibration error" in data
    else:
        assert data.startswith(b"\x89PNG")


@pytest.mark.thorough
def test_in_a_process_of_its_own(index: Path, file: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "kb", "eval", str(file), "--index", str(index), "--fail-under", "mrr@10=0.9"],
        capture_output=True,
        env={**os.environ, "NO_COLOR": "1"},
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1
    assert b"mrr@10 is 0.667, wanted 0.9" in ended.stderr
    assert b"\x1b" not in ended.stdout


# --- without the article that answers -------------------------------------------------------------------------------


def test_left_out(write: Write) -> None:
    """Of an article in two languages both files are taken out, for its questions only; what is on disk stays."""
    texts = {
        f"{lang}/{name}.md": article(f"{name} overflow at layer")
        for name in ("walrus", "lantern")
        for lang in ("en", "zh")
    }
    folder = write({**texts, "en/meadow.md": article("meadow underflow")})
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    lines = [
        {"id": "w", "issue": "walrus#1", "query": "RuntimeError: walrus overflow at layer"},
        {"id": "n", "issue": None, "query": "RuntimeError: nothing is about this"},
        {"id": "a", "issue": "lantern", "query": "RuntimeError: lantern overflow at layer"},
        {"id": "both", "issue": "walrus#1", "also": ["meadow#1"], "query": "RuntimeError: meadow underflow"},
        {"id": "w2", "issue": "walrus#1", "query": "walrus"},
        {"id": "gone", "issue": "no-such-article#1", "query": "x"},
    ]
    questions = read_questions("".join(json.dumps(line) + "\n" for line in lines).encode(), "q")
    moved: list[tuple[str, int, int]] = []
    answers = {
        question.id: {hit.issue for hit in result.hits}
        for question, result in left_out(folder, questions, k=5, progress=lambda *step: moved.append(step))
    }
    everything = {"walrus#1", "lantern#1", "meadow#1"}
    assert answers.keys() == {"w", "a", "both", "w2"}  # those that an article answers
    assert answers["w"] <= everything - {"walrus#1"}
    assert "lantern#1" in answers["w"]  # the next best
    assert answers["a"] <= everything - {"lantern#1"}
    assert answers["both"] <= {"lantern#1"}
    assert answers["w2"] <= everything - {"walrus#1"}
    assert moved == [("leave out", done, 6) for done in range(1, 7)]
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.thorough
def test_a_question_is_not_known_without_its_article() -> None:
    """The whole of it: the frozen corpus, asked for what it knows."""
    names = ("q01", "q02", "q11", "q21", "q26")
    cases = (Path(__file__).parent / "cases" / "questions.jsonl").read_text("utf-8").splitlines()
    lines = [case for case in map(json.loads, cases) if case["id"] in names]
    questions = read_questions("".join(json.dumps(line) + "\n" for line in lines).encode(), "q")
    found = {question.id: result for question, result in left_out(CORPUS, questions)}
    assert found.keys() == set(names)
    for question in questions:
        assert not {hit.issue for hit in found[question.id].hits} & {*question.wanted}
    assert sum(result.answered for result in found.values()) <= 1


# --- the base's own questions ---------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_questions_made_from_the_base(index: Path) -> None:
    from kb.evaluate.own import ask_own, own_questions

    with KnowledgeBase.open(index) as base:
        records = base.records()
        found = {one.kind: one for one in ask_own(base.searcher)}
    assert {*found} == {"line", "sentence", "title"}
    for record in records:
        assert list(own_questions(record)) == list(own_questions(record))
        for _, question in own_questions(record):
            assert question not in ("\n".join(record.errors), record.title)
    for one in found.values():
        row = one.as_dict(0.5)
        assert row["questions"] == len(one.right) == len(one.left_out) > 10
        assert row["known_right"] + row["known_wrong"] <= 1
        assert row["left_out_known"] <= row["known_right"]
    assert found["line"].as_dict(0.5)["first"] > 0.8
    assert found["line"].as_dict(0.0)["left_out_known"] == 1.0  # something is always nearest
    assert found["line"].as_dict(1.0)["known_right"] == 0.0


@pytest.mark.thorough
def test_kb_eval_without_a_file(tmp_path: Path) -> None:
    index = tmp_path / "index"
    shutil.copytree(CORPUS / "en", tmp_path / "few" / "en", ignore=lambda _, names: sorted(names)[10:])
    KnowledgeBase.build(tmp_path / "few", index)
    ran = CliRunner().invoke(cli, ["eval", "--index", str(index), "--json"])
    assert ran.exit_code == 0
    form = json.loads(ran.output)
    assert [row["kind"] for row in form["own"]] == ["line", "sentence", "title"]
    told = CliRunner().invoke(cli, ["eval", "--index", str(index)])
    assert "known without its issue" in told.output
