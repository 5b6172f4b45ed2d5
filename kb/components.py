"""Which programs an issue is about, and whether one of them takes part in a failure.

`deque().pop()` fails in a game with the same words as in DeepSpeed. So where nobody asked (a hook, `kb run`), kb speaks
only of an issue of which a component is there: a package that is loaded or has a frame in the traceback, or a product
that the command or its output names. Words of the operating system (refused, denied, no space left, killed, exit
code 1) name no component: with any program they mean something else.

Where somebody asked, an issue that is known by nothing but words of everyone's (`argument of type 'bool' is not
iterable`) is no more than likely, unless one of its components is there.

In: a record, the text of a failure, the command, the names of loaded modules. Out: names of components, in lower case.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

from kb.logs.everyones import is_everyones
from kb.records import IssueRecord

__all__ = ["components", "is_present", "may_be_anyones"]


class _Component(NamedTuple):
    packages: str = ""
    """its top-level packages and commands. Many are plain words (`ray`, `datasets`), so in a text they count only where
    they stand as a package: in a path of Python code, in `ray.exceptions.RayTaskError`, in `No module named 'ray'`"""
    words: str = ""
    """a pattern of names that stand for it wherever they are, in any letter case; what it begins with is bounded"""


_COMPONENTS = {
    "accelerate": _Component("accelerate"),
    "ascend": _Component(
        "torch_npu acl npu-smi", r"ascend\w*|\w{0,40}hccl\w*|\w{0,40}npu|cann|vnpu|torch_npu|aclnn\w*"
    ),
    "axolotl": _Component("axolotl", "axolotl"),
    "bitsandbytes": _Component("bitsandbytes", "bitsandbytes|bnb"),
    "conda": _Component("", r"conda\w*error|conda (?:install|create|activate|run)|glibcxx\w*"),
    "cuda": _Component(
        "cupy nvidia-smi nvcc",
        r"(?:lib)?(?:cuda|cudnn|cublas|cusparse|cusolver|nvrtc|nvml|nccl)\w*|nvidia|nvcc|nvrm|xid",
    ),
    "datasets": _Component("datasets", "load_dataset|pyarrow"),
    "deepspeed": _Component("deepspeed", r"deepspeed\w*|zero_to_fp32"),
    "flash-attention": _Component("flash_attn flash_attn_2_cuda", r"flash[_-]?att\w*|flash attention"),
    "huggingface-hub": _Component("huggingface_hub huggingface-cli hf", "huggingface|hf-mirror|gated repo"),
    "jupyter": _Component("jupyter jupyterlab notebook ipywidgets", "ipywidgets|jupyter"),
    "llama-factory": _Component("llamafactory llmtuner llamafactory-cli", r"llama[-_]?factory|llmtuner"),
    "llama.cpp": _Component("llama_cpp llama-cli llama-server", r"llama[._-]?cpp|ggml\w*|gguf|llama_model\w*"),
    "llava": _Component("llava", "llava"),
    "lightning": _Component("pytorch_lightning lightning", r"(?:pytorch[_-])?lightning"),
    "lmdeploy": _Component("lmdeploy", r"lmdeploy|turbomind"),
    "megatron-lm": _Component("megatron", r"megatron\w*"),
    "ms-swift": _Component("swift", r"ms[-_]swift|\[(?:INFO|WARNING|ERROR):swift\]"),
    "nccl": _Component("", r"\w{0,40}nccl\w*"),
    "numpy": _Component("numpy", r"numpy|_ARRAY_API"),
    "ollama": _Component("ollama", "ollama|llama runner"),
    "opencv": _Component("cv2", r"opencv\w*"),
    "openmmlab": _Component("mmengine mmcv", r"openmmlab|mm(?:cv|deploy|det|engine|pose|pretrain|seg)\w*"),
    "onnx-runtime": _Component("onnxruntime", r"onnx\w*"),
    "openrlhf": _Component("openrlhf", "openrlhf"),
    "paddle": _Component(
        "paddle", r"paddle(?:paddle|ocr|x|nlp|seg|detection|clas)|libpaddle|pp(?:cls|det|ocr)|x2paddle|paddle2onnx"
    ),
    "peft": _Component("peft", r"peft\w*|lora(?:config)?"),
    "pillow": _Component("PIL", "pillow"),
    "pip": _Component("pip pip3 uv", "pip|externally-managed-environment"),
    "protobuf": _Component("google.protobuf", "protobuf|protoc"),
    "qwen": _Component("qwen_vl_utils", r"qwen[\w.-]{0,20}\d\w*"),
    "ray": _Component("ray", r"raylet|ray::\w+|\w{1,40} pid=\d{1,9}(?:, ip=[\d.]{1,20})?\)"),
    "safetensors": _Component("safetensors safetensors_rust", r"safetensor\w*"),
    "scikit-learn": _Component("sklearn", "scikit-learn"),
    "sglang": _Component("sglang", "sglang|sgl_kernel"),
    "tensorrt": _Component("tensorrt tensorrt_llm trtexec", r"tensorrt\w*|trt"),
    "text-generation-inference": _Component("text_generation_server", r"text[-_]generation[-_]\w+|tgi"),
    "tokenizers": _Component("tokenizers", r"huggingface/tokenizers|AutoTokenizer|\w{1,40}TokenizerFast"),
    "torch": _Component(
        "torch torchvision torchaudio torchrun",
        r"(?:py|lib)?torch\w*|c10d?|aten|ProcessGroup\w+|state_dict|grad_fn|DataLoader|DataParallel"
        r"|MPS (?:backend|Tensor)",
    ),
    "tqdm": _Component("tqdm", "tqdm|TqdmWarning"),
    "transformers": _Component(
        "transformers",
        r"transformers|\[(?:INFO|WARNING|ERROR)\|\w{1,40}\.py|\w{1,60}For(?:CausalLM|ConditionalGeneration|\w{1,20}Classification)",
    ),
    "triton": _Component("triton", r"triton"),
    "triton-inference-server": _Component(
        "tritonserver", r"triton(?:backend|client|server)\w*|triton inference server"
    ),
    "trl": _Component("trl", "trl|GRPO\\w*|SFTTrainer|DPOTrainer"),
    "ultralytics": _Component("ultralytics", r"ultralytics|yolo\w*"),
    "unsloth": _Component("unsloth unsloth_zoo", "unsloth"),
    "verl": _Component("verl", "verl|DataProto"),
    "vila": _Component("llava vila", "vila"),
    "vllm": _Component("vllm", r"vllm|EngineCore\w*"),
    "vlm-r1": _Component("open_r1", r"vlm[-_]r1|open[-_]r1"),
    "wandb": _Component("wandb", "wandb"),
    "xformers": _Component("xformers", "xformers"),
    "xtuner": _Component("xtuner mmengine", "xtuner|mmengine"),
}
"""by name: the project's, in lower case with hyphens. A project that is not here counts by its name"""

