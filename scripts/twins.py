"""How rightly are the issues of an English and a Chinese article joined (`kb.index.twins`)?

Pairs of articles are put together from issues of one project of ours, and then one of them is changed: an issue is
dropped or added, two change places, or one is replaced by another of the project. The Chinese text is taken whole
("full"), without cause and fix ("half"), or without code, error lines, cause and fix ("words"): somebody else's
translation shares less with its original than ours do. Counted is each issue: has it the partner that it should have,
or rightly none?

    python scripts/twins.py [--articles DIR] [--pairs 300] [--seed 1]
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from kb.articles.folder import read_articles
from kb.index.twins import counterparts
from kb.records import IssueRecord
from kb.scraped import parse
from kb.text.fences import prose_lines

ROOT = Path(__file__).parent.parent
CHANGES = ("none", "drop en", "drop zh", "add", "swap", "replace")
Told = list[tuple[int, IssueRecord]]
"""records of one language, each with the number of its issue"""


def issues(articles: Path) -> dict[str, list[tuple[IssueRecord, IssueRecord]]]:
    """project -> its issues, English and Chinese"""
    told: dict[str, dict[str, IssueRecord]] = defaultdict(dict)
    for path, data in read_articles(articles):
        if isinstance(data, bytes):
            for record in parse(data, path=path).records:
                told[record.issue][record.lang] = record
    found: dict[str, list[tuple[IssueRecord, IssueRecord]]] = defaultdict(list)
    for one in told.values():
        if len(one) == 2:
            found[one["en"].project or ""].append((one["en"], one["zh"]))
    return found


def bare(text: str) -> str:
    return re.sub(r"`[^`]*`", "", "\n".join(prose_lines(text)))


FORMS: dict[str, Callable[[IssueRecord], IssueRecord]] = {
    "full": lambda record: record,
    "half": lambda record: replace(record, cause="", fix=""),
    "words": lambda record: replace(record, symptom=bare(record.symptom), errors=(), cause="", fix=""),
}


def pair(project: Sequence[tuple[IssueRecord, IssueRecord]], change: str, chance: random.Random) -> tuple[Told, Told]:
    """English and Chinese records; what has the same number belongs together."""
    *taken, further = chance.sample(list(enumerate(project)), chance.randint(3, min(7, len(project))))
    en: Told = [(n, one[0]) for n, one in taken]
    zh: Told = [(n, one[1]) for n, one in taken]
    place = chance.randrange(len(zh))
    if change == "drop en":
        del en[place]
    elif change == "drop zh":
        del zh[place]
    elif change == "add":
        zh.insert(place, (further[0], further[1][1]))
    elif change == "swap":
        other = (place + chance.randint(1, len(zh) - 1)) % len(zh)
        zh[place], zh[other] = zh[other], zh[place]
    elif change == "replace":
        zh[place] = (further[0], further[1][1])
    return en, zh


def judged(en: Told, zh: Told, form: str) -> Iterator[str]:
    """For each Chinese issue: right, wrong, or missed."""
    numbers = [n for n, _ in en]
    found = counterparts([record for _, record in en], [FORMS[form](record) for _, record in zh])
    for (number, _), place in zip(zh, found, strict=True):
        if (None if place is None else numbers[place]) == (number if number in numbers else None):
            yield "right"
        else:
            yield "missed" if place is None else "wrong"


def measure(articles: Path, pairs: int, seed: int) -> dict[tuple[str, str], Counter[str]]:
    """(form, change) -> how many issues are right, wrong and missed"""
    projects = [one for one in issues(articles).values() if len(one) >= 4]
    counts: dict[tuple[str, str], Counter[str]] = {}
    for form in FORMS:
        for change in CHANGES:
            chance = random.Random(f"{seed} {form} {change}")
            counts[form, change] = Counter(
                verdict
                for _ in range(pairs)
                for verdict in judged(*pair(chance.choice(projects), change, chance), form)
            )
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--articles", type=Path, default=ROOT / "articles")
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    print(f"{'Chinese':8} {'change':8} {'issues':>6} {'right':>7} {'wrong':>6} {'missed':>6}")
    for (form, change), count in measure(args.articles, args.pairs, args.seed).items():
        n = count.total()
        print(f"{form:8} {change:8} {n:6} {count['right'] / n:7.1%} {count['wrong']:6} {count['missed']:6}")


if __name__ == "__main__":
    main()
