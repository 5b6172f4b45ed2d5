"""kb.search.evidence and kb.search.verdict: the evidence against plain loops, and what is made of it."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import FakeEncoder, Write
from hypothesis import given
from hypothesis import strategies as st

from kb import KnowledgeBase
from kb.encoders import Encoder, open_encoder, term_table
from kb.index.passages import lexical_text
from kb.index.profile import Sentence, profile_sentences
from kb.logs.codes import particulars
from kb.logs.everyones import own_words
from kb.logs.variables import mask
from kb.logs.words import words_of
from kb.records import Evidence, IssueRecord, SearchResult
from kb.scan import Scanner
from kb.search import searcher
from kb.search.evidence import RIVALS, _products
from kb.search.explain import explain
from kb.search.verdict import CLIP, KNOWN_AT, LIKELY_AT, MOST_LIKELY, confidence, contributions, curve_for, verdict
from kb.text import Segmenter, clean, dictionary_for, sentences, tokenise

QUESTIONS = [
    "IndexError: pop from an empty deque",
    "Why does training with DeepSpeed ZeRO-3 stop at the second step? It popped from an empty deque. Nothing helps.",
    "断点续训从第 0 步开始，日志里没有报错，学习率也重新预热了",
    "训练时 PyTorch 报 undefined symbol: ncclCommRegister 怎么办\nImportError: libtorch_cuda.so: undefined symbol",
    "[rank3]: RuntimeError: Expected to mark a variable ready only once.\n[rank3]: Parameter at index 127 was marked",
    "NVRM: Xid (PCI:0000:3b:00): 79, pid=77, GPU has fallen off the bus. RTX 4090, exit code 137",
    "vLLM: the soup is cold",
    "KeyError: 'default'\nTypeError: 'NoneType' object is not iterable",
    "AttributeError: 'DynamicCache' object has no attribute 'get_max_length'",
]


@pytest.fixture(scope="module")
def base(index: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(index) as opened:
        yield opened


class Naive:
    """The evidence in loops over terms and sentences, without profiles, digests and matrices."""

    def __init__(self, base: KnowledgeBase, result: SearchResult, encoder: Encoder) -> None:
        header = base.searcher.store.header
        self.query, self.encoder, self.table = result.query, encoder, term_table()
        vocabulary, information = header.vocabulary, base.searcher._information
        self.of = lambda term: float(information.of([term])[0]) / information.unseen
        self.projects, self.tokenise = header.manifest["projects"], vocabulary.tokenise
        self.names = set(vocabulary.tokenise(" \n".join(header.manifest["projects"])))
        printed_text = "\n".join(self.query.signatures)
        printed = vocabulary.shares(printed_text)
        written = vocabulary.shares(self.query.prose)
        both = {term: max(printed.get(term, 0), written.get(term, 0)) for term in [*written, *printed]}
        self.shares = {term: share for term, share in both.items() if not term.isdigit()}
        self.own = own_words(f"{printed_text}\n{self.query.prose}")
        self.everywhere = {*self.shares, *vocabulary.shares(self.query.context)}

    def coverage(self, records: list[IssueRecord]) -> dict[str, float]:
        def terms(*texts: str | None) -> set[str]:
            segmenter = Segmenter(dictionary_for(clean(text) for text in texts if text))
            return {term for text in texts if text for term in tokenise(clean(text), segmenter)}

        title = set().union(*(terms(r.title) for r in records))
        symptom = title.union(*(terms(r.symptom, *r.errors) for r in records))
        front = symptom.union(*(terms(*r.aliases) for r in records))
        somewhere = front.union(*(terms(r.project, *r.tags, r.cause, r.fix) for r in records))
        confusable = set().union(*(terms(r.confusable) for r in records)) - somewhere
        said = {term: self.of(term) * share for term, share in self.shares.items()}

        def among(weights: dict[str, float], found: set[str]) -> float:
            return sum(weight for term, weight in weights.items() if term in found)

        named = [term for term in said if term in self.names]
        own = {term: share for term, share in self.shares.items() if self.own & {*words_of(term).split()}}
        titles = {term: self.of(term) for term in title}
        return {
            "own_terms": math.log1p(among(own, front)),
            "own_information": math.log1p(among({term: said[term] for term in own}, front)),
            "title_coverage": among(titles, self.everywhere) / (sum(titles.values()) + 0.5),
            "product_unsaid": float(bool(products := self.products(records)) and not self.everywhere & products),
            "component_share": sum(term in somewhere for term in named) / len(named) if named else 0.5,
            "confusable_information": min(among(said, confusable) / 2, 1),
        }

    def products(self, records: list[IssueRecord]) -> set[str]:
        said = {str(name).casefold() for r in records for name in (r.project, *r.tags)}
        return set(self.tokenise("\n".join(name for name in self.projects if name.casefold() in said)))

    def alignment(self, records: list[IssueRecord]) -> dict[str, float]:
        def terms(text: str) -> list[str]:
            return tokenise(clean(text), Segmenter(dictionary_for([clean(text)])))

        def vector(term: str) -> tuple[Any, float]:
            return self.encoder.encode([term], kind="query")[0], self._norm(term)

        ours = [(*vector(term), share) for term, share in self.shares.items()]
        assert len(ours) <= 48  # else only the most informative are compared
        total = sum(norm * share for _, norm, share in ours)
        texts = [text for r in records for text in (r.title, r.symptom, *r.errors, *r.aliases)]
        front = {term: vector(term)[0] for text in texts for term in terms(text) if not term.isdigit()}

        def nearest(one: Any, others: list[Any]) -> float:
            return max((max(float(one @ other), 0.0) for other in others), default=0.0)

        covered = sum(nearest(one, [*front.values()]) ** 3 * norm * share for one, norm, share in ours) / total
        best = 0.0
        for alias in (alias for r in records for alias in r.aliases):
            theirs = [vector(term) for term in dict.fromkeys(terms(alias)) if not term.isdigit()]
            if theirs:
                vectors = [one for one, _ in theirs]
                there = sum(nearest(one, vectors) ** 2 * norm * share for one, norm, share in ours) / total
                back = sum(nearest(one, [ours_[0] for ours_ in ours]) ** 2 * norm for one, norm in theirs)
                back /= sum(norm for _, norm in theirs)
                best = max(best, 2 * there * back / (there + back) if there + back else 0.0)
        return {"aligned_coverage": covered, "alias_alignment": best}

    def sentences(self, records: list[IssueRecord]) -> dict[str, float]:
        lines = [*self.query.signatures[:4], *sentences(self.query.prose, 12)]
        asked = list(dict.fromkeys(mask(clean(one)) for one in lines))[:12]
        told = [(kind, self._vector(one)) for r in records for kind, one in profile_sentences(r)]

        def nearest(one: Any, wanted: Sentence, otherwise: float) -> float:
            return max((float(one @ vector) for kind, vector in told if kind == wanted), default=otherwise)

        says = [self._norm(one) for one in asked]
        near = [nearest(self._vector(one), Sentence.FRONT, 0) for one in asked]
        other = [nearest(self._vector(one), Sentence.CONFUSABLE, 0) for one in asked]
        return {
            "mean": sum(n * s for n, s in zip(near, says, strict=True)) / sum(says),
            "confusable_lead": max(o - n for o, n in zip(other, near, strict=True)),
        }

    def _norm(self, text: str) -> float:
        (ids,) = self.table.tokens([text])
        return float(np.linalg.norm(self.table._table[ids].astype(np.float64).sum(axis=0)))

    def _vector(self, text: str) -> Any:
        return self.encoder.encode([text], kind="query")[0]

    def particulars(self, records: list[IssueRecord]) -> dict[str, float]:
        asked = particulars("\n".join((*self.query.signatures, self.query.prose)))
        told = set().union(*(particulars(lexical_text(r)) for r in records))
        kinds = {kind for kind, _ in asked} & {kind for kind, _ in told}
        agreeing = {kind for kind in kinds if {n for k, n in asked if k == kind} & {n for k, n in told if k == kind}}
        return {
            "particulars_shared": min(len(agreeing), 3) / 3,
            "particulars_in_conflict": min(len(kinds - agreeing), 3) / 3,
        }


@pytest.mark.thorough
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda text: ascii(text)[:30])
def test_evidence_is_a_naive_loop(question: str, base: KnowledgeBase) -> None:
    result = base.search(question, 100)
    naive = Naive(base, result, open_encoder())
    hits = sorted(result.hits, key=lambda hit: -hit.score)
    near = [base.show(hit.issue) for hit in hits[: RIVALS + 1]]
    means = [naive.sentences(records)["mean"] for records in near]
    scores = [hit.score for hit in hits]
    assert len(near) > 1
    for i, (hit, records) in enumerate(zip(hits[:6], near, strict=False)):
        others, rivals = scores[:i] + scores[i + 1 :], means[:i] + means[i + 1 :]
        expected = {
            "lead": scores[i] - others[0],
            "lead_over_rest": scores[i] - sum(others[:3]) / len(others[:3]),
            "sentence_lead": means[i] - max(rivals),
            **naive.coverage(records),
            **naive.alignment(records),
            **{name: value for name, value in naive.sentences(records).items() if name != "mean"},
            **naive.particulars(records),
        }
        assert {one.name for one in fields(Evidence)} - expected.keys() == {"described_lead"}
        for name, value in expected.items():
            assert getattr(hit.evidence, name) == pytest.approx(value, abs=3e-3), (hit.issue, name)


def test_what_is_only_said_of_other_issues_speaks_against_it(tmp_path: Path, write: Write) -> None:
    text = (
        "# Notes\n\n## Frob {0}\n\n### Symptom\n\nThe frob {0} stops.\n\n### Fix\n\n1. Wait.\n\n"
        "### Not to be confused with\n\n- The quagmire lantern of {1}.\n"
    )
    articles = write(
        {"a.md": text.format("alpha", "beta"), "b.md": text.format("beta", "alpha").replace("quagmire ", "")}
    )
    KnowledgeBase.build(articles, tmp_path / "index", encoder=FakeEncoder())
    with KnowledgeBase.open(tmp_path / "index", encoder=FakeEncoder()) as opened:
        hits = {hit.issue: hit.evidence for hit in opened.search("frob quagmire lantern").hits}
    assert hits["a#1"].confusable_information > hits["b#1"].confusable_information > 0
    assert hits["a#1"].own_terms == hits["b#1"].own_terms


WAKES = """
import os, time
import numpy as np
from kb.search.evidence import _products

