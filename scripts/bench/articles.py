"""Writes a folder of made-up articles, as large as one likes, and questions whose answers are known.

    python scripts/bench/articles.py FOLDER --records 100000 [--questions 500]

A record has the title, the error lines and half of the sentences of a shipped record, its other sentences come from
others of that language. A third of the words are exchanged: for words drawn as often as the shipped articles use them,
and one in five for a made-up name, of which few are frequent and most occur once (Zipf). Numbers and paths are others
each time. So lengths and posting lists are those of real text, and new words keep coming as a base grows; but no
record tells of a real failure, and its sentences do not belong together.

Ten records to an article, every second article Chinese, every title another one. An article depends on nothing but its
number and the seed: the first ones of a large folder are a small folder. FOLDER/articles holds the articles,
FOLDER/questions.jsonl the questions, in the form that `kb eval` reads. Half of them are error lines as another
machine would print them, with other numbers and paths and some words lost; half are a description, title and symptom
with every third word lost or exchanged.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import jieba
import numpy as np

from kb.articles.folder import read_articles
from kb.articles.source import slug_of
from kb.records import IssueRecord
from kb.scraped import parse

jieba.setLogLevel("WARNING")

SHIPPED = Path(__file__).parent.parent.parent / "articles"
ISSUES = 10  # to an article
FOLDER = 1000  # articles to a folder
LABELS = {"en": ("Symptom", "Cause", "Fix"), "zh": ("现象", "原因", "解决方案")}

EXCHANGED, NAMED = 0.3, 0.2  # the share of words that are exchanged; of those, the share that become made-up names
VARIANTS = 4  # of a sentence: which of its words are exchanged
DRAWN, POOL = 256, 1 << 18  # words, names or numbers that are drawn at once; from so many words
TAIL, FLAT = 0.35, 50  # of the names (Zipf-Mandelbrot): the k-th is drawn in proportion to (FLAT + k) ** -(1 + TAIL)

_TOKEN = re.compile(r"[A-Za-z][A-Za-z_]{2,}|\d{2,}|[\u4e00-\u9fff]+")
_FENCE = re.compile(r"^ *(```|~~~)[^\n]*\n(.*?)^ *\1 *$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[`?([^\]`]*)`?\]\([^)]*\)")
_BASIS = re.compile(r" ?\*[(（][^*]*[)）]\*")
_END = re.compile(r"(?<=[.!?:;])\s+|(?<=[。！？：；])")
_ITEM = re.compile(r"^ *(?:\d+[.)]|[-*])? *")
_SYLLABLES = [a + b for a in "b d f g h k l m n p r s t v z ch".split() for b in "a e i o u".split()]


@dataclass(frozen=True)
class Text:
    """A sentence or some lines with places that are filled anew each time."""

    form: str
    """with a `%s` for each place"""
    kinds: list[str]
    """from which stream of `Draws` the places are filled: word, han, name or number"""


@dataclass(frozen=True)
class Model:
    """What is taken from a shipped record: each part in several variants."""

    project: str
    title: list[Text]
    errors: list[list[Text]]
    symptom: list[list[Text]]
    cause: list[list[Text]]
    fix: list[list[Text]]
    commands: list[list[Text]]


@dataclass(frozen=True)
class Made:
    """A made-up record."""

    title: str
    symptom: list[str]
    errors: list[str]
    cause: list[str]
    fix: list[str]
    commands: list[str]


class Shipped:
    """The shipped articles of one language as models, and how often they use each word."""

    def __init__(self, lang: str) -> None:
        self._rng = np.random.default_rng(1)
        records = [
            record
            for path, data in read_articles(SHIPPED / lang)
            if isinstance(data, bytes)
            for record in parse(data, path=f"{lang}/{path}").records
        ]
        self._counts = {"word": Counter[str](), "han": Counter[str]()}
        for record in records:
            for kind, token, _ in self._tokens("\n".join((record.title, record.symptom, record.cause, record.fix))):
                if kind in self._counts:
                    self._counts[kind][token] += 1
        self.words = {kind: Words(counts) for kind, counts in self._counts.items()}
        self.models = [self._model(record) for record in records]
        self.of_project: dict[str, list[Model]] = {}
        for model in self.models:
            self.of_project.setdefault(model.project, []).append(model)

    def _model(self, record: IssueRecord) -> Model:
        symptom, cause, (fix, commands) = _prose(record.symptom)[0], _prose(record.cause)[0], _prose(record.fix)
        return Model(
            record.project or "PyTorch",
            self._variants(record.title),
            [self._variants(line[:300]) for line in record.errors[:6]] or [self._variants(record.title)],
            [self._variants(one) for one in symptom or [record.title]],
            [self._variants(one) for one in cause or [record.title]],
            [self._variants(one) for one in fix or [record.title]],
            [self._variants(one) for one in commands],
        )

    def _variants(self, text: str) -> list[Text]:
        tokens = list(self._tokens(text))
        return [self._variant(text, tokens) for _ in range(VARIANTS)]

    def _variant(self, text: str, tokens: list[tuple[str, str, int]]) -> Text:
        form, kinds, done = "", [], 0
        for kind, token, at in tokens:
            if kind != "number":
                if self._rng.random() >= EXCHANGED:
                    continue
                if self._rng.random() < NAMED:
                    kind = "name"
            kinds.append(kind)
            form += text[done:at].replace("%", "%%") + "%s"
            done = at + len(token)
        return Text(form + text[done:].replace("%", "%%"), kinds)

    @staticmethod
    def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
        """Kind, token and place of what may be exchanged. Of Chinese: words of two characters and more."""
        for found in _TOKEN.finditer(text):
            token, at = found[0], found.start()
            if token[0].isdigit():
                yield "number", token, at
            elif token.isascii():
                yield "word", token, at
            else:
                for word in jieba.cut(token):
                    if len(word) > 1:
                        yield "han", word, at
                    at += len(word)


class Words:
    """Words to be drawn as often as they were counted."""

    def __init__(self, counts: Counter[str]) -> None:
        rng, words = np.random.default_rng(2), sorted(counts)
        shares = np.array([counts[word] for word in words]) / counts.total()
        self._drawn: list[str] = np.array(words, dtype=object)[rng.choice(len(words), POOL, p=shares)].tolist()

    def draw(self, rng: np.random.Generator) -> list[str]:
        """The next `DRAWN` words from some place of a long row that was drawn once: that takes no time."""
        at = int(rng.integers(POOL - DRAWN))
        return self._drawn[at : at + DRAWN]


def _prose(text: str) -> tuple[list[str], list[str]]:
    """The sentences of a field outside of its tables, and the commands in its fences."""
    commands = [one[1].rstrip("\n") for one in _FENCE.findall(text)]
    commands = ["\n".join(line.strip() for line in one.split("\n")[:6]) for one in commands if one.strip()]
    plain = _BASIS.sub("", _LINK.sub(r"\1", _FENCE.sub("", text)))
    lines = [_ITEM.sub("", line) for line in plain.split("\n") if not line.lstrip().startswith(("|", "#", ">"))]
    said = [one.strip() for line in lines for one in _END.split(line)]
    return [one for one in said if len(one) > 5 and one.count("`") % 2 == 0 and "**" not in one], commands


@lru_cache(maxsize=1 << 17)
def name(number: int) -> str:
    """The made-up name with this number, from 0: each has another."""
    number, style = divmod(number, 3)
    syllables: list[str] = []
    number += len(_SYLLABLES)  # two at least
    while number:
        number, at = divmod(number, len(_SYLLABLES))
        syllables.append(_SYLLABLES[at])
    words = ["".join(syllables[at : at + 2]) for at in range(0, len(syllables), 2)]
    if style == 0:
        return "_".join(words) + "_fn"
    return "".join(word.capitalize() for word in words) + ("Error" if style == 1 else "")


class Draws:
    """Endless streams for one article: what fills the places of its texts, and which models and variants are taken."""

    def __init__(self, seed: list[int], words: dict[str, Words]) -> None:
        self._rng = np.random.default_rng(seed)
        drawn = {kind: self._words(one) for kind, one in words.items()}
        drawn |= {"name": self._names(), "number": self._numbers()}
        self._streams = {kind: chain.from_iterable(one) for kind, one in drawn.items()}
        self._shares = chain.from_iterable(self._floats())

    def _words(self, words: Words) -> Iterator[list[str]]:
        while True:
            yield words.draw(self._rng)

    def _names(self) -> Iterator[list[str]]:
        while True:
            ranks = np.minimum(FLAT * self._rng.pareto(TAIL, DRAWN // 4), 1 << 40)
            yield [name(rank) for rank in ranks.astype(np.int64).tolist()]

    def _numbers(self) -> Iterator[list[str]]:
        while True:
            digits = self._rng.integers(2, 6, DRAWN)
            yield [str(one) for one in self._rng.integers(10 ** (digits - 1), 10**digits).tolist()]

    def _floats(self) -> Iterator[list[float]]:
        while True:
            yield self._rng.random(DRAWN).tolist()

    def share(self) -> float:
        """Evenly from [0, 1)."""
        return next(self._shares)

    def one(self, of: list[Any]) -> Any:
        return of[int(next(self._shares) * len(of))]

    def next(self, kind: str) -> str:
        return next(self._streams[kind])

    def fill(self, variants: list[Text]) -> str:
        text = variants[int(next(self._shares) * VARIANTS)]
        return text.form % tuple(map(next, map(self._streams.__getitem__, text.kinds)))


class Articles:
    """The made-up articles of one seed, by number, from 0."""

    def __init__(self, seed: int = 7) -> None:
        self.seed = seed
        self.shipped = {lang: Shipped(lang) for lang in LABELS}

    @staticmethod
    def lang(number: int) -> str:
        return "zh" if number % 2 else "en"

    @classmethod
    def path(cls, number: int) -> str:
        return f"{cls.lang(number)}/{number // FOLDER:04}/made-up-{number:07}.md"

    def draws(self, number: int, question: int = 0) -> Draws:
        words = self.shipped[self.lang(number)].words
        # English articles use no Chinese words; what stands there all the same is not exchanged for nothing.
        return Draws(
            [self.seed, number, question], words if self.lang(number) == "zh" else {**words, "han": words["word"]}
        )

    def article(self, number: int, issues: int = ISSUES) -> tuple[str, list[Made]]:
        """The project of the article, and its records."""
        draws, shipped = self.draws(number), self.shipped[self.lang(number)]
        project = draws.one(shipped.models).project
        return project, [self._record(draws, shipped, project, number * ISSUES + at) for at in range(issues)]

    @staticmethod
    def _record(draws: Draws, shipped: Shipped, project: str, record: int) -> Made:
        model = draws.one(shipped.of_project[project])
        fill, one, share, models = draws.fill, draws.one, draws.share, shipped.models

        def said(part: str) -> list[str]:
            own = getattr(model, part)
            return [fill(texts if share() < 0.5 else one(getattr(one(models), part))) for texts in own]

        commands = [fill(texts) for texts in model.commands]
        errors = [fill(texts) for texts in model.errors]
        errors[0] += f" in {draws.next('name')}"  # else some would have no word that others lack
        title = f"{fill(model.title)} ({name(10**6 + record)})"
        return Made(title, said("symptom"), errors, said("cause"), said("fix"), commands)

    def markdown(self, number: int, issues: int = ISSUES) -> str:
        project, records = self.article(number, issues)
        lang = self.lang(number)
        head = (
            f"---\nproject: {json.dumps(project, ensure_ascii=False)}\nupdated: 2026-11-01\n---\n\n# Notes {number}\n"
        )
        return head + "".join(_issue(record, lang) for record in records)

    def questions(self, records: int, count: int) -> Iterator[dict[str, str]]:
        """`count` questions about records spread over the first `records`; half of them error lines."""
        rng = np.random.default_rng([self.seed, records, count])
        chosen = np.sort(rng.choice(records, min(count, records), replace=False)).tolist()
        for at, record in enumerate(chosen):
            number, place = divmod(record, ISSUES)
            made, draws = self.article(number, place + 1)[1][place], self.draws(number, place + 1)
            kind = "error" if at % 2 else "description"
            text = _heard(made.errors, draws) if at % 2 else _told(made, draws)
            issue = f"{slug_of(self.path(number))}#{place + 1}"
            yield {"id": f"q{at}", "issue": issue, "kind": kind, "lang": self.lang(number), "query": text}


def _issue(made: Made, lang: str) -> str:
    symptom, cause, fix = LABELS[lang]
    gap = "" if lang == "zh" else " "
    errors = "\n".join(made.errors)
    steps: list[str] = []
    for at, step in enumerate(made.fix):
        steps.append(f"{at + 1}. {step}\n")
        if at < len(made.commands):
            command = made.commands[at].replace("\n", "\n   ")
            steps.append(f"\n   ```bash\n   {command}\n   ```\n\n")
    return f"""
