"""Rules about one issue: is there something to find and to answer, and is our own form kept?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.articles.source import is_readme
from kb.logs import conditions
from kb.logs.quantities import quantities
from kb.records import IssueRecord, Lang
from kb.review.pages import Found, Pages, at
from kb.text import HAN_CHAR
from kb.text.fences import prose_lines
from kb.text.steps import BASES, steps

__all__ = [
    "bad_source",
    "condition",
    "front_matter",
    "hollow",
    "long_summary",
    "missing_summary",
    "no_basis",
    "no_cause",
    "no_chinese",
    "no_fix",
    "no_issue",
    "no_project",
    "no_source",
    "no_step",
    "no_symptom",
    "no_warning",
    "open_versions",
    "way_out",
]

_STEP = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}[.)、]|\|)|`|^[ \t]*~~~|https?://", re.MULTILINE)
_URL = re.compile(r"https?://[\w-]{1,63}(?:\.[\w-]{1,63}){1,10}(?::\d{1,5})?(?:[/?#][^\s<>\"]*)?$", re.IGNORECASE)

_HARMFUL = re.compile(
    r"\brm\s+-\w*[rf]|\breboot\b(?!=)|\bkill\s+-(?:9|KILL)|\bpkill\b|\bgit\s+reset\s+--hard|\bprune\b|\bmkfs\b|"
    r"--gpu-reset|\bdrop_caches\b|\bsystemctl\s+(?:restart|stop)\s+docker|--privileged\b|trust[-_]remote[-_]code"
)
"""commands that destroy something, stop somebody else's work, or let strangers' code in"""

_OPEN_ENDED = re.compile(
    r">=?|\+$|\b(?:and|or) (?:newer|later|up|above)\b|\bonwards\b|\b(?:all|any|every) versions?\b|"
    r"以上|及以后|之后|起$|所有版本|各版本"
)
_ENDED = re.compile(r"<|\b(?:to|up to|until|through|checked|as of)\b|[–至到]|核对|查证|截至|20\d\d")

_MOST_IN_SHORT: dict[Lang, int] = {"en": 260, "zh": 140}  # characters; two lines of a terminal


def no_issue(pages: Pages) -> Iterator[Found]:
    for page in pages.pages:
        if not page.article.records and not is_readme(page.path):
            yield Found(page.path, None, "warning", "no issue was found here; see `kb parse --explain`")


def front_matter(pages: Pages) -> Iterator[Found]:
    for page in pages.pages:
        for remark in page.article.remarks:
            if remark.kind == "front-matter" and not remark.text.startswith("#"):
                yield Found(page.path, remark.line, "error", f"front matter: {remark.text}")


def hollow(pages: Pages) -> Iterator[Found]:
    for record in pages.records:
        if not record.cause and not record.fix:
            yield at(record, "warning", f"{record.id} names neither a cause nor a fix: {record.title}")


def no_symptom(pages: Pages) -> Iterator[Found]:
    for record in pages.records:
        if not record.symptom and not record.errors:
            yield at(record, "error", f"{record.id} has no symptom and no error line")
        elif not record.errors and not "".join(prose_lines(record.symptom)).strip():
            yield at(record, "error", f"{record.id} has neither an error line nor a description")


def no_fix(pages: Pages) -> Iterator[Found]:
    for record in pages.records:
        if not record.fix and record.cause:  # without either it is hollow
            yield at(record, "warning", f"{record.id} has no fix")


def no_step(pages: Pages) -> Iterator[Found]:
    for record in pages.records:
        if record.fix and not _STEP.search(record.fix):
            yield at(record, "warning", f"the fix of {record.id} names no step: no list, command or setting")


def no_cause(pages: Pages) -> Iterator[Found]:
    for record in pages.records:
        if not record.cause and record.fix:
            yield at(record, "warning", f"{record.id} has no cause")


def no_project(pages: Pages) -> Iterator[Found]:
    for record in pages.records:
        if not record.project:
            yield at(record, "warning", f"{record.id} names no project")


def no_chinese(pages: Pages) -> Iterator[Found]:
    for record in pages.records:
        text = f"{record.symptom}\n{record.fix}"
        if record.lang == "zh" and text.strip() and not HAN_CHAR.search("".join(prose_lines(text))):
            yield at(record, "warning", f"{record.id} has no Chinese character")


def no_source(pages: Pages) -> Iterator[Found]:
    for record in _first_records(pages):
        if not record.sources:
            yield at(record, "warning", "no source is named")


def bad_source(pages: Pages) -> Iterator[Found]:
    for record in _first_records(pages):
        for source in record.sources:
            if not _URL.match(source):
                yield at(record, "error", f"the source {source!r} is no URL")


def _first_records(pages: Pages) -> Iterator[IssueRecord]:
    """Sources are in the front matter, the same for all records of an article."""
    return (record for page in pages.pages for record in page.article.records[:1])


def condition(pages: Pages) -> Iterator[Found]:
    """Conditions that no program can check, or that rule out the issue itself."""
    for record in pages.records:
        if record.only_when and not record.conditions:
            yield at(record, "error", f"{record.id} has no condition below Only when (判别): no bullet")
        named = [*record.conditions, *(branch.condition for branch in record.branches if branch.condition)]
        for one in named:
            try:
                conditions.parse(one)
            except ValueError as error:
                yield at(record, "error", f"a condition of {record.id} cannot be read: {error}")
        if conditions.evaluate(record.conditions, quantities("\n".join(record.errors))) is False:
            yield at(record, "error", f"the error lines of {record.id} do not meet its conditions")


def missing_summary(pages: Pages) -> Iterator[Found]:
    """Only where some issue has one: somebody else's articles in our form may have none at all."""
    if any(record.summary for record in pages.records):
        for record in pages.records:
            if not record.summary:
                yield at(record, "warning", f"{record.id} does not say it in short (一句话)")


