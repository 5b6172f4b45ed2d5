"""What is kept of a question: the few lines that tell the failure, masked. Never the question itself.

Masked are keys and passwords (`kb.importers.mask`), addresses of mail, machines and the web, names of machines and
users, paths, and numbers, but for those that are the code of a failure (`Xid 79`). The marks in their place (`<n>`,
`<path>`) are the gaps that an article's error line may have, so that such a line can go into an article as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b

from kb.importers.mask import mask_secrets, tidy
from kb.logs.codes import codes
from kb.logs.variables import HASH, PATH, mask
from kb.records import Lang, Query

__all__ = ["MAX_LINES", "MAX_LINE_CHARS", "Gist", "gist", "mask_line", "unmarked"]

MAX_LINES = 3
MAX_LINE_CHARS = 300
_MAX_NUMBERS = 40  # of a line that are asked whether they are part of a code; others are masked

_URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s'\"`)<>]{1,2000}", re.IGNORECASE)
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){0,8}")
_ADDRESS = re.compile(
    r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\d)(?::\d{1,5})?"
    r"|(?<![\w:])(?:[0-9a-f]{1,4}:){3,7}(?::?[0-9a-f]{1,4}){0,7}(?:%\w{1,16})?(?![\w:])"
    r"|(?<![\w:])[0-9a-f]{0,4}::(?:[0-9a-f]{1,4}:){0,6}[0-9a-f]{1,4}(?:%\w{1,16})?(?![\w:])"
    r"|(?<![\w:])::(?=[\s\]])",
    re.IGNORECASE,
)
# `node-17.cluster.local`: a dotted name that ends as names of machines do, and no name of a program does.
_DOTTED_HOST = re.compile(
    r"(?<![\w./-])[\w-]{1,63}(?:\.[\w-]{1,63}){0,8}\."
    r"(?:com|net|org|edu|gov|cn|hk|tw|de|fr|uk|eu|jp|kr|ru|ai|io|dev|cloud|local|localdomain|lan|internal|intern|intra|"
    r"corp|home|svc|cluster|priv|private|site|tech|top|xyz|info|biz)(?![\w-]|\.\w)(?::\d{1,5}\b)?",
    re.IGNORECASE,
)
_PORT_HOST = re.compile(r"(?<![\w./<-])(?=[\w.-]{0,63}[\d-])[A-Za-z][\w-]{0,62}(?:\.[\w-]{1,63}){0,8}:\d{2,5}\b(?!:)")
_NAMED_HOST = re.compile(
    r"(?i)(?P<keep>(?:\b(?:host(?:name)?|machine|node(?:name)?|server|pod|worker|master_addr|peer)|主机|节点|机器)"
    r"(?:[ \t]{0,2}[=:：][ \t]{0,2}[\"'`]?(?=[\w.-]{0,63}[\d.-])|[ \t]{1,2}[\"'`]?(?=[\w.-]{0,63}\d)))"
    r"[A-Za-z][\w.-]{1,100}"
)
_NAMED_USER = re.compile(
    r"(?i)(?P<keep>\b(?:user(?:name)?|login|owner|account)(?:[ \t]{0,2}[=:][ \t]{0,2}[\"'`]?|[ \t]{1,2}[\"'`])"
    r"|(?:用户名?|账号)[ \t]{0,2}[=:：]?[ \t]{0,2}[\"'`]?(?=[\w.@-]))[A-Za-z0-9_.@-]{1,64}"
)
_HOME = re.compile(
    r"(?i)(?:[A-Z]:)?[\\/]{1,2}(?:users|home)[\\/]{1,2}[^\\/\n:*?\"'<>|]{1,60}(?=[\\/])|~[\w.-]{1,40}(?=/)"
)
_LIBRARY = re.compile(r"[\\/](lib[\w+-]{1,60}\.so(?:\.\d{1,9}){0,4})\Z")
# Not the digits of a name, such as `float16` or `cu121`, unless they are many.
_NUMBER = re.compile(r"(?<!\w\.)(?<![A-Za-z0-9_<])[0-9]+(?:[.,:][0-9]+)*|[0-9]{5,}")
_MARK = re.compile(r"<(?:n|path|url|address|host|user)>|\[masked\]")


@dataclass(frozen=True, slots=True)
class Gist:
    """What is kept of a question."""

    family: str
    """16 hexadecimal digits: the same for questions whose first line differs in masked parts alone"""
    lines: tuple[str, ...]
    """error lines, masked, the most informative first; of a description its beginning. One to `MAX_LINES`"""
    lang: Lang


def gist(query: Query) -> Gist | None:
    """None for what says nothing of a failure: the log of a healthy program."""
    if query.is_log and not (query.signatures or query.failures):
        return None
    lines = query.signatures or query.failures or (" ".join(query.prose.split()),)
    kept = [one for line in lines[:MAX_LINES] if (one := mask_line(line))]
    if not kept:
        return None
    said = sorted(f"{kind} {code}" for kind, code in codes(lines[0]))
    form = "\n".join([mask(mask_line(lines[0], most=1000)).casefold(), *said])
    return Gist(
        blake2b(form.encode("utf-8", "replace"), digest_size=8).hexdigest(), tuple(dict.fromkeys(kept)), query.lang
    )


def mask_line(line: str, *, most: int = MAX_LINE_CHARS) -> str:
    """One line, masked, of at most `most` characters."""
    line = " ".join(mask_secrets(tidy(line[: 4 * most])).split())
    for pattern, mark in ((_URL, "<url>"), (_MAIL, "<address>"), (_ADDRESS, "<address>")):
        line = pattern.sub(mark, line)
    for pattern, mark in ((_NAMED_USER, "<user>"), (_NAMED_HOST, "<host>")):
        line = pattern.sub(rf"\g<keep>{mark}", line)
    line = PATH.sub(_path, _HOME.sub("/user", line))
    line = HASH.sub("<n>", _PORT_HOST.sub("<host>", _DOTTED_HOST.sub("<host>", line)))
    return _without_numbers(line)[:most].rstrip()


def _path(found: re.Match[str]) -> str:
    """A shared library keeps its name: by it one knows what is missing."""
    library = _LIBRARY.search(found[0])
    return f"<path>/{library[1]}" if library else "<path>"


def _without_numbers(line: str) -> str:
    """A number stays where the line would name another code without it."""
    pieces, at, said = list[str](), 0, codes(line)
    for count, found in enumerate(_NUMBER.finditer(line)):
        start, end = found.span()
        is_code = said and count < _MAX_NUMBERS and codes(f"{line[:start]}0{line[end:]}") != said
        pieces += [line[at:start], found[0] if is_code else "<n>"]
        at = end
    return "".join([*pieces, line[at:]])


def unmarked(line: str) -> str:
    """The line as a question: numbers in place of `<n>`, nothing in place of other marks."""
    return " ".join(_MARK.sub(lambda found: "1" if found[0] == "<n>" else " ", line).split())