_PROJECTS = {"pytorch": "torch", "fsdp": "torch", "cudnn": "cuda", "nvidia-driver": "cuda", "ascend-hccl": "ascend"}
_PROJECTS |= {"torch-npu": "ascend", "torchvision": "torch", "qwen-vl": "qwen", "pytorch-lightning": "lightning"}
_PROJECTS |= dict.fromkeys(
    ("mmcv", "mmdeploy", "mmdetection", "mmdetection3d", "mmengine", "mmsegmentation"), "openmmlab"
)
_PROJECTS |= dict.fromkeys(
    ("paddlepaddle", "paddledetection", "paddlenlp", "paddleocr", "paddleseg", "paddlex"), "paddle"
)
_PROJECTS |= dict.fromkeys(("paddle2onnx", "x2paddle"), "paddle")
_EVERYWHERE = {"numpy", "opencv", "pillow", "pip", "scikit-learn", "tqdm"}  # components of their own issues alone
_FRAME = re.compile(r"(?:site|dist)-packages[/\\](\w+)")
_SYSTEM = {"linux"}
_OF_ANY_PROGRAM = {"python"}  # that it takes part says nothing about whose failure it is
_MISSING = re.compile(r"No module named ['\"]?[\w.]{1,100}['\"]?")
_OWN = {"numpy", "tokenizers", "safetensors", "tqdm"}  # packages that kb itself may have loaded


@lru_cache(maxsize=1024)
def components(record: IssueRecord) -> frozenset[str]:
    """What the issue is about: its project, what its tags, its title and its error lines name, and whose frames its
    symptom shows."""
    own = {_named_after(record.project)} if record.project else set[str]()
    text = "\n".join((*record.tags, record.title, *record.errors))
    framed = {*_FRAME.findall(record.symptom)}
    return frozenset(own) | {
        name
        for name, one in _COMPONENTS.items()
        if name not in _EVERYWHERE and (_in_text(name).search(text) or not framed.isdisjoint(one.packages.split()))
    }


def is_present(record: IssueRecord, text: str, *, command: Collection[str] = (), modules: Collection[str] = ()) -> bool:
    """Does a component of the issue take part in this failure?

    `text`: the traceback, or the output. `command`: its words. `modules`: names of loaded ones, as in `sys.modules`."""
    if modules:  # inside the process: a module that is missing takes no part in it
        text = _MISSING.sub("", text)
    words = "\n".join(command)
    typed = {word.casefold() for word in re.split(r"[^\w.-]+", words)}
    return any(
        not typed.isdisjoint(packages := _packages(name))
        or any(package in modules and package not in _OWN for package in packages)
        or _in_text(name).search(text)
        or _in_text(name).search(words)
        for name in components(record) - _OF_ANY_PROGRAM
    )


def may_be_anyones(record: IssueRecord, lines: Collection[str], text: str) -> bool:
    """Do these lines, by which the issue was found, stand in the messages of any program, and does the text around them
    not name its software? `Illegal instruction` says nothing about Paddle. Of the system every program speaks."""
    is_the_systems = record.project is not None and _named_after(record.project) in _SYSTEM
    # Whether the lines are anyone's is asked first: it is quickly said and seldom so.
    if not lines or is_the_systems or not all(map(is_everyones, lines)):
        return False
    return bool(components(record)) and not is_present(record, text)


def _named_after(project: str) -> str:
    name = "-".join(re.split(r"[^\w.]+|_+", project.casefold()))
    return _PROJECTS.get(name, name)


def _packages(name: str) -> list[str]:
    one = _COMPONENTS.get(name)
    return [name, name.replace("-", "_")] if one is None else one.packages.split()


@lru_cache(maxsize=1024)
def _in_text(name: str) -> re.Pattern[str]:
    one = _COMPONENTS.get(name) or _Component("", re.escape(name).replace(r"\-", r"[ _-]"))
    forms = [rf"(?<![A-Za-z0-9])(?i:{one.words})(?![A-Za-z0-9])"] if one.words else []
    if one.packages:
        either = "|".join(map(re.escape, one.packages.split()))
        forms += [
            rf"(?:site|dist)-packages[/\\](?:{either})\b",
            rf"[/\\](?:{either})[/\\][^\s\"']{{0,200}}\.py\b",
            rf"(?<![\w./\\-])(?:{either})(?:\.[a-z_]\w{{0,60}}){{0,8}}\.[A-Z]\w",
            rf"(?:-m |[Mm]odule (?:named )?['\"]?)(?:{either})\b",
        ]
    return re.compile("|".join(forms))
