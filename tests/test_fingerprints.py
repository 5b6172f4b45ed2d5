"""Fingerprints that segments keep are those that are made of all records at once: which match, what they weigh, and
which issues print them."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from chunks import record
from conftest import FakeEncoder, Write, article, examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kb.arrays import Array
from kb.base import KnowledgeBase
from kb.encoders import rarity, surprisal
from kb.errors import IndexCorrupt, IndexMissing
from kb.index import pieces
from kb.index.build import build
from kb.index.faiss import FaissStore
from kb.index.prints import Prints, PrintsBuilder, prints_of_records, text_of_prints
from kb.logs import fingerprints as made_of
from kb.logs.everyones import python_words, type_names, without_system_messages
from kb.logs.fingerprints import MAX_LINE_CHARS, MIN_WEIGHT, Fingerprint
from kb.logs.prefix import strip_prefix
from kb.logs.words import words_of
from kb.records import IssueRecord
from kb.scan.scanner import AROUND
from kb.text import HAN, STOP_WORDS, clean

Runs = tuple[str, ...]
CORPUS = Path(__file__).parent / "corpus"


class AllAtOnce:
    """The fingerprints of records by comparing every line with every one of them."""

    def __init__(self, records: Sequence[IssueRecord]) -> None:
        printed: dict[str, set[str]] = defaultdict(set)
        for one in records:
            for line in one.errors:
                printed[strip_prefix(clean(line)[:MAX_LINE_CHARS]).strip()].add(one.issue)
        found = {runs for line in printed for runs in made_of._runs_of(line)}
        weights = word_weights({word for runs in found for word in " ".join(runs).split()}, records)
        self.weight: dict[Runs, float] = {}
        self.issues: dict[Runs, set[str]] = {}
        for runs in found:
            words = {word for run in runs for word in without_system_messages(run.split())}
            if (weight := math.fsum(weights[word] for word in words)) >= MIN_WEIGHT:
                self.weight[runs] = weight
                lines = [of for line, of in printed.items() if stands_in(runs, words_of(line))]
                self.issues[runs] = set().union(*lines)

    def matching(self, words: str) -> list[Runs]:
        found = [runs for runs in self.weight if stands_in(runs, words)]
        return sorted(found, key=lambda runs: (-self.weight[runs], runs))


def stands_in(runs: Runs, words: str) -> bool:
    return Fingerprint(runs, frozenset(), "", 0.0, frozenset()).matches(words)


def word_weights(words: set[str], records: Sequence[IssueRecord]) -> dict[str, float]:
    texts: dict[str, set[str]] = defaultdict(set)
    for one in records:
        texts[one.issue].update(words_of(clean("\n".join((one.title, one.symptom, one.cause, one.fix)))).split())
    spread = Counter(word for text in texts.values() for word in text)
    most = math.log((len(texts) + 1) / 1.5)
    weights = {}
    for word in words:
        idf = math.log((len(texts) + 1) / (spread[word] + 0.5)) / most
        rare = float(rarity(np.array(surprisal([word])))[0])
        weights[word] = 0.15 if word in python_words() else max(0.15, rare * min(1.0, idf))
        single = len(word) == 1 and not HAN[0] <= word <= HAN[2]
        if single or word.isdigit() or word in STOP_WORDS or word in type_names():
            weights[word] = 0.05
    return weights


def check(index: Path, encoder: FakeEncoder | None = None) -> int:
    """Compares every fingerprint, and what matches every error line and some lines that are mixed from them. Returns
    how many fingerprints there are."""
    with KnowledgeBase.open(index, encoder=encoder) as base:
        first = base.searcher.first_telling
        records = [replace(one, issue=first[one.issue]) for one in base.records()]
        oracle, scanner = AllAtOnce(records), base.scanner()
        ours = scanner.fingerprints
        found = {one.runs: one for one in ours}
        assert {runs: one.weight for runs, one in found.items()} == oracle.weight
        named = {runs: {scanner.issue_at(row) for row in one.issues} for runs, one in found.items()}
        assert named == oracle.issues
        lines = sorted({words_of(clean(line)) for one in records for line in one.errors})
        others = random.Random(5).sample(lines, len(lines))
        mixed = [f"{one[: len(one) // 2]} {other}" for one, other in zip(lines, others, strict=True)]
        for line in [*lines, *mixed, " nothing of it "]:
            standing = ours.matching(line)
            assert [one.runs for one in standing] == oracle.matching(line)
            assert all(one.issues == found[one.runs].issues for one in standing)
            is_candidate = bool(scanner.prefilter.candidates(line.encode()))
            assert is_candidate or not standing or standing[0].weight < AROUND or standing[0].words <= {*"0123456789"}
        return len(found)


@pytest.mark.thorough
def test_of_the_corpus(tmp_path: Path) -> None:
    build(CORPUS, tmp_path / "index")
    assert check(tmp_path / "index") > 100


WHAT = ["allocator drained", "队列为空", "frobnicator too hot: 'left' at 3 GiB", "/tmp/a/b not mounted", "x"]
WHAT += ["0xBuffer of the lantern overran"]  # what is cut out leaves words that the line has not
line = st.tuples(st.sampled_from(WHAT), st.sampled_from(WHAT), st.integers(0, 12)).map(
    lambda t: f"{t[0]} {t[2]} {t[1]}"
)
edit = st.tuples(
    st.sampled_from([f"a{n}" for n in range(6)]), st.sampled_from(["en", "zh"]), st.lists(line, max_size=3, unique=True)
)


@pytest.mark.thorough
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rounds=st.lists(st.lists(edit, min_size=1, max_size=6), min_size=1, max_size=4))
def test_of_segments_with_edits_and_removals(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[tuple[str, str, list[str]]]]
) -> None:
    folder = tmp_path_factory.mktemp("edits")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pieces, "ONE_UP_TO", 0)
        patched.setattr(pieces, "MOST_OF_A_TIER", 4)
        patched.setattr(pieces, "_MOSTLY_DEAD", 1.1)  # nothing is joined for its dead rows
        for edits in rounds:
            for name, lang, errors in edits:
                path = folder / "articles" / lang / f"{name}.md"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(article(*errors, title=f"Notes {name}"), "utf-8") if errors else path.unlink(True)
            build(folder / "articles", folder / "index", encoder=FakeEncoder(), keep_going=True)
            check(folder / "index", FakeEncoder())


def test_a_join_keeps_what_was_made(tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte for byte what the articles themselves give."""
    articles = write({f"en/a{n}.md": article(*WHAT[n:], f"队列 {n}") for n in range(4)})
    build(articles, tmp_path / "grown", encoder=FakeEncoder())
    write({"en/a1.md": article("quite another failure"), "zh/a9.md": article("boom at 7")})
    build(articles, tmp_path / "grown", encoder=FakeEncoder())
    build(articles, tmp_path / "whole", encoder=FakeEncoder())
    one, other = (next((tmp_path / name).glob("prints-*")) for name in ("grown", "whole"))
    assert (one.name, one.read_bytes()) == (other.name, other.read_bytes())


