"""What the words of a comment say: it is solved, thank you, try this, which version, same here.

The words stand in `wording.json`, in English and Chinese, as patterns in lower case.
Code is no prose: a log that holds "fixed" says nothing about the problem.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kb.logs.classify import is_error_line, opens_with_error
from kb.logs.errors import looks_like_code
from kb.text import fences

__all__ = ["Said", "announces_solution", "read_words"]

MAX_CHARS = 20_000  # of a comment that are read; a longer one keeps both ends

_CLAUSE = re.compile(r"[.!。！；;\n,，]|(?<=[?？])|\bbut\b|\bhowever\b|但是?|不过")
_ASKED = re.compile(r"[?？吗么嘛]\s{0,3}\Z")
_SENTENCE = re.compile(
    r"(?:\bI|\b[Ww]e|\b[Yy]ou|\b[Ww]hen|\b[Aa]fter|\b[Tt]his|\b[Ii]t|\bmy) [a-z']{2}|[\u4e00-\u9fff]{4}"
)
_SPAN = re.compile(r"`[^`\n]{1,300}`")
_QUOTE = re.compile(r"\s{0,3}>")
_CODE = frozenset("bash sh shell console python py diff yaml yml json toml ini cpp c dockerfile powershell cmd".split())
_PROMPT = re.compile(
    r"\s{0,8}(?:\$|>>>)\s|\s{0,8}(?:sudo |pip3? |conda |docker |kubectl |export |git |apt |python3? )\S"
)
_SETTING = re.compile(
    r"(?<![\w-])--?[a-z][\w-]{2,40}|\b[\w.-]{2,40}\s?==\s?v?\d|\b[A-Z][A-Z0-9_]{3,60}\s?=\s?\S|\b\w{2,40}=[\w\"'./]|"
    r"\b[\w-]{2,30}[ @](?:to |版本)?v?\d{1,4}\.\d{1,5}|\bpip3? install\b|\bconda install\b|\b\w{2,40}(?:\.\w{1,40})*\(|"
    r"\b(?!\w{0,40}(?:ERROR|FAIL))[A-Z][A-Z0-9]{1,20}_[A-Z0-9_]{2,40}\b|"
    r"\b[\w-]{1,40}\.(?:ya?ml|json|conf|cfg|toml|ini|py|txt|sh)\b|\b[a-z]{2,30}_[a-z_]{2,40}\b|到\s?v?\d{1,4}\.\d"
)
_CHANGE = re.compile(r"(?<![\w&])#\d{1,7}\b|/(?:pull|commit|releases?)/|\bPR\b")
_LINK = re.compile(r"https?://")
_MAIL = re.compile(r"(?im)^(?:on .{5,100} wrote:|sent from my \w{1,20}.{0,20}|-{3,8} ?original message.{0,20})\s{0,5}$")
_PICTURE = re.compile(r"!\[[^\]\n]{0,200}\]\([^)\n]{0,500}\)|<img\s[^<>]{0,600}>")
_MENTION = re.compile(r"(?<![\w/])@([\w-]{1,39})")
_WORD = re.compile(r"[a-z]{3,30}|[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class Said:
    """What a comment says. A word of solving in a question, a wish or a denial does not count as `solved`."""

    solved: bool
    """at least as many clauses say that it is solved as that it is not"""
    cured: bool
    """the same in words that no description of a problem has: "it works with one card" is none"""
    unsolved: bool
    same: bool
    """it reports the same problem, another one, or asks how others solved it"""
    thanks: bool
    action: bool
    heading: bool
    """it opens a part with "Solution:", "Update:", "for anyone who"..."""
    asks: bool
    """for information"""
    unsure: bool
    pending: bool
    released: bool
    """a change that solves it is there"""
    closing: bool
    code: bool
    """a command, a setting, a version or code that is no error line"""
    change: bool
    """a pull request, commit or release"""
    link: bool
    error: bool
    """it holds error lines, in code or alone on a line"""
    question: bool
    """it ends with a question"""
    words: int
    """of prose; a Chinese character counts as one"""
    named: tuple[str, ...]
    """logins, lower case, of people it addresses"""
    quoted: str
    """the lines it quotes, joined"""


def read_words(text: str) -> Said:
    if len(text) > MAX_CHARS:
        text = f"{text[: MAX_CHARS // 2]}\n{text[-MAX_CHARS // 2 :]}"
    if mail := _MAIL.search(text):  # what follows is the mail that it answers
        text = text[: mail.start()]
    prose: list[str] = []
    quoted: list[str] = []
    code = error = False
    for block in fences.split(_PICTURE.sub("", text)):
        if isinstance(block, fences.Code):
            lines = [line for line in block.inside if line.strip()][:200]
            failing = any(map(is_error_line, lines))
            error |= failing
            code |= bool(lines) and not failing and (block.language.lower() in _CODE or any(map(_is_code, lines)))
            prose.append("")
            continue
        for line in block.lines:
            if _QUOTE.match(line):
                quoted.append(line.lstrip("> \t"))
            elif line.strip() and is_error_line(line) and not _SPAN.search(line) and not _is_sentence(line):
                error = True
            else:
                code |= bool(_PROMPT.match(line)) or any(
                    not is_error_line(span.strip("`")) for span in _SPAN.findall(line)
                )
                prose.append(line)
    shown = "\n".join(prose).strip()
    bare = _SPAN.sub(" ` ", shown)
    code |= bool(_SETTING.search(re.sub(r"https?://\S{1,500}", " ", bare)))
    words = bare.casefold()
    clauses = [clause for clause in _CLAUSE.split(words) if clause and clause.strip()]
    supposed = [_says("supposed", clause) for clause in clauses]
    failed = [_says("unsolved", clause) and not maybe for clause, maybe in zip(clauses, supposed, strict=True)]
    told = [
        clause
        for clause, failure in zip(clauses, failed, strict=True)
        if not (failure or _ASKED.search(clause) or _says("not_then", clause))
    ]
    enough = max(1, sum(failed))
    lines = [line.strip(" *#_-").casefold() for line in shown.split("\n")]
    return Said(
        solved=sum(_says("solved", clause) for clause in told) >= enough,
        cured=sum(_says("cured", clause) for clause in told) >= enough,
        unsolved=any(failed),
        same=_says("same", words),
        thanks=_says("thanks", words),
        action=_says("action", words),
        heading=any(_opens("heading", line) for line in lines if line),
        asks=_says("asks", words),
        unsure=_says("unsure", words),
        pending=_says("pending", words),
        released=_says("released", words),
        closing=_says("closing", words),
        code=code,
        change=bool(_CHANGE.search(shown)),
        link=bool(_LINK.search(shown)),
        error=error,
        question=shown.rstrip(" )*").endswith(("?", "？")) or (shown[-1:] in "吗么嘛呢" and bool(shown)),
        words=len(_WORD.findall(words)),
        named=tuple(dict.fromkeys(name.casefold() for name in _MENTION.findall(shown + "\n" + "\n".join(quoted)))),
        quoted="\n".join(quoted),
    )


def _is_sentence(line: str) -> bool:
    """Somebody's words, in which the name of an error may stand."""
    return not opens_with_error(line.strip(" *_>")) and _SENTENCE.search(line) is not None


def _is_code(line: str) -> bool:
    return looks_like_code(line) or _PROMPT.match(line) is not None


def announces_solution(title: str) -> bool:
    """ "How I fixed ...", "... 的解决方法"; no question for one."""
    return bool(_patterns()["heading"].search(title.casefold())) and not read_words(title).question


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    """For each group one pattern of both languages: English as whole words, Chinese anywhere."""
    groups: dict[str, dict[str, list[str]]] = json.loads((Path(__file__).parent / "wording.json").read_text("utf-8"))
    made: dict[str, re.Pattern[str]] = {}
    for name, langs in groups.items():
        english, chinese = "|".join(langs["en"]), "|".join(langs["zh"])
        made[name] = re.compile(rf"(?<![\w-])(?:{english})(?!\w)|{chinese}")
    return made


def _says(group: str, text: str) -> bool:
    return _patterns()[group].search(text) is not None


def _opens(group: str, line: str) -> bool:
    return _patterns()[group].match(line) is not None
