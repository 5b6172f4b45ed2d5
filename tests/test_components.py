"""Which software an issue is about, and whether a failure has anything to do with it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from conftest import EMPTY_RECORD, check_growth

from kb import KnowledgeBase
from kb.components import _COMPONENTS, components, is_present, may_be_anyones
from kb.records import IssueRecord


def record(
    project: str | None = None, *, tags: tuple[str, ...] = (), errors: tuple[str, ...] = (), symptom: str = ""
) -> IssueRecord:
    return replace(EMPTY_RECORD, project=project, tags=tags, errors=errors, symptom=symptom)


@pytest.mark.parametrize(
    ("one", "names"),
    [
        (record("PyTorch"), {"torch"}),
        (record("FSDP"), {"torch"}),
        (record("ms-swift", tags=("deepspeed", "grpo", "labels")), {"ms-swift", "deepspeed", "trl"}),
        (record("LLaMA-Factory"), {"llama-factory"}),
        (record("Text Generation Inference"), {"text-generation-inference"}),
        (record("huggingface_hub"), {"huggingface-hub"}),
        (record("PaddleOCR"), {"paddle"}),
        (record("MMDetection", tags=("mmcv",)), {"openmmlab"}),
        (record("OpenCV"), {"opencv"}),
        (record("vLLM", errors=("ImportError: libGL.so.1, wanted by opencv-python",)), {"vllm"}),  # so are these
        (record("llama.cpp"), {"llama.cpp"}),
        (record("NumPy"), {"numpy"}),
        (record("TRL", errors=("numpy.core failed",)), {"trl"}),  # numpy is everywhere
        (record("Payments Service"), {"payments-service"}),
        (record(None), set()),
        (record("vLLM", errors=("NCCL WARN Cuda failure 'out of memory'",)), {"vllm", "nccl", "cuda"}),
        (record("PEFT", symptom='  File "/x/site-packages/torch/amp/grad_scaler.py", line 260'), {"peft", "torch"}),
        (record(None, errors=("Connection refused", "Permission denied", "exit code 137", "Killed")), set()),
    ],
    ids=lambda one: one.project if isinstance(one, IssueRecord) else "",
)
def test_what_an_issue_is_about(one: IssueRecord, names: set[str]) -> None:
    assert components(one) == names


SWIFT = record("ms-swift", tags=("deepspeed",))
RAY = record("Ray")
DATASETS = record("datasets")
TORCH = record("PyTorch")
OWN = record("Payments Service")
NUMPY = record("NumPy")
OPENCV = record("OpenCV")
PADDLE = record("PaddleDetection")


@pytest.mark.parametrize(
    ("one", "text", "command", "modules", "present"),
    [
        (SWIFT, "IndexError: pop from an empty deque", ["python", "game.py"], {"numpy", "pygame", "torch"}, False),
        (SWIFT, "IndexError: pop from an empty deque", ["deepspeed", "train.py"], set(), True),
        (SWIFT, "IndexError: pop from an empty deque", ["/opt/bin/swift", "sft"], set(), True),
        (SWIFT, "IndexError: pop from an empty deque", [], {"deepspeed"}, True),
        (SWIFT, 'File "/x/site-packages/deepspeed/runtime/zero/stage3.py", line 9', [], set(), True),
        (SWIFT, 'File "/home/me/swift/llm/train.py", line 9', [], set(), True),
        (SWIFT, "a swift answer", [], set(), False),
        (RAY, "ray.exceptions.OutOfMemoryError: Task was killed", [], set(), True),
        (RAY, "(WorkerDict pid=812) killed", [], set(), True),
        (RAY, "an x-ray of ray tracing: failed", [], set(), False),
        (DATASETS, "rm: cannot remove 'data/datasets/a.csv': No such file or directory", ["rm"], set(), False),
        (DATASETS, "datasets.table.CastError: Couldn't cast", [], set(), True),
        (DATASETS, "ModuleNotFoundError: No module named 'datasets'", [], set(), True),
        (TORCH, "ConnectionRefusedError: [Errno 111] Connection refused", ["python", "a.py"], {"flask"}, False),
        (TORCH, "OSError: [Errno 28] No space left on device", ["cp", "a", "b"], set(), False),
        (TORCH, "OSError: [Errno 98] Address already in use", ["python", "a.py"], set(), False),
        (TORCH, "Killed", ["sh", "-c", "python train.py"], set(), False),
        (TORCH, "[c10d] The server socket has failed to bind", ["python", "a.py"], set(), True),
        (TORCH, "Killed", ["torchrun", "train.py"], set(), True),
        (TORCH, "TypeError: Cannot convert a MPS Tensor to float64 dtype", ["python", "a.py"], set(), True),
        (record("transformers"), "AttributeError: 'InternLM2ForCausalLM' object has no attribute", [], set(), True),
        (OPENCV, "cv2.error: OpenCV(4.9.0) /io/opencv/color.cpp:196: !_src.empty()", [], set(), True),
        (PADDLE, 'File "/x/site-packages/paddle/nn/layer.py", line 9', [], set(), True),
        (PADDLE, "the paddles of a boat", [], set(), False),
        (OWN, "the ledger is locked", [], set(), False),
        (OWN, "payments_service: the ledger is locked", [], set(), True),
        (OWN, "the ledger is locked", [], {"payments_service"}, True),
        (NUMPY, "TypeError: x", [], {"numpy"}, False),  # kb itself may have loaded it
        (NUMPY, "AttributeError: module 'numpy' has no attribute 'float'", [], {"numpy"}, True),
    ],
)
def test_whether_it_takes_part(
    one: IssueRecord, text: str, command: list[str], modules: set[str], present: bool
) -> None:
    assert is_present(one, text, command=command, modules=modules) is present


@pytest.mark.parametrize(
    ("one", "line", "text", "anyones"),
    [
        (PADDLE, "Illegal instruction (core dumped)", "./encoder", True),
        (PADDLE, "Illegal instruction (core dumped)", "PaddleOCR starts", False),
        (RAY, "TypeError: argument of type 'bool' is not iterable", 'File "/home/k/site/build.py", line 4', True),
        (RAY, "TypeError: argument of type 'bool' is not iterable", 'File "/x/site-packages/ray/a.py", line 4', False),
        (TORCH, "RuntimeError: received 0 items of ancdata", 'File "/home/k/a.py", line 4', False),
        (record("Linux"), "OSError: [Errno 28] No space left on device", 'File "/home/k/a.py", line 4', False),
        (record("Linux", tags=("ray",)), "OSError: [Errno 28] No space left on device", "./a", False),  # Linux owns it
        (record("Python", tags=("pandas",)), "ValueError: I/O operation on closed file", "Python 3.11.7", True),
        (PADDLE, "段错误 (核心已转储)", "./encoder", True),
        (record(None), "Killed", "make", False),
    ],
)
def test_what_any_program_may_print(one: IssueRecord, line: str, text: str, anyones: bool) -> None:
    assert may_be_anyones(one, [line], f"{text}\n{line}") is anyones
    assert not may_be_anyones(one, [], text)


@pytest.mark.thorough
@pytest.mark.parametrize("part", ["_", "a", "a.", "/swift/", "swift.a", "-m ", "ray ", "qwen-", "Æ"])
def test_time_is_linear(part: str) -> None:
    everything = record("ms-swift", tags=tuple(_COMPONENTS))
    check_growth(lambda n: partial(is_present, everything, part * n), 8000)


def test_every_issue_is_about_something_that_its_own_error_lines_or_project_show(index: Path) -> None:
    """Else no hook would ever speak of it."""
    with KnowledgeBase.open(index) as base:
        for one in base.records():
            assert components(one), one.id
            assert is_present(one, "", command=[one.project or ""]) or is_present(one, "\n".join(one.errors)), one.id
