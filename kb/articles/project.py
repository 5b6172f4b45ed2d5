"""Here is a title and some text; tell me which project owns the issue."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = ["name_project"]

_NAME = r"[A-Za-z][\w.+\-]{0,40}(?: [A-Z0-9][\w.+\-]{0,30}){0,3}"
_PATTERNS = [
    re.compile(rf"(?:^|[^\w])({_NAME})\s?项目(?!优选|推荐)"),
    re.compile(rf"(?:在|使用|针对|基于|用)\s?({_NAME})\s?(?:项目|框架|库|工具|平台|上|中|里)"),
    re.compile(rf"^[^\w]{{0,6}}(?:(?:Fix|Fixing|Solved|Resolved|Solving)[:：]? |解决[:：]\s?|【[^】]{{1,20}}】\s?)({_NAME})(?: (?:not|fails|error|errors|crash\w*|hangs|does|cannot|won|is|keeps|stuck|returns)|\s?[\u4e00-\u9fff])"),
    re.compile(rf"^({_NAME})\s?(?:[\u4e00-\u9fff].{{0,40}})?(?:报错|启动失败|异常|失败|答疑|常见|问答|踩坑|故障|问题|错误|排查|客户端|训练|部署|启动|安装|使用|运行|编译|写入|连接)"),
    re.compile(r"(?:\bin|\bwith|\bfor|\bon|\busing|\bof) ([A-Z][\w.+\-]{1,40}(?: [A-Z][\w.+\-]{1,30}){0,2})\s?(?:$|[:,.(]| (?:project|v?\d|when|after|on|and))"),
    re.compile(rf"^({_NAME}) (?:FAQ|[Tt]roubleshooting|Common|Known|errors?|failures?|crash|fails|not |does|cannot|hangs|stuck)"),
    re.compile(r"(?:support|questions about|about|problems with|issues with|failures in|covers|users of|running) ([A-Z][\w.+\-]{1,40})"),
    re.compile(r"github\.com/[\w.-]{1,40}/([\w.-]{1,60})"),
]  # fmt: skip
_NOT_A_PROJECT = frozenset(
    [
        "faq",
        "error",
        "errors",
        "fix",
        "fixes",
        "how",
        "why",
        "what",
        "when",
        "issue",
        "issues",
        "troubleshooting",
        "known",
        "common",
        "the",
        "a",
        "an",
        "this",
        "these",
        "my",
        "your",
        "solved",
        "q",
        "a",
        "cuda",
        "gpu",
        "cpu",
        "linux",
        "windows",
        "ubuntu",
        "macos",
        "python",
        "nan",
        "oom",
        "runtimeerror",
        "valueerror",
        "loss",
        "step",
        "build",
        "failed",
        "http",
        "api",
        "installation",
        "execution",
        "general",
        "introduction",
        "home",
        "docs",
        "problem",
        "problems",
        "solution",
        "symptom",
        "cause",
        "training",
        "inference",
        "no",
        "new",
        "unable",
        "cannot",
        "failure",
        "failures",
        "release",
        "notes",
    ]
)
_WORD = re.compile(r"[A-Za-z][\w.+\-]{1,40}")


def name_project(stated: Sequence[str], title: str, texts: Iterable[str], tags: Sequence[str]) -> str | None:
    """`stated` by the article wins; then its title, its first sentences; then a tag the title or text names."""
    for value in stated:
        if value.strip():
            return value.strip()
    body = list(texts)
    for text in [title, *body[:6]]:
        for pattern in _PATTERNS:
            for found in pattern.finditer(text[:600]):
                name = _trim(found[1])
                if name:
                    return name
    lowered = title.lower()
    for tag in tags:
        if tag.isascii() and tag.lower() in lowered:
            return tag
    first = _WORD.findall(title)
    if (
        first
        and _trim(first[0])
        and (first[0][0].isupper() or "_" in first[0])
        and title.lstrip("# 【解决】：:").startswith(first[0])
        and "Error" not in first[0]
    ):
        return first[0]
    return None


def _trim(name: str) -> str:
    name = name.strip(" .-")
    words = name.split()
    while words and words[0].lower() in _NOT_A_PROJECT:
        words.pop(0)
    while words and (words[-1].lower() in _NOT_A_PROJECT or re.fullmatch(r"v?\d[\d.x]*", words[-1])):
        words.pop()
    return " ".join(words) if words and len(words[0]) > 1 else ""
