"""What do 0, 1, 3, 10 and 30 people change, who all say the same of an answer?

    python scripts/voices.py

Asks the base that is part of kb the questions of tests/cases (those whose issue it has, and those about nothing it
knows), then lets n people vote on the first hit of each: once people who are right (it helped where it is the issue in
question, else it did not fit), once people who are all wrong. Prints how many first hits are known, likely and unknown,
and how many of the known ones are right. Every question stands for itself: the votes on it are no votes on others.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from kb import KnowledgeBase
from kb.feedback.gist import gist
from kb.feedback.voices import Voiced
from kb.records import SearchResult
from kb.search.verdict import KNOWN_AT

CASES = Path(__file__).resolve().parent.parent / "tests" / "cases"
FILES = ("development", "questions", "wild", "stock")
COUNTS = (0, 1, 2, 3, 5, 10, 30)
Families = dict[str, dict[str, bool]]


class Crowd:
    """So many people who said this of one issue, asked that question."""

    def __init__(self, result: SearchResult, *, helped: bool, count: int) -> None:
        about = gist(result.query)
        said = {str(n): helped for n in range(count)}
        first = result.hits[0]
        self._heard: dict[tuple[str, str], Families] = {
            (first.base, first.issue): {about.family if about else "": said}
        }

    def heard(self) -> dict[tuple[str, str], Families]:
        return self._heard


def main() -> None:
    asked = [json.loads(line) for name in FILES for line in (CASES / f"{name}.jsonl").read_text("utf-8").splitlines()]
    with KnowledgeBase.open() as base:
        answers = [(one.get("issue"), base.search(one["query"], 5)) for one in asked]
        same = base.searcher.first_telling
    answers = [(issue, result) for issue, result in answers if result.hits]
    has = sum(issue is not None for issue, _ in answers)
    print(f"{len(answers)} questions, {has} about an issue of the base\n")
    for title, honest in (("people who are right", True), ("people who are all wrong", False)):
        print(f"{title:24}  {'known, right':>13}{'known, wrong':>14}{'likely':>8}{'unknown':>9}{'other first':>13}")
        for count in COUNTS:
            verdicts: Counter[str] = Counter()
            turned = 0
            for issue, result in answers:
                right = issue is not None and same.get(result.hits[0].issue) == same.get(issue)
                votes = Voiced(Crowd(result, helped=right == honest, count=count))
                after = votes.weighed(result, 5, KNOWN_AT)
                now_right = issue is not None and same.get(after.hits[0].issue) == same.get(issue)
                verdicts[f"known {now_right}" if after.verdict == "known" else after.verdict] += 1
                turned += after.hits[0].issue != result.hits[0].issue
            known = f"{verdicts['known True']:13}{verdicts['known False']:14}"
            print(f"{count:3} voices{'':15} {known}{verdicts['likely']:8}{verdicts['unknown']:9}{turned:13}")
        print()


if __name__ == "__main__":
    main()
