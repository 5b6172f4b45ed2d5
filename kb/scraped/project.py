"""Guesses the project of a page that does not state one: names that the page writes, ranked by where they stand.

Every name in the title, the tags, the path or the text is a candidate, with a few features (opens the title, is named
by the file, how often the page writes it, ...). `scripts/reader/train.py` fits their weights.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath

import numpy as np

from kb.arrays import Array
from kb.encoders import surprisal
from kb.scraped.labels import PRODUCT_OF
from kb.scraped.tagger import open_tagger
from kb.text import HAN

__all__ = ["BUCKETS", "FEATURES", "bucket", "candidates", "guess_project", "name_key"]

_WORD = r"[A-Za-z][A-Za-z0-9_+]*(?:[.\-][A-Za-z0-9_+]+)*"
_NAMES = re.compile(rf"(?<![\w/.@$-]){_WORD}(?: (?:[A-Z][A-Za-z0-9_+.\-]*\w|\d{{1,2}}(?![\w.]))){{0,2}}(?![\w/@(=]|\.\w)", re.ASCII)
_PLACE = re.compile(r"(?:github\.com/|gitee\.com/|(?:^|[\s·]))[\w.-]{2,40}/([A-Za-z][\w.-]{1,60}?)(?:\s{0,3}(?:[·»›>|#]|$)| (?:issue|pull)|[/)\s])")
_STATED = re.compile(r"^\W{0,6}(?:Applies to|Products?|Software|Project|产品(?:名称)?|适用(?:产品|软件|于)|项目(?:名称)?)\W{0,4}[:：]\W{0,4}(.{2,40})$")
_PROJECT = re.compile(rf"^\s?(?:项目|[Pp]roject\b)(?!优选|推荐)|^\s?[{HAN}]{{0,2}}框架")
_BEFORE = re.compile(r"(?:\b(?:in|with|for|on|of|using|to|from|about|troubleshooting|debugging|fixing)(?: the)?|[在用跑于装])\s?$", re.IGNORECASE)
FEATURES = (
    "bias", "in title", "opens title", "ends title", "title: after in/with/在", "X项目", "tag", "file", "folder", "stated", "place",
    "known", "first lines", "headings", "often", "most often", "once", "shape", "two words", "rare", "lower", "long",
)  # fmt: skip
_MOST = 60
BUCKETS = 1 << 13


def guess_project(title: str, texts: Sequence[str], tags: Sequence[str], path: str) -> str | None:
    """The name that ranks first, or None when no name does better than none at all. `texts`: of the page, headings with
    their `#`."""
    names, rows = candidates(title, texts, tags, path)
    if not names:
        return None
    arrays = open_tagger().arrays
    ordinary = np.log1p(arrays["ordinary"][[bucket(name) for name in names]])
    scores = rows @ arrays["project"][:-1] + ordinary * arrays["project"][-1]
    best = int(scores.argmax())
    return names[best] if scores[best] > 0 else None


def candidates(title: str, texts: Sequence[str], tags: Sequence[str], path: str) -> tuple[list[str], Array]:
    """The names of a page, and (names, len(FEATURES)) what is known of each."""
    title = unicodedata.normalize("NFKC", title)[:300]
    texts = [text[:600] for text in texts[:400]]
    head, rest = "\n".join(texts[:6]), "\n".join(texts)
    slug = PurePosixPath(path)
    stem, folder = name_key(slug.name.split(".")[0]), name_key(slug.parent.name)
    counts: Counter[str] = Counter()
    written: dict[str, Counter[str]] = {}
    for text, worth in ((title, 3), (rest, 1)):
        for found in _NAMES.finditer(text):
            words = found[0].split(" ")
            for name in {" ".join(words[:n]) for n in range(1, len(words) + 1 if words[0][0].isupper() else 2)}:
                counts[name_key(name)] += 1
                written.setdefault(name_key(name), Counter())[name] += worth
    for name in [*tags, *_PLACE.findall(rest[:20_000]), *(hit[1] for text in texts[:30] if (hit := _STATED.match(text)))]:
        if name.isascii() and name_key(name):
            written.setdefault(name_key(name), Counter())[name.strip()] += 5
    keys = sorted(written, key=lambda key: (-counts[key] - 9 * (key in name_key(title) or key in stem), key))[:_MOST]
    most = max(counts.values(), default=1)
    tagged = {name_key(tag) for tag in tags}
    placed = {name_key(name) for name in _PLACE.findall(rest[:20_000])}
    stated = {name_key(hit[1]) for text in texts[:30] if (hit := _STATED.match(text))}
    headings = name_key(" / ".join(text for text in texts if text.startswith("#")))
    names, rows = [], []
    for key, rare in zip(keys, surprisal(keys), strict=True):
        name = max(written[key], key=lambda one: (written[key][one], one))
        at = title.find(name)
        after = title[at + len(name) :] if at >= 0 else ""
        shaped = any(char.isupper() for char in name[1:]) or any(char in "-_.0123456789" for char in name)
        names.append(PRODUCT_OF.get(name.casefold(), name) if name.islower() else name)
        rows.append([
            1, at >= 0, bool(at >= 0 and not re.search(r"\w", title[:at])), bool(at >= 0 and not re.search(r"\w", after)),
            bool(at >= 0 and _BEFORE.search(title[:at])), bool(_PROJECT.match(after) or re.search(re.escape(name) + r"\s?项目(?!优选|推荐)", head)),
            key in tagged, bool(len(key) > 2 and key in stem), bool(len(key) > 2 and key in folder), key in stated, key in placed,
            key in PRODUCT_OF or name.casefold() in PRODUCT_OF, name in head, bool(key in headings), counts[key] / most,
            counts[key] == most, counts[key] <= 1, shaped, " " in name, min(rare, 16) / 10, name.islower(), len(name) > 18,
        ])  # fmt: skip
    return names, np.array(rows, np.float32).reshape(len(names), len(FEATURES))


def bucket(name: str) -> int:
    """Where the table `ordinary` counts the pages that write this name's first word and are about something else."""
    return zlib.crc32(name_key(name.split(" ")[0]).encode()) % BUCKETS


def name_key(name: str) -> str:
    """The name as it is compared: `Argo CD`, `argo-cd` and `argocd` are one."""
    return re.sub(r"[\s_\-.]+", "", name).casefold()
