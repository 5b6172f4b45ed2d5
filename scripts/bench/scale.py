"""What grows with a base, and what does not: kb at several sizes, beside what a user would pick instead.

    python scripts/bench/scale.py                                   1,000 and 10,000 records
    python scripts/bench/scale.py --sizes 1000 10000 100000 1000000 --folder /data/scale
    python scripts/bench/report.py /data/scale/figures.json         the table, and with --plots the plots

For each size it writes made-up articles (`articles.py`) and measures the build as a whole process, the index on the
disk, opening and searching in a process of its own (`ask.py`), and a build after the edit of one article. The peers
(`peers.py`) get the same articles and questions; one that is not installed is left out with the reason, and so are
sizes that it takes too long for: there its build is reckoned from a smaller one, and marked. At the end searches in
fresh processes take turns over all sizes, since machines are noisy. Peaks of memory need Linux.

Every figure is in FOLDER/figures.json as soon as it was measured. What is there is not measured again, but for those
searches: an interrupted run goes on. For a changed kb take its figures out, or the file; with `--no-build` the indexes
that are there (FOLDER/<records>/index) are measured as they are.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measured import Failed, run, size_of
from peers import PEERS, missing

from articles import Articles, write

HERE = Path(__file__).parent
KB = [sys.executable, "-m", "kb"]
LITERAL = {"grep": ["grep", "-rlF"], "ripgrep": ["rg", "-lF"]}
LITERALS = 20  # questions for these two

Figures = dict[str, Any]


@dataclass
class Bench:
    folder: Path
    build: bool = True
    """False: the indexes of kb are there"""
    figures: Figures = field(default_factory=dict)

    def kept(self) -> Figures:
        """The figures of an earlier run."""
        path = self.folder / "figures.json"
        found: Figures = json.loads(path.read_text()) if path.exists() else {}
        return found

    def save(self) -> None:
        (self.folder / "figures.json").write_text(json.dumps(self.figures, indent=1, ensure_ascii=False) + "\n")

    def tool(self, name: str) -> Figures:
        """The figures of a tool, by the number of records."""
        found: Figures = self.figures["tools"].setdefault(name, {})
        return found

    def place(self, records: int, name: str) -> Path:
        return self.folder / str(records) / name

    def made(self, articles: Articles, records: int, questions: int) -> None:
        """Writes the articles and questions of a size, unless they are there."""
        folder, done = self.place(records, "articles"), self.place(records, "questions.jsonl")
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            write(folder, records, articles)
            lines = [json.dumps(one, ensure_ascii=False) for one in articles.questions(records, questions)]
            done.write_text("\n".join(lines) + "\n", "utf-8")

    def kb(self, records: int, smallest: int) -> None:
        articles, index = self.place(records, "articles"), self.place(records, "index")
        _restore(index)  # of a run that was killed
        ours = self.tool("kb").setdefault(str(records), {})
        build = [*KB, "build", "--articles", str(articles), "--index", str(index), "--json"]
        if "build_s" not in ours and self.build:
            shutil.rmtree(index, ignore_errors=True)
            cost = run(build)
            report = json.loads(cost.output)
            if report["records"] != records:
                raise Failed(f"{report['records']} records were built and not {records}")
            ours |= {"build_s": cost.seconds, "build_cores": cost.cores, "build_memory": cost.memory}
        if "warm_p50_ms" not in ours:
            ours |= {"bytes": size_of(index), "bytes_of": _by_stem(index), "segments": _segments(index)}
            self.save()
            small = ["--small", str(self.place(smallest, "index"))]
            questions = str(self.place(records, "questions.jsonl"))
            ours |= json.loads(run([sys.executable, str(HERE / "ask.py"), str(index), questions, *small]).output)
            self.save()
        if "edit_s" not in ours:
            ours |= self._edited(build, articles, index)

    @staticmethod
    def _edited(build: Sequence[str], articles: Path, index: Path) -> Figures:
        """A build after the edit of one article. Article and index are as they were afterwards."""
        edited = articles / Articles.path(0)
        before = edited.read_text("utf-8")
        try:
            with _put_back(index):
                edited.write_text(before.replace("## ", "## Once more: ", 1), "utf-8")
                cost = run(build)
        finally:
            edited.write_text(before, "utf-8")
        parsed = json.loads(cost.output)["parsed"]
        if parsed != 1:
            raise Failed(f"{parsed} articles were parsed after the edit of one")
        return {"edit_s": cost.seconds, "edit_memory": cost.memory}

    def peer(self, name: str, records: int, patience: float) -> None:
        """A peer at a size; a build that would take more than `patience` seconds is reckoned from a smaller
        one, and ended after twice as long."""
        theirs = self.tool(name)
        if "warm_p50_ms" in theirs.get(str(records), {}):
            return
        if any("failed" in one for size, one in theirs.items() if int(size) < records):
            raise Failed("not tried: a smaller size failed")
        built = [int(size) for size, one in theirs.items() if "build_s" in one and "reckoned_from" not in one]
        if built:
            largest = max(built)
            seconds = theirs[str(largest)]["build_s"] * records / largest
            if seconds > patience:
                theirs[str(records)] = {"build_s": seconds, "reckoned_from": largest}
                return
        index = self.place(records, name)
        shutil.rmtree(index, ignore_errors=True)
        script = [sys.executable, str(HERE / "peers.py"), name]
        cost = run([*script, "build", str(self.place(records, "articles")), str(index)], timeout=2 * patience)
        if (found := json.loads(cost.output)["records"]) != records:
            raise Failed(f"{found} records were built and not {records}")
        mine = theirs.setdefault(str(records), {})
        mine |= {"build_s": cost.seconds, "build_cores": cost.cores, "build_memory": cost.memory}
        mine |= {"bytes": size_of(index)}
        mine |= json.loads(run([*script, "ask", str(index), str(self.place(records, "questions.jsonl"))]).output)

    def literal(self, name: str, records: int) -> None:
        """Which files hold the first line of a question as it stands: there is no order, so five files may be found."""
        questions = _questions(self.place(records, "questions.jsonl"), "error")[:LITERALS]
        articles = self.place(records, "articles")
        took, right = [], 0
        for question in questions:
            cost = run([*LITERAL[name], "--", question["query"].split("\n")[0], str(articles)], fine=(0, 1))
            found = [f"{Path(path).parent.name}-{Path(path).stem}" for path in cost.output.split("\n") if path]
            took.append(cost.seconds * 1000)
            right += len(found) <= 5 and question["issue"].partition("#")[0] in found
        ours = self.tool(name).setdefault(str(records), {})
        ours |= {"cold_ms": statistics.median(took), "build_s": 0, "bytes": 0}
        ours |= {"questions": len(questions), "right_at_5": right / len(questions)}

    def cold(self, rounds: int) -> None:
        """Searches in fresh processes, every size and tool in turn; the same questions everywhere."""
        smallest = min(map(int, self.tool("kb")))
        questions = [one["query"] for one in _questions(self.place(smallest, "questions.jsonl"), "error")][:rounds]
        commands: dict[tuple[str, str], list[str]] = {}
        for name in ("kb", *PEERS):
            for size, one in self.figures["tools"].get(name, {}).items():
                index = str(self.place(int(size), "index" if name == "kb" else name))
                if "warm_p50_ms" in one:
                    script = [sys.executable, str(HERE / "peers.py"), name, "one", index]
                    commands[name, size] = [*KB, "search", "--index", index, "--json"] if name == "kb" else script
        took: dict[tuple[str, str], list[float]] = {one: [] for one in commands}
        peaks: dict[tuple[str, str], list[int]] = {one: [] for one in commands}
        for at in range(-1, len(questions)):  # the first round reads the files, and does not count
            for one, command in commands.items():
                fine = (0, 1) if one[0] == "kb" else (0,)  # 1: nothing known
                cost = run([*command, questions[at]], fine=fine)
                if at >= 0:
                    took[one].append(cost.seconds * 1000)
                    peaks[one].append(cost.memory or 0)
        for (name, size), some in took.items():
            figures: Figures = {"cold_ms": statistics.median(some), "cold_memory": max(peaks[name, size]) or None}
            if least := took.get((name, str(smallest))):  # by the round: what slows down the machine slows down both
                figures["cold_ratio"] = statistics.median(a / b for a, b in zip(some, least, strict=True))
            self.tool(name)[size] |= figures
        self.save()


@contextmanager
def _put_back(index: Path) -> Iterator[None]:
    """The index is the same one afterwards. kb verifies a large file anew whose links have changed: that is done before
    anything is measured."""
    shutil.copytree(index, _kept(index), copy_function=os.link)
    _open(index)
    try:
        yield
    finally:
        _restore(index)
        _open(index)


def _restore(index: Path) -> None:
    if _kept(index).exists():
        shutil.rmtree(index, ignore_errors=True)
        _kept(index).rename(index)


def _kept(index: Path) -> Path:
    return index.with_name(f"{index.name}.kept")


def _open(index: Path) -> None:
    run([*KB, "info", "--index", str(index)])


def _segments(index: Path) -> int:
    return len(json.loads((index / "manifest.json").read_text("utf-8"))["segments"])


def _by_stem(index: Path) -> dict[str, int]:
    """Bytes of an index by what its files hold."""
    found: dict[str, int] = {}
    for path in index.iterdir():
        stem = re.split(r"-[0-9a-f]{12}\b", path.name)[0].rstrip("0123456789-") or path.name
        found[stem] = found.get(stem, 0) + path.stat().st_size
    return dict(sorted(found.items()))


def _questions(path: Path, kind: str) -> list[dict[str, str]]:
    found = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [one for one in found if one["kind"] == kind]


def _machine() -> Figures:
    model = "unknown processor"
    if Path("/proc/cpuinfo").exists():
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        model = found[1] if found else model
    return {"processor": model, "cores": os.cpu_count(), "python": platform.python_version()}


def _load() -> float:
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def measure(bench: Bench, sizes: Sequence[int], names: Sequence[str], questions: int, patience: float) -> None:
    articles = Articles()
    for records in sorted(sizes):
        bench.made(articles, records, questions)
        load = _load()
        for name in ("kb", *names):
            print(f"{records} records: {name}", file=sys.stderr, flush=True)
            bench.tool(name).get(str(records), {}).pop("failed", None)
            try:
                if name == "kb":
                    bench.kb(records, min(sizes))
                elif name in LITERAL:
                    bench.literal(name, records)
                else:
                    bench.peer(name, records, patience)
            except Failed as error:
                bench.tool(name).setdefault(str(records), {})["failed"] = str(error)
                print(f"  {error}", file=sys.stderr)
            bench.save()
        bench.figures["load"][str(records)] = [load, _load()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000], metavar="RECORDS")
    parser.add_argument(
        "--folder", type=Path, help="articles, indexes and figures stay there; default: a temporary one"
    )
    parser.add_argument("--peers", nargs="*", default=[*PEERS, *LITERAL], choices=[*PEERS, *LITERAL])
    parser.add_argument("--questions", type=int, default=500, help="for each size")
    parser.add_argument("--no-build", action="store_true", help="measure the indexes of kb that are there")
    parser.add_argument("--patience", type=float, default=900, metavar="SECONDS", help="for a build of a peer")
    parser.add_argument("--cold", type=int, default=9, metavar="ROUNDS", help="searches in a fresh process")
    args = parser.parse_args()
    if min(args.sizes) < 100:
        parser.error("the smallest size is 100 records")
    with tempfile.TemporaryDirectory() as temporary:
        bench = Bench(args.folder or Path(temporary), not args.no_build)
        bench.folder.mkdir(parents=True, exist_ok=True)
        bench.figures = {"load": {}, "tools": {}, **bench.kept(), "machine": _machine(), "left_out": {}}
        names: list[str] = []
        for name in args.peers:
            lacks = [LITERAL[name][0]] if name in LITERAL else missing(name)
            if name in LITERAL and shutil.which(lacks[0]):
                lacks = []
            if lacks:
                bench.figures["left_out"][name] = f"not installed: {', '.join(lacks)}"
            else:
                names.append(name)
        measure(bench, args.sizes, names, args.questions, args.patience)
        try:
            bench.cold(args.cold)
        except Failed as error:
            print(f"a search in a fresh process: {error}", file=sys.stderr)
            return 1
        report = [sys.executable, str(HERE / "report.py"), str(bench.folder / "figures.json")]
        print(run(report).output, end="")
    failed = [size for size, one in bench.tool("kb").items() if "failed" in one]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
