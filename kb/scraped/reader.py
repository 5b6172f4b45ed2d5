"""Reads a page in any form: its title, its issues, and a remark for every passage that is in none of them.

The steps, in order: `markup` frees the lines of HTML and scraping, `blocks` cuts them, `features` says what can be seen
of each block, `tagger` says what each block is for, `records` makes issues of that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kb.articles.errors import errors_in
from kb.articles.fields import IssueFields, slice_of
from kb.articles.kinds import REMARK_KINDS
from kb.articles.lines import Line
from kb.logs.classify import opens_with_error
from kb.logs.errors import quoted_errors
from kb.records import Remark
from kb.scraped.blocks import Block, blocks_of
from kb.scraped.labels import role_of
from kb.scraped.markup import plain_lines
from kb.scraped.records import Issue, fields_of, find_issues, slice_of_page, title_of
from kb.scraped.tagger import STATES, Tagger, Tagging, open_tagger

__all__ = ["Reading", "prepare", "read_blocks", "read_page", "texts_of"]

_SURE, _SURE_WITH_CAUSE = 0.8, 0.5  # set by hand on tagged real pages


@dataclass
class Reading:
    """A page as it was read."""

    title: str
    lines: list[Line]
    blocks: list[Block]
    tags: list[str]
    printed: list[bool]
    """of each block: it is as a whole a message that a program printed"""
    issues: list[Issue]

    def fields(self) -> list[IssueFields]:
        return [self._fields(issue) for issue in self.issues]

    def _fields(self, issue: Issue) -> IssueFields:
        fields = fields_of(issue, self.blocks, self.lines)
        told = [self.blocks[n].text.strip() for n in (issue.title, *issue.fields["symptom"]) if self.printed[n]]
        # a sentence that quotes a message is no message
        printed = [text for text in told if opens_with_error(text) or not quoted_errors(text)]
        fields.errors = list(dict.fromkeys([*printed, *errors_in(fields.title, fields.symptom)]))
        return fields

    def places(self) -> dict[int, tuple[int, str]]:
        """Of each block in an issue: the number of the issue, from 1, and the field or "title"."""
        found: dict[int, tuple[int, str]] = {}
        for number, issue in enumerate(self.issues, 1):
            found |= {n: (number, name) for name, numbers in issue.fields.items() for n in numbers}
            found[issue.title] = (number, "title")
        return found

    def remarks(self) -> list[Remark]:
        """One for each run of blocks that no issue holds. A known label inside an issue is told by its field."""
        kept = self.places()
        runs: list[tuple[str, list[int]]] = []
        for n, block in enumerate(self.blocks):
            announces = self.tags[n] == "label" and role_of(block.text) and kept.get(n + 1, (0, "title"))[1] != "title"
            if n in kept or announces:
                continue
            kind = self._kind(n)
            heads = block.kind == "heading"
            if runs and runs[-1][0] == kind and runs[-1][1][-1] == n - 1 and not heads:
                runs[-1][1].append(n)
            else:
                runs.append((kind, [n]))
        remarks = [Remark(self.lines[self.blocks[run[0]].first].no, kind, self._text(run)) for kind, run in runs]
        return [remark for remark in remarks if remark.text]

    def _kind(self, n: int) -> str:
        tag = self.tags[n]
        if tag in REMARK_KINDS:
            return tag
        role = role_of(self.blocks[n].text) if self.blocks[n].kind == "heading" else ""
        return role if role in REMARK_KINDS else "not-an-issue"

    def _text(self, run: Sequence[int]) -> str:
        lines = slice_of_page(self.blocks[run[0]], self.blocks[run[-1]], self.lines)
        head = lines[0].heading_text if lines[0].kind == "heading" else lines[0].text.strip()
        return slice_of([Line(lines[0].no, head, "text"), *lines[1:]])


def texts_of(blocks: Sequence[Block], tags: Sequence[str]) -> list[str]:
    """What tells the project of a page: the text of its blocks but code and furniture below the top."""
    shown = [block for n, (block, tag) in enumerate(zip(blocks, tags, strict=True)) if n < 5 or tag != "boilerplate"]
    return [block.text for block in shown if block.kind != "code"]


def prepare(lines: Sequence[Line], *, front_title: str = "") -> tuple[list[Line], list[Block]]:
    """The lines of a page without what HTML did to them, the title of its front matter first, and their blocks."""
    plain = plain_lines(lines)
    if front_title:
        plain.insert(0, Line(1, "# " + front_title, "heading", level=1))
    return plain, blocks_of(plain)


def read_page(lines: Sequence[Line], *, front_title: str = "", every_question: bool = False) -> Reading:
    """`every_question`: a question about no failure makes an issue, too."""
    plain, blocks = prepare(lines, front_title=front_title)
    tagging, issues = read_blocks(blocks, open_tagger(), every_question=every_question)
    title = front_title or next(_titles(blocks), "")
    return Reading(title, plain, blocks, tagging.tags, tagging.printed, issues)


def read_blocks(
    blocks: Sequence[Block], tagger: Tagger, *, every_question: bool = False
) -> tuple[Tagging, list[Issue]]:
    """What the blocks of a page are, and the issues that they make."""
    tagging = tagger.tag(blocks)
    issues = find_issues(blocks, tagging.tags, every_question=every_question)
    if doubtful := [issue.title for issue in issues if _is_doubtful(issue, tagging)]:
        tagging.tags = ["other" if n in doubtful else tag for n, tag in enumerate(tagging.tags)]
        issues = find_issues(blocks, tagging.tags, every_question=every_question)
    return tagging, issues


def _is_doubtful(issue: Issue, tagging: Tagging) -> bool:
    """A heading that is hardly a title, above text that tells no symptom and shows no message of a program."""
    if tagging.tags[issue.title] != "title" or tagging.printed[issue.title]:
        return False
    if any(tagging.tags[n] == "symptom" for n in issue.fields["symptom"]):
        return False
    least = _SURE_WITH_CAUSE if issue.fields["cause"] else _SURE
    return float(tagging.chances[issue.title, STATES.index("title")]) < least


def _titles(blocks: Sequence[Block]) -> Iterator[str]:
    """The first heading of the page; on one without headings its first block, when that is short."""
    yield from (title_of(block) for block in blocks[:12] if block.kind == "heading")
    yield from (title_of(block) for block in blocks[:1] if block.kind == "text" and len(block.text) <= 160)