def others():
    found = 0
    for task in os.listdir("/proc/self/task"):
        if int(task) != os.getpid():
            with open(f"/proc/self/task/{task}/stat") as file:
                found += sum(map(int, file.read().rpartition(")")[2].split()[11:13]))
    return found

time.sleep(0.1)
before = others()
for rows in (1, 4, 12, 48):
    for _ in range(100):
        _products(np.ones((rows, 256), np.float32), np.ones((2000, 256), np.float32))
print(others() - before)
"""


@pytest.mark.parametrize(("rows", "columns"), [(0, 0), (2, 0), (0, 3), (2, 3), (2, 5000)])
def test_products_of_any_number_of_vectors(rows: int, columns: int) -> None:
    a, b = np.ones((rows, 4), np.float32), np.full((columns, 4), 2, np.float32)
    assert np.array_equal(_products(a, b), np.full((rows, columns), 8))


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at the threads of a process, as Linux shows")
def test_products_wake_no_other_thread() -> None:
    run = subprocess.run([sys.executable, "-c", WAKES], capture_output=True, text=True, check=True)
    assert int(run.stdout) <= 1, "ticks of a hundredth of a second on threads of OpenBLAS"


# --- from evidence to a verdict ---------------------------------------------------------------------------------------

values = st.floats(-100, 100)
curves = st.sampled_from([True, False]).map(lambda pasted: curve_for(pasted=pasted))


@given(st.builds(Evidence, *[values] * len(fields(Evidence))), curves)
def test_a_confidence_is_a_probability(found: Evidence, curve: Any) -> None:
    assert 0 < confidence(found, curve) < 1
    for name, value in contributions(found, curve).items():
        assert abs(value) <= CLIP * abs(curve.weights[name]) + 1e-9


@given(st.sampled_from([one.name for one in fields(Evidence)]), values, values, curves)
def test_more_of_what_speaks_for_it_never_makes_it_less_sure(name: str, one: float, other: float, curve: Any) -> None:
    average = Evidence(**dict(curve.center))
    low, high = (confidence(replace(average, **{name: value}), curve) for value in sorted((one, other)))
    assert (high - low) * curve.weights[name] >= 0


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_a_verdict_is_monotone(one: float, other: float, known_at: float) -> None:
    order = ["unknown", "likely", "known"]
    low, high = (order.index(verdict(value, known_at)) for value in sorted((one, other)))
    assert low <= high
    assert (verdict(one, known_at) == "known") is (one >= known_at)
    assert verdict(one, 0.0) == "known"
    assert 0 < LIKELY_AT < KNOWN_AT < 1


@pytest.mark.parametrize("confidences", [[0.9], [0.4, 0.35, 0.3, 0.25], [0.4, 0.1, 0.3], [0.4], [0.1]], ids=str)
def test_what_is_named_as_likely(
    confidences: list[float], base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = iter(confidences + [0.0] * 100)
    monkeypatch.setattr(searcher, "confidence", lambda *arguments: next(given))
    result = base.search(QUESTIONS[0], 10)
    assert result.verdict == verdict(max(confidences[:MOST_LIKELY]))
    likely = [hit.issue for hit in result.hits if hit.confidence >= LIKELY_AT]
    assert list(result.likely) == (likely[:MOST_LIKELY] if result.verdict == "likely" else [])
    assert MOST_LIKELY == 3


def test_translations_with_other_projects_do_not_answer_for_each_other(tmp_path: Path, write: Write) -> None:
    text = "---\nproject: {}\n---\n\n# Notes\n\n## {}\n\n### Symptom\n\n{}\n\n### Fix\n\n1. Wait.\n"
    articles = write(
        {
            "en/a.md": text.format("Lantern", "The frob stops", "The frob of quagmire stops."),
            "zh/a.md": text.format("Teapot", "队列停住", "从空队列里取元素时停住。"),
            "en/b.md": text.format("Teapot", "A soup", "The soup is cold."),
        }
    )
    KnowledgeBase.build(articles, tmp_path / "index", encoder=FakeEncoder())
    questions = ["Lantern: the frob of quagmire stops", "Lantern 从空队列里取元素时停住"]
    with (
        KnowledgeBase.open(tmp_path / "index", encoder=FakeEncoder()) as one,
        KnowledgeBase.open(tmp_path / "index", encoder=FakeEncoder()) as other,
    ):
        there = [one.search(question).hits for question in questions]
        back = [other.search(question).hits for question in questions[::-1]][::-1]
    assert there == back
    assert [hits[0].evidence.product_unsaid for hits in there] == [0, 1]


@pytest.mark.thorough
@pytest.mark.parametrize("limit", ["_MAX_SUBJECTS", "_MAX_TERMS"])
def test_what_is_kept_ready_is_forgotten_in_time(limit: str, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with KnowledgeBase.open(index) as one:
        expected = [one.search(question).hits for question in QUESTIONS]
        assert one.searcher._ready.subjects
        monkeypatch.setattr(searcher, limit, 0)
        assert [one.search(question).hits for question in QUESTIONS] == expected
        assert not one.searcher._ready.subjects


def test_min_confidence(base: KnowledgeBase) -> None:
    """What is known depends on it, hits and their confidence do not; likely and unknown stay apart as they were."""
    for question in QUESTIONS:
        sure = base.search(question).hits[0].confidence
        for least in (0.0, sure - 1e-6, sure + 1e-6, 1.0):
            if 0 <= least <= 1:
                result = base.search(question, min_confidence=least)
                assert result.answered is (sure >= least), (question, least)
                assert result.hits == base.search(question).hits
                assert result.verdict == verdict(sure, least)


HANGS = (
    "# Notes\n\n## The watchdog ends a job that hangs at the start\n\n### Symptom\n\n```\n"
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE) ran for 600 s\n```\n\n"
    "### Fix\n\n1. Wait.\n\n"
    "### Only when\n\n- `seqnum < 100`: it hangs at the start.\n"
)
LINE = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum={}, OpType=ALLREDUCE) ran for 600 s"


@pytest.mark.thorough
@pytest.mark.parametrize(("seqnum", "ruled_out"), [(8, False), (99, False), (100, True), (48213, True)])
def test_a_condition_that_is_false_rules_an_issue_out(
    seqnum: int, ruled_out: bool, tmp_path: Path, write: Write, index: Path
) -> None:
    KnowledgeBase.build(write({"a.md": HANGS}), tmp_path / "index")
    with KnowledgeBase.open(tmp_path / "index") as opened:
        line = LINE.format(seqnum)
        for text in (line, f"it stopped\n{line}", f"[rank0]: {line}\n" * 9 + "[INFO] step 1 loss 2.0"):
            result = opened.search(text)
            assert (result.hits[0].issue, result.hits[0].ruled_out) == ("a#1", ruled_out), text
            assert result.answered is not ruled_out
            if ruled_out:
                assert result.hits[0].confidence == 0
                assert result.likely == ()
                # Whoever wants an answer in any case does not get one that is certainly wrong.
                assert opened.search(text, min_confidence=0.0).verdict == "unknown"
            assert explain(opened.searcher, text.encode()).answered is not ruled_out
            assert bool(Scanner(opened.searcher).scan([text.encode()]).findings) is not ruled_out


def test_a_number_that_is_not_printed_rules_nothing_out(tmp_path: Path, write: Write) -> None:
    KnowledgeBase.build(write({"a.md": HANGS}), tmp_path / "index")
    with KnowledgeBase.open(tmp_path / "index") as opened:
        (hit,) = opened.search("the watchdog ends my job, which hangs at the start").hits
        assert (hit.issue, hit.ruled_out) == ("a#1", False)
        assert hit.confidence > 0


def test_the_verdict_does_not_depend_on_what_was_asked_before(index: Path) -> None:
    """A searcher keeps subjects and error lines of the records that it met."""
    with KnowledgeBase.open(index) as one, KnowledgeBase.open(index) as other:
        there = [one.search(question).hits for question in QUESTIONS]
        back = [other.search(question).hits for question in QUESTIONS[::-1]][::-1]
        again = [one.search(question).hits for question in QUESTIONS]
    assert there == back == again
    assert np.isfinite([hit.confidence for hits in there for hit in hits]).all()
