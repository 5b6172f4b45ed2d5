"""The tokenizer that the encoder is trained with, and the noise it learns to ignore."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_align import load

import kb
from kb.encoders.unigram import FILE_NAME, UnigramTokenizer, pack

vocabulary, noise = load("vocabulary"), load("noise")

TEXTS = [
    "Training stops: the checkpoint of rank 3 is empty.",
    "显存不足，训练在检查点处超时。",
    "DeepSpeed 超时，检查点为空，显存泄漏。",
    "timeout while the checkpoint is written; empty checkpoint, empty queue",
    "CUDA_ERROR_INVALID_DEVICE in vLLM, loss is NaN",
] * 5


@pytest.mark.thorough
def test_words_stay_whole_in_both_languages() -> None:
    tokenizer = vocabulary.build(TEXTS, 400, fragments=50)
    assert tokenizer.encode("显存检查点超时").tokens == ["显存", "检查点", "超时"]
    assert tokenizer.encode("The checkpoint timeout").tokens == ["the", "checkpoint", "timeout"]
    assert tokenizer.encode("CUDA_ERROR in vLLM: NaN").tokens == ["cuda", "_", "error", "in", "vllm", ":", "nan"]
    unknown = tokenizer.encode("checkpointing").tokens  # a word never seen falls into known letters, not into nothing
    assert "".join(unknown) == "checkpointing"
    assert "[UNK]" not in unknown
    assert tokenizer.token_to_id("[PAD]") == 0
    assert tokenizer.token_to_id("[UNK]") == vocabulary.UNKNOWN


@pytest.mark.thorough
def test_it_normalises_and_splits_as_the_quick_one_of_the_package(tmp_path: Path) -> None:
    tokenizer = vocabulary.build(TEXTS, 400, fragments=50)
    assert vocabulary.same_form(tokenizer, Path(kb.__file__).parent / "model" / "tokenizer.json")
    (tmp_path / FILE_NAME).write_bytes(pack(tokenizer.to_str().encode()))
    quick = UnigramTokenizer(tmp_path)
    for text in [*TEXTS, "checkpointing 超时检查点 zzz"]:
        assert quick.encode(text) == tokenizer.encode(text).ids


def test_noise_is_the_same_for_a_seed() -> None:
    one, two, other = noise.lines(50, 1), noise.lines(50, 1), noise.lines(50, 2)
    assert one == two != other
    assert all(text.strip() for text in one)
    assert not any("{w}" in text or "{v}" in text for text in one)
