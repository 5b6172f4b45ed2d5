"""Tagged pages without end: problems, questions and asides, put together in layouts drawn at random.

The material is this project's articles and the tagged pages beside this script; a layout says how a page writes its
titles, its labels and its paragraphs. Labels are right by construction: every passage is written down with its tag.
"""

from __future__ import annotations

import random
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pages import Page, parse_tagged

from kb.records import IssueRecord
from kb.scraped.labels import WORDS
from kb.text.steps import BASES

TITLES = (
    "heading", "numbered heading", "bold line", "question mark", "bold bullet", "bullet heading", "setext", "bare line",
    "numbered line", "wiki", "details", "table",
)  # fmt: skip
_WRITTEN = {
    "heading": " {}", "table": " {}", "bold line": "**{}**", "bold bullet": "- **{}**", "bullet heading": "- ### {}",
    "wiki": "== {} ==", "details": "<details>\n<summary>{}</summary>\n",
}  # fmt: skip
BODIES = ("prose", "one paragraph", "headings", "bold lines", "bold inline", "inline", "bullets", "bare lines")
_STEP_MARK = re.compile(rf"\s?\*?[（(](?:{'|'.join(BASES)})[）)]\*?")
_FENCE = re.compile(r"^\s*(?:```|~~~)")


@dataclass
class Entry:
    """A problem ("issue"), a plain question, or an aside ("other") of one language."""

    kind: str
    lang: str
    title: str
    parts: list[tuple[str, str]] = field(default_factory=list)
    """(tag, markdown)"""


@dataclass
class Material:
    issues: dict[str, list[Entry]]
    questions: dict[str, list[Entry]]
    asides: dict[str, list[Entry]]
    intros: dict[str, list[str]]
    tops: dict[str, list[str]]
    bottoms: dict[str, list[str]]
    names: dict[str, list[str]]


def from_record(record: IssueRecord, rng: random.Random) -> Entry:
    """A problem as an article tells it, shortened as real pages are."""
    errors = [error for error in record.errors if 12 <= len(error) <= 120]
    titles = [record.title, *record.aliases[:4], *errors[:2]]
    parts = []
    for tag in ("symptom", "cause", "fix"):
        text = _STEP_MARK.sub("", getattr(record, tag))
        chunks = _chunks(text)
        chunks = chunks[: rng.choice((1, 2, 3, 8) if tag == "fix" else (1, 1, 2, 4))]
        if chunks:
            parts.append((tag, "\n\n".join(chunks)))
    return Entry("issue", record.lang, rng.choice(titles).strip(), parts)


def _chunks(text: str) -> list[str]:
    """Paragraphs, list items and whole fences."""
    chunks: list[list[str]] = [[]]
    fenced = False
    for line in text.split("\n"):
        if _FENCE.match(line):
            if not fenced and not line.startswith(" "):
                chunks.append([])
            fenced = not fenced
            chunks[-1].append(line)
            if not fenced and not line.startswith(" "):
                chunks.append([])
        elif fenced:
            chunks[-1].append(line)
        elif not line.strip():
            chunks.append([])
        else:
            if re.match(r"(?:[-*]|\d{1,2}[.、])\s", line) and chunks[-1]:
                chunks.append([])
            chunks[-1].append(line)
    return ["\n".join(chunk) for chunk in chunks if any(line.strip() for line in chunk)]


def from_page(page: Page) -> Iterator[Entry]:
    """The entries of a tagged page, and its asides below a heading."""
    spans = [
        (tag, page.text[at : page.marks[n + 1][0] if n + 1 < len(page.marks) else len(page.text)].strip("\n"))
        for n, (at, tag, _) in enumerate(page.marks)
    ]
    entry: Entry | None = None
    for tag, text in spans:
        if tag in ("title", "question") or (tag == "other" and text.lstrip().startswith("#")):
            if entry and entry.parts:
                yield entry
            first, _, rest = text.partition("\n")
            title = re.sub(r"^[\s>#*\-•]*|[*#\s]*$", "", first)
            title = re.sub(r"^(?:Q\d*|问|\d{1,2})\s?[:：.、]\s?", "", title)
            kind = {"title": "issue", "question": "question"}.get(tag, "other")
            entry = Entry(kind, page.lang, title)
            if rest.strip():
                entry.parts.append(({"title": "symptom", "question": "answer"}.get(tag, "other"), rest.strip("\n")))
        elif entry and tag in ("symptom", "cause", "fix", "answer", "other") and text.strip():
            if "|" in text and text.strip().startswith("|"):
                continue
            entry.parts.append((tag, re.sub(r"^(?:A|答)\s?[:：]\s?", "", text)))
    if entry and entry.parts:
        yield entry


