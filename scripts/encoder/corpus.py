"""Collects the texts that an encoder learns from, out of checkouts of public repositories.

    python scripts/encoder/corpus.py CHECKOUTS OUT

CHECKOUTS holds the repositories of `sources.toml`, each (a work tree or a bare one) as `owner/name`, `owner+name` or
`owner+name/repo`. OUT receives

    pairs.jsonl      aligned pairs {"zh", "en", "from", "kind"}, each once
    held-out.jsonl   pairs of files of which nothing is in pairs.jsonl
    messages.jsonl   (name of an exception, message) and (name, first sentence of its docstring) from Python sources
    sources.md       the model card's table: every source with its commit, licence and number of pairs

A repository that is not there is named and left out. The text is never committed; the model is. Needs Python 3.11.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import align
import tomllib
import yaml

HELD_OUT = 0.02  # share of the files of documentation
SUFFIXES = {".md", ".mdx", ".rst", ".ipynb", ".po", ".xlf", ".json", ".properties", ".resw", ".resx", ".txt"}
MAX_BYTES = 8_000_000
MAX_BODY = 300  # characters of a section's first paragraph, in English twice as many

_CHINESE = r"zh[-_]?(?:cn|hans)?(?:[-_]cn)?|cn|chs|chinese|source_zh_cn"
# Where the original of a translation stands: what to replace in its path, and by what, tried in order.
_ORIGINALS: list[tuple[str, list[str]]] = [
    (r"i18n/zh[-\w]*/docusaurus-plugin-content-docs/current/", ["docs/"]),
    (r"i18n/zh[-\w]*/docusaurus-plugin-content-docs/(version-[^/]+)/", [r"versioned_docs/\1/"]),
    (r"i18n/zh[-\w]*/docusaurus-plugin-content-(blog|pages)/", [r"\1/", r"src/\1/"]),
    (r"pages\.zh/", ["pages/"]),
    (r"docs/source/", ["docs/source_en/"]),
    (r"site/zh-cn/", ["site/en-snapshot/", "site/en/"]),
    (rf"(?i)(?<![^/])(?:{_CHINESE})/", ["en/", "EN/", "en-us/", "en-US/", "en_us/", "source_en/", "English/", ""]),
    (rf"(?i)[-_.](?:{_CHINESE})(?=\.\w+$)", ["", "_en", "_EN", ".en", ".en-US", "-en"]),
    (rf"(?i)(?<![^/])(?:{_CHINESE})(?=\.\w+$)", ["en", "en-us", "en_US"]),
]


class Checkout:
    """A branch's newest commit: its paths, and the text of some."""

    def __init__(self, folder: Path, branch: str = "HEAD") -> None:
        self.folder = folder
        self.commit = self._git("rev-parse", branch).strip()
        listed = self._git("ls-tree", "-r", "-z", self.commit).split("\0")
        self.blobs = dict(reversed(entry.split(None, 2)[2].split("\t", 1)) for entry in listed if " blob " in entry)

    def _git(self, *args: str) -> str:
        ran = subprocess.run(["git", "-C", str(self.folder), *args], capture_output=True, check=True)
        return ran.stdout.decode("utf-8", "surrogateescape")

    def read(self, paths: list[str]) -> dict[str, str]:
        ask = "".join(self.blobs[path] + "\n" for path in paths)
        ran = subprocess.run(
            ["git", "-C", str(self.folder), "cat-file", "--batch"], input=ask.encode(), capture_output=True, check=True
        )
        texts, at = {}, 0
        for path in paths:
            end = ran.stdout.index(b"\n", at)
            head = ran.stdout[at:end].split()
            at = end + 1
            if head[-1] == b"missing":
                continue
            size = int(head[2])
            if size <= MAX_BYTES:
                texts[path] = ran.stdout[at : at + size].decode("utf-8", "replace")
            at += size + 1
        return texts


def find(checkouts: Path, repository: str) -> Path | None:
    owner, name = repository.split("/")
    places = [checkouts / owner / name, checkouts / f"{owner}+{name}" / "repo", checkouts / f"{owner}+{name}"]
    return next((place for place in places if (place / "HEAD").exists() or (place / ".git").exists()), None)


