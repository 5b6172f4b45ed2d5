"""Reads an article's bytes into lines, and its path into a slug and the language it is filed under.

No encoding is guessed, unlike in `kb.text.decode`: an article is kept and edited, so what is not UTF-8 is refused, with
the place and a likely name of its encoding.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kb.errors import ArticleError

if TYPE_CHECKING:
    from kb.records import Lang

__all__ = ["MAX_BYTES", "SUFFIXES", "filed_lang", "is_readme", "place_of", "read_lines", "slug_of", "suffix_lang"]

MAX_BYTES = 2_000_000

SUFFIXES = (".md", ".markdown", ".mdx")
"""how the names of articles end, in any letter case"""

_BREAK = re.compile(r"\r\n|[\n\r\u2028\u2029\x85]")
_BOM = "\ufeff"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_MAX_SLUG = 200
_SLUG = re.compile(rf"[^\W_][\w.+-]{{0,{_MAX_SLUG - 1}}}")
_UNSAFE = re.compile(r"[^\w.+-]+")
_LANG = re.compile(r"(en|zh)(?:[-_](?:us|gb|cn|sg|tw|hk|mo|hans|hant))?", re.IGNORECASE)


def read_lines(data: bytes, *, path: str) -> list[str]:
    """The article's lines without their ends. Raises ArticleError: too large, binary, not UTF-8, empty."""
    if len(data) > MAX_BYTES:
        raise ArticleError(
            f"larger than {MAX_BYTES:,} bytes ({len(data):,})",
            path=path,
            hint="an article is prose: split it, or link to the log",
        )
    if data.startswith(_UTF16):
        raise ArticleError(
            "not UTF-8 at byte 0", path=path, line=1, hint="the file looks like UTF-16: save it as UTF-8"
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ArticleError(
            f"not UTF-8 at byte {error.start}", path=path, line=line, hint=f"{_likely_encoding(data)}: save it as UTF-8"
        ) from None
    if "\0" in text:
        place = data.index(b"\0")
        hint = "the file looks like UTF-16: save it as UTF-8" if _looks_utf16(data) else "an article is a text file"
        raise ArticleError(f"binary: a NUL at byte {place}", path=path, line=data.count(b"\n", 0, place) + 1, hint=hint)
    lines = _BREAK.split(text.removeprefix(_BOM))
    if not any(line.strip() for line in lines):
        raise ArticleError("empty", path=path, hint="an article holds at least one issue")
    return lines


def _looks_utf16(data: bytes) -> bool:
    return data[:2000].count(0) * 5 > len(data[:2000])


def _likely_encoding(data: bytes) -> str:
    from kb.text import HAN_CHAR

    if b"\0" in data[:2000]:
        return "the file looks like UTF-16"
    for encoding, name in (("gb18030", "GBK"), ("big5", "Big5"), ("shift_jis", "Shift_JIS")):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        if len(HAN_CHAR.findall(text)) * 4 >= sum(byte >= 0x80 for byte in data):
            return f"the file looks like {name}"
    return "the file may be Latin-1 or damaged"


def slug_of(path: str) -> str:
    """The key of the article's issues: its path without the language and the file's ending, the folders joined by `-`.

    Every run of other characters than letters, digits, `_`, `.`, `+` and `-` is one `-`; of a name of more than 200
    characters the end becomes a checksum. `en/gpu/out of memory.md` gives `gpu-out-of-memory`. Raises ArticleError when
    no letter and no digit is left.
    """
    folders, _, stem, _ = _parts(path)
    name = "-".join([*folders, stem])
    if _SLUG.fullmatch(name):
        return name
    import hashlib
    import unicodedata

    name = _UNSAFE.sub("-", unicodedata.normalize("NFC", name)).strip("-").lstrip("_.+-")
    if not name:
        shown = ascii(stem if len(stem) <= 60 else stem[:60] + "...")
        raise ArticleError(
            f"{shown} cannot name an issue",
            path=ascii(path)[1:-1][:300],
            hint="name the file in letters or digits",
        )
    if len(name) > _MAX_SLUG:
        name = f"{name[: _MAX_SLUG - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return name


def filed_lang(path: str) -> Lang | None:
    """The language that a folder of the path states (`en/`, `docs/zh-CN/`); None when none does."""
    return _parts(path)[1]


def suffix_lang(path: str) -> Lang | None:
    """The language that the end of the stem states (`name.zh.md`, `name.zh-CN.md`); None when it states none."""
    return _parts(path)[3]


def place_of(path: str) -> str:
    """The path without the folder that states the language."""
    return "/".join([*_parts(path)[0], path.rpartition("/")[2]])


def is_readme(path: str) -> bool:
    """A page that may be about the folder itself: then it is no mistake that it holds no issue."""
    return path.rpartition("/")[2].lower().startswith("readme.")


def _parts(path: str) -> tuple[list[str], Lang | None, str, Lang | None]:
    """The folders but for the first that states a language; that language; the stem, and the language that ends it."""
    *folders, name = path.split("/")
    stem = name.rpartition(".")[0] if "." in name else name
    stated = next((n for n, folder in enumerate(folders) if _LANG.fullmatch(folder)), None)
    filed = None if stated is None else _lang(folders.pop(stated))
    before, _, end = stem.rpartition(".")
    return (folders, filed, before, _lang(end)) if before and _LANG.fullmatch(end) else (folders, filed, stem, None)


def _lang(name: str) -> Lang:
    return "zh" if name[:2].lower() == "zh" else "en"