def test_of_records_that_no_segment_keeps() -> None:
    records = [replace(record(n), errors=(f"{what} at 7", "boom")) for n, what in enumerate(WHAT)]
    builder = PrintsBuilder()
    builder.add_texts(map(text_of_prints, records))
    kept = builder.finish()
    made = prints_of_records(records)
    assert list(Prints(kept, len(records)).prints) == list(made.prints)
    again = made.by_record(len(records))
    assert [again(row) for row in range(len(records))] == [text_of_prints(one) for one in records]


PARTS = [
    "0x",
    "%s",
    "uffer",
    "...",
    "队列",
    "\u2028",
    "\x1c",
    "|",
    "\t",
    "Error: ",
    "'",
    "/a/b/c",
    "12 GiB",
    "\u00a0",
    "İ",
    "ß",
]
any_text = st.text(max_size=30) | st.lists(st.sampled_from(PARTS), max_size=12).map("".join)


@given(st.lists(st.tuples(any_text, st.lists(any_text, max_size=3)), max_size=3))
def test_any_text_has_prints_that_come_back(told: list[tuple[str, list[str]]]) -> None:
    records = [
        replace(record(n), symptom=symptom, errors=(*lines, f"RuntimeError: {symptom} the lantern overran"))
        for n, (symptom, lines) in enumerate(told)
    ]
    again = prints_of_records(records).by_record(len(records))
    assert [again(row) for row in range(len(records))] == [text_of_prints(one) for one in records]