def has_licence(here: Checkout, names: list[str]) -> bool:
    files = [path for path in here.blobs if re.match(r"(?i)(licen[sc]e|copying)[^/]*$", path)]
    return any(name in text for text in here.read(files).values() for name in names)


def original_of(path: str, there: Checkout) -> str | None:
    """The path of the English text that `path` translates."""
    for pattern, replacements in _ORIGINALS:
        for found in re.finditer(pattern, path):
            for replacement in replacements:
                candidate = path[: found.start()] + found.expand(replacement) + path[found.end() :]
                if candidate != path and candidate in there.blobs:
                    return candidate
    return None


def pairs_of(checkouts: Path, repository: str, branch: str, english: str | None) -> list[dict[str, str]]:
    """Every pair of the repository, with the file it is from and its kind."""
    here = Checkout(find(checkouts, repository) or Path(), branch)
    there = Checkout(find(checkouts, english) or Path()) if english else here
    chinese: dict[str, str | None] = {}
    for path in here.blobs:
        suffix = Path(path).suffix.lower()
        if "cldr" in repository and not re.search(r"annotations/|territories|languages|units|timeZone", path):
            continue  # the rest is patterns of dates and numbers
        if suffix not in SUFFIXES or re.search(r"(?i)zh[-_]?(tw|hk|hant)|/ja/|/ko/", path):
            continue
        if suffix == ".po":
            if re.search(r"(?i)zh|cn", repository + path) and not re.search(
                r"/(?!zh)[a-z]{2}(_[A-Z]{2})?/LC_MESS", path
            ):
                chinese[path] = None
        elif suffix == ".xlf":
            if "zh-Hans" in path:
                chinese[path] = None
        elif english and path in there.blobs:
            chinese[path] = path
        elif original := original_of(path, there):
            chinese[path] = original
    texts = here.read(list(chinese))
    originals = there.read([path for path in chinese.values() if path])
    found = []
    for path, text in texts.items():
        suffix = Path(path).suffix.lower()
        original = chinese[path]
        rows: Iterator[tuple[str, str, str]]
        if suffix == ".po":
            rows = ((zh, en, "message") for zh, en in align.gettext(text))
        elif suffix == ".xlf":
            rows = ((zh, en, "message") for zh, en in align.xliff(text))
        elif original not in originals:
            continue
        elif suffix in (".json", ".properties", ".resw", ".resx"):
            rows = ((zh, en, "message") for zh, en in align.keyed(text, originals[original], suffix))
        else:
            rows = ((zh, en, kind) for (zh, en), kind in align.document(text, originals[original], suffix))
        for zh, en, kind in rows:
            zh, en = align.plain(zh), align.plain(en)
            if align.is_pair(zh, en):
                found.append({"zh": zh, "en": en, "from": f"{repository}/{path}", "kind": kind})
        if suffix in (".md", ".mdx", ".rst", ".ipynb") and original in originals:
            for parts in align.bodies(text, originals[original], suffix):
                zh_head, zh_body, en_head, en_body = map(align.plain, parts)
                if align.is_pair(zh_head, en_head) and align.is_pair(zh_body, en_body):
                    body = {"zh": zh_body[:MAX_BODY], "en": en_body[: 2 * MAX_BODY]}
                    found.append({"zh": zh_head, "en": en_head, "from": f"{repository}/{path}", "kind": "body",
                        "zh_body": body["zh"], "en_body": body["en"]})  # fmt: skip
    return found


# --- words of everyday life ----------------------------------------------------------------------------------------


