"""Writes a folder of made-up articles, as large as one likes, and questions whose answers are known.

    python scripts/bench/articles.py FOLDER --records 100000 [--questions 500]

A record is put together from sentences of the shipped articles of one language, in which words were exchanged for words
drawn from the same articles as often as they stand there, and for made-up identifiers of which few are frequent and
most occur once. So posting lists are as skewed as in real text; but the records are no real failures, and no two tell
the same fault. Ten issues to an article, half of the articles Chinese. The same number gives the same files.
FOLDER/articles holds the articles, FOLDER/questions.jsonl the questions: an error line or a description of a record, a
third of its words exchanged.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from kb.articles.folder import read_articles
from kb.scraped import parse
from kb.text import sentences

SHIPPED = Path(__file__).parent.parent.parent / "articles"
ISSUES = 10  # to an article
_WORD = re.compile(r"[A-Za-z_]{3,}")
_NUMBER = re.compile(r"\d+")
_CODE = re.compile(r"`|\]\(")
LABELS = {"en": ("Symptom", "Cause", "Fix"), "zh": ("现象", "原因", "解决方案")}


class Source:
    """What the shipped articles of one language are made of."""

    def __init__(self, lang: str) -> None:
        texts: dict[str, list[str]] = {"title": [], "symptom": [], "cause": [], "fix": [], "error": []}
        counts: Counter[str] = Counter()
        self.projects: list[str] = []
        for path, data in read_articles(SHIPPED / lang):
            if not isinstance(data, bytes):
                continue
            for record in parse(data, path=f"{lang}/{path}").records:
                self.projects.append(record.project or "PyTorch")
                texts["title"].append(record.title)
                texts["error"] += [line[:200] for line in record.errors[:3]]
                for part in ("symptom", "cause", "fix"):
                    said = getattr(record, part)
                    counts.update(_WORD.findall(said))
                    found = (_NUMBER.sub("7", one) for one in sentences(said, 20) if not _CODE.search(one))
                    texts[part] += [one for one in found if 20 < len(one) < 240]
        self.words, weights = map(list, zip(*sorted(counts.items()), strict=True))
        self.cumulative = [sum(weights[: i + 1]) for i in range(0)] or _running(weights)
        self.pieces = {part: [_split(one) for one in said] for part, said in texts.items()}


def _running(weights: Sequence[int]) -> list[int]:
    total, found = 0, []
    for weight in weights:
        total += weight
        found.append(total)
    return found


def _split(sentence: str) -> tuple[list[str], list[int]]:
    """The sentence in pieces, and which of them are words."""
    parts: list[str] = []
    at = 0
    for found in _WORD.finditer(sentence):
        parts += [sentence[at : found.start()], found[0]]
        at = found.end()
    parts.append(sentence[at:])
    return parts, list(range(1, len(parts), 2))


class Writer:
    def __init__(self, seed: int, records: int) -> None:
        self.rng = random.Random(seed)
        self.identifiers = max(1000, records // 2)
        self.sources = {lang: Source(lang) for lang in LABELS}

    def identifier(self) -> str:
        """Few are frequent, most occur once or twice."""
        number = int(self.identifiers ** self.rng.random())
        return f"{_NAMES[number % len(_NAMES)]}_{number:x}"

    def said(self, source: Source, part: str, exchanged: float = 0.3) -> str:
        rng = self.rng
        pieces, places = rng.choice(source.pieces[part])
        pieces = list(pieces)
        for at in places:
            if rng.random() < exchanged:
                pieces[at] = rng.choices(source.words, cum_weights=source.cumulative)[0]
        if places and rng.random() < 0.3:
            pieces[rng.choice(places)] = self.identifier()
        return "".join(pieces)

    def issue(self, lang: str) -> tuple[str, str, str]:
        """The markdown of one issue, its error line, and a sentence of its symptom."""
        source, rng = self.sources[lang], self.rng
        symptom, cause, fix = LABELS[lang]
        name = self.identifier()
        title = f"{self.said(source, 'title')} ({name})"
        error = f"{self.said(source, 'error')} {name}={rng.randint(1, 99999)}"
        told = self.said(source, "symptom")
        text = f"""## {title}

### {symptom}

{told} {self.said(source, "symptom")}

```
{error}
```

### {cause}

{self.said(source, "cause")} {self.said(source, "cause")} {self.said(source, "cause")}

### {fix}

1. {self.said(source, "fix")} {self.said(source, "fix")}

   ```bash
   export {name.upper()}={rng.randint(0, 9)}
   ```

2. {self.said(source, "fix")}
"""
        return text, error, told

    def article(self, number: int, lang: str, issues: int) -> tuple[str, list[tuple[str, str, str]]]:
        """The markdown, and of each issue its name, error line and description."""
        slug = f"made-up-{number:07d}"
        project = self.rng.choice(self.sources[lang].projects)
        made = [self.issue(lang) for _ in range(issues)]
        head = f"---\nproject: {json.dumps(project)}\ntags: [{self.identifier()}]\n---\n\n# {slug}\n\n"
        body = "\n".join(text for text, _, _ in made)
        return head + body, [(f"{slug}#{n}", error, told) for n, (_, error, told) in enumerate(made, 1)]


_NAMES = ("shard", "frob", "lane", "mux", "tile", "gate", "spool", "weave", "crank", "latch", "prism", "relay")


def write(folder: Path, records: int, seed: int = 7) -> Iterator[tuple[str, str, str, str]]:
    """Writes the articles; gives each issue's name, language, error line and description."""
    writer = Writer(seed, records)
    for number in range(-(-records // ISSUES)):
        lang = "zh" if number % 2 else "en"
        text, issues = writer.article(number, lang, min(ISSUES, records - number * ISSUES))
        path = folder / "articles" / lang / f"{number // 1000:04d}" / f"made-up-{number:07d}.md"
        if number % 1000 < 2:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        for name, error, told in issues:
            yield f"{number // 1000:04d}-{name}", lang, error, told


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
    rng = random.Random(args.seed + 1)
    chosen: list[tuple[str, str, str, str]] = []
    done = 0
    for done, one in enumerate(write(args.folder, args.records, args.seed), 1):
        if len(chosen) < args.questions:
            chosen.append(one)
        elif (at := rng.randrange(done)) < args.questions:
            chosen[at] = one
    sources = {lang: Source(lang) for lang in LABELS}
    with (args.folder / "questions.jsonl").open("w", encoding="utf-8") as file:
        for n, (name, lang, error, told) in enumerate(chosen):
            text = error if n % 2 else told
            words = text.split(" ")
            for at in range(len(words)):
                if rng.random() < 0.3 and "=" not in words[at]:
                    words[at] = rng.choice(sources[lang].words)
            kind = "error" if n % 2 else "description"
            file.write(json.dumps({"query": " ".join(words), "issue": name, "kind": kind}, ensure_ascii=False) + "\n")
    print(f"{done} records in {-(-done // ISSUES)} articles, {len(chosen)} questions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
