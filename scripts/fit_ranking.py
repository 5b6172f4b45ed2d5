"""Fits the weights in kb/ranking.py on development questions, and says how good they are on questions they never saw.

    python scripts/fit_ranking.py [--articles articles] [--questions tests/cases/*.jsonl]

A question is a line {"id", "issue", "kind", "lang", "query"}; one whose issue is not in the base counts as a question
that must not be answered. Two fits, no weight below zero, cross-validated over issues: a question is judged by weights
that were fitted without any question about its issue.

    WEIGHTS          conditional logit: of a question's nearest records, which one is the right one?
    CURVE LEAD BIAS  logistic regression over first hits: is it the right one? Right and wrong weigh the same together

Paste the printed lines into kb/ranking.py.
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
L2_WEIGHTS, L2_CURVE = 0.01, 0.002
K = 30  # of a question's hits
NAMES = [f.name for f in fields(Evidence)]


def fit_weights(asked: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """(features,) >= 0. `asked`: for each question its hits' evidence (hits, features) and which are right (hits,)."""
    asked = [(x, y) for x, y in asked if y.any() and not y.all()]
    w, velocity = np.ones(len(NAMES)), np.zeros(len(NAMES))
    for _ in range(1500):
        gradient = L2_WEIGHTS * w
        for x, y in asked:
            p = np.exp(x @ w - (x @ w).max())
            p /= p.sum()
            gradient = gradient + x.T @ (p - p * y / (p * y).sum()) / len(asked)
        velocity = 0.9 * velocity - 0.5 * gradient
        w = np.maximum(w + velocity, 0)
    return w


def fit_curve(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(features + lead + bias,), all but the bias >= 0. Right and wrong examples weigh the same together: the curve is
    that of a reader half of whose questions are known."""
    x1 = np.hstack([x, np.ones((len(x), 1))])
    share = np.where(y > 0, 0.5 / y.mean(), 0.5 / (1 - y.mean()))
    w, velocity = np.zeros(x1.shape[1]), np.zeros(x1.shape[1])
    for _ in range(20_000):
        p = 1 / (1 + np.exp(-x1 @ w))
        gradient = x1.T @ (share * (p - y)) / len(y)
        gradient[:-1] += L2_CURVE * w[:-1]
        velocity = 0.9 * velocity - 1.0 * gradient
        w = w + velocity
        w[:-1] = np.maximum(w[:-1], 0)
    return w


def first_hit(x: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The order of a question's hits, and what the curve sees of the first: its evidence and its lead."""
    scores = x @ w / w.sum()
    order = np.argsort(-scores, kind="stable")
    lead = scores[order[0]] - (scores[order[1]] if len(order) > 1 else 0.0)
    return order, np.array([*x[order[0]], ranking.ahead(lead)])


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
            known = {record.issue for record in base.records()}
    x = [np.array([astuple(hit.evidence) for hit in result.hits]).reshape(-1, len(NAMES)) for result in asked]
    rights = [{question["issue"], *question.get("also", [])} for question in questions]
    y = [
        np.array([hit.issue in right for hit in result.hits], float)
        for right, result in zip(rights, asked, strict=True)
    ]
    able = [n for n in range(len(questions)) if len(y[n])]

    def fitted(train: list[int]) -> tuple[np.ndarray, np.ndarray]:
        w = fit_weights([(x[n], y[n]) for n in train])
        firsts = [(n, *first_hit(x[n], w)) for n in train]
        return w, fit_curve(np.array([seen for _, _, seen in firsts]), np.array([y[n][o[0]] for n, o, _ in firsts]))

    groups = sorted({question["issue"] or question["id"] for question in questions})
    fold_of_group = {group: i % FOLDS for i, group in enumerate(np.random.default_rng(0).permutation(groups))}
    fold = [fold_of_group[question["issue"] or question["id"]] for question in questions]
    models = [fitted([n for n in able if fold[n] != f]) for f in range(FOLDS)]

    tally: dict[str, list[tuple[bool, bool, bool]]] = defaultdict(list)
    top, top_right = [], []
    for number, question in enumerate(questions):
        order, p = np.zeros(0, int), 0.0
        if len(y[number]):
            w, curve = models[fold[number]]
            order, seen = first_hit(x[number], w)
            p = float(1 / (1 + np.exp(-(seen @ curve[:-1] + curve[-1]))))
        positive = question["issue"] in known
        first = bool(y[number][order[:1]].any())
        third = bool(y[number][order[:3]].any())
        answered = p >= ranking.ANSWER_AT
        if len(order):
            top.append(p)
            top_right.append(first)
        kind = question["kind"] if positive or question["issue"] is None else "not in base"
        tally[f"{'+' if positive else '-'} {kind} {question['lang']}"].append((first, third, answered))
        if args.misses and (not first or not answered if positive else answered):
            found = f"{asked[number].hits[order[0]].issue} {p:.2f}" if len(order) else "-"
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
    w, curve = fitted(able)
    print("\n# fitted by scripts/fit_ranking.py on all questions:")
    for name, values in (("WEIGHTS", w), ("CURVE", curve)):
        print(f"{name} = Evidence(" + ", ".join(f"{n}={v:.2f}" for n, v in zip(NAMES, values, strict=False)) + ")")
    print(f"LEAD = {curve[-2]:.2f}\nBIAS = {curve[-1]:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