def words_of(checkouts: Path) -> list[dict[str, str]]:
    """(Chinese word, English word) and (Chinese words, English definition) of every sense in both WordNets."""
    chinese, english, index = (
        Checkout(find(checkouts, name) or Path())
        for name in ("omwn/omw-data", "globalwordnet/english-wordnet", "globalwordnet/cili")
    )
    lemmas: dict[str, list[str]] = {}
    (table,) = chinese.read(["wns/cow/wn-data-cmn.tab"]).values()
    for line in table.splitlines():
        sense, kind, word, *_ = [*line.split("\t"), "", ""]
        if kind == "cmn:lemma" and align.HAN.search(word):
            lemmas.setdefault(sense.replace("-s", "-a"), []).append(word.replace("+", ""))
    (table,) = index.read(["ili-map-pwn30.tab"]).values()
    senses = dict(line.split("\t")[:2] for line in table.splitlines() if "\t" in line)
    rows = []
    for path in sorted(p for p in english.blobs if re.match(r"src/yaml/(noun|verb|adj|adv)\..*\.yaml", p)):
        for synset in yaml.load(english.read([path])[path], yaml.CSafeLoader).values():
            zh = lemmas.get(senses.get(synset.get("ili", ""), "").replace("-s", "-a"), [])
            en = [str(member) for member in synset.get("members", [])]
            rows += [{"zh": a, "en": b, "from": "omwn/omw-data", "kind": "word"} for a in zh[:4] for b in en[:3]]
            if zh and (definition := synset.get("definition")):
                gloss = f"{en[0]}: {definition[0]}"
                rows.append({"zh": "，".join(zh[:4]), "en": gloss, "from": "omwn/omw-data", "kind": "gloss"})
    return rows


# --- messages and docstrings of Python sources --------------------------------------------------------------------


def messages_of(checkouts: Path, repository: str) -> list[dict[str, str]]:
    here = Checkout(find(checkouts, repository) or Path())
    return _messages(here.read([path for path in here.blobs if _is_source(path)]).values(), repository)


def messages_of_package(name: str) -> list[dict[str, str]]:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return []
    folder = Path(spec.submodule_search_locations[0])
    paths = sorted(path for path in folder.rglob("*.py") if _is_source(path.relative_to(folder).as_posix()))
    return _messages((path.read_text("utf-8", "replace") for path in paths), name)


def _is_source(path: str) -> bool:
    return path.endswith(".py") and not re.search(r"(?i)test|vendor|third_party", path)


def _messages(sources: Iterable[str], origin: str) -> list[dict[str, str]]:
    return [
        {"name": name, "text": text, "kind": kind, "from": origin}
        for source in sources
        for name, text, kind in _read_python(source)
    ]


def _read_python(source: str) -> Iterator[tuple[str, str, str]]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            name = ast.unparse(node.exc.func).split(".")[-1]
            text = _literal(node.exc.args[0])
            if len(text.split()) >= 4 and re.match(r"\w+\Z", name) and not align.HAN.search(text):
                yield name, text[:400], "error"
        elif isinstance(node, ast.Assert) and node.msg is not None:
            text = _literal(node.msg)
            if len(text.split()) >= 4 and not align.HAN.search(text):
                yield "AssertionError", text[:400], "error"
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in (
            "warning",
            "error",
            "warn",
            "warning_once",
        ):
            text = _literal(node.args[0]) if node.args else ""
            if len(text.split()) >= 5 and not align.HAN.search(text):
                yield "WARNING", text[:400], "error"
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            text = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
            if 5 <= len(text.split()) <= 80 and not node.name.startswith("_") and not align.HAN.search(text):
                yield node.name, align.plain(text), "doc"


