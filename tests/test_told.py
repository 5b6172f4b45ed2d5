"""A description that holds words of failure is read as a description, and a printed line as a printed line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.logs.classify import says_it_in_passing
from kb.logs.read import read
from kb.logs.told import FEATURES, WEIGHTS, features, is_told
from kb.text import clean

TOLD = [
    "the more GPUs I use the more CPU memory it takes, with four of them the host runs out of memory",
    "A checkpoint that I wrote with the old version cannot be opened by the new one, although the folder is the same",
    "since the update every second request timed out, but the same client works against the old server",
    "换了新机器之后训练能跑起来，但是保存模型的时候就 out of memory，batch size 改小也没有用",
]
PRINTED = [
    "/usr/bin/ld: cannot find -lcuda: No such file or directory",
    "'nvcc' 不是内部或外部命令，也不是可运行的程序",
    "The term 'conda' is not recognized as the name of a cmdlet, function, script file, or operable program.",
    "listen tcp 0.0.0.0:8000: bind: address already in use",
    "'ChatGLMTokenizer' object has no attribute 'sp_tokenizer'",
    "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.65 GiB total capacity)",
]


@pytest.mark.parametrize("text", TOLD)
def test_what_a_person_tells_is_a_description(text: str) -> None:
    assert says_it_in_passing(text)
    assert (read(text).signatures, read(text).prose) == ((), clean(text))


@pytest.mark.parametrize("text", PRINTED)
def test_what_a_program_prints_is_an_error_line(text: str) -> None:
    assert read(text).signatures == (clean(text),)


def test_a_sentence_above_a_traceback_is_no_error_line() -> None:
    text = f"{TOLD[0]}\nTraceback (most recent call last):\nRuntimeError: boom 7"
    assert read(text).signatures == ("RuntimeError: boom 7",)


def test_in_a_log_everything_was_printed() -> None:
    assert read(TOLD[0], printed=True).signatures == (TOLD[0],)


@given(st.text())
def test_features_are_shares(line: str) -> None:
    assert all(0 <= value <= 1 for value in features(line))
    assert is_told(line) in (True, False)


def test_weights_are_those_of_the_features() -> None:
    assert tuple(json.loads(WEIGHTS.read_text("utf-8"))["weights"]) == FEATURES
