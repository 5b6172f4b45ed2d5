"""Pairs the texts of two files that say the same in Chinese and in English, or of one file that holds both.

gettext, XLIFF        the pairs stand in the file
JSON, properties, resx  by key
markdown, rst, notebooks  block by block where sections have the same shape, else by the names, numbers and code
                      that blocks share
"""

from __future__ import annotations

import html
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import pairwise

Pair = tuple[str, str]  # Chinese, English

HAN = re.compile("[\u4e00-\u9fff]")
_LATIN = re.compile("[A-Za-z]")
_NAME = re.compile(
    r"[A-Za-z_](?:[A-Za-z0-9_]|[.-](?=[A-Za-z0-9_])){2,}"
)  # a word or identifier, Chinese beside it or not
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)*")


def gettext(text: str) -> Iterator[Pair]:
    """`msgid` and `msgstr`; a translation marked as fuzzy is none."""
    for entry in re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n")):
        if "\n#, " in "\n" + entry and "fuzzy" in entry.split("msgid", 1)[0]:
            continue
        fields: dict[str, list[str]] = {}
        key = ""
        for line in entry.split("\n"):
            found = re.match(r'(msgid|msgstr|msgid_plural|msgctxt|msgstr\[0\])[ \t]+"(.*)"\s*$', line)
            if found:
                key = found[1].replace("[0]", "")
                fields.setdefault(key, []).append(found[2])
            elif key and (more := re.match(r'\s*"(.*)"\s*$', line)):
                fields[key].append(more[1])
            elif not line.startswith("#"):
                key = ""
        english, chinese = ("".join(fields.get(name, [])) for name in ("msgid", "msgstr"))
        if english and chinese:
            yield _unescape(chinese), _unescape(english)


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t", "r": ""}.get(m[1], m[1]), text)


def xliff(text: str) -> Iterator[Pair]:
    try:
        root = ET.fromstring(text.lstrip("\ufeff").encode())
    except ET.ParseError:
        return
    for unit in root.iter("{urn:oasis:names:tc:xliff:document:1.2}trans-unit"):
        source, target = (unit.find("{urn:oasis:names:tc:xliff:document:1.2}" + name) for name in ("source", "target"))
        if source is not None and target is not None and source.text and target.text:
            yield target.text, source.text


def keyed(chinese: str, english: str, suffix: str) -> Iterator[Pair]:
    """Values of the same key in two files of messages."""
    read = {".json": _json_keys, ".properties": _property_keys}.get(suffix, _resx_keys)
    translated, original = read(chinese), read(english)
    for key in sorted(translated.keys() & original.keys()):
        yield translated[key], original[key]


def _json_keys(text: str) -> dict[str, str]:
    found: dict[str, str] = {}

    def walk(value: object, path: str) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(inner, f"{path}/{key}")
        elif isinstance(value, list):
            found[path] = " ".join(item for item in value if isinstance(item, str))
        elif isinstance(value, str):
            found[path] = value

    try:
        walk(json.loads(text), "")
    except (ValueError, RecursionError):
        return {}
    return {key: value for key, value in found.items() if value}


