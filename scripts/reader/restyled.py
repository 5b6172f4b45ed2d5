"""Tagged pages in other clothes: the same passages in the same order, titles and labels written in another way.

What `layouts` draws has no flow: its entries come from everywhere. Here a page keeps its asides, its notes and the
turns of its text, and loses what a reader would lean on instead: the level of its headings, its labels, its marks.
"""

from __future__ import annotations

import random
import re

from pages import Page, parse_tagged

from kb.scraped.labels import read_label

_HEADING = re.compile(r"^(#{1,6})\s+(\S.*?)\s*#*$|^\*\*([^*\n]+)\*\*$")
_ORDINAL = re.compile(r"^(?:\d{1,2}(?:\.\d{1,2})*[.、)]?\s+|[一二三四五六七八九十]{1,2}、|(?:Q\d*|问)\s?[:：]\s?)")
_FORMS = ("#", "##", "###", "####", "bold", "bold", "numbered", "line", "question")
_FIELDS = ("symptom", "cause", "fix")


def restyle(page: Page, rng: random.Random) -> Page:
    """The page with one or more of its habits changed."""
    ends = [at for at, _, _ in page.marks[1:]] + [len(page.text)]
    spans = [(tag, n, page.text[at:end]) for (at, tag, n), end in zip(page.marks, ends, strict=True)]
    start = page.text[: page.marks[0][0]] if page.marks else page.text
    if rng.random() < 0.4:
        spans = [(tag, n, _unlabelled(tag, text)) for tag, n, text in spans if tag != "label" or "|" in text]
    if rng.random() < 0.6:
        spans = _with_titles(spans, rng.choice(_FORMS), zh=page.lang == "zh")
    text = start + "".join(f"⟦{tag}{f' #{n}' if n else ''}⟧{text}" for tag, n, text in spans)
    if rng.random() < 0.15:
        text = re.sub(r"\*\*|(?<!`)`(?!`)", "", text)
    if rng.random() < 0.1:
        text = re.sub(r"^\s*(?:```|~~~).*\n", "", text, flags=re.MULTILINE)
    if rng.random() < 0.1:
        text = re.sub(r"\n{2,}", "\n", text)
    new = parse_tagged(page.name, text)
    new.lang, new.projects, new.errors = page.lang, page.projects, page.errors
    return new


def _unlabelled(tag: str, text: str) -> str:
    """The passage without the label that opens it."""
    head, line, rest = re.match(r"(\s*(?:[-*+]\s+)?)([^\n]*)([\s\S]*)", text).groups()  # type: ignore[union-attr]
    label = read_label(line) if tag in _FIELDS else None
    if not label or not label.rest or label.role not in _FIELDS or label.rest.count("**") % 2:
        return text
    return f"{head}{label.rest}{rest}"


def _with_titles(spans: list[tuple[str, int | None, str]], form: str, *, zh: bool) -> list[tuple[str, int | None, str]]:
    """All headings that are written like a title in another form, and the labels so that they stand below them."""
    titles = [_HEADING.match(text.split("\n", 1)[0]) for tag, _, text in spans if tag == "title"]
    marks = {found[1] for found in titles if found}  # None for bold ones
    changed, number = [], 0
    for tag, n, text in spans:
        line, newline, rest = text.partition("\n")
        found = _HEADING.match(line)
        if found and found[1] in marks and tag in ("title", "question", "other"):
            number += 1
            words = _ORDINAL.sub("", found[2] or found[3])
            line = {
                "bold": f"**{words}**", "numbered": f"## {number}. {words}", "line": words,
                "question": f"{'问：' if zh else 'Q: '}{words}",
            }.get(form, f"{form} {words}")  # fmt: skip
            text = line + newline + rest
        elif found and tag == "label":
            words = found[2] or found[3]
            text = (f"{form}# {words}" if form[0] == "#" and found[1] else f"**{words}**") + newline + rest
        changed.append((tag, n, text))
    return changed
