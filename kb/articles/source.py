"""Reads an article's bytes into lines, and its path into a slug and the language it is filed under.

No encoding is guessed, unlike in `kb.text.decode`: an article is kept and edited, so what is not UTF-8 is refused, with
the place and a likely name of its encoding.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from kb.errors import ArticleError
from kb.records import Lang
from kb.text import HAN_CHAR

__all__ = ["MAX_BYTES", "filed_lang", "read_lines", "slug_of", "suffix_lang"]

MAX_BYTES = 2_000_000

_BREAK = re.compile(r"\r\n|[\n\r\u2028\u2029\x85]")
_BOM = "\ufeff"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_SLUG = re.compile(r"[^\W_][\w.+-]{0,199}")


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
    """The file's stem without `.zh` or `.en`: the key of its issues. Raises ArticleError when it cannot be one."""
    name = path.rpartition("/")[2]
    stem = name.rpartition(".")[0] if "." in name else name
    for ending in (".zh", ".en"):
        stem = stem.removesuffix(ending)
    if not _SLUG.fullmatch(stem):
        shown = ascii(stem if len(stem) <= 60 else stem[:60] + "...")
        raise ArticleError(
            f"{shown} cannot name an issue",
            path=ascii(path)[1:-1][:300],
            hint="name the file in letters, digits, '-', '_' and '.'",
        )
    return stem


def filed_lang(path: str) -> Lang | None:
    """The language that the first folder of the path states (`en/`, `zh/`); None when it states none."""
    parts = PurePosixPath(path).parts
    if len(parts) > 1 and parts[0] == "en":
        return "en"
    if len(parts) > 1 and parts[0] == "zh":
        return "zh"
    return None


def suffix_lang(path: str) -> Lang | None:
    """The language that the end of the stem states (`name.zh.md`); None when it states none."""
    stem = path.rpartition(".")[0]
    return "zh" if stem.endswith(".zh") else "en" if stem.endswith(".en") else None
