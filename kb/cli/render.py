"""Here is a result; show it to a person: in colour at a terminal, as plain text in a pipe.

Articles and questions are untrusted: control characters and bidirectional marks are shown as symbols, so that no text
can move the cursor, hide a command, or write to the clipboard of whoever reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kb.records import Article, Hit, IssueRecord, Lang, SearchResult
from kb.text import visible

if TYPE_CHECKING:
    from rich.console import Console

    from kb.scan import Finding

__all__ = ["Screen", "percent"]

_ITEM = re.compile(r"[ \t]{0,12}(?:\d{1,9}[.)]|[-*+])[ \t]")
_SENTENCE = re.compile(r"[.!?](?=\s)|[。！？]")
_MAX_SENTENCE = 240
WORTH_A_LINE = 0.1  # the confidence below which a further hit is no help

_WORDS: dict[Lang, dict[str, str]] = {
    "en": {
        "symptom": "Symptom",
        "cause": "Cause",
        "fix": "Fix",
        "no cause": "(the article names no cause)",
        "no fix": "(no confirmed fix is known)",
        "confidence": "confidence",
        "matched": "matched",
        "aliases": "Asked as",
        "versions": "versions",
        "source": "source",
        "also": "Also near:",
        "unknown": "Not known: nothing in this base is near enough to be trusted as the answer.",
        "nearest": "The nearest, which may be something else:",
        "empty": "Not known, and nothing in this base is even near.",
        "more": "kb show {issue}   shows the whole of it",
        "searched": "Searched: {size} issues, {where}",
        "base": "base",
        "sources": "and {n} more: kb show {issue}",
        "line": "line {first}",
        "lines": "lines {first} to {last}, {count} times",
        "processes": "by {n} ranks or processes",
    },
    "zh": {
        "symptom": "现象",
        "cause": "原因",
        "fix": "解决方案",
        "no cause": "（文章未说明原因）",
        "no fix": "（尚无确认有效的解决办法）",
        "confidence": "置信度",
        "matched": "匹配",
        "aliases": "常见问法",
        "versions": "版本",
        "source": "出处",
        "also": "相近的还有：",
        "unknown": "未收录：库中没有足够接近、可以放心作为答案的问题。",
        "nearest": "最接近的如下，但可能是别的问题：",
        "empty": "未收录，库中也没有相近的问题。",
        "more": "kb show {issue}   查看全文",
        "searched": "检索范围：{size} 个问题，{where}",
        "base": "知识库",
        "sources": "另有 {n} 处：kb show {issue}",
        "line": "第 {first} 行",
        "lines": "第 {first} 至 {last} 行，共 {count} 次",
        "processes": "来自 {n} 个 rank 或进程",
    },
}


def percent(confidence: float) -> str:
    """Rounded down: what is not answered must not look as if it were sure enough."""
    return f"{int(confidence * 100)}%"


def _pieces_of(markdown: str) -> Iterator[tuple[str | None, str]]:
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


def _headline(record: IssueRecord) -> str:
    return (f"[{record.project}] " if record.project else "") + record.title


def _first_sentence(markdown: str) -> str:
    """Of the prose; with the mark that ends it, and not much longer than a line."""
    prose = next((text for fence, text in _pieces_of(markdown) if fence is None), "")
    paragraph = next((part for part in re.split(r"\n[ \t]{0,80}\n", prose.strip()) if part.strip()), "")
    text = " ".join(paragraph.split())
    end = _SENTENCE.search(text)
    text = text[: end.end()].rstrip() if end else text
    return text if len(text) <= _MAX_SENTENCE else text[: _MAX_SENTENCE - 2].rstrip() + " …"


def _first_step(markdown: str) -> str:
    step = next((line for line in markdown.splitlines() if _ITEM.match(line)), "")
    return _first_sentence(_ITEM.sub("", markdown[markdown.find(step) :], count=1) if step else markdown)


class Screen:
    """Where results are written: a terminal gets rich's colours and highlighted code, everything else plain lines."""

    def __init__(self, *, colour: bool, err: bool = False) -> None:
        """`err`: write to stderr."""
        self._console: Console | None = None
        self._err = err
        if colour:
            from rich.console import Console

            self._console = Console(highlight=False, soft_wrap=False, stderr=err)

    def result(self, result: SearchResult, *, size: int, where: str, bundled: bool = False) -> None:
        """`size` and `where` tell which base was asked: whoever gets no answer, and whoever gets one from another base
        than the one that travels with kb."""
        words = _WORDS[result.query.lang]
        if result.answered:
            first, others = result.hits[0], [hit for hit in result.hits[1:] if hit.confidence >= WORTH_A_LINE]
            self._hit(first, words)
            if others:
                self._line()
                self._line(words["also"], "dim")
                self._list(others)
            if not bundled:
                self.searched(result.query.lang, size=size, where=where)
            return
        if not result.hits:
            self._line(words["empty"], "bold yellow")
            self.searched(result.query.lang, size=size, where=where)
            return
        self._line(words["unknown"], "bold yellow")
        self._line(words["nearest"], "dim")
        self._list(result.hits)
        self._line()
        self._line(words["more"].format(issue=result.hits[0].issue), "dim")
        self.searched(result.query.lang, size=size, where=where)

    def searched(self, lang: Lang, *, size: int, where: str) -> None:
        """Which base was asked."""
        self._line(_WORDS[lang]["searched"].format(size=size, where=where), "dim")

    def record(self, record: IssueRecord, *, note: str = "", most_sources: int | None = None) -> None:
        words = _WORDS[record.lang]
        project = f"[{record.project}] " if record.project else ""
        self._line(project + record.title, "bold")
        self._line(record.id + (f"  ·  {note}" if note else ""), "dim")
        self._section(words["symptom"], record.symptom or "\n".join(record.errors))
        self._section(words["cause"], record.cause or words["no cause"])
        self._section(words["fix"], record.fix or words["no fix"])
        if record.aliases and most_sources is None:
            self._section(words["aliases"], "\n".join(f"- {alias}" for alias in record.aliases))
        self._line()
        if record.versions:
            self._line(f"{words['versions']}: {', '.join(record.versions)}", "dim")
        place = f"{record.source.path}:{record.source.first_line}-{record.source.last_line}"
        shown = record.sources if most_sources is None else record.sources[:most_sources]
        self._line("\n".join(f"{words['source']}: {source}" for source in (place, *shown)), "dim")
        if len(shown) < len(record.sources):
            self._line(words["sources"].format(n=len(record.sources) - len(shown), issue=record.issue), "dim")

    def finding(self, finding: Finding, log: str) -> None:
        """Where and what, the cause in a sentence, the first step, and how to read the rest."""
        record, words = finding.record, _WORDS[finding.record.lang]
        where = words["line" if finding.count == 1 else "lines"].format(
            first=finding.first_line, last=finding.last_line, count=finding.count
        )
        if finding.processes > 1:
            where += "  ·  " + words["processes"].format(n=finding.processes)
        self._line(_headline(record), "bold")
        self._line(f"  {log}: {where}  ·  {words['confidence']} {percent(finding.confidence)}", "dim")
        self._line(f"  > {finding.text}", "yellow")
        if record.cause:
            self._line(f"  {words['cause']}: {_first_sentence(record.cause)}")
        self._line(f"  {words['fix']}: {_first_step(record.fix) or words['no fix']}")
        self._line("  " + words["more"].format(issue=finding.issue), "dim")

    def remedy(self, record: IssueRecord, confidence: float, *, base: str = "") -> None:
        """Cause and fix, for whoever has the symptom on the screen above. `base`: which base they come from, when it is
        not the one that travels with kb."""
        words = _WORDS[record.lang]
        self._line(_headline(record), "bold")
        self._line(f"{record.id}  ·  {words['confidence']} {percent(confidence)}", "dim")
        if base:
            self._line(f"{words['base']}: {base}", "dim")
        self._section(words["cause"], record.cause or words["no cause"])
        self._section(words["fix"], record.fix or words["no fix"])
        self._line()
        self._line(words["more"].format(issue=record.issue), "dim")

    def say(self, text: str, style: str = "") -> None:
        self._line(text, style)

    def article(self, article: Article, *, explain: bool) -> None:
        for number, record in enumerate(article.records):
            if number:
                self._line()
                self._line("─" * 60, "dim")
            self.record(record)
        if not article.records:
            self._line("no issue was found in this article", "bold yellow")
        if explain and (article.records or article.remarks):
            self._line()
            self._line("What is in no record:" if article.remarks else "Everything is in a record.", "bold")
            for remark in article.remarks:
                text = remark.text.replace("\n", "\n" + " " * 24)
                self._line(f"{remark.line:6d}  {remark.kind:<14}  {text}")

    def _hit(self, hit: Hit, words: dict[str, str]) -> None:
        note = f"{words['confidence']} {percent(hit.confidence)}"
        if hit.matched:
            note += f"  ·  {words['matched']}: {', '.join(hit.matched)}"
        self.record(hit.record, note=note, most_sources=2)
        # A long remedy scrolls the title away, and what is last stays before one's eyes.
        self._line(f"{hit.record.id}  ·  {words['confidence']} {percent(hit.confidence)}", "dim")

    def _list(self, hits: Sequence[Hit]) -> None:
        for hit in hits:
            project = f"[{hit.record.project}] " if hit.record.project else ""
            self._line(f"  {percent(hit.confidence):>4}  {hit.issue}  {project}{hit.record.title}")

    def _section(self, heading: str, markdown: str) -> None:
        self._line()
        self._line(heading, "bold cyan")
        if self._console is None:
            self._line("\n".join("  " + line if line else "" for line in markdown.splitlines()))
            return
        for fence, body in _pieces_of(visible(markdown)):
            if fence is None:
                from rich.markdown import Markdown
                from rich.padding import Padding

                # No hyperlinks: an article chooses the text of a link and where it leads.
                self._console.print(Padding(Markdown(body, hyperlinks=False), (0, 0, 0, 2)))
            else:
                from rich.syntax import Syntax

                code = Syntax("", fence or "text", theme="ansi_dark").highlight(body)
                code.rstrip()
                # Neither wrapped nor cropped: a command that is broken over two lines cannot be pasted.
                for line in code.split("\n"):
                    self._console.print("    ", line, sep="", soft_wrap=True, highlight=False)

    def _line(self, text: str = "", style: str = "") -> None:
        text = visible(text)
        if self._console is None:
            import click

            click.echo(text, err=self._err)
        else:
            self._console.print(text, style=style, markup=False)