def arrays() -> dict[str, Array]:
    builder = PrintsBuilder()
    builder.add_texts(text_of_prints(replace(record(n), errors=(f"{w} boom",))) for n, w in enumerate(WHAT))
    return builder.finish()


@pytest.mark.parametrize("name", ["said", "holding", "anchored", "printed", "made"])
@pytest.mark.parametrize("value", [-1, 10_000, 2**31 - 1])
def test_numbers_of_what_is_not_there_are_refused(name: str, value: int) -> None:
    for key, at in ((name, 0), (name, -1), (f"{name}_starts", 1)):
        hostile = {key: array.copy() for key, array in arrays().items()}
        hostile[key][at] = value
        try:
            found = Prints(hostile, len(WHAT))
        except ValueError:
            continue
        assert not found.is_sound()


@pytest.mark.parametrize("name", ["words", "lines", "prints"])
@pytest.mark.parametrize("at", [0, 5, -1])
def test_names_that_are_no_text_are_refused(name: str, at: int) -> None:
    hostile = {key: array.copy() for key, array in arrays().items()}
    hostile[f"{name}_block"][at] = 0xFF
    assert not Prints(hostile, len(WHAT)).is_sound()
    hostile = {key: array.copy() for key, array in arrays().items()}
    hostile[f"{name}_starts"][1] = 0
    assert not Prints(hostile, len(WHAT)).is_sound()


def test_a_name_that_begins_within_a_character_is_refused() -> None:
    whole = arrays()
    starts = whole["words_starts"].copy()
    (at,) = np.flatnonzero(whole["words_block"][starts[:-1]] >= 0xE0)[:1]
    starts[at] += 1
    assert Prints(whole, len(WHAT)).is_sound()
    assert not Prints({**whole, "words_starts": starts}, len(WHAT)).is_sound()


@pytest.mark.parametrize("name", sorted(arrays()))
def test_arrays_that_do_not_belong_together_are_refused(name: str) -> None:
    whole = arrays()
    others = whole[name][:-1], whole[name].reshape(-1, 1), *([] if name == "sizes" else [whole[name].astype("f4")])
    for other in others:
        with pytest.raises(ValueError, match="belong together"):
            Prints({**whole, name: other}, len(WHAT))
    with pytest.raises(KeyError):
        Prints({key: array for key, array in whole.items() if key != name}, len(WHAT))


def test_another_number_of_records_is_refused() -> None:
    for size in (len(WHAT) - 1, len(WHAT) + 1):
        with pytest.raises(ValueError, match="belong together"):
            Prints(arrays(), size)


@pytest.fixture
def index(tmp_path: Path, write: Write) -> Path:
    build(write({"en/a.md": article("boom at 7", "frobnicator too hot")}), tmp_path / "index", encoder=FakeEncoder())
    return tmp_path / "index"


def test_a_search_does_not_read_them(index: Path) -> None:
    path = next(index.glob("prints-*"))
    path.write_bytes(bytes(path.stat().st_size))
    with KnowledgeBase.open(index, encoder=FakeEncoder()) as base:
        assert base.search("RuntimeError: boom at 7").hits[0].issue == "a#1"
        with pytest.raises(IndexCorrupt, match=path.name):
            base.scan(["RuntimeError: boom at 7"])


@pytest.mark.parametrize("size", [0, 10])
def test_a_file_cut_short_is_refused(index: Path, size: int) -> None:
    path = next(index.glob("prints-*"))
    with KnowledgeBase.open(index, encoder=FakeEncoder()) as base:
        with path.open("r+b") as file:  # under an open reader
            file.truncate(size)
        with pytest.raises(IndexCorrupt, match=path.name):
            base.scan(["RuntimeError: boom at 7"])
    with pytest.raises(IndexCorrupt, match=path.name):
        FaissStore(index)


def test_an_open_base_scans_after_its_files_were_replaced(index: Path, tmp_path: Path, write: Write) -> None:
    store = FaissStore(index)
    build(write({"en/a.md": article("quite another failure")}), index, encoder=FakeEncoder())
    assert not (index / store.segments[0]._files["prints"]["name"]).exists()
    ((_, prints),) = store.prints()
    assert "frobnicator" in list(prints.words)
    store.close()
    closed = FaissStore(index)
    closed.close()
    with pytest.raises(IndexMissing, match="closed"):
        closed.prints()
