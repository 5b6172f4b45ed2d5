"""kb.encoders against tokenizers and sentence-transformers: the same tokens, the same vectors."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from conftest import CORPUS, examples
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from kb import KnowledgeBase
from kb.arrays import dump
from kb.cli import cli
from kb.encoders import DEFAULT, Encoder, open_encoder, probe
from kb.encoders.static import StaticEncoder
from kb.encoders.unigram import FILE_NAME, UnigramTokenizer, pack
from kb.errors import EncoderUnavailable, IndexCorrupt, IndexMismatch
from kb.index import snapshot

ROOT = Path(__file__).parent.parent
MODEL = ROOT / "kb" / "model"

QUESTIONS = [
    json.loads(line)["query"]
    for path in sorted((ROOT / "tests" / "cases").glob("*.jsonl"))
    for line in path.read_text("utf-8").splitlines()
    if '"query"' in line
]

ODD = {
    "nothing": "",
    "blank": " \t\n ",
    "control": "a\x00b\x07c\x1b[31m",
    "line breaks": "a\rb\u2028c\u0085d",
    "special tokens": "[PAD] [UNK] [pad] x[UNK]y",
    "full width": "［ＰＡＤ］ ＣＵＤＡ",
    "invisible": "ze\u200bro \ufeffbom \u202eover",
    "lone surrogate": "bad \ud800 byte \udcff",
    "emoji": "🙂🙂 CUDA 👩‍👩‍👧 🇨🇳",
    "cyrillic and greek": "Ошибка α β λ",
    "kana and hangul": "エラーが出ました 오류",
    "rare Han": "\u9fa6\u3400\U00020000 々〇",
    "digits of other scripts": "①②Ⅳ ٣ ½",
    "camel case": "OutOfMemoryError aBCdef ABCd iPhone NaN vLLM LLaMA",
    "numbers": "1.2.3 -8 4.98e-07 0x7f3a 12,345 1_000",
    "a long word": "a" * 3000,
    "a long run": "的" * 3000 + "显存" * 500,
    "arrows and bars": "→→ ↑ ██████▏ │ ─── ▂▃",
    "quotes": "“quoted” ‘x’ 「y」 —— …… ·",
    "combining": "e\u0301 n\u0303 \u0301",
    "ligatures": "ﬁle ﬂoat ㎏ ㏒ ™",
    "tabs": "a\tb\nc\r\nd",
}


@pytest.fixture(scope="module")
def reference() -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


@pytest.fixture(scope="module")
def unigram() -> UnigramTokenizer:
    return UnigramTokenizer(MODEL)


@pytest.fixture(scope="module")
def static() -> Encoder:
    return open_encoder()


def _ids(reference: Tokenizer, text: str) -> list[int]:
    return list(reference.encode(text, add_special_tokens=False).ids)


# --- tokens ---------------------------------------------------------------------------------------------------------

_WORDS = [
    "error",
    "OutOfMemoryError",
    "CUDA out",
    "NaN",
    "vLLM",
    "num_generations",
    "ZeRO3",
    "显存不足",
    "检查点",
    "训练时",
]
_PIECES = st.one_of(
    st.characters(min_codepoint=9, max_codepoint=126),
    st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF),
    st.sampled_from("、。《》“”‘’—·•「」→↑█▏│─…，：（）［］ＡｂＮ１①ﬁéßЖあ가\u00a0\u3000\u200b🙂"),
    st.sampled_from(_WORDS),
    st.sampled_from(["[PAD]", "[UNK]", "[pad]", "aB", "ABc", "HTTPServer", "0x7f", "1.5", "->", "==="]),
)


@pytest.mark.thorough
def test_random_text_gets_the_ids_of_tokenizers_or_is_declined(reference: Tokenizer, unigram: UnigramTokenizer) -> None:
    kept = 0

    @settings(max_examples=examples(400), deadline=None, derandomize=True, database=None)
    @given(st.lists(_PIECES, max_size=30).map("".join))
    def equal(text: str) -> None:
        nonlocal kept
        ids = unigram.encode(text)
        assert ids is None or ids == _ids(reference, text)
        kept += ids is not None

    equal()
    assert kept > examples(400) // 10


def test_plain_english_and_chinese_is_never_declined(unigram: UnigramTokenizer) -> None:
    for text in (
        "RuntimeError: CUDA out of memory.",
        "训练时显存不足，怎么办？（两张卡）",
        "loss 变成 NaN → 检查 “bf16”",
        "",
    ):
        assert unigram.encode(text) is not None


def test_every_question_gets_the_ids_of_tokenizers(reference: Tokenizer, unigram: UnigramTokenizer) -> None:
    assert len(QUESTIONS) > 200
    found = [unigram.encode(text) for text in QUESTIONS]
    expected = [_ids(reference, text) for text in QUESTIONS]
    assert [(text, ids) for text, ids in zip(QUESTIONS, found, strict=True) if ids is not None] == [
        (text, right) for text, ids, right in zip(QUESTIONS, found, expected, strict=True) if ids is not None
    ]
    assert sum(ids is None for ids in found) <= 0.02 * len(found)  # what is declined waits for `tokenizers` to load


@pytest.mark.thorough
def test_articles_get_the_ids_of_tokenizers(reference: Tokenizer, unigram: UnigramTokenizer) -> None:
    for path in sorted(CORPUS.rglob("*.md")):
        text = path.read_text("utf-8")
        ids = unigram.encode(text)
        assert ids is None or ids == _ids(reference, text), path.name


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_odd_text_gets_the_ids_of_tokenizers_or_is_declined(
    reference: Tokenizer, unigram: UnigramTokenizer, text: str
) -> None:
    text = text.encode("utf-8", "replace").decode()
    assert unigram.encode(text) in (None, _ids(reference, text))


@pytest.mark.parametrize("text", ["エラー", "오류", "Ошибка", "🙂", "é", "[PAD]", "a [UNK] b", "\u9fa6", "a\x00b"])
def test_declined(unigram: UnigramTokenizer, text: str) -> None:
    assert unigram.encode(text) is None


def test_the_memo_of_words_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kb.encoders.unigram.MAX_MEMO", 1000)
    tokenizer = UnigramTokenizer(MODEL)
    for at in range(0, 3000, 100):
        tokenizer.encode(" ".join(map(str, range(at, at + 100))))
    assert 0 < len(tokenizer._memo) <= 1000
    assert tokenizer.encode("cuda error") == UnigramTokenizer(MODEL).encode("cuda error")


# --- the packed vocabulary ------------------------------------------------------------------------------------------


def test_the_committed_vocabulary_is_that_of_the_tokenizer() -> None:
    packed = pack((MODEL / "tokenizer.json").read_bytes())
    assert hashlib.sha256(packed).hexdigest() == hashlib.sha256((MODEL / FILE_NAME).read_bytes()).hexdigest(), (
        f"kb/model/{FILE_NAME} is not pack(tokenizer.json)"
    )


@pytest.mark.parametrize(
    "model",
    [
        {"type": "WordPiece", "vocab": {}},
        {"type": "Unigram", "byte_fallback": True, "vocab": [["a", 0.0]], "unk_id": 0},
        {"type": "Unigram", "vocab": [["a\nb", 0.0]], "unk_id": 0},
    ],
    ids=["another kind", "byte fallback", "a line break"],
)
def test_pack_refuses(model: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"packed|line break"):
        pack(json.dumps({"model": model}).encode())


# --- the static encoder ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> StaticEncoder:
    """The same model without the packed vocabulary: every text goes through `tokenizers`."""
    folder = tmp_path_factory.mktemp("unpacked")
    for name in ("model.safetensors", "tokenizer.json", "modules.json"):
        (folder / name).symlink_to(MODEL / name)
    return StaticEncoder(folder, name="unpacked")


@pytest.mark.thorough
def test_both_ways_to_tokenise_give_the_same_vectors(static: Encoder, unpacked: StaticEncoder) -> None:
    texts = [*ODD.values(), *QUESTIONS]
    assert np.array_equal(static.encode(texts, kind="query"), unpacked.encode(texts, kind="query"))


def test_each_row_depends_on_its_own_text_alone(static: Encoder) -> None:
    texts = [*ODD.values(), *QUESTIONS[:60]]
    together = static.encode(texts, kind="passage")
    alone = np.concatenate([static.encode([text], kind="passage") for text in texts])
    backwards = static.encode(texts[::-1], kind="passage")[::-1]
    assert np.array_equal(together, alone)
    assert np.array_equal(together, backwards)


def test_vectors_have_norm_one_or_zero(static: Encoder) -> None:
    vectors = static.encode([*ODD.values(), *QUESTIONS], kind="query")
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(ODD) + len(QUESTIONS), static.dim)
    assert np.isfinite(vectors).all()
    norms = np.linalg.norm(vectors, axis=1)
    assert np.all((norms == 0) | (np.abs(norms - 1) < 1e-5))
    assert (norms > 0).sum() > 200


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u3000"], ids=repr)
def test_text_without_a_token_has_a_row_of_zeros(static: Encoder, text: str) -> None:
    vectors = static.encode([text, "cuda"], kind="query")
    assert not vectors[0].any()
    assert vectors[1].any()


def test_no_texts_give_no_rows(static: Encoder) -> None:
    assert static.encode([], kind="query").shape == (0, static.dim)


def test_meaning_is_nearer_than_chance(static: Encoder) -> None:
    """An encoder of zeros, or of noise, passes every other test here."""
    asked, same, other = static.encode(["显存不足", "CUDA out of memory", "the cake did not rise"], kind="query")
    assert asked @ same > asked @ other + 0.2


def test_name_revision_and_probe(static: Encoder) -> None:
    assert isinstance(static, Encoder)
    assert static.name == DEFAULT
    assert static.revision == open_encoder(str(MODEL)).revision
    assert len(static.revision) == 16
    assert np.array_equal(probe(static), probe(open_encoder(DEFAULT)))
    assert not np.signbit(probe(static)[probe(static) == 0]).any()


def _static_folder(folder: Path, **arrays: Any) -> Path:
    (folder / "modules.json").write_bytes((MODEL / "modules.json").read_bytes())
    (folder / "tokenizer.json").symlink_to(MODEL / "tokenizer.json")
    if arrays:
        (folder / "model.safetensors").write_bytes(dump({name.replace("_", "."): a for name, a in arrays.items()}))
    return folder


@pytest.mark.parametrize(
    "arrays",
    [{}, {"other": np.zeros((2, 2), np.float32)}, {"embedding_weight": np.zeros(4, np.float32)}],
    ids=["no file", "no such array", "no matrix"],
)
def test_a_folder_without_a_table_is_refused_by_name(tmp_path: Path, arrays: dict[str, Any]) -> None:
    with pytest.raises(EncoderUnavailable) as caught:
        open_encoder(str(_static_folder(tmp_path, **arrays)))
    assert str(tmp_path) in str(caught.value)


def test_a_damaged_table_is_refused(tmp_path: Path) -> None:
    _static_folder(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 64)
    with pytest.raises(EncoderUnavailable, match="safetensors"):
        open_encoder(str(tmp_path))


def test_a_damaged_tokenizer_is_refused(tmp_path: Path) -> None:
    folder = _static_folder(tmp_path, embedding_weight=np.ones((4, 3), np.float32))
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(EncoderUnavailable, match=r"tokenizer\.json"):
        open_encoder(str(folder)).encode(["x"], kind="query")


def test_a_damaged_packed_vocabulary_is_an_error_of_ours(tmp_path: Path) -> None:
    folder = _static_folder(tmp_path)
    (folder / "model.safetensors").symlink_to(MODEL / "model.safetensors")
    (folder / FILE_NAME).write_bytes(b"\x00" * 100)
    with pytest.raises((EncoderUnavailable, IndexCorrupt)):
        open_encoder(str(folder)).encode(["x"], kind="query")


# --- another encoder, another index ---------------------------------------------------------------------------------


class _Other:
    """The shipped model, turned: same dimension, other vectors."""

    name = "other"
    revision = "1"

    def __init__(self, inner: Encoder, dim: int) -> None:
        self._inner, self.dim = inner, dim

    def encode(self, texts: Sequence[str], *, kind: Any) -> Any:
        return np.ascontiguousarray(np.roll(self._inner.encode(texts, kind=kind), 1, axis=1)[:, : self.dim])


@pytest.mark.parametrize("dim", [256, 128], ids=["the same dimension", "another dimension"])
def test_an_index_refuses_another_encoder(index: Path, static: Encoder, dim: int) -> None:
    with pytest.raises(IndexMismatch) as caught:
        KnowledgeBase.open(index, encoder=_Other(static, dim))
    message = f"{caught.value} {caught.value.hint}"
    assert DEFAULT in message
    assert "other" in message
    assert "kb build" in message


def test_an_index_takes_the_encoder_that_made_it_by_any_name(index: Path, unpacked: StaticEncoder) -> None:
    with KnowledgeBase.open(index, encoder=unpacked) as base:
        assert base.search("pop from an empty deque").hits[0].issue == "ms-swift-ovis2-grpo#2"


# --- sentence-transformers ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sentence_transformers() -> Any:
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as environment:
        warnings.simplefilter("ignore")  # its imports, on any version of torch
        environment.setenv("HF_HUB_OFFLINE", "1")  # read at import
        return pytest.importorskip("sentence_transformers", reason="needs the extra `transformers`")


@pytest.fixture(scope="module")
def tiny(sentence_transformers: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of one layer with random weights, and prompts, as sentence-transformers saves it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch
        from sentence_transformers.models import Pooling, Transformer
        from transformers import BertConfig, BertModel, BertTokenizerFast

        bert = tmp_path_factory.mktemp("bert")
        letters = [chr(c) for c in range(97, 123)]
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        words = [
            "query",
            "passage",
            ":",
            "cuda",
            "error",
            "deque",
            "pop",
            "empty",
            "loss",
            "nan",
            "显",
            "存",
            "训",
            "练",
        ]
        vocabulary = [*special, *words, *letters, *("##" + letter for letter in letters)]
        (bert / "vocab.txt").write_text("\n".join(vocabulary), "utf-8")
        torch.manual_seed(0)
        config = BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=128,
            initializer_range=0.5,  # far apart, so that a prompt shows
        )
        BertModel(config).save_pretrained(bert)
        BertTokenizerFast(vocab=str(bert / "vocab.txt")).save_pretrained(bert)
        model = sentence_transformers.SentenceTransformer(
            modules=[Transformer(str(bert)), Pooling(32)], prompts={"query": "query: ", "document": "passage: "}
        )
        folder = tmp_path_factory.mktemp("tiny")
        model.save(str(folder))
    return folder


def test_static_vectors_are_those_of_sentence_transformers(sentence_transformers: Any, static: Encoder) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = sentence_transformers.SentenceTransformer(str(MODEL), device="cpu").float()
        texts = [text.encode("utf-8", "replace").decode() for text in [*ODD.values(), *QUESTIONS]]
        expected = model.encode(texts, normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False)
    assert np.abs(static.encode(texts, kind="query") - expected).max() < 1e-5


def test_prompts_of_the_model_are_applied(sentence_transformers: Any, tiny: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = sentence_transformers.SentenceTransformer(str(tiny), device="cpu")
        by_hand = model.encode(
            ["query: pop empty", "passage: pop empty", "pop empty"],
            normalize_embeddings=True,
            prompt="",
            show_progress_bar=False,
        )
    encoder = open_encoder(str(tiny))
    query, passage = (encoder.encode(["pop empty"], kind=kind)[0] for kind in ("query", "passage"))
    assert np.abs(query - by_hand[0]).max() < 1e-5
    assert np.abs(passage - by_hand[1]).max() < 1e-5
    assert np.abs(query - by_hand[2]).max() > 0.01
    assert np.abs(query - passage).max() > 0.01


def test_a_model_of_the_e5_family_gets_the_prompts_it_does_not_bring(tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path / "multilingual-e5-tiny"
    shutil.copytree(tiny, folder)
    config = folder / "config_sentence_transformers.json"
    config.write_text(json.dumps(json.loads(config.read_text("utf-8")) | {"prompts": {}}), "utf-8")
    shutil.copytree(folder, tmp_path / "other")
    for kind in ("query", "passage"):
        expected = open_encoder(str(tiny)).encode(["pop empty"], kind=kind)  # type: ignore[arg-type]
        assert np.abs(open_encoder(str(folder)).encode(["pop empty"], kind=kind) - expected).max() < 1e-5  # type: ignore[arg-type]
        bare = open_encoder(str(tmp_path / "other")).encode(["pop empty"], kind=kind)  # type: ignore[arg-type]
        assert np.abs(bare - expected).max() > 0.01


def test_transformer_rows_are_finite_and_of_norm_one(tiny: Path) -> None:
    encoder = open_encoder(str(tiny))
    assert encoder.encode([], kind="query").shape == (0, 32)
    vectors = encoder.encode(["", "cuda error", "显存", "bad \ud800 byte"], kind="query")
    assert vectors.shape == (4, encoder.dim)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_build_and_search_with_another_model(tiny: Path, tmp_path: Path) -> None:
    run = CliRunner().invoke
    built = run(cli, ["build", "--articles", str(CORPUS), "--index", str(tmp_path / "i"), "--encoder", str(tiny)])
    assert built.exit_code == 0, built.output
    manifest = json.loads((tmp_path / "i" / "manifest.json").read_text("utf-8"))
    assert manifest["encoder"]["dim"] == 32
    found = run(cli, ["search", "--index", str(tmp_path / "i"), "--json", "IndexError: pop from an empty deque"])
    assert json.loads(found.stdout)["results"][0]["issue"] == "ms-swift-ovis2-grpo#2"
    with pytest.raises(IndexMismatch):
        KnowledgeBase.open(tmp_path / "i", encoder=DEFAULT)
    with pytest.raises(IndexMismatch):  # a model changed in place: same name, other vectors
        KnowledgeBase.open(tmp_path / "i", encoder=_Other(open_encoder(str(tiny)), 32))


# --- what is missing ------------------------------------------------------------------------------------------------


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(EncoderUnavailable) as caught:
        open_encoder("BAAI/bge-m3")
    assert "BAAI/bge-m3" in str(caught.value)
    assert caught.value.hint == "pip install 'kb-issues[transformers]'"
    assert caught.value.exit_code == 69


def test_an_index_whose_encoder_is_missing_says_which(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in index.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    manifest = json.loads((tmp_path / "manifest.json").read_text("utf-8"))
    manifest["encoder"]["name"] = "BAAI/bge-m3"
    del manifest["sha256"]
    manifest["sha256"] = snapshot._digest(manifest)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(EncoderUnavailable) as caught:
        KnowledgeBase.open(tmp_path)
    assert "BAAI/bge-m3" in str(caught.value)
    assert "pip install" in str(caught.value.hint)


def test_a_folder_that_holds_no_model_is_refused(sentence_transformers: Any, tmp_path: Path) -> None:
    with pytest.raises(EncoderUnavailable) as caught:
        open_encoder(str(tmp_path))
    assert str(tmp_path) in str(caught.value)


def test_opening_an_index_fetches_no_model(
    sentence_transformers: Any, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index may come from anybody; the encoder it names must be here already."""
    for path in index.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    manifest = json.loads((tmp_path / "manifest.json").read_text("utf-8"))
    del manifest["sha256"]
    manifest["encoder"]["name"] = "somebody/else"
    manifest["sha256"] = snapshot._digest(manifest)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    asked: list[Any] = []

    def refuse(name: str, **options: Any) -> None:
        asked.append((name, options))
        raise OSError("not in the cache")

    monkeypatch.setattr("sentence_transformers.SentenceTransformer", refuse)
    with pytest.raises(EncoderUnavailable):
        KnowledgeBase.open(tmp_path)
    assert asked == [("somebody/else", {"local_files_only": True})]
