"""How well the reader does on pages of a kind that it was not fitted on.

    python scripts/reader/evaluate.py             # leaves a fifth of the kinds of tagged pages out at a time
    python scripts/reader/evaluate.py --layouts   # leaves a fifth of the layouts of drawn pages out at a time
    python scripts/reader/evaluate.py --pages DIR # the shipped weights on other tagged pages (*.tagged.md)
    python scripts/reader/evaluate.py --errors    # also what was taken for what
    python scripts/reader/evaluate.py --speed     # pages a second, and how often longer than markdown-it takes

A kind is what stands before the number in the name of a page (`endoc-001.tagged.md`): pages of one kind were written
with the same brief. Records are compared by their title; the share of a field is that of its characters which are in
the right field of the right record. Needs torch, as `train.py` does.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from markdown_it import MarkdownIt

sys.path.insert(0, str(Path(__file__).parent))

from layouts import TITLES
from pages import Page, tagged_blocks
from train import DROP, EPOCHS, PAGES, draw, fit, sample_of, tagged_pages

from kb.scraped import parse
from kb.scraped.reader import read_blocks
from kb.scraped.records import Issue
from kb.scraped.tagger import Tagger, open_tagger

FIELDS = ("symptom", "cause", "fix")
FOLDS = 5


@dataclass
class Figures:
    """Counts over some pages."""

    records: Counter[str] = field(default_factory=Counter)
    """right, found, told"""
    letters: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter() for name in FIELDS})
    """for each field the same, in characters"""
    errors: Counter[str] = field(default_factory=Counter)
    pages: int = 0

    def add(self, page: Page, tagger: Tagger) -> None:
        blocks, gold, numbers = tagged_blocks(page)
        if not blocks:
            return
        self.pages += 1
        tagging, found = read_blocks(blocks, tagger)
        told, tags = stated(gold, numbers), tagging.tags
        titles = [{issue.title for issue in issues} for issues in (told, found)]
        self.records.update(right=len(titles[0] & titles[1]), told=len(titles[0]), found=len(titles[1]))
        for name in FIELDS:
            places = [{(i.title, n) for i in issues for n in i.fields[name]} for issues in (told, found)]
            for what, part in (("told", places[0]), ("found", places[1]), ("right", places[0] & places[1])):
                self.letters[name][what] += sum(len(blocks[n].text) for _, n in part)
        self.errors.update(
            f"{right} taken for {tag}"
            for right, tag in zip(gold, tags, strict=True)
            if right != tag and "label" not in (right, tag)
        )
        self.errors.update(blocks=len(blocks))

    def row(self) -> str:
        parts = [f"{f1(counts):.3f}" for counts in (self.records, *self.letters.values())]
        right = self.records["right"]
        precision, recall = right / max(1, self.records["found"]), right / max(1, self.records["told"])
        size = f"{self.pages:5} pages {self.records['told']:5} records"
        return f"{size}  P {precision:.2f} R {recall:.2f}  F1 {'  '.join(parts)}"

    def __iadd__(self, other: Figures) -> Figures:
        self.records += other.records
        self.errors += other.errors
        self.pages += other.pages
        for name in FIELDS:
            self.letters[name] += other.letters[name]
        return self


def stated(tags: Sequence[str], numbers: Sequence[int | None]) -> list[Issue]:
    """The issues as the page's marks say: `⟦fix #2⟧` belongs to the second title, others to the last one."""
    titles = [n for n, tag in enumerate(tags) if tag == "title"]
    issues = {n: Issue(n) for n in titles}
    for n, (tag, number) in enumerate(zip(tags, numbers, strict=True)):
        before = [title for title in titles if title < n]
        if tag not in FIELDS or not titles:
            continue
        if number and number <= len(titles):
            issues[titles[number - 1]].fields[tag].append(n)
        elif before:
            issues[before[-1]].fields[tag].append(n)
    return list(issues.values())


def f1(counts: Counter[str]) -> float:
    return 2 * counts["right"] / max(1, counts["told"] + counts["found"])


def measure(pages: Iterable[Page], tagger: Tagger) -> Figures:
    figures = Figures()
    for page in pages:
        figures.add(page, tagger)
    return figures


def kind_of(page: Page) -> str:
    return page.name.split("-")[0]


def fitted(pages: Sequence[Page], drawn: Sequence[Page]) -> Tagger:
    samples = [sample_of(page) for page in pages] + [sample_of(page, 0.5) for page in drawn]
    return Tagger(fit([sample for sample in samples if sample], epochs=EPOCHS, drop=DROP).arrays())


def show(name: str, figures: Figures, *, errors: bool) -> None:
    print(f"{name:16} {figures.row()}", flush=True)
    if errors:
        blocks = figures.errors.pop("blocks", 0)
        for what, count in figures.errors.most_common(20):
            print(f"{'':16} {count:6}  {count / blocks:6.1%} of blocks  {what}")


def speed(pages: Sequence[Page]) -> None:
    """Prints the time of `parse` beside that of a Markdown parser on the same pages, in processor time of one core."""

    def read(text: str) -> object:
        return parse(text.encode(), path="page.md")

    renderer = MarkdownIt("commonmark")
    least = {"parse": float("inf"), "markdown-it": float("inf")}
    for _ in range(5):
        for name, work in (
            ("parse", lambda page: parse(page.encode(), path="page.md")),
            ("markdown-it", renderer.render),
        ):
            started = time.process_time()
            for page in pages:
                work(page.text)
            least[name] = min(least[name], time.process_time() - started)
    size = sum(len(page.text.encode()) for page in pages) / len(pages) / 1000
    rate, ratio = len(pages) / least["parse"], least["parse"] / least["markdown-it"]
    print(f"{rate:.0f} pages/s of {size:.1f} KB; {ratio:.1f} times the time of markdown-it's own rendering")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layouts", action="store_true")
    parser.add_argument("--pages", type=Path)
    parser.add_argument("--errors", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--drawn", type=int, default=300)
    args = parser.parse_args()
    if args.speed:
        speed(tagged_pages(PAGES)[::9])
        return 0
    print(f"{'left out':16} {'':46} records  symptom  cause  fix")
    if args.pages:
        show(args.pages.name, measure(tagged_pages(args.pages), open_tagger()), errors=args.errors)
        return 0
    pages = tagged_pages(PAGES)
    drawn = draw(pages, args.drawn)
    everything = Figures()
    names = list(TITLES) if args.layouts else sorted({kind_of(page) for page in pages})
    for fold in range(FOLDS):
        out = names[fold::FOLDS]
        if args.layouts:
            asked = {name: [page for page in drawn if f"-{name}--" in page.name] for name in out}
            tagger = fitted(pages, [page for page in drawn if not any(f"-{name}--" in page.name for name in out)])
        else:  # drawn pages are made of the tagged ones: of those that remain
            asked = {name: [page for page in pages if kind_of(page) == name] for name in out}
            rest = [page for page in pages if kind_of(page) not in out]
            tagger = fitted(rest, draw(rest, args.drawn))
        for name, inside in asked.items():
            figures = measure(inside, tagger)
            show(name, figures, errors=False)
            everything += figures
    show("all", everything, errors=args.errors)
    return 0


if __name__ == "__main__":
    sys.exit(main())
