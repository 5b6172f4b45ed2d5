"""Fits the weights of the ranking in kb/search/weights.json on development questions, and says how good they are on
questions that were held out. Whether the first hit is then believed: scripts/fit_evidence.py.

    python scripts/fit_ranking.py [--articles DIR] [--questions FILE ...] [--misses] [--ablate] [--write]

A question is a line as `kb eval` reads it. Cross-validated over issues: a question is judged by weights that were
fitted without any question about its issue. Questions with error lines and descriptions are fitted apart, by a
conditional logit (of a question's candidates, which one is the right one?) with L-BFGS-B (scipy), no weight below zero.

`--ablate` says what each feature earns: the same without it. `--write` puts the weights fitted on all questions into
kb/search/weights.json, with what they were fitted on.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

from kb import KnowledgeBase
from kb.evaluate import Question, read_questions
from kb.search import ranking

ROOT = Path(__file__).parent.parent
FOLDS = 5
L2 = 0.01
K = 40  # of a question's hits

Vector = np.ndarray[Any, np.dtype[np.float64]]


@dataclass
class Asked:
    """One question and its hits, best first by the present weights."""

    question: Question
    pasted: bool
    features: Vector
    """(hits, features) in the order of `ranking.NAMES`"""
    right: Vector
    """(hits,) 0 or 1"""
    issues: list[str]
    known: bool
    """an issue that answers it is in the base"""


def fit(examples: list[Asked]) -> Vector:
    """(features,) >= 0."""
    asked = [(one.features, one.right) for one in examples if one.right.any() and not one.right.all()]
    most = max(len(y) for _, y in asked)
    x = np.zeros((len(asked), most, len(ranking.NAMES)))
    y = np.zeros((len(asked), most))
    there = np.zeros((len(asked), most), bool)
    for n, (features, right) in enumerate(asked):
        x[n, : len(right)], y[n, : len(right)], there[n, : len(right)] = features, right, True

    def loss(w: Vector) -> tuple[float, Vector]:
        z = np.where(there, x @ w, -np.inf)
        p = np.exp(z - z.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        hit = (p * y).sum(axis=1, keepdims=True)
        value = -np.log(hit).mean() + L2 / 2 * (w @ w)
        return float(value), np.einsum("nhf,nh->f", x, p - p * y / hit) / len(asked) + L2 * w

    return minimized(loss, np.ones(x.shape[2]), free=0)


def minimized(loss: Callable[[Vector], tuple[float, Vector]], start: Vector, *, free: int) -> Vector:
    """The minimum of a convex loss; all but the last `free` coordinates stay at 0 or above. Raises ArithmeticError."""
    bounds = [(0.0, None)] * (len(start) - free) + [(None, None)] * free
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 10_000, "ftol": 1e-12}
    )
    if not found.success:
        raise ArithmeticError(f"the fit did not converge: {found.message}")
    return np.asarray(found.x)


def ask(questions: list[Question], articles: Path) -> list[Asked]:
    with tempfile.TemporaryDirectory() as folder:
        KnowledgeBase.build(articles, folder)
        with KnowledgeBase.open(folder) as base:
            known = {record.issue for record in base.records()}
            asked = []
            for question in questions:
                result = base.search(question.query, K)
                asked.append(
                    Asked(
                        question,
                        bool(result.query.signatures),
                        np.array(
                            [[getattr(hit.features, name) for name in ranking.NAMES] for hit in result.hits]
                        ).reshape(-1, len(ranking.NAMES)),
                        np.array([hit.issue in question.wanted for hit in result.hits], float),
                        [hit.issue for hit in result.hits],
                        bool(known & set(question.wanted)),
                    )
                )
    return asked


def cross_validated(asked: list[Asked]) -> list[Vector]:
    """The order of each question's hits, by weights that have not seen its issue."""
    groups = [one.question.issue or one.question.id for one in asked]
    shuffled = np.random.default_rng(0).permutation(sorted(set(groups)))
    fold_of = {group: n % FOLDS for n, group in enumerate(shuffled.tolist())}
    orders = [np.zeros(0, int)] * len(asked)
    for pasted in {one.pasted for one in asked}:
        for fold in range(FOLDS):
            alike = [n for n, one in enumerate(asked) if one.pasted == pasted]
            weights = fit([asked[n] for n in alike if fold_of[groups[n]] != fold])
            for n in alike:
                if fold_of[groups[n]] == fold and asked[n].issues:
                    orders[n] = np.argsort(-(asked[n].features @ weights), kind="stable")
    return orders


