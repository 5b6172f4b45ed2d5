"""Guesses the project of a page that does not state one: names that the page writes, ranked by where they stand.

Every name in the title, the tags or the text is a candidate, with a few features (opens the title, is named by the
file, stands in the first lines, ...). `scripts/reader/train.py` fits their weights.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import PurePosixPath

import numpy as np

from kb.arrays import Array
from kb.encoders import surprisal
from kb.logs.everyones import only_in_messages
from kb.scraped.labels import PRODUCT_OF
from kb.scraped.tagger import open_tagger

__all__ = ["BUCKETS", "FEATURES", "bucket", "candidates", "guess_project", "name_key", "name_words"]

_WORD = r"[A-Za-z][A-Za-z0-9_+]*(?:[.\-][A-Za-z0-9_+]+)*"
_NAMES = re.compile(
    rf"(?<![\w/.@$-])(?:(?=[A-Z]){_WORD}(?: (?:[A-Z][A-Za-z0-9_+.\-]*\w|\d{{1,2}}(?![\w.]))){{0,2}}|{_WORD})"
    r"(?![\w/@(=]|\.\w)",
    re.ASCII,
)
_PLACE = re.compile(
    r"(?:github\.com/|gitee\.com/|(?:^|[\s·]))[\w.-]{2,40}/([A-Za-z][\w.-]{1,60}?)"
    r"(?:\s{0,3}(?:[·»›>|#]|$)| (?:issue|pull)|[/)\s])"
)
_PROJECT = re.compile(r"\s?(?:项目(?!优选|推荐)|[Pp]roject\b)")
_BEFORE = re.compile(
    r"(?:\b(?:in|with|for|on|of|using|to|from|about|troubleshooting|debugging|fixing)(?: the)?|[在用跑于装])\s?$",
    re.IGNORECASE,
)
_KIND_OF_PAGE = frozenset("FAQ FAQs Guide Guides Notes Troubleshooting Tutorial Documentation Docs Wiki".split())
_FILE = re.compile(r"\.(?:so(?:\.\d+)*|dll|exe|json|ya?ml|toml|txt|log|md|csv|html)$")
_LETTER = re.compile(r"\w")
FEATURES = (
    "bias", "in title", "opens title", "ends title", "title: after in/with/在", "title: X项目", "tag", "file", "folder",
    "place", "known", "first lines", "once", "often", "two words", "rare", "lower", "long", "ordinary",
)  # fmt: skip
BUCKETS = 1 << 16
_NO_MARKS = str.maketrans("", "", " _-.\t\n")
_MOST = 40


def guess_project(title: str, texts: Sequence[str], tags: Sequence[str], path: str) -> str | None:
    """The name that ranks first, or None when no name does better than none at all. `texts`: of the page, see
    `candidates`; `path`: POSIX."""
    arrays = open_tagger().arrays
    names, rows = candidates(title, texts, tags, path, arrays["ordinary"])
    if not names:
        return None
    scores = rows @ arrays["project"]
    whole = "\n".join((title, *texts))
    best: list[int] = np.argsort(-scores, kind="stable").tolist()
    return next((names[n] for n in best if scores[n] > 0 and not only_in_messages(names[n], whole)), None)


def candidates(
    title: str, texts: Sequence[str], tags: Sequence[str], path: str, ordinary: Array
) -> tuple[list[str], Array]:
    """The names of a page, and (names, len(FEATURES)) what is known of each. `texts`: its blocks in their order;
    `ordinary`: (BUCKETS,), on how many pages a name stands that are about something else."""
    title = unicodedata.normalize("NFKC", title)[:300]
    texts = [text[:400] for text in texts[:150]]
    head, whole = "\n".join(texts[:6]), "\n".join(texts)
    slug = PurePosixPath(path)
    stem, folder = name_key(slug.name.split(".")[0]), name_key(slug.parent.name)
    places = _PLACE.findall(whole)
    written: Counter[str] = Counter()
    for text, worth in ((title, 3), (whole, 1)):
        for found, count in Counter(_NAMES.findall(text)).items():
            words = found.split(" ")
            for first, stop in combinations(range(len(words) + 1), 2):
                name = " ".join(words[first:stop])
                if _KIND_OF_PAGE.isdisjoint(words[first:stop]) and not _FILE.search(name):
                    written[name] += worth * count
    for name in (*tags, *places):
        if name.isascii() and name_key(name):
            written[name.strip()] += 3
    spelt: dict[str, list[str]] = {}
    total: Counter[str] = Counter()
    for name, count in written.items():
        key = name_key(name)
        spelt.setdefault(key, []).append(name)
        total[key] += count
    tagged, placed = {name_key(tag) for tag in tags}, {name_key(name) for name in places}
    keys = sorted(total, key=lambda key: (key not in stem, -total[key], key))[:_MOST]
    most = max(total.values(), default=1)
    names, rows, buckets = [], [], []
    for key, rare in zip(keys, surprisal(keys), strict=True):
        name = max(spelt[key], key=lambda one: (written[one], one))
        names.append(PRODUCT_OF.get(key, name) if name.islower() else name)
        buckets.append(bucket(name))
        rows.append([
            1, *_in_title(name, title), key in tagged, len(key) > 2 and key in stem, len(key) > 2 and key in folder,
            key in placed, key in PRODUCT_OF, name in head, total[key] <= 1, total[key] / most,
            " " in name, min(rare, 16) / 10, name.islower(), len(name) > 18, 0,
        ])  # fmt: skip
    found = np.array(rows, np.float32).reshape(len(names), len(FEATURES))
    found[:, -1] = np.log1p(ordinary[buckets])
    return names, found


def _in_title(name: str, title: str) -> tuple[bool, bool, bool, bool, bool]:
    """Whether it stands in the title, opens it, ends it, stands behind `in`, before `project`."""
    at = title.find(name)
    if at < 0:
        return (False,) * 5
    before, after = title[:at], title[at + len(name) :]
    opens, ends = not _LETTER.search(before), not _LETTER.search(after)
    return True, opens, ends, bool(_BEFORE.search(before)), bool(_PROJECT.match(after))


def bucket(name: str) -> int:
    """Where the table `ordinary` counts a name: by its first word."""
    return zlib.crc32(name_key(name.split(" ")[0]).encode()) % BUCKETS


def name_words(text: str) -> set[str]:
    """The words that could be names, or part of one."""
    return {word for found in _NAMES.findall(text) for word in found.split(" ")}


def name_key(name: str) -> str:
    """The name as it is compared: `Argo CD`, `argo-cd` and `argocd` are one."""
    return name.translate(_NO_MARKS).casefold()
