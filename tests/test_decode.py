"""kb.text.decode: bytes of every origin become the text that was meant."""

from __future__ import annotations

import random

import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.logs.read import read
from kb.text.decode import decode, decode_lines

TEXT = "报错：CUDA out of memory，显存不足\nnaïve 🙂"

CASES = {
    "nothing": (b"", "", ""),
    "ASCII": (b"a\r\nb\x00", "", "a\r\nb\x00"),
    "UTF-8": (TEXT.encode(), "", TEXT),
    "UTF-8 with a mark": (TEXT.encode("utf-8-sig"), "", TEXT),
    "UTF-16 little-endian": (b"\xff\xfe" + TEXT.encode("utf-16-le"), "", TEXT),
    "UTF-16 big-endian": (b"\xfe\xff" + TEXT.encode("utf-16-be"), "", TEXT),
    "only the mark of UTF-16": (b"\xff\xfe error 77", "", "\ufffd\ufffd error 77"),
    "GB 18030": (TEXT.encode("gb18030"), "", TEXT),
    "GBK": ("显存不足".encode("gbk"), "", "显存不足"),
    "declared": ("顯存不足".encode("big5"), "big5", "顯存不足"),
    "declared wrongly": ("显存不足".encode("gbk"), "ascii", "显存不足"),
    "declared as what nobody knows": ("显存不足".encode("gbk"), "x-nonsense", "显存不足"),
    "declared as no text": ("显存不足".encode("gbk"), "hex", "显存不足"),
    "declared as undefined": ("显存不足".encode("gbk"), "undefined", "显存不足"),
    "UTF-8 whatever is declared": ("显存不足".encode(), "gbk", "显存不足"),
    "GBK with colours and a progress bar": (
        "\x1b[31m显存不足\x1b[0m\b\b".encode("gbk"),
        "",
        "\x1b[31m显存不足\x1b[0m\b\b",
    ),
    "GBK, characters of Taiwan": ("訓練失敗：顯存不足，請檢查".encode("gbk"), "", "訓練失敗：顯存不足，請檢查"),
    "Western Europe": ("déjà lancé".encode("cp1252"), "", "d\ufffdj\ufffd lanc\ufffd"),
    "no text, though GB 18030 could be": (b"\x02\xd0\xc5\x1d", "", "\x02\ufffd\ufffd\x1d"),
    "neither": (b"error \xff\xff 7", "", "error \ufffd\ufffd 7"),
}


@pytest.mark.parametrize(("data", "declared", "text"), CASES.values(), ids=CASES)
def test_decode(data: bytes, declared: str, text: str) -> None:
    assert decode(data, declared) == text


def test_lines_of_different_programs() -> None:
    data = b"\n".join(["一".encode(), "显存不足".encode("gbk"), b"\x80 cut", b""])
    assert decode_lines(data) == "一\n显存不足\n\ufffd cut\n"


def test_random_bytes_are_seldom_chinese() -> None:
    """Then the answer would be in Chinese, at an English terminal."""
    rng = random.Random(1)
    questions = [decode(rng.randbytes(size)) + " a" for size in (20, 40, 80, 300) for _ in range(250)]
    assert sum(read(question).lang == "zh" for question in questions) <= 20


law = settings(max_examples=examples(200), deadline=None, derandomize=True, database=None)


@law
@given(st.binary(max_size=40), st.sampled_from(["", "gbk", "idna", "utf-7", "unicode_escape", "rot13", "?"]))
def test_nothing_is_refused(data: bytes, declared: str) -> None:
    assert isinstance(decode(data, declared), str)
    assert decode_lines(data).count("\n") >= data.count(b"\n")


@law
@given(st.text(max_size=40).filter(lambda text: not text.startswith("\ufeff")))
def test_text_comes_back(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    assert decode(text.encode()) == decode(text.encode("utf-8-sig")) == decode(b"\xff\xfe" + text.encode("utf-16-le"))
    assert decode(text.encode()) == text


@law
@given(st.text(alphabet="显存不足训练报错的一了", min_size=4, max_size=40))
def test_chinese_of_windows_comes_back(text: str) -> None:
    data = text.encode("gb18030")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        assert decode(data) == text
