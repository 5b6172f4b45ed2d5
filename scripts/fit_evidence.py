"""Fits the curve of the evidence in kb/search/weights.json, and says how well kb knows what it does not know.

    python scripts/fit_evidence.py [--articles DIR] [--questions FILE ...] [--judge FILE ...] [--ablate] [--write]

The questions are those of tests/cases (each with an answer is asked twice: with its article in the base and with the
article taken out, so that every answer is wrong) and those of tests/cases/world: failures that people really met, of
which the base has few, and everyday failures that have nothing to do with it. A question's first three hits are
examples for a logistic regression, the right ones against all others; hits that help in part are left out. Questions
with an answer and those without are weighed one to three, as they occur in the world. Pasted errors and descriptions
have weights of their own that differ as far as the examples demand (ridge regression), and none has a sign that makes
no sense: more in common never speaks against an issue.

Issues that list no phrasings ("Asked as") have a curve of their own. It is fitted in the same way on a copy of the
articles without them, and without the other sections that only articles in kb's own form have: so it carries over to
the pages of others.

Everything is cross-validated over issues: a question is judged by a curve that has seen no question about its issue.
`--judge` asks the questions of other files and judges them by a curve that was fitted without them. `--misses` lists
what went wrong; "helps" is what all who judged it without knowing its confidence or label (tests/cases/judged, one or
two judges) found right or right in part, though it counts as wrong here. `--ablate` says what each kind of evidence
earns. `--write` puts the curve, fitted on all questions, into kb/search/weights.json.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from fit_ranking import minimized

from kb import KnowledgeBase
from kb.evaluate import Question, read_questions
from kb.evaluate.leave_out import left_out
from kb.records import SearchResult
from kb.search import ranking
from kb.search.evidence import NAMES
from kb.search.verdict import CLIP, KNOWN_AT, LIKELY_AT, confidence, curve_for

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests" / "cases"
FOLDS, REPEATS = 5, 3
ASKED_ABOUT = 0.25  # share of the questions in the world whose issue a base has
RIDGE = 0.002
HITS = 3
AGAINST = {"confusable_lead", "confusable_information", "product_unsaid", "particulars_in_conflict"}
SIGNS = np.array([-1.0 if name in AGAINST else 1.0 for name in NAMES])  # no weight has the other sign
LEVELS = (0.01, 0.02, 0.05, 0.10)

Vector = np.ndarray[Any, np.dtype[np.float64]]

KINDS = {
    "lead": ("lead", "lead_over_rest", "described_lead"),
    "sentences": ("sentence_lead",),
    "title": ("title_coverage",),
    "not everyone's": ("own_terms", "own_information"),
    "names": ("component_share",),
    "product unsaid": ("product_unsaid",),
    "confusables": ("confusable_lead", "confusable_information"),
    "alignment": ("aligned_coverage", "alias_alignment"),
    "particulars": ("particulars_shared", "particulars_in_conflict"),
}


@dataclass
class Asked:
    """One question, put to a base with its article or without it."""

    question: Question
    left_out: bool
    known: bool
    """a right issue is in the base"""
    pasted: bool
    evidence: Vector
    """(hits, evidence) in the order of `NAMES`, of the first `HITS`"""
    right: Vector
    """(hits,) 0 or 1"""
    partly: Vector
    """(hits,) 1: helps in part"""
    ruled_out: Vector
    """(hits,) 1: a number in the question excludes it"""
    issues: list[str]

    @property
    def group(self) -> str:
        return (self.question.issue or self.question.id).partition("#")[0]


def asked(question: Question, partly: Sequence[str], result: SearchResult, known: bool, left: bool) -> Asked:
    hits = result.hits[:HITS]
    # An issue with many causes leads to the right one: it helps in part, also where that one is taken out.
    partly = [*partly, *(hit.issue for hit in hits if {b.issue for b in hit.record.branches} & {*question.wanted})]
    return Asked(
        question,
        left,
        known,
        bool(result.read_as.signatures),
        np.array([[getattr(hit.evidence, name) for name in NAMES] for hit in hits]).reshape(-1, len(NAMES)),
        np.array([hit.issue in question.wanted for hit in hits], float),
        np.array([hit.issue in partly for hit in hits], float),
        np.array([hit.ruled_out for hit in hits], float),
        [hit.issue for hit in hits],
    )


ONLY_OURS = re.compile(r"### (?:Asked as|常见问法|In short|一句话|Not to be confused with|容易混淆)\b")


def without_phrasings(articles: Path, folder: Path) -> Path:
    """A copy of the articles in `folder` as others write them: without the sections that only our form has."""
    for path in sorted(articles.glob("*/*.md")):
        kept, skipping, in_fence = [], False, False
        for line in path.read_text("utf-8").splitlines():
            in_fence ^= line.startswith("```")
            if not in_fence and line.startswith(("# ", "## ", "### ")):
                skipping = bool(ONLY_OURS.match(line))
            kept += [] if skipping else [line]
        copy = folder / path.relative_to(articles)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text("\n".join(kept) + "\n", "utf-8")
    return folder


def ask(files: Iterable[Path], articles: Path, *, leave_out: bool = True) -> list[Asked]:
    questions: list[Question] = []
    partly: dict[tuple[str, int], list[str]] = {}
    for path in files:
        data = path.read_bytes()
        questions += read_questions(data, str(path))
        for number, line in enumerate(data.splitlines(), 1):
            partly[str(path), number] = json.loads(line).get("partly", []) if line.strip() else []
    with tempfile.TemporaryDirectory() as folder:
        KnowledgeBase.build(articles, folder)
        with KnowledgeBase.open(folder) as base:
            issues = {record.issue for record in base.records()}
            found = [
                asked(
                    one, partly[one.path, one.line], base.search(one.query, HITS), bool(issues & {*one.wanted}), False
                )
                for one in questions
            ]
    if leave_out:
        found += [asked(one, (), result, False, True) for one, result in left_out(articles, questions, k=HITS)]
    return [one for one in found if one.issues]


@dataclass
class Fitted:
    center: Vector
    spread: Vector
    weights: dict[bool, Vector]
    """of pasted questions (True) and of descriptions"""
    bias: dict[bool, float]

    def confidence(self, one: Asked) -> Vector:
        """(hits,) of each hit of a question."""
        scaled = ((one.evidence - self.center) / self.spread).clip(-CLIP, CLIP)
        odds = scaled @ self.weights[one.pasted] + self.bias[one.pasted]
        return np.asarray(1 / (1 + np.exp(-odds)) * (1 - one.ruled_out))


def fit(examples: Sequence[Asked], keep: Vector | None = None) -> Fitted:
    """`keep`: (evidence,) 1 for what is used."""
    keep = np.ones(len(NAMES)) if keep is None else keep
    firsts = np.array([one.evidence[0] for one in examples])
    center, spread = firsts.mean(axis=0), firsts.std(axis=0).clip(1e-3)
    known = sum(one.known for one in examples)
    unknown = len(examples) - known
    rows, right, weight, pasted = [], [], [], []
    for one in examples:
        share = ASKED_ABOUT / known if one.known else (1 - ASKED_ABOUT) / unknown
        for i in np.flatnonzero(one.partly + one.ruled_out == 0):
            rows.append(one.evidence[i])
            right.append(one.right[i])
            weight.append(share)
            pasted.append(one.pasted)
    x = ((np.array(rows) - center) / spread).clip(-CLIP, CLIP) * keep * SIGNS
    kind = np.array(pasted, float)[:, None]
    x = np.hstack([x * (1 - kind), x * kind, 1 - kind, kind])
    y, w = np.array(right), np.array(weight) / np.sum(weight)

    def loss(v: Vector) -> tuple[float, Vector]:
        z = x @ v
        described, more = v[: len(NAMES)], v[len(NAMES) : -2] - v[: len(NAMES)]
        value = w @ (np.logaddexp(0, z) - y * z) + RIDGE / 2 * (described @ described + more @ more)
        gradient = x.T @ (w * (1 / (1 + np.exp(-z)) - y))
        gradient[:-2] += RIDGE * np.concatenate([described - more, more])
        return float(value), np.asarray(gradient)

    v = minimized(loss, np.zeros(x.shape[1]), free=2)
    n = len(NAMES)
    return Fitted(
        center,
        spread,
        {False: v[:n] * SIGNS * keep, True: v[n : 2 * n] * SIGNS * keep},
        {False: float(v[-2]), True: float(v[-1])},
    )


def cross_validated(examples: Sequence[Asked], seed: int = 0, keep: Vector | None = None) -> list[Vector]:
    """The confidence in the hits of each question, by a curve that has not seen its issue."""
    groups = np.random.default_rng(seed).permutation(sorted({one.group for one in examples}))
    fold = {group: n % FOLDS for n, group in enumerate(groups.tolist())}
    found = [np.zeros(0)] * len(examples)
    for number in range(FOLDS):
        fitted = fit([one for one in examples if fold[one.group] != number], keep)
        for n, one in enumerate(examples):
            if fold[one.group] == number:
                found[n] = fitted.confidence(one)
    return found


def in_development(one: Asked) -> bool:
    return Path(one.question.path).parent.name == "cases"


def answered_rightly(examples: Sequence[Asked], confidences: Sequence[Vector]) -> dict[float, float]:
    """Of the development questions, the share answered rightly with the article in the base while at most this share
    is answered with the article taken out."""
    both = [(one, float(p[0])) for one, p in zip(examples, confidences, strict=True) if in_development(one)]
    wrong = np.sort([p for one, p in both if one.left_out])[::-1]
    known = [(p, bool(one.right[0])) for one, p in both if one.known]
    return {
        level: float(np.mean([right and p > wrong[int(level * len(wrong))] for p, right in known])) for level in LEVELS
    }


SAID = [(verdict, what) for verdict in ("known", "likely") for what in ("right", "partly", "wrong")]


def tally(examples: Sequence[Asked], confidences: Sequence[Vector]) -> list[int]:
    """How many questions, how many with an issue in the base; of what is said to be known how much is right, right in
    part, wrong; and the same of the lists of what is likely, which are right when one of their issues is."""
    counts = dict.fromkeys(SAID, 0)
    for one, p in zip(examples, confidences, strict=True):
        named = p >= LIKELY_AT if p[0] < KNOWN_AT else np.arange(len(p)) == 0
        if p[0] >= LIKELY_AT:
            what = "right" if (one.right * named).any() else "partly" if (one.partly * named).any() else "wrong"
            counts["known" if p[0] >= KNOWN_AT else "likely", what] += 1
    return [len(examples), sum(one.known for one in examples), *(counts[one] for one in SAID)]


def by_file(examples: Sequence[Asked], confidences: Sequence[Vector]) -> dict[str, list[int]]:
    """The tally of the development questions, and of each file from the world."""
    parts: dict[str, list[int]] = {}
    for n, one in enumerate(examples):
        name = "development" if in_development(one) else Path(one.question.path).stem
        parts.setdefault(name + (", left out" if one.left_out else ""), []).append(n)
    return {
        name: tally([examples[n] for n in numbers], [confidences[n] for n in numbers])
        for name, numbers in sorted(parts.items())
    }


def report(examples: Sequence[Asked], confidences: Sequence[Vector]) -> None:
    heads = ["n", "in base", *(what if what != "right" else verdict for verdict, what in SAID)]
    print(f"{'said':26}" + "".join(f"{head:>8}" for head in heads))
    for name, counts in by_file(examples, confidences).items():
        print(f"{name:26}" + "".join(f"{count:8}" for count in counts))


def ablation(examples: Sequence[Asked]) -> dict[str, dict[float, float]]:
    """What is left out -> `answered_rightly` without it, the mean of some ways to cut the folds."""
    parts: dict[str, tuple[str, ...]] = {"nothing": (), **KINDS}
    found = {}
    for name, out in parts.items():
        keep = np.array([float(one not in out) for one in NAMES])
        runs = [answered_rightly(examples, cross_validated(examples, seed, keep)) for seed in range(REPEATS)]
        found[name] = {level: float(np.mean([run[level] for run in runs])) for level in LEVELS}
    return found


def written(fitted: Mapping[str, Fitted], examples: Sequence[Asked], files: Sequence[Path]) -> str:
    """The text of weights.json: the weights of the ranking as they are, and these curves, by the issues that they are
    for."""

    def named(values: Vector) -> dict[str, float]:
        return {name: round(float(value), 4) + 0.0 for name, value in zip(NAMES, values, strict=True)}

    evidence: dict[str, Any] = {
        "fitted": {
            "by": "scripts/fit_evidence.py --write",
            "questions": sorted(path.name for path in files),
            "known": sum(one.known for one in examples),
            "unknown": sum(not one.known for one in examples),
        },
    }
    for issues, one in fitted.items():
        curves = {
            name: {"weights": named(one.weights[pasted]), "bias": round(one.bias[pasted], 4)}
            for name, pasted in (("pasted", True), ("described", False))
        }
        evidence[issues] = {"center": named(one.center), "spread": named(one.spread), **curves}
    return json.dumps({**ranking.read_weights(), "evidence": evidence}, indent=1) + "\n"


def helpful() -> set[tuple[str, str]]:
    """Question and issue, where every judge found that its fix helps, at least in part."""
    lines = (CASES / "judged" / "answers.jsonl").read_text("utf-8").splitlines()
    return {(one["id"], one["issue"]) for one in map(json.loads, lines) if "wrong" not in one["verdicts"]}


def misses(examples: Sequence[Asked], confidences: Sequence[Vector]) -> None:
    """What is said to be known and is not right, the surest first; then what is right and not said."""
    helps = helpful()
    both = sorted(zip(examples, confidences, strict=True), key=lambda pair: -float(pair[1][0]))
    for one, p in both:
        if (p[0] >= KNOWN_AT and not one.right[0]) or (one.known and one.right[0] and p[0] < KNOWN_AT):
            found = "helps" if (one.question.id, one.issues[0]) in helps else "WRONG"
            mark = "low  " if one.right[0] else "part " if one.partly[0] else found
            print(
                f"{mark} {p[0]:.2f} {one.question.id:8}{'(out) ' if one.left_out else ''}wants {one.question.issue}, "
                f"finds {one.issues[0]}: {one.question.query[:150]!r}"
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--articles", type=Path, default=ROOT / "articles")
    parser.add_argument(
        "--questions",
        type=Path,
        nargs="+",
        default=[*sorted(CASES.glob("*.jsonl")), *sorted((CASES / "world").glob("*.jsonl"))],
    )
    parser.add_argument("--judge", type=Path, nargs="+", default=[], help="questions that are not fitted on")
    parser.add_argument("--misses", action="store_true", help="list what went wrong")
    parser.add_argument("--ablate", action="store_true", help="say what each kind of evidence earns")
    parser.add_argument("--write", action="store_true", help="put the curve into kb/search/weights.json")
    args = parser.parse_args()
    examples = ask(args.questions, args.articles)
    confidences = cross_validated(examples)
    print(
        f"cross-validated over issues, {len(examples)} questions; a list of likely issues is right when one of them is"
    )
    report(examples, confidences)
    print("\ndevelopment questions answered rightly while wrong answers with the article left out are held to")
    print("   ".join(f"{level:.0%}: {share:.3f}" for level, share in answered_rightly(examples, confidences).items()))
    if args.misses:
        misses(examples, confidences)
    fitted = fit(examples)
    with tempfile.TemporaryDirectory() as folder:
        plain = ask(args.questions, without_phrasings(args.articles, Path(folder)))
    confidences = cross_validated(plain)
    print("\nthe same of articles as others write them, by a curve of their own")
    report(plain, confidences)
    print("   ".join(f"{level:.0%}: {share:.3f}" for level, share in answered_rightly(plain, confidences).items()))
    print("\nthe same by the curve for articles that list phrasings")
    report(plain, [fitted.confidence(one) for one in plain])
    if args.judge:
        print("\nnot fitted on:")
        others = ask(args.judge, args.articles, leave_out=False)
        judged = [fitted.confidence(one) for one in others]
        report(others, judged)
        if args.misses:
            misses(others, judged)
    if args.ablate:
        print(f"\n{'the same without':28}" + "".join(f"{level:>8.0%}" for level in LEVELS))
        for name, levels in ablation(examples).items():
            print(f"{name:28}" + "".join(f"{share:8.3f}" for share in levels.values()))
    if args.write:
        curves = {"with phrasings": fitted, "without": fit(plain)}
        ranking.WEIGHTS.write_text(written(curves, examples, args.questions), "utf-8")
        drift = max(
            abs(fitted.confidence(one)[0] - confidence_now(one)) for one in examples[:50] if not one.ruled_out[0]
        )
        print(f"\nwritten; the curve as rounded differs by at most {drift:.4f}")
    return 0


def confidence_now(one: Asked) -> float:
    """By the weights in the file."""
    from kb.records import Evidence
    from kb.search import verdict

    verdict._curves.cache_clear()
    found = Evidence(**dict(zip(NAMES, one.evidence[0].tolist(), strict=True)))
    return confidence(found, curve_for(pasted=one.pasted, phrasings=found.lists_phrasings))


if __name__ == "__main__":
    sys.exit(main())
