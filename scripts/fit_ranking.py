"""Fits the weights in kb/search/weights.json on development questions, and says how good they are on questions that
were held out.

    python scripts/fit_ranking.py [--articles DIR] [--questions FILE ...] [--misses] [--ablate] [--write]

A question is a line as `kb eval` reads it; one whose issue is not in the base, like one without an issue, must not be
answered. Cross-validated over issues: a question is judged by weights that were fitted without any question about its
issue. Questions with error lines and descriptions are fitted apart, each in two steps by L-BFGS-B (scipy), with no
weight of a feature below zero:

    weights                   conditional logit: of a question's candidates, which one is the right one?
    curve lead chinese bias   logistic regression over first hits: is it the right one?

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
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

from kb import KnowledgeBase
from kb.evaluate import Question, calibrate, read_questions
from kb.search import ranking

ROOT = Path(__file__).parent.parent
FOLDS = 5
L2_WEIGHTS, L2_CURVE = 0.01, 0.001
K = 40  # of a question's hits

Vector = np.ndarray[Any, np.dtype[np.float64]]


@dataclass
class Asked:
    """One question and its hits, best first by the present weights."""

    question: Question
    pasted: bool
    chinese: bool
    features: Vector
    """(hits, features) in the order of `ranking.NAMES`"""
    right: Vector
    """(hits,) 0 or 1"""
    issues: list[str]
    known: bool
    """an issue that answers it is in the base"""


def fit(asked: list[Asked]) -> ranking.Fit:
    weights = fit_weights([(one.features, one.right) for one in asked])
    firsts = [(one, *first_hit(one, weights)) for one in asked if len(one.right)]
    seen = np.array([row for _, _, row in firsts])
    curve = fit_curve(seen, np.array([one.right[order[0]] for one, order, _ in firsts]))
    n = len(ranking.NAMES)
    return ranking.Fit(_named(weights), _named(curve[:n]), *(float(value) for value in curve[n:]))


def _named(values: Vector) -> dict[str, float]:
    return {name: float(value) for name, value in zip(ranking.NAMES, values, strict=True)}


def fit_weights(asked: list[tuple[Vector, Vector]]) -> Vector:
    """(features,) >= 0."""
    asked = [(x, y) for x, y in asked if y.any() and not y.all()]
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
        value = -np.log(hit).mean() + L2_WEIGHTS / 2 * (w @ w)
        return float(value), np.einsum("nhf,nh->f", x, p - p * y / hit) / len(asked) + L2_WEIGHTS * w

    return minimized(loss, np.ones(x.shape[2]), free=0)


def fit_curve(x: Vector, y: Vector) -> Vector:
    """(features + lead + chinese + bias,), all but the last two >= 0."""
    x1 = np.hstack([x, np.ones((len(x), 1))])

    def loss(w: Vector) -> tuple[float, Vector]:
        z = x1 @ w
        value = (np.logaddexp(0, z) - y * z).mean() + L2_CURVE / 2 * (w[:-1] @ w[:-1])
        gradient = x1.T @ (1 / (1 + np.exp(-z)) - y) / len(y)
        gradient[:-1] += L2_CURVE * w[:-1]
        return float(value), np.asarray(gradient)

    return minimized(loss, np.zeros(x1.shape[1]), free=2)


def minimized(loss: Callable[[Vector], tuple[float, Vector]], start: Vector, *, free: int) -> Vector:
    """The minimum of a convex loss; all but the last `free` coordinates stay at 0 or above. Raises ArithmeticError."""
    bounds = [(0.0, None)] * (len(start) - free) + [(None, None)] * free
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 10_000, "ftol": 1e-12}
    )
    if not found.success:
        raise ArithmeticError(f"the fit did not converge: {found.message}")
    return np.asarray(found.x)


def first_hit(one: Asked, weights: Vector) -> tuple[Vector, Vector]:
    """The order of a question's hits, and what the curve sees of the first: its features, its lead and the language."""
    sums = one.features @ weights
    order = np.argsort(-sums, kind="stable")
    lead = ranking.lead(sums, ranking.FAR)[order[0]]
    return order, np.array([*one.features[order[0]], lead, one.chinese])


