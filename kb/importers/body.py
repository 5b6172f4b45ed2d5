"""Cleans the body of an issue or a comment: keeps the author's words and code, drops the words of the issue form.

Dropped: comments, check boxes, `_No response_`, headings without text, dumps of the environment (their versions are
kept), the markup of pictures. Code is unchanged, except that a long log loses its middle.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kb.importers.mask import mask_secrets, tidy
from kb.logs.classify import is_error_line
from kb.scraped.labels import role_of
from kb.text import fences

__all__ = ["Body", "read_body"]

MAX_CHARS = 40_000  # of one post; a longer one loses its middle
MAX_VERSIONS = 8
MAX_HEAD, MAX_TAIL, MAX_KEPT = 10, 40, 12  # lines of a long log: its beginning, its end, error lines between

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]{1,8}(.{1,200})\Z")
_BOLD_HEADING = re.compile(r" {0,3}\*\*([^*]{2,80})\*\*[ \t:：]{0,4}\Z")
_CHECKBOX = re.compile(r"[ \t>]{0,12}[-*+] \[[ xX√]?\]")
_EMPTY = re.compile(r"[ \t>*_]{0,8}(?:no response|n/?a|none|无|无回复)[ \t.*_]{0,8}\Z", re.IGNORECASE)
_QUOTED_REPLY = re.compile(r"\s{0,3}(?:>|On .{5,80} wrote:|@[\w-]{1,39}[,:，：]?\s{0,3}\Z)")
_MENTION = re.compile(r"\A(?:@[\w-]{1,39}[,:，： ]{0,3}){1,5}")
_SUMMARY = re.compile(r"<summary[^<>]{0,100}>[ \t]{0,4}([^<>]{0,200}?)[ \t]{0,4}</summary>", re.IGNORECASE)
_TAGS = re.compile(
    r"</?(?:details|summary|p|div|br|center|picture|source|b|i|sub|sup)(?:\s[^<>]{0,300})?/?>", re.IGNORECASE
)
_PICTURE = re.compile(r"!(?=\[[^\]\n]{0,200}\]\()|<img\s[^<>]{0,600}>", re.IGNORECASE)
_DUMP = re.compile(
    r"\s{0,8}(?:Collecting environment information|PyTorch version ?:|Is debug build ?:|Package +Version\b|"
    r"- ?`?transformers`? version ?:|CUDA used to build PyTorch ?:|absl-py[ =]|DeepSpeed general environment|"
    r"deepspeed wheel compiled)"
)
_VERSION = re.compile(
    r"(?m)^[ \t>*+-]{0,8}`?([A-Za-z][\w.-]{1,30})`?(?:[ \t]{0,3}version)?"
    r"(?:[ \t]{0,3}(?:==|[:=：])[ \t]{0,3}|[ \t]{2,40})v?(\d{1,4}\.\d{1,6}[\w.+-]{0,30})"
)
_VERSIONED = frozenset(
    "torch pytorch transformers peft trl accelerate deepspeed vllm sglang bitsandbytes flash-attn flash_attn xformers "
    "python cuda numpy tokenizers datasets ms-swift swift llamafactory megatron-core apex triton ray unsloth torch-npu "
    "torch_npu cann".split()
)
_EITHER = re.compile(r"\s[/|]\s|[｜／]")
_EXPECTED = re.compile(r"(?i)expected (?:behaviou?r|result)|期望|期待|预期")
_REPRODUCTION = re.compile(r"(?i)repro|steps|复现|重现")


@dataclass(frozen=True, slots=True)
class Body:
    text: str
    """markdown"""
    prose: str
    """the text without code"""
    versions: tuple[str, ...]
    """`name version`, as the post describes its environment"""


def read_body(text: str, *, reply: bool = False) -> Body:
    """`reply`: a comment, not the first post. It loses leading quotations and mentions, and keeps its check boxes."""
    text = mask_secrets(tidy(text))
    if len(text) > MAX_CHARS:
        text = f"{text[: MAX_CHARS // 2]}\n\n[…]\n\n{text[-MAX_CHARS // 2 :]}"
    versions = _versions(text)
    parts = _without_empty(_without_environment(list(_parts(_without_comments(text), boxes=reply))))
    if reply:
        while parts and not parts[0].code and (not parts[0].text.strip() or _QUOTED_REPLY.match(parts[0].text)):
            parts.pop(0)
        if parts and not parts[0].code:
            parts[0].text = _MENTION.sub("", parts[0].text)
    lines = [part.text for part in parts]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
    return Body(text, "\n".join(part.text for part in parts if not part.code), versions)


@dataclass(slots=True)
class _Part:
    """A line of prose, or a whole block of code with its fences."""

    text: str
    code: bool = False
    level: int = 0
    """of a heading"""
    title: str = ""


def _without_comments(text: str) -> str:
    """Removes `<!-- comments -->` of the form. A comment that never ends is text, and so is one in code."""
    kept: list[str] = []
    at, last = 0, text.rfind("-->")
    in_code = [isinstance(block, fences.Code) for block in fences.split(text) for _ in block.lines]
    number = 0  # of the line at `at`
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        line = text[at:end]
        start = -1 if in_code[number] else line.find("<!--")
        stop = _end_of_comment(text, at, at + start) if start >= 0 and at + start < last else 0
        if stop and in_code[number + text.count("\n", at, stop)]:
            stop = 0
        if start >= 0:
            line = line[:start] if stop else line.replace("<!--", "&lt;!--")
        kept.append(line)
        end = stop or end
        number += text.count("\n", at, end)
        at = end
    return "".join(kept)


def _end_of_comment(text: str, line: int, start: int) -> int:
    """The end of the comment at `start`, or 0 when it is none.

    A comment inside a line ends with its paragraph at the latest. It does not end inside a fence that it opens, and it
    does not begin inside a code span.
    """
    if text.count("`", line, start) % 2:
        return 0
    stop = text.find("-->", start + 4)
    if stop < 0 or (text[line:start].strip() and "\n\n" in text[start:stop]):
        return 0
    return stop + 3


def _parts(text: str, *, boxes: bool) -> Iterator[_Part]:
    """`boxes`: a list of check boxes is somebody's own, not the form's."""
    for block in fences.split(text):
        if isinstance(block, fences.Code):
            lines = [*block.lines]
            if not block.closed:  # what closes its surroundings is no code
                while len(lines) > 1 and lines[-1].strip().lower() in ("", "<details>", "</details>"):
                    lines.pop()
                lines.append(block.closing)
            yield _block(lines)
            continue
        for line in block.lines:
            if (boxes or not _CHECKBOX.match(line)) and not _EMPTY.match(line):
                yield _line(line)


def _line(line: str) -> _Part:
    line = _PICTURE.sub("", _TAGS.sub("", _SUMMARY.sub(r"**\1**", line))).rstrip()
    heading = _HEADING.match(line)
    bold = _BOLD_HEADING.match(line)
    level = len(heading[1]) if heading else 7 if bold else 0
    return _Part(line, False, level, (heading[2] if heading else bold[1] if bold else "").strip(" #:："))


def _block(lines: list[str]) -> _Part:
    inner = lines[1:-1]
    if len(inner) > MAX_HEAD + MAX_TAIL + MAX_KEPT:
        middle = inner[MAX_HEAD:-MAX_TAIL]
        errors = list(dict.fromkeys(line for line in middle if is_error_line(line)))[:MAX_KEPT]
        note = [f"… ({len(middle) - len(errors)} lines left out)"]
        lines = [lines[0], *inner[:MAX_HEAD], *note, *errors, *inner[-MAX_TAIL:], lines[-1]]
    return _Part("\n".join(line[:2000] for line in lines), True)


def _without_environment(parts: list[_Part]) -> list[_Part]:
    """Removes answers about the machine and the output of `collect_env`, unless an error line is in them."""
    kept: list[_Part] = []
    under = 0
    for part in parts:
        if part.level:
            if under and part.level <= under:
                under = 0
            if not under and _is_environment(part.title):
                under = part.level
        lines = part.text.split("\n")
        dump = part.code and any(map(_DUMP.match, lines))
        if (under or dump) and not any(map(is_error_line, lines)):
            continue
        kept.append(part)
    return kept


def _is_environment(title: str) -> bool:
    words = title.casefold()
    return "environment" in _roles(title) or words.startswith(
        ("your current environment", "the output of `python coll")
    )


def _without_empty(parts: list[_Part]) -> list[_Part]:
    """Removes headings without text, and headings like "Describe the bug"."""
    kept: list[_Part] = []
    for part in reversed(parts):
        if part.level:
            below = next((other for other in reversed(kept) if other.text.strip()), None)
            if below is None or (below.level and below.level <= part.level):
                continue
        kept.append(part)
    return [part for part in kept[::-1] if not _only_says_here(part.title)]


def _only_says_here(title: str) -> bool:
    return bool(_roles(title) & {"symptom", "question"}) and not _REPRODUCTION.search(title)


def _roles(title: str) -> set[str]:
    """The roles of a heading; one in two languages has both: "Expected behavior / 期待表现"."""
    return {role_of(part) for part in _EITHER.split(title)} | ({"question"} if _EXPECTED.match(title) else set())


def _versions(text: str) -> tuple[str, ...]:
    found = {name.casefold(): f"{name} {number}" for name, number in reversed(_VERSION.findall(text))}
    known = [label for name, label in found.items() if name in _VERSIONED]
    return tuple(reversed(known))[:MAX_VERSIONS]