def _literal(node: ast.expr) -> str:
    """A string as it would be printed, with a number or a name where the program puts a value."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return " ".join(node.value.split())
    if isinstance(node, ast.JoinedStr):
        parts = [_literal(v) if isinstance(v, ast.Constant) else _value(v) for v in node.values]
        return " ".join("".join(f" {part} " for part in parts).split())
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
        return f"{_literal(node.left)} {_literal(node.right) if isinstance(node.op, ast.Add) else ''}".strip()
    return ""


def _value(node: ast.expr) -> str:
    text = ast.unparse(node.value) if isinstance(node, ast.FormattedValue) else ""
    return re.split(r"\W+", text)[-1] if text else ""


# --- all of it ----------------------------------------------------------------------------------------------------


def is_held_out(path: str) -> bool:
    """The versions of one page fall together: what is held out of one must not be learned from the next."""
    page = re.sub(
        r"(?i)(?<=/)(?:version-)?v?\d+(?:[._]\w+)*(?=/)|(?<=/)(?:current|latest|master|main|next)(?=/)", "", path
    )
    return int(hashlib.sha256(page.encode()).hexdigest()[:8], 16) < HELD_OUT * 2**32


def _said(row: dict[str, str]) -> set[str]:
    """Its texts in a form by which a repetition is found, though it be cut off or otherwise spaced and stopped."""
    texts = (row[name] for name in ("zh", "en", "zh_body", "en_body") if name in row)
    return {"".join(re.findall(r"\w+", text.casefold()))[:MAX_BODY] for text in texts}


def _version(package: str) -> str:
    return importlib.metadata.version(importlib.metadata.packages_distributions()[package][0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    listed = tomllib.loads((Path(__file__).parent / "sources.toml").read_text("utf-8"))
    licences = listed["licences"]
    jobs, table = [], {}
    for repository, entry in listed["repositories"].items():
        places = [find(args.checkouts, name) for name in (repository, entry.get("english", repository))]
        if None in places:
            print(f"{repository}: not there", file=sys.stderr)
        elif "stated" not in entry and not has_licence(Checkout(places[0]), licences[entry["licence"]]):
            print(f"{repository}: its licence file does not say {entry['licence']}", file=sys.stderr)
        else:
            branch = entry.get("branch", "HEAD")
            jobs.append((repository, branch, entry.get("english")))
            table[repository] = {"commit": Checkout(places[0], branch).commit, "licence": entry["licence"], "pairs": 0}
    args.out.mkdir(parents=True, exist_ok=True)
    python = [name for name in listed["python"] if find(args.checkouts, name)]
    with ProcessPoolExecutor() as pool:
        results = list(pool.map(pairs_of, *zip(*((args.checkouts, *job) for job in jobs), strict=True)))
        said = list(pool.map(messages_of, [args.checkouts] * len(python), python))
        said += pool.map(messages_of_package, listed["packages"])
    held: list[dict[str, str]] = []
    kept: list[dict[str, str]] = []
    seen: set[str] = set()
    for rows in results:  # held-out files first: what they hold must not be learned from elsewhere
        held += [row for row in rows if is_held_out(row["from"]) and row["kind"] != "body"]
    unheard = {text for row in held for text in _said(row)}
    counts: Counter[str] = Counter()
    for (repository, *_), rows in zip(jobs, results, strict=True):
        for row in rows:
            key = row["zh"] + "\0" + row["en"].casefold() + "\0" * (row["kind"] == "body")
            if is_held_out(row["from"]) or key in seen or _said(row) & unheard:
                continue
            seen.add(key)
            kept.append(row)
            counts[repository] += row["kind"] != "body"
        table[repository]["pairs"] = counts[repository]
    messages = list({(row["name"], row["text"]): row for rows in said for row in rows}.values())
    if all(find(args.checkouts, name) for name in listed["wordnet"]):
        words = words_of(args.checkouts)
        kept += words
        for name, entry in listed["wordnet"].items():
            commit = Checkout(find(args.checkouts, name) or Path()).commit
            table[name] = {"commit": commit, "licence": entry["licence"], "pairs": len(words)}
    for name, rows in (("pairs", kept), ("held-out", held), ("messages", messages)):
        with (args.out / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    table = {name: row for name, row in table.items() if row["pairs"]}
    for name, count in Counter(row["from"] for row in messages).items():
        if name in listed["packages"]:
            table[name] = {"commit": _version(name), "licence": listed["packages"][name], "pairs": 0, "messages": count}
            continue
        commit = Checkout(find(args.checkouts, name) or Path()).commit
        row = table.setdefault(name, {"commit": commit, "licence": listed["python"][name]["licence"], "pairs": 0})
        row["messages"] = count
    lines = ["| source | commit or version | licence | pairs | messages |", "|---|---|---|---|---|"]
    for name, row in sorted(table.items(), key=lambda item: (-item[1]["pairs"], -item[1].get("messages", 0))):
        said_here = row.get("messages", "")
        lines.append(f"| {name} | {row['commit'][:10]} | {row['licence']} | {row['pairs'] or ''} | {said_here} |")
    (args.out / "sources.md").write_text("\n".join(lines) + "\n", "utf-8")
    print("\n".join(lines))
    titles = sum(row["kind"] == "body" for row in kept)
    print(f"{len(kept) - titles} pairs, {titles} titles with bodies, {len(held)} held out, {len(messages)} messages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
