"""Fits the weights of kb/logs/told.json: which lines with words of failure a person told, and which a program printed.

    python scripts/fit_told.py [--articles DIR] [--write]

Told: sentences of the articles' symptoms and causes, and questions of one line in tests/cases (not in held) that are
labelled as descriptions. Printed: the articles' error lines, and questions that are labelled as lines. Only lines count
that say a failure by a saying alone (`kb.logs.classify.says_it_in_passing`). Cross-validated over issues. Needs
scikit-learn.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_predict

from kb.articles.folder import read_articles
from kb.logs.classify import says_it_in_passing
from kb.logs.told import FEATURES, TOLD_AT, WEIGHTS, features
from kb.scraped import parse

ROOT = Path(__file__).parent.parent
TOLD = {"description": 1, "title": 1, "mixed": 1, "line": 0, "command": 0, "log": 0, "trace": 0}
A_CASE, A_SENTENCE, A_MESSAGE = 3.0, 0.5, 1.0  # a question counts more than a line of an article

Example = tuple[str, int, str, float]
"""the line, is it told?, the issue, the weight"""


def is_asked(line: str) -> bool:
    return "\n" not in line and says_it_in_passing(line)


def from_articles(folder: Path) -> Iterator[Example]:
    for path, data in read_articles(folder):
        assert isinstance(data, bytes), data
        for record in parse(data, path=path).records:
            titles = {record.title, *record.aliases}
            for line in record.errors:
                if line not in titles:
                    yield line, 0, record.issue, A_MESSAGE
            prose = re.sub(r"```.*?```", "\n", f"{record.symptom}\n{record.cause}", flags=re.DOTALL)
            for sentence in re.split(r"(?<=[.!?])\s+|(?<=[。！？])|\n", prose):
                yield re.sub(r"[`*]", "", sentence).strip(" -"), 1, record.issue, A_SENTENCE


def from_cases() -> Iterator[Example]:
    cases = ROOT / "tests" / "cases"
    for path in (*sorted(cases.glob("*.jsonl")), *sorted((cases / "world").glob("*.jsonl"))):
        for case in map(json.loads, path.read_text("utf-8").splitlines()):
            query = case.get("query")
            if isinstance(query, str) and case.get("kind") in TOLD:
                yield query.strip(), TOLD[case["kind"]], case.get("issue") or query[:40], A_CASE


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--articles", type=Path, default=ROOT / "articles")
    parser.add_argument("--write", action="store_true", help="put the weights into kb/logs/told.json")
    args = parser.parse_args()
    once = {line: one for one in (*from_articles(args.articles), *from_cases()) if is_asked(line := one[0])}
    lines, told, issues, weight = (list(column) for column in zip(*once.values(), strict=True))
    x, y, w = np.array([features(line) for line in lines]), np.array(told), np.array(weight)
    model = LogisticRegression(C=1.0)
    chances = cross_val_predict(
        model, x, y, groups=issues, cv=GroupKFold(5), params={"sample_weight": w}, method="predict_proba"
    )[:, 1]
    for name, part in (("questions", w == A_CASE), ("articles", w != A_CASE)):
        taken = part & (chances >= TOLD_AT)
        print(
            f"{name}: of {(part & (y == 1)).sum()} told {(taken & (y == 1)).sum()} are taken for told, "
            f"of {(part & (y == 0)).sum()} printed {(taken & (y == 0)).sum()}"
        )
    model.fit(x, y, sample_weight=w)
    weights = {name: round(float(one), 3) for name, one in zip(FEATURES, model.coef_[0], strict=True)}
    form: dict[str, Any] = {"by": "scripts/fit_told.py --write", "lines": len(lines), "told": int(y.sum())}
    text = json.dumps({"fitted": form, "weights": weights, "bias": round(float(model.intercept_[0]), 3)}, indent=1)
    print(text)
    if args.write:
        WEIGHTS.write_text(text + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
