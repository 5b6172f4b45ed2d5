"""Fits the weights with which `kb import github` finds the fix of a thread, and says how often it finds it.

    python scripts/import_threads.py [FILE ...] [--judge FILE ...] [--misses] [--ablate] [--write]

FILE is a file of threads as tests/cases/import/threads.txt (the default) or tests/cases/import/gh.json with a key `fix`
in each thread: the numbers of the comments (0: the first post) that are right, none for a thread without a fix. The
weights are fitted by maximum likelihood (a conditional logit with ridge, each weight held to its sign) and judged by
leaving out one thread at a time. `--judge` names threads that are only judged, by weights that have not seen them.
`--write` puts the weights, fitted on all FILEs, into kb/importers/fix.json.

A thread is right when the post that is taken is one of the right ones, or when none is taken and none is right.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kb.importers.fix import EVIDENCE, evidence_of, is_convincing
from kb.importers.github import Thread, read_threads

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests" / "cases" / "import" / "threads.txt"
WEIGHTS = ROOT / "kb" / "importers" / "fix.json"
RIDGE = 0.15

HOME = "https://github.com/acme/tool"
Vector = np.ndarray[Any, np.dtype[np.float64]]

_HEAD = re.compile(
    r"== (?P<name>[^|]+?) \| (?P<state>open|closed)(?: by #(?P<pull>\d+))? (?:\| (?P<labels>[^|]*?) )?"
    r"\| fix (?P<fix>[\d, ]+|none)\Z"
)
_WRITER = re.compile(r"-- (?P<by>\S+?)(?: \+(?P<likes>\d+))?\Z")


@dataclass
class Case:
    name: str
    thread: Thread
    fix: frozenset[int]


@dataclass
class Example:
    """The evidence of one thread: a row for each candidate, and which of them are right."""

    name: str
    numbers: list[int]
    rows: Vector
    fix: frozenset[int]


def read_cases(path: Path) -> list[Case]:
    text = path.read_text("utf-8")
    if path.suffix == ".json":
        found = json.loads(text)
        threads = [thread for one in found for thread in read_threads([(path.name, json.dumps(one))])]
        return [
            Case(f"{thread.repository}#{thread.number}", thread, frozenset(one["fix"]))
            for one, thread in zip(found, threads, strict=True)
        ]
    return [_case(part) for part in re.split(r"^(?=== )", text, flags=re.MULTILINE)[1:]]


def _case(part: str) -> Case:
    lines = part.rstrip().split("\n")
    head = _HEAD.match(lines[0])
    assert head, lines[0]
    posts: list[tuple[str, int, list[str]]] = [("asker", 0, [])]
    for line in lines[2:]:
        if writer := _WRITER.match(line):
            posts.append((writer["by"], int(writer["likes"] or 0), []))
        else:
            posts[-1][2].append(line)
    item = {
        "number": 1,
        "title": lines[1],
        "body": "\n".join(posts[0][2]),
        "state": head["state"],
        "author": {"login": "asker"},
        "closedByPullRequestsReferences": [{"url": f"{HOME}/pull/{head['pull']}"}] if head["pull"] else [],
        "labels": [{"name": name} for name in re.split(r", ?", head["labels"] or "") if name],
        "comments": [
            {
                "author": {"login": by, "is_bot": by == "bot"},
                "authorAssociation": "MEMBER" if by.startswith("member") else "NONE",
                "body": "\n".join(body),
                "reactionGroups": [{"content": "THUMBS_UP", "users": {"totalCount": likes}}] if likes else [],
            }
            for by, likes, body in posts[1:]
        ],
    }
    (thread,) = read_threads([(head["name"], json.dumps(item))])
    fix = frozenset() if head["fix"] == "none" else frozenset(int(one) for one in head["fix"].split(","))
    return Case(head["name"], thread, fix)


def example(case: Case) -> Example:
    found = evidence_of(case.thread)
    rows = np.array([[values.get(name, 0.0) for name in EVIDENCE] for values in found.values()])
    return Example(case.name, list(found), rows.reshape(len(found), len(EVIDENCE)), case.fix)


def fit(examples: Sequence[Example], start: Vector | None = None) -> Vector:
    def loss(weights: Vector) -> tuple[float, Vector]:
        total, slope = RIDGE * float(weights @ weights), 2 * RIDGE * weights
        for one in examples:
            scores = np.append(one.rows @ weights, 0.0)  # the last one: none of them
            rows = np.vstack([one.rows, np.zeros(len(weights))])
            right = np.array([number in one.fix for number in one.numbers] + [not one.fix])
            if not right.any():
                continue  # the right post is no candidate
            chances = np.exp(scores - scores.max())
            chances /= chances.sum()
            share = chances * right / (chances @ right)
            total -= float(np.log(chances @ right))
            slope = slope + rows.T @ (chances - share)
        return total, slope

    from scipy.optimize import minimize  # here, because the tests read the cases without it

    bounds = [(None if sign < 1 else 0.0, None if sign > -1 else 0.0) for sign in EVIDENCE.values()]
    begin = np.zeros(len(EVIDENCE)) if start is None else start
    return np.asarray(minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=bounds).x)


def taken(one: Example, weights: Vector) -> tuple[int | None, float]:
    """Which post is taken, and the chance of the likeliest."""
    if not len(one.numbers):
        return None, 0.0
    scores = np.append(one.rows @ weights, 0.0)
    chances = np.exp(scores - scores.max())
    chances /= chances.sum()
    best = int(np.argmax(chances[:-1]))
    return (one.numbers[best] if is_convincing(chances[best], chances[-1]) else None), float(chances[best])


def report(name: str, judged: Sequence[tuple[Example, int | None, float]], misses: bool) -> None:
    with_fix = [(one, got) for one, got, _ in judged if one.fix]
    found = sum(got in one.fix for one, got in with_fix)
    wrong = sum(got is not None and got not in one.fix for one, got in with_fix)
    without = [got for one, got, _ in judged if not one.fix]
    invented = sum(got is not None for got in without)
    print(
        f"{name}: found {found} of {len(with_fix)} (another post taken: {wrong}); invented {invented} of {len(without)}"
    )
    for one, got, chance in judged if misses else ():
        if got not in one.fix and (got is not None or one.fix):
            print(f"    {one.name}: took {got} ({chance:.2f}), right {sorted(one.fix) or None}")


def leave_one_out(examples: Sequence[Example]) -> list[tuple[Example, int | None, float]]:
    whole = fit(examples)
    judged = []
    for number, one in enumerate(examples):
        weights = fit([*examples[:number], *examples[number + 1 :]], whole)
        judged.append((one, *taken(one, weights)))
    return judged


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, default=[CASES], metavar="FILE")
    parser.add_argument("--judge", nargs="+", type=Path, default=[], metavar="FILE")
    parser.add_argument("--misses", action="store_true", help="name the threads that are judged wrongly")
    parser.add_argument("--ablate", action="store_true", help="what each kind of evidence earns")
    parser.add_argument("--write", action="store_true", help="write kb/importers/fix.json")
    options = parser.parse_args()
    examples = [example(case) for file in options.files for case in read_cases(file)]
    weights = fit(examples)
    report("fitted", [(one, *taken(one, weights)) for one in examples], options.misses)
    report("left out", leave_one_out(examples), options.misses)
    for file in options.judge:
        report(file.name, [(one, *taken(one, weights)) for one in map(example, read_cases(file))], options.misses)
    for column, name in enumerate(EVIDENCE if options.ablate else ()):
        without = [replace(one, rows=one.rows * (np.arange(len(EVIDENCE)) != column)) for one in examples]
        report(f"without {name}", leave_one_out(without), False)
    for name, weight in zip(EVIDENCE, weights, strict=True):
        print(f"{name:20} {weight:6.2f}")
    if options.write:
        told = {name: round(float(weight), 3) for name, weight in zip(EVIDENCE, weights, strict=True)}
        WEIGHTS.write_text(json.dumps(told, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