def _property_keys(text: str) -> dict[str, str]:
    joined = re.sub(r"\\\n[ \t]*", "", text.replace("\r\n", "\n"))
    found = dict(m.groups() for m in re.finditer(r"^([^#!\s=:][^=:\n]*?)\s*[=:][ \t]*(.+)$", joined, re.MULTILINE))
    decode = lambda s: re.sub(r"\\u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), s)  # noqa: E731
    return {key: decode(value).replace("''", "'") for key, value in found.items()}


def _resx_keys(text: str) -> dict[str, str]:
    try:
        root = ET.fromstring(text.lstrip("\ufeff").encode())
    except ET.ParseError:
        return {}
    values = ((data.get("name", ""), data.findtext("value") or "") for data in root.iter("data"))
    return {name: value for name, value in values if value}


# --- documents ----------------------------------------------------------------------------------------------------


Block = tuple[str, str]  # kind, text


def document(chinese: str, english: str, suffix: str) -> Iterator[tuple[Pair, str]]:
    """Pairs of blocks, each with its kind ("h1", "text", "item", "cell")."""
    if suffix == ".ipynb":
        chinese, english = _notebook(chinese), _notebook(english)
    left, right = _blocks(chinese), _blocks(english)
    one, two = _sections(left), _sections(right)
    if [level for level, _ in one] != [level for level, _ in two]:
        one, two = [("", left)], [("", right)]
    for (_, a), (_, b) in zip(one, two, strict=True):
        if [kind for kind, _ in a] == [kind for kind, _ in b]:
            matched: Iterator[tuple[Block, Block]] = (
                pair for pair in zip(a, b, strict=True) if _likeness(*map(_features, pair)) > 0
            )
        else:
            matched = _match(a, b)
        for (kind, zh), (_, en) in matched:
            if kind != "code":
                yield (zh, en), kind


def _match(left: list[Block], right: list[Block]) -> Iterator[tuple[Block, Block]]:
    """Blocks of two sections that differ in shape: the best monotone alignment (Needleman and Wunsch, in a band).

    A pair is believed when it shares a name or number, or stands between two pairs that do.
    """
    n, m = len(left), len(right)
    if not n or not m or n * m > 4_000_000 or not 0.5 <= n / m <= 2:
        return
    ones, twos = [_features(block) for block in left], [_features(block) for block in right]
    width = max(8, m // 6)
    best: list[dict[int, float]] = [dict.fromkeys(range(m + 1), 0.0)]
    came: list[dict[int, int]] = [{}]
    for i in range(1, n + 1):
        middle = i * m // n
        row: dict[int, float] = {}
        steps: dict[int, int] = {}
        for j in range(max(0, middle - width), min(m, middle + width) + 1):
            up, across = best[i - 1].get(j, -1e9), row.get(j - 1, -1e9)
            row[j], steps[j] = (up, 1) if up >= across else (across, 2)
            if j and (score := _likeness(ones[i - 1], twos[j - 1])) > 0:
                diagonal = best[i - 1].get(j - 1, -1e9) + score
                if diagonal > row[j]:
                    row[j], steps[j] = diagonal, 3
        best.append(row)
        came.append(steps)
    i, j = n, m
    path: list[tuple[int, int, bool]] = []
    while i > 0 and j in came[i]:
        step = came[i][j]
        if step == 3:
            i, j = i - 1, j - 1
            path.append((i, j, _likeness(ones[i], twos[j]) > 1))
        elif step == 1:
            i -= 1
        else:
            j -= 1
    path.reverse()
    sure = {(i, j) for i, j, believed in path if believed}
    for i, j, believed in path:
        if believed or ((i - 1, j - 1) in sure and (i + 1, j + 1) in sure):
            yield left[i], right[j]


def _features(block: Block) -> tuple[str, float, frozenset[str]]:
    """Kind, length as English characters, names and numbers."""
    kind, text = block
    if kind == "code":
        return kind, 0.0, frozenset([text])
    text = plain(text)
    han = len(HAN.findall(text))
    length = 3.2 * han + len(_LATIN.findall(text)) if han else len(text)
    return kind, length, _names(text) | frozenset(_NUMBER.findall(text))


def _likeness(zh: tuple[str, float, frozenset[str]], en: tuple[str, float, frozenset[str]]) -> float:
    """0: not the same; above 1: they share a name, a number or their code."""
    if zh[0] != en[0]:
        return 0.0
    if zh[0] == "code":
        return 2.0 if zh[2] == en[2] else 0.3
    if not 0.45 <= (en[1] + 8) / (zh[1] + 8) <= 2.2:
        return 0.0
    shared = len(zh[2] & en[2])
    missing = len(zh[2] - en[2])
    if missing > shared + 1:
        return 0.0
    return 0.4 + min(2.0, float(shared)) * (shared / (shared + missing) if shared else 0)


def bodies(chinese: str, english: str, suffix: str) -> Iterator[tuple[str, str, str, str]]:
    """Of sections at the same place in both: Chinese heading, its first paragraph, the English ones."""
    if suffix == ".ipynb":
        chinese, english = _notebook(chinese), _notebook(english)
    one, two = _sections(_blocks(chinese)), _sections(_blocks(english))
    if [level for level, _ in one] != [level for level, _ in two]:
        return
    for (level, left), (_, right) in zip(one, two, strict=True):
        first = [next((text for kind, text in side if kind == "text"), "") for side in (left, right)]
        if level and all(first):
            yield left[0][1], first[0], right[0][1], first[1]


def _notebook(text: str) -> str:
    try:
        cells = json.loads(text).get("cells", [])
    except (ValueError, AttributeError):
        return ""
    return "\n\n".join("".join(cell.get("source", [])) for cell in cells if cell.get("cell_type") == "markdown")


_HEADING = re.compile(r"(#{1,6})\s+(.+?)\s*#*\s*(?:\{#.*\})?$")
_UNDERLINE = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}\s*$")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)]|#\.)\s+(.*)")
_FENCE = re.compile(r"\s*(`{3,}|~{3,}|:::|\$\$)")
_DIRECTIVE = re.compile(r"\s*(?:\.\. |:[a-z-]+:|<!--|import |export |\{%|\{\{|!!! |@)")