def gather(records: Sequence[IssueRecord], pages: Sequence[Page], rng: random.Random) -> Material:
    langs = ("en", "zh")
    material = Material(*({lang: [] for lang in langs} for _ in range(7)))  # type: ignore[arg-type]
    for record in records:
        material.issues[record.lang].append(from_record(record, rng))
        if record.project:
            material.names[record.lang].append(record.project)
    for page in pages:
        if page.lang not in langs:
            continue
        material.names[page.lang] += page.projects[:1]
        for entry in from_page(page):
            {"issue": material.issues, "question": material.questions, "other": material.asides}[entry.kind][
                page.lang
            ].append(entry)
        first = page.marks[0] if page.marks else None
        if first and first[1] == "boilerplate" and len(page.marks) > 1:
            material.tops[page.lang].append(page.text[: page.marks[1][0]].strip("\n"))
        if page.marks and page.marks[-1][1] == "boilerplate":
            material.bottoms[page.lang].append(page.text[page.marks[-1][0] :].strip("\n"))
        material.intros[page.lang] += [
            page.text[at : page.marks[n + 1][0]].strip("\n")
            for n, (at, tag, _) in enumerate(page.marks[:-1])
            if tag == "other" and n < 3 and not page.text[at:].lstrip().startswith("#")
        ]
    return material


# --- one page -------------------------------------------------------------------------------------------------------

_PAGE_TITLES = {
    "zh": (
        "{}常见问题", "{} FAQ", "{} 故障排查", "常见问题", "{}使用中遇到的问题汇总", "{} 踩坑记录",
        "{}报错汇总及解决办法",
        "{}问题排查指南", "{} 已知问题", "{} 使用指南", "{} 入门", "{}部署手册",
    ),
    "en": (
        "{} FAQ", "Troubleshooting {}", "Frequently asked questions", "Common problems with {}", "{}: known issues",
        "Troubleshooting", "Common errors and how to solve them", "{} guide", "Getting started with {}", "Using {}",
    ),
}  # fmt: skip


def draw_page(material: Material, rng: random.Random, number: int) -> Page:
    """A page in a layout drawn at random; its name holds the layout."""
    lang = rng.choice(("en", "zh"))
    title_form, body_form = rng.choice(TITLES), rng.choice(BODIES)
    if title_form in ("bare line", "numbered line") and body_form == "headings":
        body_form = "bare lines"
    bare = title_form in ("bare line", "numbered line", "question mark") and rng.random() < 0.6
    single = title_form in ("heading", "setext", "bare line") and rng.random() < 0.25
    share = rng.choice((0, 0.2, 0.5, 0.8, 1, 1, 1))
    count = 1 if single else rng.randint(2, 8)
    name = rng.choice(material.names[lang] or ["X"])
    out: list[str] = [f"⟦lang: {lang}⟧"]
    if rng.random() < 0.3 and material.tops[lang]:
        out.append("⟦boilerplate⟧" + rng.choice(material.tops[lang]))
    if not single:
        heading = rng.choice(_PAGE_TITLES[lang]).format(name)
        out.append("⟦other⟧" + (heading if bare else f"# {heading}"))
        if rng.random() < 0.4 and material.intros[lang]:
            out.append("⟦other⟧" + rng.choice(material.intros[lang]))
    writer = _Writer(lang, title_form, body_form, rng, bare=bare, single=single)
    if title_form == "table":
        out.append(writer.table([rng.choice(material.issues[lang]) for _ in range(count)]))
    else:
        for n in range(count):
            issue = single or rng.random() < share
            if issue or not (material.questions[lang] or material.asides[lang]):
                out.append(writer.issue(rng.choice(material.issues[lang]), n + 1))
            elif material.questions[lang] and rng.random() < 0.6:
                out.append(writer.question(rng.choice(material.questions[lang]), n + 1))
            elif material.asides[lang]:
                out.append(writer.aside(rng.choice(material.asides[lang]), n + 1))
    if rng.random() < 0.3 and material.asides[lang] and title_form != "table":
        out.append(writer.aside(rng.choice(material.asides[lang]), count + 1))
    if rng.random() < 0.25 and material.bottoms[lang]:
        out.append("⟦boilerplate⟧" + rng.choice(material.bottoms[lang]))
    text = ("\n" if bare and rng.random() < 0.5 else "\n\n").join(out)
    return parse_tagged(f"{number:05}-{title_form}--{body_form}", text + "\n")