def ablation(asked: list[Asked], articles: Path) -> dict[str, dict[str, float]]:
    """What is left out -> the figures without it, all fitted anew."""
    parts = {"nothing": asked}
    for n, name in enumerate(ranking.NAMES):
        keep = np.arange(len(ranking.NAMES)) != n
        parts[name] = [replace(one, features=one.features * keep) for one in asked]
    parts["pasted and described apart"] = [replace(one, pasted=True) for one in asked]
    with tempfile.TemporaryDirectory() as folder:
        for path in articles.glob("*/*.md"):
            text = re.sub(r"^##+ (?:Asked as|常见问法)\n.*?(?=^#|\Z)", "", path.read_text("utf-8"), flags=re.M | re.S)
            copy = Path(folder, path.parent.name, path.name)
            copy.parent.mkdir(exist_ok=True)
            copy.write_text(text, "utf-8")
        parts["aliases in the articles"] = ask([one.question for one in asked], Path(folder))
    return {name: shares(part, cross_validated(part)) for name, part in parts.items()}


def shares(asked: list[Asked], orders: list[Vector]) -> dict[str, float]:
    """The figures of one line of the table."""
    known = [(one, one.right[order]) for one, order in zip(asked, orders, strict=True) if one.known]
    described = [right for one, right in known if one.question.kind == "description"]
    others = [right for one, right in known if one.question.kind != "description"]
    return {
        "recall@1": float(np.mean([right[:1].any() for _, right in known])),
        "recall@3": float(np.mean([right[:3].any() for _, right in known])),
        "others": float(np.mean([right[:1].any() for right in others])),
        "description": float(np.mean([right[:1].any() for right in described])),
    }


def report(asked: list[Asked], orders: list[Vector], *, misses: bool) -> None:
    tally: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for one, order in zip(asked, orders, strict=True):
        if not one.known:
            continue
        right, kind = one.right[order].astype(bool), one.question.kind
        for row in ("ALL", kind if kind != "description" else f"{kind} {one.question.lang}"):
            tally[row].append((bool(right[:1].any()), bool(right[:3].any())))
        if misses and not right[:1].any():
            found = one.issues[int(order[0])] if len(order) else "-"
            print(f"  {one.question.id:7} wants {one.question.issue}, finds {found}: {one.question.query[-90:]!r}")
    print(f"{'cross-validated over issues':34}{'n':>5}{'@1':>8}{'@3':>8}")
    for name in sorted(tally):
        first, third = np.mean(tally[name], axis=0)
        print(f"{name:34}{len(tally[name]):5}{first:8.3f}{third:8.3f}")


def written(asked: list[Asked], files: list[Path]) -> str:
    """The text of weights.json: these weights, and the rest as it is."""
    known = Counter(one.known for one in asked)
    fits = {
        name: dict(zip(ranking.NAMES, fit([one for one in asked if one.pasted == (name == "pasted")]), strict=True))
        for name in ("pasted", "described")
    }
    fitted_on = {
        "by": "scripts/fit_ranking.py --write",
        "questions": sorted(path.name for path in files),
        "answerable": known[True],
        "issues": len({one.question.issue for one in asked if one.known}),
    }
    return json.dumps({**ranking.read_weights(), "ranking": {"fitted": fitted_on, **_rounded(fits)}}, indent=1) + "\n"


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    return round(float(value), 2) + 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--articles", type=Path, default=ROOT / "articles")
    parser.add_argument("--questions", type=Path, nargs="+", default=sorted((ROOT / "tests" / "cases").glob("*.jsonl")))
    parser.add_argument("--misses", action="store_true", help="list the questions that went wrong")
    parser.add_argument("--ablate", action="store_true", help="say what each feature earns")
    parser.add_argument("--write", action="store_true", help="put the weights into kb/search/weights.json")
    args = parser.parse_args()
    questions = [question for path in args.questions for question in read_questions(path.read_bytes(), str(path))]
    asked = ask(questions, args.articles)
    report(asked, cross_validated(asked), misses=args.misses)
    if args.ablate:
        for name, figures in ablation(asked, args.articles).items():
            print(f"without {name:34}{'  '.join(f'{key} {value:.3f}' for key, value in figures.items())}")
    text = written(asked, args.questions)
    print(f"\n{text}", end="")
    if args.write:
        ranking.WEIGHTS.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
