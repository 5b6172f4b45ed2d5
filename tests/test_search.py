"""Questions to the knowledge base of the frozen corpus: what is found, what is not, the form of answers."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import CORPUS, THOROUGH, check_growth

from kb import KnowledgeBase, SearchResult
from kb.base import MAX_K
from kb.encoders import Encoder, open_encoder
from kb.errors import IndexMissing, QueryError
from kb.search.verdict import KNOWN_AT, LIKELY_AT, MOST_LIKELY, verdict

CASES = Path(__file__).parent / "cases"
CORPUS_SLUGS = {path.stem for path in CORPUS.glob("en/*.md")}


def _load(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CASES / name).read_text("utf-8").splitlines()]


QUESTIONS = [
    question
    for question in _load("questions.jsonl") + _load("development.jsonl")
    if question["issue"] is None or question["issue"].partition("#")[0] in CORPUS_SLUGS
]
BY_ID = {question["id"]: question for question in QUESTIONS}


@pytest.fixture(scope="module")
def base(index: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(index) as opened:
        yield opened


@pytest.fixture(scope="module")
def known(base: KnowledgeBase) -> set[str]:
    return {record.issue for record in base.records()}


@pytest.fixture(scope="module")
def answer(base: KnowledgeBase) -> Callable[[str], SearchResult]:
    """The answer to a question by its name; each is asked once."""
    return cache(lambda name: base.search(BY_ID[name]["query"], 10))


@pytest.fixture(scope="module")
def answers(answer: Callable[[str], SearchResult]) -> list[SearchResult]:
    """To the questions that the corpus answers, and to those that nothing answers: to all, or to some of each kind."""
    return [answer(name) for name in [*BY_ID][:: 1 if THOROUGH else 4]]


# --- what must be found ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "q01",  # a line of the trainer's own log, en
        "q02",  # an exception with a rank
        "q11",  # a signal
        "q16",  # frame and exception in one line
        "q21",
        "q26",  # out of memory, of which there are many
        "q31",
        "q36",
        "q40",
        "q05",  # keywords
        "q10",
        "q25",
        "q07",  # whole logs
        "q13",
        "q17",
        "q22",
        "q23",  # descriptions, en
        "q41",
        "q15",  # descriptions, zh
        "q42",
    ],
)
def test_these_are_first_and_answered(name: str, answer: Callable[[str], SearchResult]) -> None:
    hit = answer(name).hits[0]
    assert hit.issue == BY_ID[name]["issue"]
    assert hit.confidence >= KNOWN_AT
    assert answer(name).answered


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("q07", "RuntimeError: Expected to mark a variable ready only once."),
        ("q13", "Caught signal 8 (Floating point exception: integer divide by zero)"),
        ("q17", "TypeError: 'NoneType' object is not iterable"),
        ("q22", "IndexError: pop from an empty deque"),
    ],
)
def test_a_whole_log_works_as_well_as_the_line_that_matters(
    name: str, line: str, base: KnowledgeBase, answer: Callable[[str], SearchResult]
) -> None:
    log = BY_ID[name]["query"]
    assert line in log
    assert len(log.splitlines()) > 10
    right = {BY_ID[name]["issue"], *BY_ID[name].get("also", [])}
    assert {base.search(line).hits[0].issue, answer(name).hits[0].issue} <= right
    assert answer(name).answered


FORTY = (
    "Traceback (most recent call last):\n"
    + "".join(
        f'  File "/opt/lib/pkg{i}/module_{i}.py", line {i}, in call_{i}\n    return step_{i}(x)\n' for i in range(19)
    )
    + "IndexError: pop from an empty deque"
)


@pytest.mark.parametrize("dress", ["plain", "ranks", "windows", "colours", "chinese", "megabyte"])
def test_forty_lines_of_frames_do_not_hide_the_last(dress: str, base: KnowledgeBase) -> None:
    text = {
        "plain": FORTY,
        "ranks": "\n".join(f"[rank{i % 8}]: {line}" for i, line in enumerate(FORTY.split("\n"))),
        "windows": FORTY.replace("\n", "\r\n") + "\r\n",
        "colours": "\x1b[31m" + FORTY.replace("\n", "\x1b[0m\n\x1b[31m") + "\x1b[0m",
        "chinese": "跑到第二步就报错了，请问怎么解决\n" + FORTY,
        "megabyte": "INFO one more step is done\n" * 40_000 + FORTY,
    }[dress]
    assert len(FORTY.split("\n")) == 40
    result = base.search(text)
    assert result.answered
    assert result.hits[0].issue == base.search("IndexError: pop from an empty deque").hits[0].issue


# --- what must not be answered --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "qzxv wvjq xkcdq",
        "zzzzqqqq",
        "鱻麤龘靐",
        "!? 7",
        "жук щука",
        "🙂 ᚠᚢᚦ",
        "a",
        "的",
        "0x7f3a9c00",
        "[rank0]:",
        "11:20:18",
        "Floating point exception",  # the shell of any program; an article of the corpus prints it
    ],
)
def test_no_signal_no_answer(text: str, base: KnowledgeBase) -> None:
    result = base.search(text)
    assert not result.answered
    _check_form(result)


@pytest.mark.parametrize(
    ("text", "issue"),
    [
        ("pop from an empty deque", "ms-swift-ovis2-grpo#2"),
        ("reward_std nan", "vlm-r1-training-errors#1"),
        ("断点续训从第 0 步开始", "vlm-r1-oom-and-resume#2"),
        ("resume starts at step 0", "vlm-r1-oom-and-resume#2"),
        ("undefined symbol ncclCommRegister", "torch-ncclcommregister-symbol#1"),
    ],
)
def test_a_short_question_that_tells_is_answered(text: str, issue: str, base: KnowledgeBase) -> None:
    result = base.search(text)
    assert result.hits[0].issue == issue
    assert result.answered


class _Broken:
    """The shipped encoder; questions get vectors of `value`."""

    def __init__(self, inner: Encoder, value: float) -> None:
        self.name, self.revision, self.dim = inner.name, inner.revision, inner.dim
        self._inner, self._value = inner, value

    def encode(self, texts: Sequence[str], *, kind: Any) -> Any:
        vectors = self._inner.encode(texts, kind=kind)
        return np.full_like(vectors, self._value) if kind == "query" else vectors


@pytest.mark.parametrize("value", [0.0, math.nan, math.inf, -math.inf])
def test_an_encoder_that_knows_nothing_or_breaks(value: float, index: Path) -> None:
    with KnowledgeBase.open(index, encoder=_Broken(open_encoder(), value)) as base:
        result = base.search("IndexError: pop from an empty deque")
        assert result.hits[0].issue == "ms-swift-ovis2-grpo#2"  # by its words
        _check_form(result)
        nothing = base.search("qzxv wvjq xkcdq")
        assert not nothing.answered
        assert nothing.hits == ()


def test_an_empty_base_answers_nothing(tmp_path: Path) -> None:
    (tmp_path / "articles").mkdir()
    KnowledgeBase.build(tmp_path / "articles", tmp_path / "index")
    with KnowledgeBase.open(tmp_path / "index") as base:
        result = base.search("IndexError: pop from an empty deque")
        assert (result.answered, result.hits) == (False, ())
        assert base.projects() == []
        with pytest.raises(QueryError):
            base.search("x", project="DeepSpeed")
        with pytest.raises(IndexMissing):
            base.show("x#1")


# --- the form of an answer ------------------------------------------------------------------------------------------


def _check_form(result: SearchResult) -> None:
    assert [hit.rank for hit in result.hits] == list(range(1, len(result.hits) + 1))
    assert len({hit.issue for hit in result.hits}) == len(result.hits)
    scores = [hit.score for hit in result.hits[MOST_LIKELY:]]
    assert scores == sorted(scores, reverse=True)
    sure = [hit.confidence for hit in result.hits[:MOST_LIKELY]]
    assert sure == sorted(sure, reverse=True)
    for hit in result.hits:
        assert hit.issue == hit.record.issue
        assert 0 <= hit.confidence < 1
        assert (hit.confidence == 0) == hit.ruled_out
        assert 0 <= hit.score <= 1
        for value in astuple(hit.features):
            assert 0 <= value <= 1.0001
        assert all(math.isfinite(value) for value in astuple(hit.evidence))
    said = verdict(result.hits[0].confidence) if result.hits else "unknown"
    assert result.verdict in {said, "unknown"}
    assert result.verdict == said or (result.query.is_log and not result.query.failures)
    assert result.answered == (result.verdict == "known")
    likely = [hit.issue for hit in result.hits if hit.confidence >= LIKELY_AT][:MOST_LIKELY]
    assert list(result.likely) == (likely if result.verdict == "likely" else [])


def test_every_answer_has_the_form_it_promises(answers: list[SearchResult]) -> None:
    assert len(answers) > (100 if THOROUGH else 25)
    for result in answers:
        _check_form(result)


def test_the_public_form_has_the_keys_of_the_contract(base: KnowledgeBase) -> None:
    answer = base.search("IndexError: pop from an empty deque").as_dict()
    assert list(answer) == [
        "query",
        "lang",
        "answered",
        "verdict",
        "likely",
        "took_ms",
        "snapshot",
        "bases",
        "silent",
        "results",
    ]
    assert list(answer["results"][0]) == [
        "rank",
        "issue",
        "lang",
        "project",
        "title",
        "summary",
        "symptom",
        "cause",
        "fix",
        "triage",
        "leads_to",
        "only_when",
        "confusable",
        "errors",
        "versions",
        "tags",
        "sources",
        "updated",
        "base",
        "path",
        "lines",
        "score",
        "confidence",
        "similarity",
        "idf_coverage",
        "matched",
    ]
    assert answer["snapshot"] == base.snapshot
    assert answer["took_ms"] > 0


def test_the_public_form_survives_json(answers: list[SearchResult]) -> None:
    for result in answers:
        form = result.as_dict()
        assert json.loads(json.dumps(form, allow_nan=False)) == form


def test_a_hit_says_where_it_stands(answers: list[SearchResult]) -> None:
    hits = {hit.record.id: hit.as_dict() for result in answers for hit in result.hits}
    assert len(hits) > 9
    for name, hit in hits.items():
        first, last = hit["lines"]
        lines = (CORPUS.parent / hit["path"]).read_text("utf-8").splitlines()
        assert 1 <= first <= last <= len(lines), name
        assert hit["title"] in "\n".join(lines[first - 1 : last]), name


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("[rank3]: IndexError: pop from an empty deque", "pop from an empty deque"),
        ("marked as ready twice", "ready"),
        ("断点续训", "续"),
    ],
)
def test_a_hit_says_what_it_shares_with_the_question(text: str, shared: str, base: KnowledgeBase) -> None:
    matched = base.search(text).hits[0].matched
    assert any(shared in one for one in matched)
    assert len(matched) <= 5
    assert len(set(matched)) == len(matched)


# --- language and project -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "lang"),
    [
        ("IndexError: pop from an empty deque", "en"),
        ("训练到第二步从空队列里取元素就崩了", "zh"),
        ("怎么解决？\n[rank0]: IndexError: pop from an empty deque", "zh"),
        ("how do I fix this?\n[rank0]: IndexError: pop from an empty deque", "en"),
    ],
)
def test_an_issue_is_told_in_the_language_of_the_question(text: str, lang: str, base: KnowledgeBase) -> None:
    result = base.search(text)
    assert result.query.lang == lang
    assert result.hits[0].issue == "ms-swift-ovis2-grpo#2"
    assert {hit.record.lang for hit in result.hits} == {lang}


def test_an_issue_told_in_one_language_is_shown_in_that(tmp_path: Path) -> None:
    article = "# Notes\n\n## It overheats\n\n### Symptom\n\nIt prints `FrobError: too hot`.\n\n### Fix\n\nWait.\n"
    (tmp_path / "articles" / "en").mkdir(parents=True)
    (tmp_path / "articles" / "en" / "frob.md").write_text(article, "utf-8")
    KnowledgeBase.build(tmp_path / "articles", tmp_path / "index")
    with KnowledgeBase.open(tmp_path / "index") as base:
        result = base.search("训练的时候报错 FrobError: too hot 怎么办")
        assert (result.query.lang, result.hits[0].record.lang) == ("zh", "en")
        assert base.search("FrobError: too hot", only="zh").hits == ()
        assert base.search("FrobError: too hot", lang="zh").hits[0].record.lang == "en"  # it has no other


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_language_filter(lang: Any, base: KnowledgeBase) -> None:
    for text in ("IndexError: pop from an empty deque", "断点续训从第 0 步开始"):
        result = base.search(text, k=MAX_K, only=lang)
        assert result.hits
        assert {hit.record.lang for hit in result.hits} == {lang}


def test_the_project_filter(base: KnowledgeBase) -> None:
    told: dict[str, set[str]] = defaultdict(set)
    for record in base.records():
        told[record.issue] |= {name.casefold() for name in (record.project, *record.tags) if name}
    found: set[str] = set()
    for project, count in base.projects():
        hits = base.search("training CUDA error loss 训练", k=MAX_K, project=project).hits
        assert all(project.casefold() in told[hit.issue] for hit in hits)
        assert sum(hit.record.project == project for hit in hits) == count
        found |= {hit.issue for hit in hits}
    assert found == told.keys()
    for spelling in ("PYTORCH", "pytorch"):
        assert base.search("loss", project=spelling).hits == base.search("loss", project="PyTorch").hits


def test_a_project_that_is_not_there(base: KnowledgeBase) -> None:
    with pytest.raises(QueryError) as caught:
        base.search("CUDA out of memory", project="NoSuchProject")
    assert "NoSuchProject" in str(caught.value)
    assert base.projects()[0][0] in str(caught.value.hint)


def test_both_filters_at_once(base: KnowledgeBase) -> None:
    hits = base.search("loss nan", only="zh", project="vlm-r1").hits
    assert {(hit.record.lang, hit.record.project) for hit in hits} == {("zh", "VLM-R1")}


# --- bounds ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, -1, MAX_K + 1, 10**9])
def test_k_out_of_bounds(k: int, base: KnowledgeBase) -> None:
    with pytest.raises(QueryError, match=str(MAX_K)):
        base.search("CUDA out of memory", k=k)


def test_k_bounds_the_list(base: KnowledgeBase, known: set[str]) -> None:
    full = base.search("CUDA error during training: loss is nan", k=MAX_K)
    assert 5 < len(full.hits) <= len(known)
    for k in (1, 2, 5):
        short = base.search("CUDA error during training: loss is nan", k=k)
        assert [hit.issue for hit in short.hits] == [hit.issue for hit in full.hits[:k]]
        assert short.answered == full.answered


@pytest.mark.parametrize("text", ["", " \n", "!?", "🙂", "\x1b[0m"], ids=ascii)
def test_a_question_without_a_word(text: str, base: KnowledgeBase) -> None:
    with pytest.raises(QueryError):
        base.search(text)


@pytest.mark.thorough
@pytest.mark.parametrize("unit", ["的", "a", "a ", "error\n", "0x7f ", "显存不足", "w1 w2 w3 w4 "])
def test_time_grows_with_a_long_question(unit: str, base: KnowledgeBase) -> None:
    def ask(size: int) -> Callable[[], object]:
        text = unit * (size // len(unit)) + "\nIndexError: pop from an empty deque"
        return lambda: _check_form(base.search(text))

    check_growth(ask, 1 << 15)


def test_two_thousand_different_words(base: KnowledgeBase) -> None:
    text = " ".join(f"word{i}" for i in range(5000)) + "\nIndexError: pop from an empty deque"
    assert base.search(text).hits[0].issue == "ms-swift-ovis2-grpo#2"


# --- the same question, the same answer -----------------------------------------------------------------------------


def _timeless(result: SearchResult) -> dict[str, Any]:
    return {**result.as_dict(), "took_ms": 0}


SAMPLE = [BY_ID[name]["query"] for name in ("q02", "q04", "q07", "q16", "q29", "n16", "n19", "n01")]


def test_twenty_times(base: KnowledgeBase) -> None:
    first = _timeless(base.search(SAMPLE[1]))
    assert all(_timeless(base.search(SAMPLE[1])) == first for _ in range(19))


@pytest.mark.thorough
def test_from_eight_threads(base: KnowledgeBase) -> None:
    alone = [_timeless(base.search(text)) for text in SAMPLE]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda i: (i, _timeless(base.search(SAMPLE[i]))), [*range(len(SAMPLE))] * 5))
    assert len(together) == 40
    assert all(answer == alone[i] for i, answer in together)


@pytest.mark.costly
@pytest.mark.parametrize("threads", [1, 2])
def test_with_another_number_of_cores(threads: int, base: KnowledgeBase) -> None:
    """FAISS may add up in another order; nobody sees that."""
    import faiss

    before = faiss.omp_get_max_threads()
    alone = [_timeless(base.search(text)) for text in SAMPLE]
    faiss.omp_set_num_threads(threads)
    try:
        found = [_timeless(base.search(text)) for text in SAMPLE]
    finally:
        faiss.omp_set_num_threads(before)
    for one, other in zip(alone, found, strict=True):
        assert [hit["issue"] for hit in one["results"]] == [hit["issue"] for hit in other["results"]]
        for mine, theirs in zip(one["results"], other["results"], strict=True):
            assert mine["score"] == pytest.approx(theirs["score"], abs=1e-5)


def test_from_another_opening(index: Path, base: KnowledgeBase) -> None:
    with KnowledgeBase.open(index) as other:
        assert [_timeless(other.search(text)) for text in SAMPLE] == [_timeless(base.search(text)) for text in SAMPLE]


# --- show and projects ----------------------------------------------------------------------------------------------


def test_show(base: KnowledgeBase, known: set[str]) -> None:
    for issue in sorted(known)[::32]:
        assert {record.issue for record in base.show(issue)} == {issue}
    both = base.show("ms-swift-ovis2-grpo#2")
    assert [record.lang for record in both] == ["en", "zh"]
    assert base.show(" MS-Swift-Ovis2-GRPO#2 ") == both
    assert base.show("ms-swift-ovis2-grpo#2/zh") == both[1:]
    whole = base.show("ms-swift-ovis2-grpo")
    assert {record.issue for record in whole} == {issue for issue in known if issue.startswith("ms-swift-ovis2-grpo#")}


@pytest.mark.parametrize(
    "issue",
    ["nothing#1", "", "../../etc/passwd", "a" * 10_000, "\x00", "ms-swift-ovis2-grpo#99", "#1", "%2e%2e", "\ud800"],
)
def test_show_of_what_is_not_there(issue: str, base: KnowledgeBase) -> None:
    with pytest.raises(IndexMissing) as caught:
        base.show(issue)
    assert caught.value.hint


def test_show_suggests_what_is_near(base: KnowledgeBase) -> None:
    with pytest.raises(IndexMissing) as caught:
        base.show("ms-swift-ovis-grpo#2")
    assert "ms-swift-ovis2-grpo#2" in str(caught.value.hint)


def test_projects_count_issues_once(base: KnowledgeBase) -> None:
    issues = defaultdict(set)
    for record in base.records():
        issues[record.project].add(record.issue)
    issues.pop(None, None)
    found = base.projects()
    assert dict(found) == {project: len(names) for project, names in issues.items()}
    assert [count for _, count in found] == sorted((count for _, count in found), reverse=True)


# --- what contradicts, and what a filter does -----------------------------------------------------------------------

_EXITS = """\
[2025-01-01 10:00:00,000] [INFO] [stage3.py:137] CPU Offload: True
[2025-01-01 10:00:01,000] [INFO] [launch.py:318:sigkill_handler] Killing subprocess 48121
[2025-01-01 10:00:02,000] [ERROR] [launch.py:322:sigkill_handler] ['python3', 'train.py'] exits with return code = {}
"""


def test_another_signal_is_another_failure(base: KnowledgeBase) -> None:
    killed = base.search(_EXITS.format(-9))
    assert killed.answered
    assert killed.hits[0].issue == "deepspeed-offload-exit-minus-9#1"
    for code in (-11, -6, -7, 1):
        other = base.search(_EXITS.format(code))
        assert not (other.answered and other.hits[0].issue == "deepspeed-offload-exit-minus-9#1"), code
    assert not base.search("NVRM: Xid (PCI:0000:3b:00): 31, pid=77, MMU Fault").answered
    assert base.search("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus").answered


@pytest.mark.parametrize(
    ("text", "project"),
    [
        ("num_workers大于0就卡住不动,也不报错,设成0就正常", "vLLM"),
        ("IndexError: pop from an empty deque", "vLLM"),
        ("undefined symbol ncclCommRegister", "DeepSpeed"),
    ],
)
def test_a_filter_makes_nobody_surer(text: str, project: str, base: KnowledgeBase) -> None:
    free, filtered = base.search(text, 20), base.search(text, 20, project=project)
    before = {hit.issue: hit.confidence for hit in free.hits}
    assert free.hits[0].issue not in {hit.issue for hit in filtered.hits}
    assert not filtered.answered
    for hit in filtered.hits:
        assert hit.confidence <= before.get(hit.issue, 1) + 0.02


def test_a_closed_base_says_so(index: Path) -> None:
    base = KnowledgeBase.open(index)
    base.close()
    with pytest.raises(IndexMissing, match="closed"):
        base.search("IndexError: pop from an empty deque")
