"""How well somebody's own base answers: pages without the aliases and summaries that our articles have.

The shipped articles are cut into parts by project, and each part is made into plain pages: front matter, "In short",
"Asked as" and all that only our own form has is gone, the headings are what people write. The questions of tests/cases
are asked of each such base: those about its issues should be answered, all others not. Then once more with every page
doubled, as if it were kept for two versions. "By our curve": what would be said if all issues were judged by the curve
for issues that list aliases, as ours do (`kb.search.verdict`).

    python scripts/own_base.py                  three bases of our own articles
    python scripts/own_base.py --parts 12       smaller ones
    python scripts/own_base.py --articles notes --questions questions.jsonl    your own pages, as they are

`kb eval` without a file asks a base about its own records.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kb import KnowledgeBase
from kb.evaluate import Question, read_questions
from kb.search.verdict import KNOWN_AT, confidence, curve_for

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests" / "cases"

_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_SECTION = re.compile(r"^### (.+)\n((?:(?!^#{1,3} ).*\n?)*)", re.MULTILINE)
_FENCE = re.compile(r"^( {0,3}(?:```|~~~)).*?^\1", re.DOTALL | re.MULTILINE)
_PROJECT = re.compile(r"^(?:Project|项目)[:：].*\n", re.MULTILINE)
_BASIS = re.compile(r" ?\*[(（](?:reproduced|maintainer|reported|reasoned|已复现|维护者|有人验证|推断)[)）]\*")
_VERSION = re.compile(r"\b(v?\d{1,2})\.(\d{1,2})(?=\.\d|\b)")
_NEXT = "-next"
HEADINGS = {
    "Symptom": "Problem",
    "Cause": "Why it happens",
    "Fix": "How to solve it",
    "现象": "问题描述",
    "原因": "问题原因",
    "解决方案": "解决方法",
}


def plain_page(text: str) -> str:
    """An article in our own form as somebody else would have written it."""
    text = _FRONT.sub("", text)
    # Headings are looked for outside of fences only: a "#" there is a comment.
    fences = _FENCE.findall(text)
    kept: list[str] = []

    def put_aside(match: re.Match[str]) -> str:
        kept.append(match[0])
        return f"\0{len(kept) - 1}\0"

    text = _FENCE.sub(put_aside, text) if fences else text
    text = _SECTION.sub(
        lambda match: f"### {HEADINGS[match[1].strip()]}\n{match[2]}" if match[1].strip() in HEADINGS else "", text
    )
    text = _BASIS.sub("", _PROJECT.sub("", text))
    return re.sub(r"\0(\d+)\0", lambda match: kept[int(match[1])], text)


def next_version(text: str) -> str:
    """The page for a later version: every version number one higher."""
    return _VERSION.sub(lambda match: f"{match[1]}.{int(match[2]) + 1}", text)


def write_pages(source: Path, target: Path, part: int | None, parts: int, *, doubled: bool) -> None:
    """`part`: only the articles whose first project falls into it, as plain pages; None: all, as they are."""
    for path in sorted(source.rglob("*.md")):
        text = path.read_text("utf-8")
        if part is not None:
            found = re.search(r"^project: *\[?([^,\]\n]+)", text, re.MULTILINE)
            if zlib.crc32((found[1] if found else path.stem).strip().casefold().encode()) % parts != part:
                continue
            text = plain_page(text)
        place = target / path.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")
        if doubled:
            place.with_name(f"{path.stem}{_NEXT}.md").write_text(next_version(text), "utf-8")


@dataclass
class Counts:
    known: int = 0
    """questions about issues of the base"""
    answered: int = 0
    right: int = 0
    """of those that are answered"""
    first: int = 0
    """a right issue stands first"""
    unknown: int = 0
    rejected: int = 0
    answered_by_our_curve: int = 0
    rejected_by_our_curve: int = 0

    def add(self, other: Counts) -> None:
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def line(self) -> str:
        def share(part: int, of: int) -> str:
            return f"{part / of:7.1%}" if of else "      -"

        return (
            f"{self.known:6}{share(self.answered, self.known):>10}{share(self.right, self.answered):>10}"
            f"{share(self.first, self.known):>13}{self.unknown:10}{share(self.rejected, self.unknown):>10}"
            f"{share(self.answered_by_our_curve, self.known):>15}{share(self.rejected_by_our_curve, self.unknown):>10}"
        )


def ask(base: KnowledgeBase, questions: Sequence[Question]) -> Counts:
    counts = Counts()
    issues = {record.issue for record in base.records()}
    slugs = {issue.partition("#")[0] for issue in issues}
    for question in questions:
        # A page of ours may be read as more issues, or fewer: the article is what counts.
        wanted = {one.partition("#")[0] for one in question.wanted}
        wanted |= {slug + _NEXT for slug in wanted}
        result = base.search(question.query, 3)
        curve = curve_for(pasted=bool(result.read_as.signatures), phrasings=True)
        ours = any(confidence(hit.evidence, curve) >= KNOWN_AT and not hit.ruled_out for hit in result.hits)
        if wanted & slugs:
            right = bool(result.hits) and result.hits[0].issue.partition("#")[0] in wanted
            answered = result.answered
            counts.add(Counts(1, int(answered), int(answered and right), int(right), answered_by_our_curve=int(ours)))
        else:
            counts.add(Counts(unknown=1, rejected=int(not result.answered), rejected_by_our_curve=int(not ours)))
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--articles", type=Path, help="your own pages, taken as they are")
    default = [*sorted(CASES.glob("*.jsonl")), *sorted((CASES / "world").glob("*.jsonl"))]
    parser.add_argument("--questions", type=Path, nargs="+", default=default)
    parser.add_argument("--parts", type=int, default=3, help="into how many bases our articles are cut")
    args = parser.parse_args()
    questions = [one for path in args.questions for one in read_questions(path.read_bytes(), str(path))]
    parts: list[int | None] = [None] if args.articles else [*range(args.parts)]
    print(
        f"{'':18}{'known':>6}{'answered':>10}{'right':>10}{'right first':>13}{'unknown':>10}{'rejected':>10}"
        f"{'by our curve':>15}{'rejected':>10}"
    )
    for doubled in (False, True):
        total = Counts()
        for part in parts:
            with tempfile.TemporaryDirectory() as folder:
                pages, index = Path(folder, "pages"), Path(folder, "index")
                write_pages(args.articles or ROOT / "articles", pages, part, args.parts, doubled=doubled)
                KnowledgeBase.build(pages, index, keep_going=True)
                with KnowledgeBase.open(index) as base:
                    total.add(ask(base, questions))
        print(f"{'every page twice' if doubled else 'as they are':18}{total.line()}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
