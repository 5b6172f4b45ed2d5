"""How long does `kb search` take in a fresh process, next to the imports that it cannot do without?

    python scripts/cold_start.py [--runs 15]

Prints medians and their ratios to `python -c "import numpy, faiss, click, tokenizers"` measured in turn with them,
since machines are noisy; exits with 1 when a ratio is over its limit. Bytecode is written by the first round, for all
alike. `--two` asks a second base beside the one that is part of kb, half of its articles, and prints the ratio to that
one alone. `--naive` adds the script a user would write instead (sentence-transformers and faiss), where that extra is
installed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FLOOR = "import numpy, faiss, click, tokenizers"
NAIVE = """
import sys, faiss
from pathlib import Path
from sentence_transformers import SentenceTransformer
model = SentenceTransformer(sys.argv[1], device="cpu")
texts = [p.read_text(encoding="utf-8") for p in Path(sys.argv[2]).rglob("*.md")]
index = faiss.IndexFlatIP(model.get_sentence_embedding_dimension())
index.add(model.encode(texts, normalize_embeddings=True))
print(index.search(model.encode([sys.argv[3]], normalize_embeddings=True), 3))
"""
TRACE = "\n".join(
    [
        f'[rank{i % 8}]:   File "/opt/venv/lib/python3.11/site-packages/m{i}.py", line {i}, in step_{i}'
        for i in range(39)
    ]
    + ["[rank3]: IndexError: pop from an empty deque"]
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--two", action="store_true")
    parser.add_argument("--naive", action="store_true")
    args = parser.parse_args()
    kb = shutil.which("kb", path=str(Path(sys.executable).parent)) or shutil.which("kb")
    if kb is None:
        print("kb is not installed here", file=sys.stderr)
        return 2
    commands = {
        "floor": ([sys.executable, "-c", FLOOR], None),
        "english": ([kb, "search", "pop from an empty deque"], 1.6),
        "chinese": ([kb, "search", "多机训练时从空队列里取元素"], 1.8),
        "40 lines": ([kb, "search", TRACE], None),
        "help": ([kb, "--help"], None),
    }
    second = tempfile.TemporaryDirectory()
    if args.two:
        base = half_of_the_articles(Path(second.name), kb)
        commands["one base"] = ([kb, "search", "--base", "bundled", "pop from an empty deque"], None)
        commands["two bases"] = ([kb, "search", "--base", "bundled", "--base", base, "pop from an empty deque"], None)
    if args.naive:
        root = Path(__file__).parent.parent
        command = [
            sys.executable,
            "-c",
            NAIVE,
            str(root / "kb" / "model"),
            str(root / "articles"),
            "pop from an empty deque",
        ]
        commands["naive"] = (command, None)
    took: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as elsewhere:  # the base that travels with kb, not one of this folder
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPYCACHEPREFIX": elsewhere}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installation has the bytecode of kb and of its packages
        for run in range(-1, args.runs):  # the first round fills the caches and does not count
            for name, (command, _) in commands.items():
                started = time.perf_counter()
                done = subprocess.run(command, capture_output=True, cwd=elsewhere, env=environment)
                elapsed = time.perf_counter() - started
                if done.returncode not in (0, 1):
                    print(done.stderr.decode(), file=sys.stderr)
                    return 2
                if run >= 0:
                    took[name].append(elapsed)
    second.cleanup()
    floor = statistics.median(took["floor"])
    failed = False
    print(f"{'':10}{'median ms':>10}{'x floor':>9}{'limit':>7}")
    for name, (_, limit) in commands.items():
        median = statistics.median(took[name])
        over = limit is not None and median / floor > limit
        failed |= over
        print(f"{name:10}{median * 1000:10.0f}{median / floor:9.2f}{limit or '':>7}{'  OVER' if over else ''}")
    if args.two:
        ratio = statistics.median(took["two bases"]) / statistics.median(took["one base"])
        failed |= ratio > 1.2
        print(f"two bases / one base {ratio:.2f}, limit 1.2")
    return int(failed)


def half_of_the_articles(folder: Path, kb: str) -> str:
    """Every second article in both languages, built; the folder of the base."""
    articles = Path(__file__).parent.parent / "articles"
    for path in sorted((articles / "en").glob("*.md"))[::2]:
        for lang in ("en", "zh"):
            (folder / "articles" / lang).mkdir(parents=True, exist_ok=True)
            if (articles / lang / path.name).exists():
                shutil.copy(articles / lang / path.name, folder / "articles" / lang)
    built = [kb, "build", "--articles", str(folder / "articles"), "--index", str(folder / "index")]
    subprocess.run(built, check=True, capture_output=True)
    return str(folder)


if __name__ == "__main__":
    sys.exit(main())
