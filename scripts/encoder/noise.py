"""Makes what surrounds an error in a log: frames, prefixes, times, progress bars, addresses."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

_FOLDERS = ["/usr/local/lib/python3.{v}/site-packages", "/opt/conda/envs/{w}/lib/python3.{v}/site-packages",
            "/home/{w}/{w}", "/workspace/{w}", "/mnt/data/{w}", "C:\\Users\\{w}\\{w}", "/root/{w}"]  # fmt: skip
_PACKAGES = ["torch/nn/modules/module.py", "transformers/trainer.py", "accelerate/accelerator.py",
             "deepspeed/runtime/engine.py", "torch/distributed/elastic/multiprocessing/api.py",
             "vllm/engine/llm_engine.py", "trl/trainer/sft_trainer.py", "peft/peft_model.py",
             "torch/utils/data/dataloader.py", "{w}/{w}.py", "{w}.py"]  # fmt: skip
_FUNCTIONS = [
    "forward",
    "_call_impl",
    "train",
    "main",
    "<module>",
    "step",
    "backward",
    "__init__",
    "run",
    "training_step",
]
_CODE = ["return self._call_impl(*args, **kwargs)", "loss.backward()", "return forward_call(*args, **kwargs)",
         "trainer.train()", "outputs = model(**inputs)", "self.{w}({w})", "main()", "raise {w}"]  # fmt: skip
_WORDS = ["user", "project", "exp", "run", "llm", "train", "work", "data", "test", "demo", "model", "scripts", "env"]


def lines(count: int, seed: int) -> list[str]:
    """`count` pieces of one to three lines."""
    rng = random.Random(seed)

    def fill(text: str) -> str:
        while "{w}" in text or "{v}" in text:
            text = text.replace("{w}", rng.choice(_WORDS), 1).replace("{v}", str(rng.randint(8, 13)), 1)
        return text

    def frame() -> str:
        place = f"{fill(rng.choice(_FOLDERS))}/{fill(rng.choice(_PACKAGES))}"
        return f'File "{place}", line {rng.randint(1, 3999)}, in {rng.choice(_FUNCTIONS)}\n{fill(rng.choice(_CODE))}'

    def stamp() -> str:
        day = f"20{rng.randint(23, 26)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
        clock = f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"
        level = rng.choice(["INFO", "WARNING", "ERROR", "DEBUG"])
        return rng.choice(
            [f"[{day} {clock},{rng.randint(0, 999)}] [{level}]", f"{day} {clock} - {level} -", f"[{level}|{clock}]"]
        )

    def bar() -> str:
        done, total = rng.randint(0, 99), rng.randint(100, 9999)
        filled, pace = "█" * (done // 10), f"[00:{done:02}<{rng.randint(1, 59)}:00, {rng.random():.2f}s/it]"
        return f"{done}%|{filled:10}| {done}/{total} {pace}"

    makers = [
        frame,
        frame,
        stamp,
        bar,
        lambda: f"[rank{rng.randint(0, 63)}]:",
        lambda: f"worker-{rng.randint(0, 9)}: [rank{rng.randint(0, 31)}]: {frame()}",
        lambda: f"(pid={rng.randint(100, 99999)}) 0x{rng.getrandbits(40):x}",
        lambda: "Traceback (most recent call last):",
        lambda: f"node{rng.randint(0, 99)}:{rng.randint(100, 99999)}:{rng.randint(100, 99999)} [{rng.randint(0, 7)}]",
    ]
    return ["\n".join(rng.choice(makers)() for _ in range(rng.randint(1, 3))) for _ in range(count)]


def some(junk: Sequence[np.ndarray], count: int, share: float, rng: np.random.Generator) -> list[np.ndarray]:
    """For each of `count` texts the tokens of some noise, with probability `share`, else none."""
    none = np.zeros(0, np.int64)
    return [junk[rng.integers(len(junk))] if hit else none for hit in rng.random(count) < share]