class _Writer:
    def __init__(self, lang: str, titles: str, bodies: str, rng: random.Random, *, bare: bool, single: bool) -> None:
        self.lang, self.titles, self.bodies, self.rng, self.bare = lang, titles, bodies, rng, bare
        self.level = 1 if single else rng.choice((2, 2, 3, 4))
        self.drop = rng.choice((0.0, 0.3, 0.7))
        self.fix_first = rng.random() < 0.12
        self.wrap = rng.choice((0, 0, 72, 80, 100)) if lang == "en" else 0
        self.words = {tag: [self._word(tag) for _ in range(2)] for tag in ("symptom", "cause", "fix")}

    def _word(self, tag: str) -> str:
        rng = self.rng
        if self.lang == "zh":
            return rng.choice(WORDS["labels"]["zh"][tag])
        phrase = rng.choice(WORDS["labels"]["en"][tag])
        return phrase.capitalize() if rng.random() < 0.7 else phrase.title()

    def _label(self, tag: str) -> str:
        return self.words[tag][0] if self.rng.random() < 0.9 else self.words[tag][1]

    def _title(self, tag: str, text: str, n: int) -> str:
        text = text.replace("\n", " ")
        zh, form = self.lang == "zh", self.titles
        if form == "numbered heading":
            written = f"{'#' * self.level} {n}{self.rng.choice(('. ', '、', ' ', '.'))}{text}"
        elif form == "question mark":
            written = (("问：", "Q：", f"Q{n}：", "Q:")[n % 4] if zh else ("Q: ", f"Q{n}: ", "**Q:** ")[n % 3]) + text
        elif form == "setext":
            written = f"{text}\n{'-' * max(3, len(text) + (len(text) if zh else 0))}"
        elif form == "numbered line":
            written = f"{n}{'、' if zh else '. '}{text}"
        else:
            written = _WRITTEN.get(form, "{}").replace("{}", text)
            written = "#" * self.level + written if form in ("heading", "table") else written
        return f"⟦{tag}⟧{written}"

    def issue(self, entry: Entry, n: int) -> str:
        rng = self.rng
        parts = [part for part in entry.parts if part[0] in ("symptom", "cause", "fix", "other")]
        if self.bodies not in ("prose", "one paragraph"):
            merged: dict[str, list[str]] = {}
            for tag, text in parts:
                merged.setdefault(tag, []).append(text)
            parts = [(tag, "\n\n".join(texts)) for tag, texts in merged.items() if tag != "other"]
        elif rng.random() < self.drop:
            gone = rng.choice(("symptom", "cause"))
            parts = [part for part in parts if part[0] != gone]
        if self.fix_first:
            parts.sort(key=lambda part: part[0] != "fix")
        if not any(tag in ("cause", "fix") for tag, _ in parts):
            parts = [part for part in entry.parts if part[0] in ("symptom", "cause", "fix")]
        blocks = [self._title("title", entry.title, n)]
        answer = self.titles == "question mark" and rng.random() < 0.8
        if self.bodies == "one paragraph":
            blocks.append(self._one(parts, answer=answer))
        else:
            for k, (tag, text) in enumerate(parts):
                blocks.append(self._part(tag, text, answer=answer and k == 0))
        if self.titles == "details":
            blocks.append("</details>")
        nested = self.titles in ("bold bullet", "bullet heading") or (self.titles == "numbered line" and not self.bare)
        gap = "\n" if self.bare else "\n\n"
        if nested:
            return blocks[0] + gap + textwrap.indent(gap.join(blocks[1:]), "  ")
        return gap.join(blocks)

    def _one(self, parts: Sequence[tuple[str, str]], *, answer: bool) -> str:
        pieces, rest = [], []
        for tag, text in parts:
            chunks = _chunks(text)
            prose = [" ".join(chunk.split()) for chunk in chunks if not _FENCE.match(chunk)]
            prose = [re.sub(r"^(?:[-*]|\d{1,2}[.、])\s", "", chunk) for chunk in prose][:3]
            glue = "" if self.lang == "zh" else " "
            if prose:
                pieces.append(
                    f"⟦{tag}⟧"
                    + glue.join(
                        chunk if chunk[-1:] in ".。!?！？:：" else chunk + ("。" if self.lang == "zh" else ".")
                        for chunk in prose
                    )
                )
            rest += [f"⟦{tag}⟧{chunk}" for chunk in chunks if _FENCE.match(chunk)][:1]
        head = ("答：" if self.lang == "zh" else "A: ") if answer else ""
        line = ("" if self.lang == "zh" else " ").join(pieces)
        if head and line.startswith("⟦"):
            line = line.replace("⟧", "⟧" + head, 1)
        return "\n\n".join([self._wrapped(line), *rest])

    def _wrapped(self, text: str) -> str:
        if not self.wrap or "`" * 3 in text or "|" in text:
            return text
        return "\n".join(
            textwrap.fill(line, self.wrap, break_long_words=False, break_on_hyphens=False)
            if not line.startswith((" ", "-", "#"))
            else line
            for line in text.split("\n")
        )

    def _part(self, tag: str, text: str, *, answer: bool) -> str:
        form = self.bodies
        if tag == "other" or form == "prose":
            head = (
                ("答：" if self.lang == "zh" else "A: ")
                if answer and not text.startswith(("-", "`", "1", "#", "|", ">"))
                else ""
            )
            return f"⟦{tag}⟧{head}{self._wrapped(text)}"
        label = self._label(tag)
        colon = "：" if self.lang == "zh" else ":"
        inline = not text.startswith(("-", "`", "1", "*", "|", ">", "#"))
        if form == "headings":
            return f"⟦label⟧{'#' * (self.level + 1)} {label}\n\n⟦{tag}⟧{self._wrapped(text)}"
        if form == "bold lines" or (form == "bold inline" and not inline):
            return f"⟦label⟧**{label}{colon if self.rng.random() < 0.5 else ''}**\n\n⟦{tag}⟧{self._wrapped(text)}"
        if form == "bold inline":
            return f"⟦{tag}⟧**{label}{colon}** {text}"
        if form == "inline" and inline:
            return f"⟦{tag}⟧{label}{colon}{'' if self.lang == 'zh' else ' '}{text}"
        if form == "bullets" and inline:
            return f"⟦{tag}⟧- {label}{colon}{text}"
        return f"⟦label⟧{label}{colon if self.rng.random() < 0.6 else ''}\n\n⟦{tag}⟧{text}"

    def question(self, entry: Entry, n: int) -> str:
        parts = [f"⟦answer⟧{self._wrapped(text)}" for tag, text in entry.parts if tag in ("answer", "other")]
        if self.titles == "question mark" and parts:
            parts[0] = parts[0].replace("⟧", "⟧" + ("答：" if self.lang == "zh" else "A: "), 1)
        return "\n\n".join([self._title("question", entry.title, n), *parts])

    def aside(self, entry: Entry, n: int) -> str:
        return "\n\n".join([self._title("other", entry.title, n), *(f"⟦other⟧{text}" for _, text in entry.parts)])

    def table(self, entries: Sequence[Entry]) -> str:
        """`error | cause | fix`, or without the column in the middle."""
        with_cause = self.rng.random() < 0.7
        columns = ["symptom", *(["cause"] if with_cause else []), "fix"]
        rows = ["⟦label⟧| " + " | ".join(self._label(tag) for tag in columns) + " |\n|" + "---|" * len(columns)]
        for entry in entries:
            cells = [f"⟦title⟧| {_cell(entry.title)} "]
            for tag in columns[1:]:
                text = next((text for t, text in entry.parts if t == tag), "")
                cells.append(f"⟦{tag}⟧| {_cell(_first(text))} ")
            rows.append("".join(cells) + "|")
        return "\n".join(rows)


def _first(text: str) -> str:
    chunk = next((chunk for chunk in _chunks(text) if not _FENCE.match(chunk)), "")
    return re.sub(r"^(?:[-*]|\d{1,2}[.、])\s", "", " ".join(chunk.split()))[:240]


def _cell(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ").strip()
