"""An issue in a few lines of plain text: headline, cause in a sentence, first step of the fix, how to read the rest;
and of several that are likely, what tells them apart.

Everything that tells a person about an issue takes its words from here: the terminal, `kb scan`, `kb run` and the
hooks. In come records, hits and findings; out come strings without colour and without a line end. The text is as the
articles have it: whoever prints it passes it through `kb.text.visible`.

This is a verb-layer module because findings are. It imports neither click nor rich, so that a hook inside somebody
else's program can use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from kb.records import Hit, IssueRecord, Lang, SearchResult

if TYPE_CHECKING:
    from kb.scan import Finding

__all__ = [
    "LABELS",
    "Line",
    "cause_line",
    "cause_sentence",
    "fix_line",
    "fix_lines",
    "headline",
    "hit_line",
    "known_issue",
    "leads_line",
    "likely_hits",
    "likely_issues",
    "likely_line",
    "likely_lines",
    "of_finding",
    "percent",
    "pieces_of",
    "searched_line",
    "show_line",
    "summary_line",
    "tells_apart",
]

MAX_FIX_LINES = 6  # of the fix below an exception; a screen still shows the traceback above it
MAX_SUMMARY = 300  # characters of what an issue says in short; `kb check` asks for fewer
MAX_WIDTH = 240  # characters of a sentence or a line of prose; code is never cut

_ITEM = re.compile(r"[ \t]{0,12}(?:\d{1,9}[.)]|[-*+])[ \t]")
_SEE = re.compile(r"[\s,:;，：；。（(]{0,8}(?:see also|see|另?见|参见|详见)?[\s:：]{0,8}$")
_SENTENCE = re.compile(r"[.!?](?=\s)|[。！？]")

LABELS: dict[Lang, dict[str, str]] = {
    "en": {
        "known": "known issue",
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
        "source": "source",
        "also": "Also near:",
        "unknown": "Not known: nothing in this base is near enough to be trusted as the answer.",
        "next": "What may help: paste the first error line and the lines above it, and name the project that fails.\n"
        "Of a whole log: kb scan LOG",
        "nearest": "The nearest, which may be something else:",
        "empty": "Not known, and nothing in this base is even near.",
        "more": "shows the whole of it",
        "searched": "Searched: {size} issues, {where}",
        "base": "base",
        "sources": "and {n} more: kb show {issue}",
        "line": "line {first}",
        "lines": "lines {first} to {last}, {count} times",
        "processes": "by {n} ranks or processes",
    },
    "zh": {
        "known": "已知问题",
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
        "source": "出处",
        "also": "相近的还有：",
        "unknown": "未收录：库中没有足够接近、可以放心作为答案的问题。",
        "next": "可以这样再试：贴上最先出现的报错行和它上面几行，并写明是哪个项目；\n整份日志用 kb scan LOG",
        "nearest": "最接近的如下，但可能是别的问题：",
        "empty": "未收录，库中也没有相近的问题。",
        "more": "查看全文",
        "searched": "检索范围：{size} 个问题，{where}",
        "base": "知识库",
        "sources": "另有 {n} 处：kb show {issue}",
        "line": "第 {first} 行",
        "lines": "第 {first} 至 {last} 行，共 {count} 次",
        "processes": "来自 {n} 个 rank 或进程",
    },
}
"""the words around an issue, by the language of its record"""


class Line(NamedTuple):
    """A line and what it is, so that a terminal can choose a colour."""

    text: str
    role: Literal["headline", "note", "quote", "text"]


def percent(confidence: float) -> str:
    """Rounded down: a confidence just below the threshold must not be shown as the threshold."""
    return f"{int(confidence * 100)}%"


def headline(record: IssueRecord) -> str:
    return (f"[{record.project}] " if record.project else "") + record.title


def hit_line(hit: Hit) -> str:
    """A hit in a list of hits."""
    return f"  {percent(hit.confidence):>4}  {hit.issue}  {headline(hit.record)}"


def cause_sentence(record: IssueRecord) -> str:
    """Empty when the article names no cause."""
    return _first_sentence(record.cause)


def summary_line(record: IssueRecord) -> str:
    """Under a label, the cause in a sentence and what to try first; empty when the article does not say it in short."""
    words = LABELS[record.lang]
    return f"{words['summary']}{words['colon']}{_shortened(record.summary, MAX_SUMMARY)}" if record.summary else ""


def cause_line(record: IssueRecord) -> str:
    """`cause_sentence` under a label."""
    words = LABELS[record.lang]
    return f"{words['cause']}{words['colon']}{cause_sentence(record)}" if record.cause else ""


def leads_line(hit: Hit) -> str:
    """Of an issue with many causes, which of them what was pasted shows; empty for other issues."""
    return LABELS[hit.record.lang]["leads to"].format(issues=", ".join(hit.leads_to[:3])) if hit.leads_to else ""


def fix_line(record: IssueRecord) -> str:
    """The first step of the fix in a sentence, or that no fix is known."""
    words = LABELS[record.lang]
    return f"{words['fix']}{words['colon']}{_first_step(record.fix) or words['no fix']}"


def fix_lines(record: IssueRecord, most: int = MAX_FIX_LINES) -> list[str]:
    """The first `most` lines of the fix with its commands, under a label; nothing when there is no fix."""
    lines: list[str] = []
    for fence, text in pieces_of(record.fix):
        shown = [line.rstrip() for line in text.splitlines() if line.strip()]
        lines += map(_shortened, shown) if fence is None else ("   " + line for line in shown)
    words = LABELS[record.lang]
    label = (words["fix"] + words["colon"]).rstrip()
    return [label, *("  " + line for line in lines[:most]), *["  …"] * (len(lines) > most)] if lines else []


def show_line(record: IssueRecord) -> str:
    """The command that prints the issue as a whole. The id is quoted: it comes from a file name."""
    issue = f"'{record.issue}'"
    if "'" in record.issue:
        import shlex

        issue = shlex.quote(record.issue)
    return f"kb show {issue}   {LABELS[record.lang]['more']}"


def searched_line(lang: Lang, *, size: int, where: str) -> str:
    """Which base was asked, and how many issues it has."""
    return LABELS[lang]["searched"].format(size=size, where=where)


def tells_apart(record: IssueRecord, others: Iterable[IssueRecord] = ()) -> str:
    """By what one sees that it is this issue and none of the `others`: its own conditions, or what one of them says of
    it in "Not to be confused with", or how its symptom begins."""
    if record.branches:  # it has many causes: what to look at first
        return _shortened(record.summary, MAX_SUMMARY) or _first_sentence(record.symptom).rstrip(":：")
    if record.only_when:
        return _shortened(" ".join(_first_sentence(item) for item in _items(record.only_when)))
    said = (_said_of(record.issue, item) for other in others for item in _items(other.confusable))
    return next(filter(None, said), "") or _first_sentence(record.symptom).rstrip(":：")


def likely_hits(result: SearchResult) -> list[Hit]:
    """The hits that are named when the verdict is likely, the best first."""
    return [hit for hit in result.hits if hit.issue in result.likely]


def likely_lines(hits: Sequence[Hit]) -> list[str]:
    """Issues that are likely, each with what tells it apart from the others."""
    lines: list[str] = []
    for hit in hits:
        words = LABELS[hit.record.lang]
        apart = tells_apart(hit.record, [other.record for other in hits if other is not hit])
        lines += [hit_line(hit), *([f"        {words['apart']}{words['colon']}{apart}"] if apart else [])]
    return lines


def likely_line(hits: Sequence[Hit], lang: Lang) -> str:
    """That it may be one of them, and that this is not certain."""
    return LABELS[lang]["likely one" if len(hits) == 1 else "likely several"]


def known_issue(hit: Hit) -> list[str]:
    """An answer in at most eleven lines, for whoever has the failure on the screen above. Its first words are English
    in any language: a program may look for them."""
    record = hit.record
    said = summary_line(record) or cause_line(record)
    below = [said, leads_line(hit), *fix_lines(record, MAX_FIX_LINES - bool(hit.leads_to)), show_line(record)]
    known = "known issue" if record.lang == "en" else f"known issue · {LABELS[record.lang]['known']}"
    first = f"kb: {known} ({percent(hit.confidence)}): {headline(record)}"
    return [first, *("  " + line for line in below if line)]


def likely_issues(hits: Sequence[Hit]) -> list[str]:
    """The same for issues of which one is likely."""
    below = [*likely_lines(hits), *("  " + show_line(hit.record) for hit in hits)]
    return [f"kb: likely · {likely_line(hits, hits[0].record.lang)}", *below]


def of_finding(finding: Finding, log: str) -> list[Line]:
    """Where in the log and which issue, its cause in a sentence, its first step, and how to read the rest."""
    record, words = finding.record, LABELS[finding.record.lang]
    where = words["line" if finding.count == 1 else "lines"].format(
        first=finding.first_line, last=finding.last_line, count=finding.count
    )
    if finding.processes > 1:
        where += "  ·  " + words["processes"].format(n=finding.processes)
    lines = [
        Line(headline(record), "headline"),
        Line(
            f"  {log}: {where}  ·  {words[finding.verdict]}, {words['confidence']} {percent(finding.confidence)}",
            "note",
        ),
        Line(f"  > {finding.text}", "quote"),
    ]
    said = [summary_line(record)] if record.summary else [cause_line(record), fix_line(record)]
    lines += [Line(f"  {text}", "text") for text in said if text]
    return [*lines, Line(f"  {show_line(record)}", "note")]


def pieces_of(markdown: str) -> Iterator[tuple[str | None, str]]:
    """Prose (None, text) and fenced code (language, code) in turn; blank prose is left out."""
    from kb.text import fences

    after_code = False
    for block in fences.split(markdown):
        if isinstance(block, fences.Code):
            if block.lead.strip(" \t>"):  # a list item that begins with a fence
                yield None, block.lead
            yield block.language, block.text
            after_code = True
        elif block.text.strip():
            lines = list(block.lines)
            first_item = next((n for n, line in enumerate(lines) if _ITEM.match(line)), None)
            if after_code and first_item is not None:  # only a blank line lets a list go on that a fence interrupted
                lines.insert(first_item, "")
            yield None, "\n".join(lines)


def _items(markdown: str) -> list[str]:
    """The items of a list, each in one line without its mark."""
    items: list[str] = []
    for line in markdown.splitlines():
        if _ITEM.match(line):
            items.append(_ITEM.sub("", line, count=1).strip())
        elif items and line.strip():
            items[-1] += " " + line.strip()
    return items


def _said_of(issue: str, item: str) -> str:
    """What an item of "Not to be confused with" says in front of its link to `issue`; empty when it has none."""
    link = re.search(rf"\[`?{re.escape(issue)}`?\]", item)
    before = item[: link.start()].rpartition(".md)")[2] if link else ""
    return _shortened(_SEE.sub("", before).lstrip(" ,;.，；。、")) if before.strip() else ""


def _first_sentence(markdown: str) -> str:
    """Of the prose, with the mark that ends it."""
    prose = next((text for fence, text in pieces_of(markdown) if fence is None), "")
    paragraph = next((part for part in re.split(r"\n[ \t]{0,80}\n", prose.strip()) if part.strip()), "")
    text = " ".join(paragraph.split())
    end = _SENTENCE.search(text)
    return _shortened(text[: end.end()].rstrip() if end else text)


def _first_step(markdown: str) -> str:
    """The first sentence of the first list item; of a fix without a list, the first sentence."""
    step = next((line for line in markdown.splitlines() if _ITEM.match(line)), "")
    return _first_sentence(_ITEM.sub("", markdown[markdown.find(step) :], count=1) if step else markdown)


def _shortened(text: str, most: int = MAX_WIDTH) -> str:
    return text if len(text) <= most else text[: most - 2].rstrip() + " …"
