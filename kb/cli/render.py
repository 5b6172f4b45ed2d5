"""Shows results to a person: in colour at a terminal, as plain text in a pipe. `kb.brief` has the words.

Articles and questions are untrusted: control characters and bidirectional marks are shown as symbols, so that no text
can move the cursor, hide a command, or write to the clipboard of whoever reads it. A terminal shows every word that a
pipe gets: HTML in an article is text here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING

from kb.brief import (
    LABELS,
    MOST_ROWS,
    WARNING,
    Line,
    answer_lines,
    base_note,
    headline,
    hit_line,
    leads_line,
    likely_hits,
    likely_line,
    likely_lines,
    of_finding,
    percent,
    pieces_of,
    searched_line,
    show_line,
)
from kb.records import Article, Hit, IssueRecord, Lang, SearchResult
from kb.text import visible
from kb.text.width import CODE_SPAN, columns, cut, rows, wrap

if TYPE_CHECKING:
    from rich.console import Console
    from rich.markdown import Markdown

    from kb.scan import Finding
    from kb.scraped.explain import Passage

__all__ = ["WORTH_A_LINE", "Screen"]

WORTH_NAMING = 0.01  # the confidence below which an issue is not even named as the nearest
WORTH_A_LINE = 0.1  # the confidence below which a further hit is no help

NEAREST = 3  # of the issues that may be something else

_STYLES = {"headline": "bold", "note": "dim", "quote": "yellow", "label": "bold cyan", "text": "", "code": "cyan"}
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def _markdown(text: str) -> Markdown:
    """Without what would hide words: HTML (rich drops it), the targets of references, and pictures."""
    from markdown_it import MarkdownIt
    from rich.markdown import Markdown

    parser = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])
    shown = Markdown("", hyperlinks=False)  # an article chooses the text of a link and where it leads: show both
    shown.parsed = parser.disable(["reference", "image"]).parse(text)
    return shown


class Screen:
    """Where results are written: a terminal gets rich's colours and highlighted code, everything else plain lines."""

    def __init__(self, *, colour: bool, err: bool = False) -> None:
        """`err`: write to stderr."""
        self._console: Console | None = None
        self._err = err
        self._width = columns()
        if colour:
            from rich.console import Console

            self._console = Console(
                highlight=False, emoji=False, soft_wrap=False, stderr=err, force_terminal=True, width=self._width
            )

    @contextmanager
    def paged(self, *, use: bool = True) -> Iterator[None]:
        """What is shown meanwhile goes through the reader's pager, where one is in use and the screen is too low."""
        if self._console is None or self._err or not use:
            yield
            return
        from kb.cli import pager

        shown, terminal = StringIO(), self._console.file
        self._console.file = shown
        try:
            yield
        finally:
            self._console.file = terminal
            text = shown.getvalue()
            pager.show(text, rows(_COLOUR.sub("", text).split("\n"), self._width))

    def result(
        self,
        result: SearchResult,
        *,
        size: int,
        where: str,
        bundled: bool = False,
        lang: Lang | None = None,
        full: bool = False,
        why: bool = False,
    ) -> None:
        """`size` and `where` tell which base was asked: whoever gets no answer, and whoever gets one from another base
        than the one that travels with kb. `lang`: the reader's; None: the question's. `full`: all of a known issue, not
        only what to try first. `why`: what speaks for each shown hit, and against it."""
        lang = lang or result.query.lang
        words = LABELS[lang]
        several = len(result.bases) > 1
        if result.verdict == "known":
            first, *others = shown = result.hits[:1] + tuple(h for h in result.hits[1:] if h.confidence >= WORTH_A_LINE)
            if full:
                self._hit(first, words, base=several)
            else:
                self._answer(first, others, rows_below=0 if bundled else 1, base=several)
            if others and full:
                self._line()
                self._line(words["also"], "dim")
                self._list(others, base=several)
        elif result.verdict == "likely":
            shown = tuple(likely_hits(result))
            self.likely(shown, lang, each_base=several)
        else:
            shown = result.hits[:NEAREST]
            self._prose(words["unknown" if shown else "empty"], "bold yellow")
            for line in words["next"].split("\n"):
                self._prose(line)
            if near := [hit for hit in shown if hit.confidence >= WORTH_NAMING]:
                self._line()
                self._line(words["nearest"], "dim")
                self._list(near, "dim", base=several)
                self._line(show_line(near[0].record, lang), "dim")
        if why:
            self._why(result, shown)
        if result.verdict != "known" or not bundled:
            self.searched(lang, size=size, where=where)

    def likely(
        self, hits: Sequence[Hit], lang: Lang, *, base: str = "", each_base: bool = False, above: int | None = None
    ) -> None:
        """Issues of which one is likely, and what tells them apart. `base` and `above`: as in `remedy`; None: as many
        rows as it takes. `each_base`: they come from several bases."""
        self._prose(likely_line(hits, lang), "bold yellow")
        if base:
            self._line(f"{LABELS[lang]['base']}: {base}", "dim")
        most = None
        if above is not None:
            most = MOST_ROWS - above - 2 - bool(base) - rows([show_line(hit.record) for hit in hits], self._width)
        self._lines(Line(line, "text") for line in likely_lines(hits, self._width, most=most, base=each_base))
        self._line()
        for hit in hits:
            self._line(show_line(hit.record, lang), "dim")

    def _why(self, result: SearchResult, shown: Sequence[Hit]) -> None:
        from kb.why import why_lines

        for hit in shown:
            self._line()
            first, *others = why_lines(result.read_as, hit)
            self._line(first, "bold")
            for line in others:
                self._line(line)

    def searched(self, lang: Lang, *, size: int, where: str) -> None:
        """Which base was asked."""
        self._line(searched_line(lang, size=size, where=where), "dim")

    def record(self, record: IssueRecord, *, note: str = "", leads: str = "", most_sources: int | None = None) -> None:
        """`leads`: of an issue with many causes, to which of them the question points."""
        words = LABELS[record.lang]
        self._line(headline(record), "bold")
        self._line(record.id + (f"  ·  {note}" if note else ""), "dim")
        if record.summary:
            self._section(words["summary"], record.summary)
        if leads:
            self._line()
            self._line(leads, "bold yellow")
        if symptom := record.symptom or "\n".join(record.errors):
            self._section(words["symptom"], symptom)
        self._section(words["cause"], record.cause or words["no cause"])
        self._section(words["fix"], record.fix or words["no fix"])
        if record.triage:
            self._section(words["triage"], record.triage)
        if record.only_when and most_sources is None:
            self._section(words["only when"], record.only_when)
        if record.confusable and most_sources is None:
            self._section(words["confusable"], record.confusable)
        if record.aliases and most_sources is None:
            self._section(words["aliases"], "\n".join(f"- {alias}" for alias in record.aliases))
        self._line()
        facts = {"versions": ", ".join(record.versions), "updated": record.updated}
        if any(facts.values()):
            self._line("  ·  ".join(f"{words[name]}: {said}" for name, said in facts.items() if said), "dim")
        place = f"{record.source.path}:{record.source.first_line}-{record.source.last_line}"
        shown = record.sources if most_sources is None else record.sources[:most_sources]
        self._line("\n".join(f"{words['source']}: {source}" for source in (place, *shown)), "dim")
        if len(shown) < len(record.sources):
            self._line(words["sources"].format(n=len(record.sources) - len(shown), issue=record.issue), "dim")

    def finding(self, finding: Finding, log: str) -> None:
        for line in of_finding(finding, log):
            if line.role in ("text", "headline"):
                first = "" if line.role == "headline" else "  "
                wrapped = wrap(line.text.strip(), self._width, first=first, indent="    ")
                self._lines(Line(text, line.role) for text in wrapped)
            else:
                self._lines([line])

    def remedy(self, record: IssueRecord, confidence: float, *, base: str = "", above: int = 0) -> None:
        """What to try, for whoever has the symptom on the screen above. `base`: which base it comes from, when it is
        not the one that travels with kb. `above`: the rows that the caller has printed, of the fifteen."""
        words = LABELS[record.lang]
        head = [
            *self._headline(record),
            Line(f"{record.id}  ·  {words['confidence']} {percent(confidence)}", "note"),
            *([Line(f"{words['base']}: {base}", "note")] if base else []),
        ]
        self._lines(head)
        taken = above + rows([line.text for line in head], self._width)
        self._lines(answer_lines(record, self._width, most=MOST_ROWS - taken))

    def _headline(self, record: IssueRecord) -> list[Line]:
        return [Line(line, "headline") for line in wrap(headline(record), self._width, indent="    ")]

    def _answer(self, hit: Hit, others: Sequence[Hit], *, rows_below: int, base: bool) -> None:
        """A known issue in fifteen rows: what it is, what to try, where to read on."""
        record, words = hit.record, LABELS[hit.record.lang]
        note = f"{record.id}  ·  {words['known']}{words['comma']}{words['confidence']} {percent(hit.confidence)}"
        notes = [note + base_note(hit) if base else note]
        if base and cut(notes[0], self._width) != notes[0]:  # which base it is must be seen whole
            notes = [note, f"{words['base']}: {hit.base}"]
        elif hit.matched:
            matched = f"{notes[0]}  ·  {words['matched']}: "
            shown = cut(matched + ", ".join(hit.matched), self._width)
            notes = [shown if shown.startswith(matched) else notes[0]]  # not the label alone
        head = [*self._headline(record), *(Line(one, "note") for one in notes)]
        self._lines(head)
        near = ", ".join(f"{other.issue} {percent(other.confidence)}" for other in others[:NEAREST])
        below = [Line(cut(f"{words['near']}{words['colon']}{near}", self._width), "note")] if near else []
        most = MOST_ROWS - rows_below - rows([line.text for line in head], self._width)
        self._lines(
            answer_lines(
                record, self._width, most=most, leads=leads_line(hit), below=below, read_on=words["full"], spaced=True
            )
        )

    def say(self, text: str, style: str = "") -> None:
        self._line(text, style)

    def article(self, article: Article, *, explain: bool, passages: Sequence[Passage] = ()) -> None:
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
        if passages:
            self._line()
            self._line("How each line was read:", "bold")
        for one in passages:
            where = f"{one.first}-{one.last}" if one.last > one.first else f"{one.first}"
            if not one.tag:
                self._line(f"{where:>9}  (no text: blank, front matter, comment or marks)", "dim")
                continue
            goes = f"#{one.record} {one.field}" if one.record else "no record"
            self._line(f"{where:>9}  {one.tag:<11} {percent(one.chance):>4}  {goes:<10}  {one.text[:100]}")
            if one.because:
                self._line(f"{'':31}because: {' · '.join(one.because)}", "dim")

    def _hit(self, hit: Hit, words: dict[str, str], *, base: bool) -> None:
        note = f"{words['confidence']} {percent(hit.confidence)}{base_note(hit) if base else ''}"
        if hit.matched:
            note += f"  ·  {words['matched']}: {', '.join(hit.matched)}"
        self.record(hit.record, note=note, leads=leads_line(hit), most_sources=2)
        # A long remedy scrolls the title away, and what is last stays before one's eyes.
        self._line(f"{hit.record.id}  ·  {words['confidence']} {percent(hit.confidence)}", "dim")

    def _list(self, hits: Sequence[Hit], style: str = "", *, base: bool = False) -> None:
        for hit in hits:
            self._line(hit_line(hit, base=base), style)

    def _section(self, heading: str, markdown: str) -> None:
        self._line()
        self._line(heading, "bold cyan")
        if self._console is None:
            self._line("\n".join("  " + line if line else "" for line in markdown.splitlines()))
            return
        for fence, body in pieces_of(visible(markdown)):
            if fence is None:
                from rich.padding import Padding

                self._console.print(Padding(_markdown(body), (0, 0, 0, 2)))
            else:
                from rich.syntax import Syntax

                code = Syntax("", fence or "text", theme="ansi_dark").highlight(body)
                code.rstrip()
                # Neither wrapped nor cropped: a command that is broken over two lines cannot be pasted.
                for line in code.split("\n"):
                    self._console.print("    ", line, sep="", soft_wrap=True, highlight=False)

    def _lines(self, lines: Iterable[Line]) -> None:
        """Lines that are wrapped already, or must not be."""
        for line in lines:
            text = visible(line.text)
            if self._console is None:
                self._line(text)
                continue
            from rich.text import Text

            shown = Text(text, style=_STYLES[line.role])
            if line.role == "text":
                shown.highlight_regex(CODE_SPAN, "cyan")
                shown.highlight_regex(WARNING, "bold yellow")
            self._console.print(shown, soft_wrap=True)

    def _prose(self, text: str, style: str = "") -> None:
        for line in wrap(text, self._width):
            self._line(line, style)

    def _line(self, text: str = "", style: str = "") -> None:
        text = visible(text)
        if self._console is None:
            import click

            click.echo(text, err=self._err)
        else:
            self._console.print(text, style=style, markup=False, soft_wrap=True)