## {made.title}

### {symptom}

{_stops(made.symptom, gap)}

````
{errors}
````

### {cause}

{_stops(made.cause, gap)}

### {fix}

{"".join(steps)}"""


def _stops(said: list[str], gap: str) -> str:
    stop = "." if gap else "。"
    return gap.join(one if one[-1] in ".!?。！？:：;,，；" else one + stop for one in said)


def _heard(errors: list[str], draws: Draws) -> str:
    """The first error lines as another machine prints them: other numbers and folders, one word in ten lost."""
    heard: list[str] = []
    for line in errors[:3]:
        line = re.sub(r"\d{2,}", lambda _: draws.next("number"), line)
        line = re.sub(r"(?:/[\w.-]+)+/", lambda _: f"/srv/{draws.next('word').lower()}/", line)
        heard.append(" ".join(word for word in line.split(" ") if draws.share() >= 0.1) or line)
    before = f"[rank{int(draws.share() * 8)}]: " if draws.share() < 0.5 else ""
    return "\n".join(before + line for line in heard)


def _told(made: Made, draws: Draws) -> str:
    """Title, without its name in brackets, and symptom as somebody else would tell them: every third word lost or
    exchanged."""
    text = f"{made.title.rpartition(' (')[0]}, {' '.join(made.symptom[:2])}"

    def other(found: re.Match[str]) -> str:
        kept: list[str] = []
        for word in [found[0]] if found[0].isascii() else jieba.cut(found[0]):
            chance = draws.share()
            if chance < 0.13:
                word = draws.next("word" if word.isascii() else "han")
            kept.append("" if chance > 0.8 else word)
        return "".join(kept)

    return " ".join(_TOKEN.sub(other, text).split())


def write(folder: Path, records: int, articles: Articles) -> int:
    """Writes the articles of so many records below `folder`; their bytes."""
    written = 0
    for number in range(-(-records // ISSUES)):
        path = folder / Articles.path(number)
        if number % FOLDER < len(LABELS):
            path.parent.mkdir(parents=True, exist_ok=True)
        text = articles.markdown(number, min(ISSUES, records - number * ISSUES)).encode()
        path.write_bytes(text)
        written += len(text)
    return written


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    if (args.folder / "articles").exists():
        print(f"{args.folder / 'articles'} is there already", file=sys.stderr)
        return 2
    articles = Articles(args.seed)
    size = write(args.folder / "articles", args.records, articles)
    with (args.folder / "questions.jsonl").open("w", encoding="utf-8") as file:
        for question in articles.questions(args.records, args.questions):
            file.write(json.dumps(question, ensure_ascii=False) + "\n")
    print(f"{args.records} records, {size / 1e6:.1f} MB, {args.questions} questions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
