"""Fits the weights in kb/ranking.py on development questions, and says how good they are on questions they never saw.

    python scripts/fit_ranking.py [--articles articles] [--questions tests/cases/*.jsonl]

A question is a line {"id", "issue", "kind", "lang", "query"}; one whose issue is not in the base counts as a question
that must not be answered. The nearest few records of every question are examples: is this the issue asked about? The
weights are a logistic regression, none below zero, cross-validated over issues: a question is judged by weights that
were fitted without any question about its issue. Paste the printed lines into kb/ranking.py.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from dataclasses import astuple, fields
from pathlib import Path

import numpy as np

from kb import KnowledgeBase, ranking
from kb.records import Evidence

FOLDS = 5
L2 = 0.002
K = 10
LEARNED = 1  # how many of a question's hits are examples: the first alone decides what is answered
NAMES = [f.name for f in fields(Evidence)]


def fit(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Weights (features,) >= 0 and the bias last, by projected gradient descent with momentum.

    Right and wrong examples weigh the same together: the curve is that of a reader half of whose questions are known.
    """
    x1 = np.hstack([x, np.ones((len(x), 1))])
    share = np.where(y > 0, 0.5 / y.mean(), 0.5 / (1 - y.mean()))
    w, velocity = np.zeros(x1.shape[1]), np.zeros(x1.shape[1])
    for _ in range(20_000):
        p = 1 / (1 + np.exp(-x1 @ w))
        gradient = x1.T @ (share * (p - y)) / len(y)
        gradient[:-1] += L2 * w[:-1]
        velocity = 0.9 * velocity - 1.0 * gradient
        w = w + velocity
        w[:-1] = np.maximum(w[:-1], 0)
    return w


def calibration_error(confidences: np.ndarray, right: np.ndarray, bins: int = 10) -> float:
    """Expected calibration error for the same reader: right and wrong first hits weigh the same together."""
    share = np.where(right > 0, 0.5 / right.sum(), 0.5 / (1 - right).sum())
    which = np.minimum((confidences * bins).astype(int), bins - 1)
    gaps = [abs((share * (confidences - right))[which == b].sum()) for b in range(bins)]
    return float(sum(gaps))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = Path(__file__).parent.parent
    parser.add_argument("--articles", type=Path, default=root / "articles")
    parser.add_argument("--questions", type=Path, nargs="+", default=sorted((root / "tests" / "cases").glob("*.jsonl")))
    parser.add_argument("--misses", action="store_true", help="list the questions that went wrong")
    args = parser.parse_args()
    questions = [json.loads(line) for path in args.questions for line in path.read_text("utf-8").splitlines()]
    questions = [question for question in questions if "query" in question]
    with tempfile.TemporaryDirectory() as folder:
        KnowledgeBase.build(args.articles, folder)
        with KnowledgeBase.open(folder) as base:
            asked = [base.search(question["query"], K) for question in questions]
            known = {record.issue for record in base._store.records(range(base._store.size))}
    rows, labels, owner, places = [], [], [], []
    for number, (question, result) in enumerate(zip(questions, asked, strict=True)):
        right = {question["issue"], *question.get("also", [])}
        for hit in result.hits:
            rows.append(astuple(hit.evidence))
            labels.append(hit.issue in right)
            owner.append(number)
            places.append(hit.rank)
    x, y, owner_of = np.array(rows), np.array(labels, float), np.array(owner)

    groups = sorted({question["issue"] or question["id"] for question in questions})
    fold_of_group = {group: i % FOLDS for i, group in enumerate(np.random.default_rng(0).permutation(groups))}
    fold = np.array([fold_of_group[question["issue"] or question["id"]] for question in questions])[owner_of]
    learned = np.array(places) <= LEARNED
    p = np.zeros(len(y))
    for f in range(FOLDS):
        w = fit(x[(fold != f) & learned], y[(fold != f) & learned])
        p[fold == f] = 1 / (1 + np.exp(-(x[fold == f] @ w[:-1] + w[-1])))

    tally: dict[str, list[tuple[bool, bool, bool]]] = defaultdict(list)
    top, top_right = [], []
    for number, question in enumerate(questions):
        mine = np.flatnonzero(owner_of == number)
        order = mine[np.argsort(-p[mine], kind="stable")]
        positive = question["issue"] in known
        first = bool(len(order)) and bool(y[order[0]])
        third = bool(y[order[:3]].any())
        answered = bool(len(order)) and p[order[0]] >= ranking.ANSWER_AT
        if len(order):
            top.append(p[order[0]])
            top_right.append(first)
        kind = question["kind"] if positive or question["issue"] is None else "not in base"
        tally[f"{'+' if positive else '-'} {kind} {question['lang']}"].append((first, third, answered))
        if args.misses and (not first or not answered if positive else answered):
            hit = asked[number].hits[order[0] - mine[0]] if len(order) else None
            found = f"{hit.issue} {p[order[0]]:.2f}" if hit else "-"
            print(f"  {question['id']:7} wants {question['issue']}, finds {found}: {question['query'][:90]!r}")
    print(f"{'cross-validated over issues':34}{'n':>5}{'@1':>8}{'@3':>8}{'answered':>10}")
    for sign, title in (("+", "all with an answer"), ("-", "all without")):
        tally[f"{sign} ALL {title}"] = [t for name, ts in list(tally.items()) if name[0] == sign for t in ts]
    for name in sorted(tally, key=lambda n: (n[0] != "+", n)):
        ts = np.array(tally[name], float)
        at = "".join(f"{v:8.3f}" for v in ts.mean(0)[:2]) if name[0] == "+" else " " * 16
        print(f"{name:34}{len(ts):5d}{at}{ts.mean(0)[2]:10.3f}")
    error = calibration_error(np.array(top), np.array(top_right, float))
    print(f"expected calibration error of the first hit: {error:.3f}")
    w = fit(x[learned], y[learned])
    print("\n# fitted by scripts/fit_ranking.py on all questions:")
    print(
        "WEIGHTS = Evidence("
        + ", ".join(f"{n}={v:.2f}" for n, v in zip(NAMES, w, strict=False))
        + f")\nBIAS = {w[-1]:.2f}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
