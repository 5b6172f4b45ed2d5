"""The words around an issue in both languages, and what a printed line is."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from kb.records import Lang

__all__ = ["LABELS", "WARNING", "Line", "percent"]

LABELS: dict[Lang, dict[str, str]] = {
    "en": {
        "known": "known issue",
        "comma": ", ",
        "likely": "likely",
        "likely one": "Not certain: it may be this issue.",
        "likely several": "Not certain: it may be one of these.",
        "apart": "How to tell",
        "summary": "In short",
        "symptom": "Symptom",
        "cause": "Cause",
        "fix": "Fix",
        "colon": ": ",
        "no cause": "(kb found no cause in the article)",
        "no fix": "(kb found no fix in the article)",
        "confidence": "confidence",
        "matched": "matched",
        "triage": "Which one is it",
        "leads to": "What you pasted points to: {issues}",
        "only when": "Only when",
        "confusable": "Not to be confused with",
        "aliases": "Asked as",
        "versions": "versions",
        "updated": "updated",
        "source": "source",
        "also": "Also near:",
        "unknown": "Not known: nothing in this base is near enough to be trusted as the answer.",
        "next": "What may help: paste the first error line and the lines above it, and name the project that fails.\n"
        "Of a whole log: kb scan LOG",
        "nearest": "The nearest, which may be something else:",
        "empty": "Not known, and nothing in this base is even near.",
        "more": "shows the whole of it",
        "searched": "Searched: {size} issues, {where}",
        "searched one": "Searched: 1 issue, {where}",
        "base": "base",
        "sources": "and {n} more: kb show {issue}",
        "try": "Try first",
        "code left out": "({n} lines of code: see below.)",
        "near": "Also near",
        "full": " (or kb search --full)",
        "line": "line {first}",
        "lines": "lines {first} to {last}, {count} times",
        "processes": "by {n} ranks or processes",
    },
    "zh": {
        "known": "已知问题",
        "comma": "，",
        "likely": "可能",
        "likely one": "不能确定，可能是下面这个问题：",
        "likely several": "不能确定，可能是下面几个问题之一：",
        "apart": "如何判断",
        "summary": "一句话",
        "symptom": "现象",
        "cause": "原因",
        "fix": "解决方案",
        "colon": "：",
        "no cause": "（文章中没有找到原因）",
        "no fix": "（文章中没有找到解决办法）",
        "confidence": "置信度",
        "matched": "匹配",
        "triage": "先分清是哪一种",
        "leads to": "从贴出的内容看，是这个：{issues}",
        "only when": "判别",
        "confusable": "容易混淆",
        "aliases": "常见问法",
        "versions": "版本",
        "updated": "更新",
        "source": "出处",
        "also": "相近的还有：",
        "unknown": "未收录：库中没有足够接近、可以放心作为答案的问题。",
        "next": "可以这样再试：贴上最先出现的报错行和它上面几行，并写明是哪个项目；\n整份日志用 kb scan LOG",
        "nearest": "最接近的如下，但可能是别的问题：",
        "empty": "未收录，库中也没有相近的问题。",
        "more": "查看全文",
        "searched": "检索范围：{size} 个问题，{where}",
        "searched one": "检索范围：1 个问题，{where}",
        "base": "知识库",
        "sources": "另有 {n} 处：kb show {issue}",
        "try": "先试",
        "code left out": "（{n} 行代码，见下。）",
        "near": "相近的还有",
        "full": "（或 kb search --full）",
        "line": "第 {first} 行",
        "lines": "第 {first} 至 {last} 行，共 {count} 次",
        "processes": "来自 {n} 个 rank 或进程",
    },
}
"""the words around an issue, by the language of its record"""

WARNING = re.compile(r"(?i:\b(?:warning|caution|careful|danger))[:!]|(?:注意|警告|小心|危险)[：:！]")
"""the word by which a warning begins"""


class Line(NamedTuple):
    """A line and what it is, so that a terminal can choose a colour."""

    text: str
    role: Literal["headline", "note", "quote", "label", "text", "code"]


def percent(confidence: float) -> str:
    """Rounded down: a confidence just below the threshold must not be shown as the threshold."""
    return f"{int(confidence * 100)}%"
