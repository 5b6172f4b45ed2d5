"""kb.text.tokens against jieba, against tables, and against time."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import check_growth, examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kb.text import STOP_WORDS, Segmenter, clean, detect_lang, dictionary_for, tokenise, visible
from kb.text import tokens as kb_text

CASES = Path(__file__).parent / "cases"

SENTENCES = [
    "训练时显存不足，进程直接被杀死",
    "断点续训之后学习率又重新热身",
    "两张卡训适配器，反传的时候说某个低秩矩阵在同一轮里归约了两回",
    "小明硕士毕业于中国科学院计算所，后在日本京都大学深造",
    "中华人民共和国国家标准化管理委员会",
    "结婚的和尚未结婚的",
    "南京市长江大桥",
    "一九九八年五月三十一日",
    "不能用不是因为没有装驱动",
    "梯度检查点和张量并行能不能一起开",
    "龥龦龧㐀㐁丂丄丅",
    "的的的的的的了了了了",
    "吃葡萄不吐葡萄皮",
    "找不到有效的检查点",
]


@pytest.fixture(scope="module")
def jieba_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with warnings.catch_warnings():  # pkg_resources, invalid escapes
        warnings.simplefilter("ignore")
        jieba = pytest.importorskip("jieba", reason="the oracle of segmentation is not installed")
        jieba.setLogLevel(logging.CRITICAL)
        tokenizer = jieba.Tokenizer()
        tokenizer.tmp_dir = str(tmp_path_factory.mktemp("jieba"))  # /tmp/jieba.cache may be anybody's
        tokenizer.initialize()
    return tokenizer


@pytest.fixture(scope="module")
def all_of_jieba() -> Segmenter:
    chars = "".join(map(chr, range(ord(kb_text.HAN[0]), ord(kb_text.HAN[2]) + 1)))
    return Segmenter(dictionary_for([chars]))


def _han_runs(tokenizer: Any) -> st.SearchStrategy[str]:
    words = sorted(word for word in tokenizer.FREQ if kb_text._TOKEN.fullmatch(word) and kb_text.HAN_CHAR.match(word))
    any_char = st.characters(min_codepoint=ord(kb_text.HAN[0]), max_codepoint=ord(kb_text.HAN[2]))
    pieces = st.one_of(st.sampled_from(words), any_char, st.sampled_from("不一人中大小上下的了是在有没"))
    return st.lists(pieces, min_size=1, max_size=12).map("".join)


# --- segmentation ---------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_total_is_that_of_jieba(jieba_tokenizer: Any) -> None:
    assert jieba_tokenizer.total == kb_text._JIEBA_TOTAL


@pytest.mark.thorough
def test_segmenter_equals_jieba_on_random_runs(jieba_tokenizer: Any, all_of_jieba: Segmenter) -> None:
    @settings(
        max_examples=examples(100),
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(_han_runs(jieba_tokenizer))
    def equal(run: str) -> None:
        assert all_of_jieba.for_search(run) == jieba_tokenizer.lcut_for_search(run, HMM=False)
        assert all_of_jieba.words(run) == jieba_tokenizer.lcut(run, HMM=False)

    equal()


@pytest.mark.thorough
@pytest.mark.parametrize("sentence", SENTENCES, ids=lambda s: s[:6])
def test_dictionary_of_a_sentence_segments_it_as_jieba_does(jieba_tokenizer: Any, sentence: str) -> None:
    segmenter = Segmenter(dictionary_for([sentence]))
    for run in kb_text._TOKEN.findall(sentence):
        assert segmenter.for_search(run) == jieba_tokenizer.lcut_for_search(run, HMM=False)


@pytest.mark.thorough
def test_questions_are_segmented_as_jieba_does(jieba_tokenizer: Any) -> None:
    questions = [json.loads(line)["query"] for line in (CASES / "questions.jsonl").read_text("utf-8").splitlines()]
    runs = [run for text in questions for run in kb_text._TOKEN.findall(clean(text)) if kb_text.HAN_CHAR.match(run)]
    segmenter = Segmenter(dictionary_for(runs))
    assert len(runs) > 50
    assert [segmenter.for_search(run) for run in runs] == [
        jieba_tokenizer.lcut_for_search(run, HMM=False) for run in runs
    ]


def test_words_are_a_partition_even_when_nothing_is_known() -> None:
    assert Segmenter({}).words("显存不足") == ["显", "存", "不", "足"]
    assert Segmenter({}).words("") == []


def test_a_prefix_of_a_word_is_not_a_word() -> None:
    assert Segmenter({"检查点": -9.0}).words("检查点检查") == ["检查点", "检", "查"]


def test_dictionary_for_text_without_han_is_empty() -> None:
    assert dictionary_for(["RuntimeError: CUDA out of memory", ""]) == {}


def test_dictionary_for_holds_only_words_of_these_characters() -> None:
    found = dictionary_for(["显存", "不足"])
    assert {"显", "存", "不", "足", "不足"} <= found.keys()
    assert all(set(word) <= set("显存不足") for word in found)
    assert all(-19 < p < 0 for p in found.values())


HAN = {"训练": -8.0, "训": -11.0, "显": -12.0, "显存": -10.0, "不": -6.0, "不足": -9.0, "足": -11.0}
VOCABULARY = {**HAN, "cuda": 0.0, "error": 0.0}


def _over(vocabulary: dict[str, float]) -> Segmenter:
    terms = sorted(vocabulary)
    return Segmenter.from_vocabulary([(terms, [vocabulary[term] for term in terms])])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("训练显存不足", ["训练", "显存", "不足"]),
        ("显存训", ["显存", "训"]),
        ("足不显", ["足", "不", "显"]),
        ("存不足", ["存", "不足"]),  # 存 begins no word of the vocabulary
        ("鼠", ["鼠"]),
    ],
)
def test_words_from_an_index_vocabulary(text: str, words: list[str]) -> None:
    assert _over(VOCABULARY).words(text) == words


@settings(max_examples=examples(100), deadline=None, derandomize=True, database=None)
@given(st.text(alphabet="训练显存不足鼠", max_size=12))
def test_from_vocabulary_takes_what_the_text_can_contain_and_no_more(text: str) -> None:
    assert _over(VOCABULARY).for_search(text) == Segmenter(HAN).for_search(text)


def test_from_vocabulary_takes_no_latin_term_for_a_word() -> None:
    assert _over({"cuda": -1.0, "显存": -9.0}).words("显存") == ["显存"]
    assert _over(VOCABULARY)._words_from("显").keys() == {"显", "显存"}


def test_from_vocabulary_with_the_last_han_character() -> None:
    last = kb_text.HAN[2]
    assert _over({last: -9.0, last + "不": -8.0, "zz": 0.0}).words(last + "不") == [last + "不"]


# --- tokens ---------------------------------------------------------------------------------------------------------


def _tokens(text: str) -> list[str]:
    text = clean(text)
    return tokenise(text, Segmenter(dictionary_for([text])))


TOKENS = {
    "num_generations=8": "num_generations num generations 8",
    "OutOfMemoryError": "outofmemoryerror out memory error",
    "torch.cuda.OutOfMemoryError: CUDA out of memory": "torch cuda outofmemoryerror out memory error cuda out memory",
    "ZeRO3": "zero3 zero 3",
    "ZeRO-3": "zero 3",
    "GPU0 fp16": "gpu0 gpu 0 fp16 fp 16",
    "Qwen2_5_VL": "qwen2_5_vl qwen 2 5 vl",
    "NCCL_P2P_DISABLE": "nccl_p2p_disable nccl 2 disable",
    "getHTTPResponseCode": "gethttpresponsecode http response code",
    "__step_id_module_fetched_for": "step_id_module_fetched_for step id module fetched",
    "deepspeed 0.16.4": "deepspeed 0.16.4",
    "deepspeed==0.16.4": "deepspeed 0.16.4",
    "2.1.2+cu121": "2.1.2 cu121 cu 121",
    "1.2.3.4": "1.2.3.4",
    "CUDA 12.4, torch 2.6": "cuda 12.4 torch 2.6",
    "vllm v0.6.3": "vllm 0.6.3",
    "版本V2.1": "版本 2.1",
    "libcudart.so.11.0": "libcudart 11.0",
    "0x7f3a9c00 0xDEADBEEF 0x0": "",
    "at 0x7f3a9c00: bad": "bad",
    "the file is not found": "file not found",
    "no such file": "no file",
    "内存不足": "内存 不足 内存不足",
    "训练时 loss 变成 NaN": "训练 loss 变成 nan",
    "梯度检查点gradient_checkpointing开启": "梯度 检查 查点 检查点 gradient_checkpointing gradient checkpointing 开启",
    "找不到模块": "找 不到 模块",
    "的的的": "",
    "ＣＵＤＡ　ｏｕｔ　ｏｆ　ｍｅｍｏｒｙ": "cuda out memory",
    "显存（２４ＧＢ）": "显存 24gb 24 gb",
    "ab①": "ab1 ab 1",
    "привет мир": "привет мир",
    "___ _ -- !! 🙂": "",
    "": "",
    "a" * 64: "a" * 64,
    "a" * 65: "",
    "a" * 65 + " error": "error",
}


@pytest.mark.parametrize(("text", "tokens"), TOKENS.items(), ids=[repr(t)[:40] for t in TOKENS])
def test_tokens(text: str, tokens: str) -> None:
    if "显存" in text:  # jieba's dictionary has no 显存
        tokens = tokens.replace("显存", " ".join(Segmenter(dictionary_for([text])).for_search("显存")))
    assert _tokens(text) == tokens.split()


@pytest.mark.parametrize(
    "same", [("OutOfMemoryError", "outofmemoryerror"), ("ＺｅＲＯ３", "ZeRO3"), ("num\u200b_gen", "num_gen")]
)
def test_spelling_that_a_reader_cannot_tell_apart_meets(same: tuple[str, str]) -> None:
    one, other = map(_tokens, same)
    assert one[0] == other[0]


@settings(max_examples=examples(200), deadline=None, derandomize=True, database=None)
@given(st.text(max_size=60))
def test_tokens_are_words_that_can_be_stored(text: str) -> None:
    """One a line in the index, sorted: none is empty, holds a space or a line break, or is a stop word."""
    for token in tokenise(clean(text), Segmenter({})):
        assert token
        assert token not in STOP_WORDS
        assert not any(char.isspace() for char in token)
        token.encode("utf-8")


# --- language and cleaning ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "lang"),
    [
        ("hello world", "en"),
        ("", "en"),
        ("123 !?", "en"),
        ("你", "zh"),
        ("你好", "zh"),
        ("训练时 loss 变成 NaN", "zh"),
        ("断点续训从第 0 步开始", "zh"),
        ("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB 显存", "en"),
        ("用 swift 训练 ovis2 报 TypeError NoneType object is not iterable", "en"),  # 4 characters, 8 words
        ("用 swift 训练 ovis2 报错 TypeError NoneType object is not iterable", "zh"),
        ("这个报错是什么意思：RuntimeError: CUDA error: device-side assert triggered", "zh"),
    ],
)
def test_detect_lang(text: str, lang: str) -> None:
    assert detect_lang(text) == lang


@pytest.mark.parametrize(
    ("dirty", "cleaned"),
    [
        ("plain ascii\x00 stays", "plain ascii\x00 stays"),
        ("Ｅｒｒｏｒ：　１２", "Error: 12"),
        ("ze\u200bro\ufeff wi\u200cdth", "zero width"),
        ("safe\u202etxt.exe\u202c", "safetxt.exe"),
        ("soft\xadhyphen", "softhyphen"),
        ("\u2066isolate\u2069", "\u2066isolate\u2069"),
        ("lone \ud800 surrogate", "lone ? surrogate"),
        ("\udcff\udc80", "??"),
        ("ﬁle", "file"),
        ("e\u0301", "\u00e9"),
        ("显存", "显存"),
        ("", ""),
    ],
    ids=repr,
)
def test_clean(dirty: str, cleaned: str) -> None:
    assert clean(dirty) == cleaned


INVISIBLE = set("\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2064\ufeff")


@settings(max_examples=examples(200), deadline=None, derandomize=True, database=None)
@given(
    st.text(alphabet=st.one_of(st.characters(exclude_categories=()), st.sampled_from(sorted(INVISIBLE))), max_size=40)
)
def test_clean_gives_text_that_can_be_written_and_is_clean(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode("utf-8")
    assert not INVISIBLE & set(cleaned)


SEEN = {
    "colour": ("\x1b[31m", "\u241b[31m"),
    "eight bits": ("\x9b2J", "\ufffd2J"),
    "right to left": ("a\u202eb", "a\ufffdb"),
    "tags": ("a\U000e0069\U000e0067", "a\ufffd\ufffd"),  # "ig" of "ignore", to an agent
    "bytes in styles": ("a\ufe03\ufe0a\U000e0123", "a\ufe03\ufffd\ufffd"),
    "bits in fillers": ("a\u3164\uffa0\u2800b", "a\u3164\ufffd\ufffdb"),
    "bits in several kinds": ("a\u00ad\u200b\u034f\ufe0fb", "a\u00ad\ufffd\ufffd\ufffdb"),
    "no characters": ("a\u2065\ufff0b", "a\ufffd\ufffdb"),
    "where a word may break": ("Feh\u00adler\u00admeldung",) * 2,
    "bits in widths": ("a\u200b\u200c\u200cb", "a\u200b\ufffd\ufffdb"),
    "an emoji": ("\u2764\ufe0f\u200d\U0001f525", "\u2764\ufe0f\u200d\U0001f525"),
    "a family": ("\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f468\u200d\U0001f469\u200d\U0001f467"),
    "a rare form of a name": ("\u845b\U000e0100\u98fe", "\u845b\U000e0100\u98fe"),
    "Persian": ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",) * 2,
}


@pytest.mark.parametrize(("text", "shown"), SEEN.values(), ids=SEEN)
def test_what_a_person_does_not_see_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


# --- growth ---------------------------------------------------------------------------------------------------------


HOSTILE = {
    "one character": lambda n: "的" * n,
    "one word": lambda n: "检查点" * (n // 3),
    "a letter": lambda n: "a" * n,
    "base64": lambda n: ("QmFzZTY0IHRleHQgd2l0aG91dCBhIGJyZWFr" * (n // 36 + 1))[:n],
    "digits": lambda n: "7" * n,
    "dotted digits": lambda n: "1." * (n // 2),
    "capitals": lambda n: "Ab" * (n // 2),
    "underscores": lambda n: "_" * n,
    "0x": lambda n: "0x" * (n // 2),
    "spaces": lambda n: " " * n,
}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE)
def test_time_grows_with_the_text(make: Callable[[int], str]) -> None:
    segmenter = Segmenter(dictionary_for(["的检查点"]))

    def work(text: str) -> None:
        kb_text._pieces.cache_clear()
        detect_lang(clean(text))
        tokenise(clean(text), segmenter)

    def prepared(size: int) -> Callable[[], object]:
        text = make(size)
        return lambda: work(text)

    check_growth(prepared, 10_000)


@pytest.mark.thorough
def test_the_law_of_growth_can_fail() -> None:
    with pytest.raises(AssertionError, match="8 times as much"):
        check_growth(lambda n: lambda: sum(1 for _ in range(n) for _ in range(n)), 200)
