"""kb.index.profile: what a record says, field by field, against sets and loops."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import CORPUS, EMPTY_RECORD, FakeEncoder, Write, article, examples
from hypothesis import given, settings
from hypothesis import strategies as st

from kb import KnowledgeBase, arrays
from kb.encoders import term_table
from kb.errors import IndexCorrupt
from kb.index.build import build
from kb.index.faiss import FaissStore
from kb.index.passages import MAX_ALIASES, lexical_text
from kb.index.profile import (
    FRONT,
    MAX_CONFUSABLE,
    Field,
    Profile,
    Sentence,
    digests,
    pack,
    profile_sentences,
    terms_of,
    unpack,
)
from kb.records import IssueRecord
from kb.text import Segmenter, clean, dictionary_for, tokenise

WORDS = [
    "NCCL",
    "timeout",
    "rank",
    "7",
    "0.16.1",
    "OutOfMemoryError",
    "显存",
    "死锁",
    "训练",
    "num_generations",
    "é",
    "Xid 79",
]
text = st.lists(st.sampled_from([*WORDS, ".", "\n", "`", "#", "。"]), max_size=8).map(" ".join)
texts = st.lists(text, max_size=3).map(tuple)
DICTIONARY = dictionary_for(WORDS)
SEGMENTER = Segmenter(DICTIONARY)
records = st.builds(
    lambda project, title, symptom, cause, fix, confusable, errors, aliases, tags: replace(
        EMPTY_RECORD,
        project=project,
        title=title,
        symptom=symptom,
        cause=cause,
        fix=fix,
        confusable=confusable,
        errors=errors,
        aliases=aliases,
        tags=tags,
    ),
    st.none() | st.sampled_from(["DeepSpeed", "NCCL"]),
    *[text] * 5,
    *[texts] * 3,
)


def profile_of(record: IssueRecord, encoder: FakeEncoder) -> tuple[bytes, Profile]:
    terms = terms_of(record, SEGMENTER)
    tokens = dict(zip(terms.front, term_table().tokens(terms.front), strict=True))
    told = profile_sentences(record)
    vectors = encoder.encode([one for _, one in told], kind="passage")
    data = pack(record, terms, tokens, vectors, [kind for kind, _ in told])
    return data, unpack(data, "profile 0")


def naive_fields(record: IssueRecord) -> dict[str, set[Field]]:
    """Which fields each term stands in, one field after the other."""
    parts: list[tuple[Field, tuple[str, ...]]] = [
        (Field.TITLE, (record.title,)),
        (Field.SYMPTOM, (record.symptom,)),
        (Field.ERRORS, record.errors),
        (Field.ALIASES, record.aliases[:MAX_ALIASES]),
        (Field.BODY, (record.project or "", *record.tags, record.cause, record.fix)),
        (Field.CONFUSABLE, (record.confusable,)),
    ]
    found: dict[str, set[Field]] = {}
    for field, pieces in parts:
        for piece in pieces:
            for term in tokenise(clean(piece), SEGMENTER):
                found.setdefault(term, set()).add(field)
                if term.isdigit():
                    found[term].add(Field.NUMBER)
    return found


@given(st.lists(st.text(max_size=12), max_size=20))
def test_digests_are_checksums(terms: list[str]) -> None:
    found = digests(terms)
    assert found.dtype == np.uint32
    assert found.tolist() == [zlib.crc32(term.encode("utf-8", "replace")) for term in terms]


@settings(max_examples=examples(200))
@given(records)
def test_the_fields_of_a_term_are_a_set_computation(record: IssueRecord) -> None:
    naive = naive_fields(record)
    found = terms_of(record, SEGMENTER)
    assert {term: {one for one in Field if field & one} for term, field in found.fields.items()} == naive
    assert found.counts == Counter(tokenise(clean(lexical_text(record)), SEGMENTER))
    assert found.front == [t for t in found.fields if naive[t] & {*Field(FRONT)} and Field.NUMBER not in naive[t]]
    assert found.aliases == [tokenise(clean(alias), SEGMENTER) for alias in record.aliases]
    assert (np.diff(digests(found.fields).astype(np.int64)) > 0).all()


@settings(max_examples=examples(100))
@given(records)
def test_a_profile_comes_back_as_it_was_packed(record: IssueRecord) -> None:
    encoder = FakeEncoder(4)
    data, found = profile_of(record, encoder)
    naive = naive_fields(record)
    order = sorted(naive, key=lambda term: digests([term])[0])
    assert found.terms.tolist() == digests(order).tolist()
    assert found.fields.tolist() == [sum(naive[term]) for term in order]
    assert found.title == tuple(dict.fromkeys(tokenise(clean(record.title), SEGMENTER)))
    front = [term for term in order if naive[term] & {*Field(FRONT)} and Field.NUMBER not in naive[term]]
    spans = zip(found.starts[:-1].tolist(), found.starts[1:].tolist(), strict=True)
    assert [found.tokens[first:last].tolist() for first, last in spans] == term_table().tokens(front)
    spans = zip(found.alias_starts[:-1].tolist(), found.alias_starts[1:].tolist(), strict=True)
    assert [[front[i] for i in found.aliases[first:last].tolist()] for first, last in spans] == [
        [term for term in dict.fromkeys(tokenise(clean(alias), SEGMENTER)) if term in front] for alias in record.aliases
    ]
    told = profile_sentences(record)
    assert found.kinds.tolist() == [kind for kind, _ in told]
    vectors = encoder.encode([one for _, one in told], kind="passage")
    assert np.abs(found.sentences - vectors).max(axis=1, initial=0) == pytest.approx(0, abs=1 / 254 + 1e-6)
    between = np.asarray(found.sentences @ found.sentences.T) - vectors @ vectors.T
    assert np.abs(between).max(initial=0) < 0.01  # ranks and evidence go by products
    assert profile_of(record, FakeEncoder(4))[0] == data


def test_the_sentences_of_a_record() -> None:
    record = replace(
        EMPTY_RECORD,
        title="Training hangs",
        symptom="It prints nothing. Then it stops:\n\n```\nCODE = 1\n```\n\nAll ranks wait.",
        errors=("timeout after 600 s", "timeout after 601 s"),
        aliases=("it waits for ever",),
        confusable="- A full disk: see [`a#2`](a.md). " + "One more thing that looks alike. " * 2,
    )
    told = profile_sentences(record)
    front = [one for kind, one in told if kind == Sentence.FRONT]
    assert front[0] == "Training hangs"
    assert {"It prints nothing.", "All ranks wait.", "timeout after # s", "it waits for ever"} <= set(front)
    assert len(front) == len(set(front))
    assert "CODE" not in "\n".join(front)
    confusable = [one for kind, one in told if kind == Sentence.CONFUSABLE]
    assert 1 <= len(confusable) <= MAX_CONFUSABLE
    assert len(confusable) == len(set(confusable))
    assert profile_sentences(EMPTY_RECORD) == [(Sentence.FRONT, "")]


def test_a_record_is_segmented_alike_in_any_company(tmp_path: Path, write: Write) -> None:
    """Also what it says of other issues, which is in no other part of the index."""
    alone = article("boom").replace("### Fix", "### Not to be confused with\n\n- 显存碎片化。\n\n### Fix")
    other = article("crash").replace("is wrong", "显存碎片化 is wrong")
    folders = [write({"en/a.md": alone}, "one"), write({"en/a.md": alone, "en/b.md": other}, "two")]
    first = []
    for folder in folders:
        build(folder, tmp_path / f"{folder.name}.index", encoder=FakeEncoder())
        first.append(FaissStore(tmp_path / f"{folder.name}.index").segments[0].profiles.read(0))
    assert first[0] == first[1]


@pytest.mark.thorough
def test_every_profile_of_a_base(index: Path) -> None:
    """Against the records: terms and fields of the whole corpus."""
    store = FaissStore(index)
    rows = range(store.size)
    records, profiles = store.records(rows), store.profiles(rows)
    assert len(profiles) == len(records) > 20
    lines = [clean(f"{lexical_text(record)}\n{record.confusable}") for record in records]
    segmenter = Segmenter(dictionary_for(lines))
    for record, one in zip(records, profiles, strict=True):
        fields = terms_of(record, segmenter).fields
        assert one.terms.tolist() == digests(fields).tolist(), record.id
        assert one.fields.tolist() == [*fields.values()], record.id
    store.close()


# --- damage ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole() -> bytes:
    record = replace(
        EMPTY_RECORD,
        title="It hangs 训练",
        symptom="NCCL timeout. Exit code 137.",
        errors=("boom 7",),
        aliases=("x y",),
    )
    return profile_of(record, FakeEncoder(4))[0]


@settings(max_examples=examples(200))
@given(st.data())
def test_a_damaged_profile_is_refused_or_stays_in_bounds(whole: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(whole) - 1))
    damaged = data.draw(
        st.sampled_from([whole[:at], whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :], whole[at:]])
    )
    try:
        one = unpack(damaged, "profile 3")
    except IndexCorrupt as refused:
        assert refused.path == "profile 3"
        return
    assert len(one.fields) == len(one.terms)
    assert one.starts[-1] == len(one.tokens)
    assert not len(one.aliases) or 0 <= one.aliases.min() <= one.aliases.max() < len(one.starts) - 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("title", None),
        ("title", np.array([0xFF], np.uint8)),
        ("terms", None),
        ("terms", np.zeros(1, np.uint32)),
        ("terms", np.zeros(3, np.float32)),
        ("fields", np.zeros(9, np.int32)),
        ("starts", np.zeros(0, np.int32)),
        ("starts", np.array([0, 10_000], np.int32)),
        ("aliases", np.array([10_000, 0], np.int32)),
        ("aliases", np.array([-1, 0], np.int32)),
        ("alias_starts", np.array([0, 9, 2], np.int32)),
        ("sentences", np.zeros(4, np.int8)),
        ("sentences", np.zeros((1, 4), np.int8)),
        ("sentences", np.zeros((5, 4), np.float32)),
        ("scales", np.zeros((5, 1), np.float32)),
        ("scales", np.full(5, np.nan, np.float32)),
        ("scales", np.full(5, 3e38, np.float32)),
        ("scales", np.full(1, 0.001, np.float32)),
        ("scales", None),
        ("kinds", np.zeros(1, np.uint8)),
        ("more", np.zeros(1, np.uint8)),
    ],
    ids=str,
)
def test_arrays_that_do_not_belong_together_are_refused(whole: bytes, name: str, value: Any) -> None:
    found = {**arrays.load(whole, "x"), name: value}
    assert unpack(arrays.dump(dict(arrays.load(whole, "x"))), "x")
    data = arrays.dump({key: one for key, one in found.items() if one is not None})
    with pytest.raises(IndexCorrupt, match="profile 3"):
        unpack(data, "profile 3")


@pytest.mark.thorough
def test_a_flipped_bit_in_the_file_is_told_by_the_search_that_meets_it(tmp_path: Path) -> None:
    KnowledgeBase.build(CORPUS, tmp_path / "index")
    (path,) = (tmp_path / "index").glob("profiles-*")
    with KnowledgeBase.open(tmp_path / "index") as base:
        whole = path.read_bytes()
        path.write_bytes(bytes(byte ^ 1 for byte in whole))
        with pytest.raises(IndexCorrupt, match="profiles-"):
            base.search("IndexError: pop from an empty deque")
