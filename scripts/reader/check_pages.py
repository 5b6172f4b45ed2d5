"""Says what is wrong with tagged pages (see GUIDE.md).

python scripts/reader/check_pages.py            # all of scripts/reader/pages
python scripts/reader/check_pages.py -q FILE…   # quiet about good ones
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from pages import TAGS, Page, read_tagged, tagged_blocks

PAGES = Path(__file__).parent / "pages"


def faults(page: Page) -> Iterator[str]:
    if page.lang not in ("en", "zh"):
        yield "⟦lang: en⟧ or ⟦lang: zh⟧ is missing"
    if not page.marks:
        yield "no tag at all"
        return
    if page.text[: page.marks[0][0]].strip():
        yield f"text before the first tag: {page.text[: page.marks[0][0]].strip()[:60]!r}"
    lines = page.text.splitlines()
    starts = [0]
    for raw in page.text.splitlines(keepends=True):
        starts.append(starts[-1] + len(raw))

    def where(offset: int) -> str:
        return f"line {sum(start <= offset for start in starts[: len(lines)])}"

    ends = [at for at, _, _ in page.marks[1:]] + [len(page.text)]
    has_remedy = True
    for (at, tag, _), end in zip(page.marks, ends, strict=True):
        text = page.text[at:end].strip()
        if not text:
            yield f"{where(at)}: nothing is tagged {tag}"
        if tag == "title":
            if not has_remedy:
                yield f"{where(at)}: the problem before this one has neither cause nor fix nor symptom"
            has_remedy = False
            if len([line for line in text.splitlines() if line.strip()]) > 3:
                yield f"{where(at)}: a title of more than three lines: is the next tag missing?"
        if tag in ("symptom", "cause", "fix"):
            has_remedy = True
            if not any(mark[1] == "title" for mark in page.marks if mark[0] <= at):
                yield f"{where(at)}: {tag} before any title"
        if tag == "label" and len(text) > 160 and "|" not in text:
            yield f"{where(at)}: a label of {len(text)} characters"
    for at, error in page.errors:
        if error not in page.text:
            yield f"{where(at)}: the error {error[:60]!r} is not on the page"
    if sum(tag == "title" for _, tag, _ in page.marks) == 0 and page.errors:
        yield "errors, but no problem"
    try:
        tagged_blocks(page)
    except Exception as err:  # a page that the reader cannot take is worth a look, whatever it is
        yield f"the reader stumbles: {err!r}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("-q", "--quiet", action="store_true")
    args = parser.parse_args()
    bad = 0
    for path in args.paths or sorted(PAGES.glob("*.tagged.md")):
        try:
            page = read_tagged(path)
            found = list(faults(page))
        except ValueError as err:
            page, found = Page(path.name, "", []), [str(err)]
        bad += bool(found)
        for fault in found:
            print(f"{path.name}: {fault}")
        if not found and not args.quiet:
            counts = {tag: sum(t == tag for _, t, _ in page.marks) for tag in TAGS}
            print(f"{path.name}: " + " ".join(f"{tag}={n}" for tag, n in counts.items() if n))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