def _blocks(text: str) -> list[Block]:
    """Headings ("h1".."h6", rst by order of underlines), items, table cells, paragraphs, code."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines and lines[0].strip() in ("---", "+++"):
        end = next((n for n in range(1, min(len(lines), 60)) if lines[n].strip() == lines[0].strip()), 0)
        lines = lines[end + 1 :]
    blocks: list[Block] = []
    gathered: list[str] = []
    marks: list[str] = []

    def flush() -> None:
        if gathered:
            blocks.append(("text", " ".join(gathered)))
            gathered.clear()

    n = 0
    while n < len(lines):
        line = lines[n]
        stripped = line.strip()
        following = lines[n + 1].strip() if n + 1 < len(lines) else ""
        if fence := _FENCE.match(line):
            flush()
            if fence[1] != ":::":
                mark, code = fence[1], []
                n += 1
                while n < len(lines) and not lines[n].strip().startswith(mark):
                    code.append(lines[n].strip())
                    n += 1
                blocks.append(("code", "\n".join(code)))
        elif heading := _HEADING.match(line):
            flush()
            blocks.append((f"h{len(heading[1])}", heading[2]))
        elif stripped and not gathered and _UNDERLINE.match(following) and len(following) >= len(stripped) // 2:
            if following[0] not in marks:
                marks.append(following[0])
            blocks.append((f"h{marks.index(following[0]) + 1}", stripped))
            n += 1
        elif not stripped or _UNDERLINE.match(stripped):
            flush()
        elif _DIRECTIVE.match(line):
            flush()
            blocks.append(("code", stripped))
        elif stripped.startswith("|") and stripped.count("|") > 1:
            flush()
            cells = [cell.strip() for cell in stripped.strip("|").split("|")]
            if not all(set(cell) <= set("-: ") for cell in cells):
                blocks += [("cell", cell) for cell in cells]
        elif item := _ITEM.match(line):
            flush()
            blocks.append(("item", item[1]))
            n += 1
            while n < len(lines) and lines[n].startswith("  ") and lines[n].strip() and not _ITEM.match(lines[n]):
                if _FENCE.match(lines[n]):
                    break
                blocks[-1] = ("item", f"{blocks[-1][1]} {lines[n].strip()}")
                n += 1
            continue
        else:
            gathered.append(stripped)
        n += 1
    flush()
    return blocks


def _sections(blocks: list[Block]) -> list[tuple[str, list[Block]]]:
    """Cut before every heading; each with the heading's level, "" for what comes before the first."""
    starts = [0, *(n for n, (kind, _) in enumerate(blocks) if kind[0] == "h" and n), len(blocks)]
    parts = [blocks[a:b] for a, b in pairwise(starts) if a < b]
    return [(part[0][0] if part[0][0][0] == "h" else "", part) for part in parts]


# --- what makes a pair --------------------------------------------------------------------------------------------


_MARKUP = [
    (re.compile(r"<!--.*?-->", re.DOTALL), " "),
    (re.compile(r"!\[[^\]]*\]\([^)]*\)"), " "),
    (re.compile(r"\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"\[([^\]]*)\]\[[^\]]*\]"), r"\1"),
    (re.compile(r":[a-z:]+:`~?!?([^`<]*)(?:<[^`]*)?`"), r"\1"),
    (re.compile(r"`([^`<]*)\s*<[^>`]*>`__?"), r"\1"),
    (re.compile(r"</?[A-Za-z][^<>]{0,200}>"), " "),
    (re.compile(r"\{\{[^}]*\}\}|\{%[^%]*%\}|\{#[^}]*\}|\[\^[^\]]*\]"), " "),
    (re.compile(r"https?://\S+"), " "),
    (re.compile(r"[`*]{1,3}|(?<!\w)_{1,2}(?=\S)|(?<=\S)_{1,2}(?!\w)|^>\s*|^\[!\w+\]"), ""),
    (re.compile(r"\s+"), " "),
]


def plain(text: str) -> str:
    for pattern, repl in _MARKUP:
        text = pattern.sub(repl, text)
    return html.unescape(text).strip()


def is_pair(zh: str, en: str) -> bool:
    """Plausible by script, length, numbers and names: what a wrong alignment seldom is."""
    han = len(HAN.findall(zh))
    if not han or HAN.search(en) or not _LATIN.search(en) or len(zh) > 600 or len(en) > 1500:
        return False
    foreign = len(_LATIN.findall(zh))
    if foreign > 6 * han + 12:
        return False
    expected = 3.2 * han + foreign + 3  # a Chinese character stands for about 3.2 English ones, spaces included
    if not 0.4 <= (len(en) + 4) / (expected + 4) <= 2.5:
        return False
    numbers_zh, numbers_en = (set(_NUMBER.findall(text)) for text in (zh, en))
    if len(numbers_zh | numbers_en) > 1 and not numbers_zh & numbers_en:
        return False
    names_zh = _names(zh)
    return len(names_zh - _names(en)) <= max(1, len(names_zh) // 2)


def _names(text: str) -> frozenset[str]:
    return frozenset(name.lower() for name in _NAME.findall(text))