def long_summary(pages: Pages) -> Iterator[Found]:
    for record in pages.records:
        most = _MOST_IN_SHORT[record.lang]
        if len(record.summary) > most:
            yield at(record, "warning", f"{record.id}: In short has {len(record.summary)} characters; at most {most}")


def open_versions(pages: Pages) -> Iterator[Found]:
    for record in _summarised(pages):
        for version in record.versions:
            if _OPEN_ENDED.search(version) and not _ENDED.search(version):
                yield at(
                    record,
                    "warning",
                    f"{record.id}: the versions {version!r} have no end; with what were they checked?",
                )


def no_basis(pages: Pages) -> Iterator[Found]:
    for record in _summarised(pages):
        for number, step in enumerate(steps(record.fix), 1):
            if step.claims and step.basis is None:
                marks = " ".join(f"*({mark})*" for mark in BASES if mark.isascii() == (record.lang == "en"))
                yield at(record, "warning", f"{record.id}: step {number} does not say what stands behind it: {marks}")


def no_warning(pages: Pages) -> Iterator[Found]:
    for record in _summarised(pages):
        for number, step in enumerate(steps(record.fix), 1):
            if (found := _HARMFUL.search(step.text)) and "**" not in step.text:
                what = " ".join(found[0].split())
                yield at(record, "warning", f"{record.id}: step {number} has `{what}` and no **warning** in bold")


def _summarised(pages: Pages) -> Iterator[IssueRecord]:
    """Issues that begin with what to try first: they are written for us."""
    return (record for record in pages.records if record.summary)


def way_out(pages: Pages) -> Iterator[Found]:
    """Of an issue that leads to others: that a program can follow it."""
    issues = {record.issue for record in pages.records}
    for record in pages.records:
        if record.triage and not record.branches:
            yield at(record, "error", f"{record.id} leads nowhere: no bullet of Which one is it links an issue")
        if record.branches and not any(branch.condition for branch in record.branches):
            yield at(record, "warning", f"{record.id}: no way out begins with a condition that a program can check")
        for branch in record.branches:
            if branch.issue not in issues:
                yield at(record, "error", f"{record.id} leads to {branch.issue}, which is not there")
            elif branch.issue == record.issue:
                yield at(record, "error", f"{record.id} leads to itself")
