"""The figures of `scale.py` as a markdown table, and as plots.

    python scripts/bench/report.py figures.json [--lang zh] [--plots docs/img]

`--plots` writes scale-time.svg, scale-memory.svg and scale-search.svg there; both axes are logarithmic. It needs the
extra `plot`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Figures = dict[str, Any]

TOOLS = {
    "kb": "kb",
    "bm25s": "bm25s + jieba",
    "minilm": "MiniLM + faiss",
    "txtai": "txtai",
    "grep": "grep",
    "ripgrep": "ripgrep",
}


def seconds(value: float) -> str:
    return f"{value:.1f} s" if value < 100 else f"{value:,.0f} s" if value < 6000 else f"{value / 3600:.1f} h"


def milliseconds(value: float) -> str:
    return f"{value:.1f} ms" if value < 10 else f"{value:,.0f} ms"


def size(value: float) -> str:
    return f"{value / 1e6:,.0f} MB" if value < 1e9 else f"{value / 1e9:.2f} GB"


def share(value: float) -> str:
    return f"{value:.1%}"


def ratio(value: float) -> str:
    return f"{value:.2f}"


COLUMNS: list[tuple[str, str, str, Callable[[float], str]]] = [
    ("build_s", "build", "构建", seconds),
    ("build_cores", "cores used", "所用核数", ratio),
    ("build_memory", "peak of the build", "构建时的内存峰值", size),
    ("bytes", "index", "索引大小", size),
    ("edit_s", "one edit", "改一篇", seconds),
    ("open_ms", "open", "打开", milliseconds),
    ("cold_ms", "cold search", "冷启动搜索", milliseconds),
    ("cold_ratio", "to the smallest", "与最小规模之比", ratio),
    ("warm_p50_ms", "warm p50", "热搜索 p50", milliseconds),
    ("warm_p99_ms", "warm p99", "热搜索 p99", milliseconds),
    ("memory", "memory", "内存", size),
    ("without_files", "without files", "其中非文件", size),
    ("right_at_1", "right first", "首位正确", share),
    ("right_at_5", "among 5", "前五含正确", share),
    ("recall_at_10", "recall@10", "recall@10", lambda value: f"{value:.3f}"),
]


def table(figures: Figures, lang: str) -> str:
    """A row for each size and tool; what was reckoned from a smaller size begins with ≈, what was not measured is -."""
    heads = ["记录数" if lang == "zh" else "records", "", *(zh if lang == "zh" else en for _, en, zh, _ in COLUMNS)]
    lines = ["| " + " | ".join(heads) + " |", "| ---: | --- |" + " ---: |" * len(COLUMNS)]
    sizes = sorted({int(one) for of in figures["tools"].values() for one in of})
    for records in sizes:
        for name, title in TOOLS.items():
            found = figures["tools"].get(name, {}).get(str(records))
            if not found:
                continue
            about = "≈ " if "reckoned_from" in found else ""
            cells = [f"{records:,}", title]
            for key, _, _, shown in COLUMNS:
                value = found.get(key)
                cells.append("-" if value is None else about + shown(value) if value or key != "build_s" else "none")
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def notes(figures: Figures) -> str:
    """What the table does not say: the machine, its load, what was left out or failed, the parts of the index."""
    machine = figures["machine"]
    lines = [f"{machine['cores']} cores, {machine['processor']}, Python {machine['python']}"]
    lines += [f"load at {size} records: {a:.1f} before, {b:.1f} after" for size, (a, b) in figures["load"].items()]
    lines += [f"{name} was left out, {why}" for name, why in figures["left_out"].items()]
    for name, of in figures["tools"].items():
        lines += [f"{name} at {size} records: {one['failed']}" for size, one in of.items() if "failed" in one]
    for records, one in figures["tools"]["kb"].items():
        if "bytes" in one:
            parts = [f"{name} {size(held)}" for name, held in one["bytes_of"].items() if held >= 1e6]
            segments = f"{one['segments']} segment{'s' * (one['segments'] != 1)}"
            lines.append(f"index of {records} records: {', '.join(parts) or size(one['bytes'])}; {segments}")
    return "\n".join(f"- {line}" for line in lines) + "\n"


PLOTS = {
    "time": ("seconds", [("build_s", "build", 1.0), ("edit_s", "one edit", 1.0)]),
    "search": ("milliseconds", [("cold_ms", "cold search", 1.0), ("warm_p50_ms", "warm search, p50", 1.0)]),
    "memory": ("MB", [("build_memory", "build, peak", 1e-6), ("without_files", "search, without files", 1e-6)]),
}


def plot(figures: Figures, folder: Path) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "kb"  # equal figures give equal files
    import matplotlib.pyplot as plt

    for name, (unit, curves) in PLOTS.items():
        figure, axes = plt.subplots(figsize=(7, 4.5))
        for tool, title in TOOLS.items():
            color = f"C{list(TOOLS).index(tool)}"
            of = sorted((int(size), one) for size, one in figures["tools"].get(tool, {}).items())
            for (key, what, factor), style in zip(curves, ("-o", "--s"), strict=True):
                points = [(n, one[key] * factor) for n, one in of if one.get(key) and "reckoned_from" not in one]
                if points:
                    axes.loglog(*zip(*points, strict=True), style, color=color, label=f"{title}: {what}", markersize=4)
        axes.set_xlabel("records")
        axes.set_ylabel(unit)
        axes.grid(True, which="major", alpha=0.3)
        axes.legend(fontsize=7, frameon=False)
        figure.tight_layout()
        figure.savefig(folder / f"scale-{name}.svg", metadata={"Date": None})
        plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figures", type=Path)
    parser.add_argument("--lang", choices=("en", "zh"), default="en")
    parser.add_argument("--plots", type=Path, metavar="FOLDER")
    args = parser.parse_args()
    figures = json.loads(args.figures.read_text("utf-8"))
    print(table(figures, args.lang))
    print(notes(figures), end="")
    if args.plots:
        plot(figures, args.plots)


if __name__ == "__main__":
    main()