def confidence(one: Asked, fitted: ranking.Fit) -> tuple[Vector, float]:
    order, seen = first_hit(one, np.array([fitted.weights[name] for name in ranking.NAMES]))
    curve = [*(fitted.curve[name] for name in ranking.NAMES), fitted.lead, fitted.chinese]
    return order, float(1 / (1 + np.exp(-(seen @ np.array(curve) + fitted.bias))))


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
                        result.query.lang == "zh",
                        np.array(
                            [[getattr(hit.features, name) for name in ranking.NAMES] for hit in result.hits]
                        ).reshape(-1, len(ranking.NAMES)),
                        np.array([hit.issue in question.wanted for hit in result.hits], float),
                        [hit.issue for hit in result.hits],
                        bool(known & set(question.wanted)),
                    )
                )
    return asked


Judgement = tuple[Vector, float]
"""the order of a question's hits, and the confidence in the first"""


def cross_validated(asked: list[Asked]) -> list[Judgement]:
    """Each question judged by a fit that has not seen its issue."""
    groups = [one.question.issue or one.question.id for one in asked]
    shuffled = np.random.default_rng(0).permutation(sorted(set(groups)))
    fold_of = {group: n % FOLDS for n, group in enumerate(shuffled.tolist())}
    judged: list[Judgement] = [(np.zeros(0, int), 0.0)] * len(asked)
    for pasted in {one.pasted for one in asked}:
        for fold in range(FOLDS):
            alike = [n for n, one in enumerate(asked) if one.pasted == pasted]
            fitted = fit([asked[n] for n in alike if fold_of[groups[n]] != fold])
            for n in alike:
                if fold_of[groups[n]] == fold and asked[n].issues:
                    judged[n] = confidence(asked[n], fitted)
    return judged


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


def shares(asked: list[Asked], judged: list[Judgement]) -> dict[str, float]:
    """The figures of one line of the table."""
    both = [
        (one, bool(one.right[order][:1].any()), p >= ranking.ANSWER_AT)
        for one, (order, p) in zip(asked, judged, strict=True)
    ]
    known = [(one, right, answered) for one, right, answered in both if one.known]
    return {
        "recall@1": float(np.mean([right for _, right, _ in known])),
        "others": float(np.mean([right for one, right, _ in known if one.question.kind != "description"])),
        "description": float(np.mean([right for one, right, _ in known if one.question.kind == "description"])),
        "answered": float(np.mean([answered for _, _, answered in known])),
        "abstention": float(np.mean([not answered for one, _, answered in both if not one.known])),
    }


def report(asked: list[Asked], judged: list[Judgement], *, misses: bool) -> None:
    tally: dict[str, list[tuple[bool, bool, bool]]] = defaultdict(list)
    firsts: list[tuple[float, bool]] = []
    for one, (order, p) in zip(asked, judged, strict=True):
        right = one.right[order].astype(bool)
        first, third, answered = bool(right[:1].any()), bool(right[:3].any()), p >= ranking.ANSWER_AT
        if len(order):
            firsts.append((p, first))
        sign, kind = ("+" if one.known else "-"), one.question.kind
        name = kind if one.known or one.question.issue is None else "not in base"
        for row in ("ALL", name if one.known and kind != "description" else f"{name} {one.question.lang}"):
            tally[f"{sign} {row}"].append((first, third, answered))
        if misses and (answered if not one.known else not (first and answered)):
            found = f"{one.issues[int(order[0])]} {p:.2f}" if len(order) else "-"
            said = one.question.query[-90:]
            print(f"  {one.question.id:7} wants {one.question.issue}, finds {found}: {said!r}")
    print(f"{'cross-validated over issues':34}{'n':>5}{'@1':>8}{'@3':>8}{'answered':>10}")
    for name in sorted(tally, key=lambda n: (n[0] != "+", n)):
        ts = np.array(tally[name], float)
        at = "".join(f"{v:8.3f}" for v in ts.mean(0)[:2]) if name[0] == "+" else " " * 16
        print(f"{name:34}{len(ts):5}{at}{ts.mean(0)[2]:10.3f}")
    print(f"expected calibration error of the first hit: {calibrate(firsts).error:.3f}")


def written(asked: list[Asked], files: list[Path]) -> str:
    """The text of weights.json."""
    known = Counter(one.known for one in asked)
    fitted_on = {
        "by": "scripts/fit_ranking.py --write",
        "questions": sorted(path.name for path in files),
        "answerable": known[True],
        "unanswerable": known[False],
        "issues": len({one.question.issue for one in asked if one.known}),
    }
    fits = {
        name: asdict(fit([one for one in asked if one.pasted == (name == "pasted")]))
        for name in ("pasted", "described")
    }
    return json.dumps({"fitted": fitted_on, **_rounded(fits)}, indent=1) + "\n"


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    return round(value, 2) + 0.0 if isinstance(value, float) else value


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
