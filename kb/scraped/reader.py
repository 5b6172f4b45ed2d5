"""Reads a page in any form: its title, its issues, and a remark for everything else.

The passes, in order: `repair` the lines, mark `boilerplate`, name unknown labels (`shapes`), cut into `sections`, nest
them (`tree`), find the `issues`, fill their `fields`. An issue becomes a record only when the page says that something
went wrong and more about it than that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kb.articles.errors import errors_in
from kb.articles.fields import IssueFields, slice_of
from kb.articles.kinds import REMARK_KINDS
from kb.articles.lines import Line
from kb.logs.errors import has_error, looks_like_code
from kb.records import Remark
from kb.scraped.boilerplate import mark_boilerplate
from kb.scraped.fields import fields_of
from kb.scraped.headings import question_or_answer, unmark_commands
from kb.scraped.issues import Found, find_issues
from kb.scraped.labels import read_label, role_of
from kb.scraped.prose import is_problem, is_question_only
from kb.scraped.repair import repair
from kb.scraped.sections import KEY_ROLES, Section, flat_sections
from kb.scraped.shapes import name_labels
from kb.scraped.tree import build_tree

__all__ = ["read_page"]

_ITEM = re.compile(r"^\s{0,3}(?:[-*+•]\s|\d{1,2}[.)、])")
_HOW_TO = re.compile(
    r"[?？]\W{0,3}$|^\W{0,4}(?:how|what|which|where|when|who|can|does|do|is|are|如何|怎么|怎样|哪)\b", re.IGNORECASE
)
_LESSON = re.compile(
    r"^(?:in this (?:tutorial|guide|lesson|post,? (?:we|you|i) will (?:build|learn|train))|this (?:tutorial|guide|"
    r"lesson|release|version)|we are (?:happy|pleased|excited)|本(?:教程|课程|节课|版本)|在本教程|这篇教程)",
    re.IGNORECASE,
)
_LESSON_AHEAD = re.compile(
    r"(?:^|[.!?。！]\s?)(?:in this (?:post|article|guide|talk|chapter|tutorial|note),? (?:we|you|i)(?:['’]ll|"
    r" will| are going to)? "
    r"(?:look|learn|explore|walk|discuss|explain|build|see|cover|show|compare)|本(?:文|篇|节)(?:将|会|"
    r"主要)?(?:介绍|讲解|带你|"
    r"带大家|演示|对比|"
    r"梳理.{0,10}用法))",
    re.IGNORECASE,
)
_TROUBLE = re.compile(
    r"troubleshoot|faq|问题|报错|故障|排查|错误|踩坑|error|fail|issue(?! tracker)|解决", re.IGNORECASE
)


def read_page(lines: list[Line], *, front_title: str = "") -> tuple[str, list[IssueFields], list[Remark], list[str]]:
    """Title, issues, remarks, and the opening text (in which a project may be named). Changes the lines."""
    unmark_commands(lines)
    plain = not any(line.kind == "heading" for line in lines)
    lines = repair(lines, plain=plain)
    if plain:
        for line in lines:
            if line.kind == "text" and looks_like_code(line.text) and "|" not in line.text and not role_of(line.text):
                line.kind = "code"
    mark_boilerplate(lines)
    remarks = [Remark(line.no, "boilerplate", line.text.strip()) for line in lines if line.kind == "boilerplate"]
    title, lines = _take_title(lines, front_title, plain=plain)
    name_labels(lines)
    sections = flat_sections(lines, plain=plain)
    sections = _drop_repeats(sections, title, remarks)
    root = build_tree(sections, plain=plain)
    everything = root.walk()
    first = [*root.body, *[line for section in everything[1:6] for line in section.body]]
    opening = _breadcrumbs(lines) + [line.text for line in first if line.kind == "text"][:6]
    opening += [section.title for section in everything if section.role == "question"][:6]
    has_questions = any(section.role == "question" for section in everything)
    without_issues = not has_questions and _is_lesson(title, opening)
    found = [] if without_issues else find_issues(root, title) or [Found(title, root, [], list(root.body))]
    pairs = [(issue, fields_of(issue, remarks)) for issue in found]
    for _, fields in pairs:
        fields.errors = fields.errors or errors_in(fields.title, fields.symptom)
    accepted = [_is_record(issue, fields) for issue, fields in pairs]
    # Beside an issue, a section with a symptom and a fix under labels of their own is one too, whatever its words.
    good = [
        good or (any(accepted) and (_is_labelled(issue) or _is_item(issue, fields)))
        for (issue, fields), good in zip(pairs, accepted, strict=True)
    ]
    kept = [issue for (issue, _), keep in zip(pairs, good, strict=True) if keep]
    issues = [fields for (_, fields), keep in zip(pairs, good, strict=True) if keep]
    _remark_rest(everything, kept, issues, remarks)
    return title, issues, remarks, opening


def _breadcrumbs(lines: Sequence[Line]) -> list[str]:
    """Lines before the article that say where on its site the page stands: `owner/name · Issues`."""
    return [
        line.text.strip()
        for line in lines[:6]
        if line.kind == "boilerplate" and len(line.text) < 120 and "/" in line.text
    ]


def _take_title(lines: list[Line], front_title: str, *, plain: bool) -> tuple[str, list[Line]]:
    """The article's title and the lines without it."""
    marks = [line for line in lines if line.kind == "heading"]
    first = next((n for n, line in enumerate(lines) if line.kind not in ("blank", "boilerplate", "rule")), None)
    if first is None:
        return front_title, lines
    line = lines[first]
    if line.kind == "heading":
        text = line.heading_text
        alone = sum(mark.level <= line.level for mark in marks) == 1
        if (not role_of(text) and (line.level == 1 or alone) and len(marks) > 1) or (
            line.level == 1 and len(marks) == 1
        ):
            return front_title or text, lines[:first] + lines[first + 1 :]
    elif (
        plain
        and line.kind in ("text", "code")
        and not role_of(line.text)
        and question_or_answer(line.text) is None
        and len(line.text) <= 160
        and line.text.strip()[-1] not in "。；;，,"
    ):
        return front_title or line.text.strip(), lines[:first] + lines[first + 1 :]
    return front_title, lines


def _drop_repeats(sections: list[Section], title: str, remarks: list[Remark]) -> list[Section]:
    """A table of contents repeats the headings before the body; a page repeats its title."""
    last = {section.title: n for n, section in enumerate(sections) if section.title}
    kept = sections[:1]
    for n, section in enumerate(sections[1:], 1):
        empty = not any(line.kind != "blank" for line in section.body)
        if empty and section.marked and section.title and (last[section.title] > n or section.title == title):
            remarks.append(Remark(section.line.no if section.line else 1, "toc", section.title))
            continue
        kept.append(section)
    return kept


def _is_lesson(title: str, opening: Sequence[str]) -> bool:
    """The first sentences announce a lesson, and neither they nor the title name a failure."""
    if _TROUBLE.search(title) or any(has_error(text) for text in opening):
        return False
    return bool(opening) and (_LESSON.search(opening[0][:200]) or _LESSON_AHEAD.search(opening[0][:600])) is not None


def _is_record(issue: Found, fields: IssueFields) -> bool:
    """The page says that something went wrong, and more about it than that."""
    labelled = {section.role for part in issue.parts for section in part.walk()}
    symptom = "\n".join(part.render() for part in fields.symptom)
    if not fields.symptom and not fields.title:
        return False
    if is_question_only(fields.title) and issue.is_question and not issue.from_table:
        return False
    complaint = issue.head is not None and issue.head.role == "question" and not _HOW_TO.search(fields.title)
    wrong = issue.from_table or issue.ends_in_fix or complaint or bool(fields.errors)
    wrong = wrong or is_problem(fields.title) or is_problem(symptom)
    if not wrong and not {"symptom", "cause", "fix"} <= labelled:
        return False
    if issue.parts:
        return bool(fields.cause or fields.fix or "symptom" in labelled)
    if issue.is_question and fields.errors and fields.cause:
        return True
    return bool(fields.fix) and (issue.is_question or bool(fields.symptom))


def _is_item(issue: Found, fields: IssueFields) -> bool:
    """An item of a list of errors, with a fix like its neighbours."""
    text = issue.head.line.text if issue.head is not None and issue.head.line is not None else ""
    label = read_label(text)
    numbered = _ITEM.match(text) is not None or (label is not None and label.role == "topic")  # `## 坑二：…`
    return numbered and not issue.parts and bool(fields.fix) and _HOW_TO.search(fields.title) is None


def _is_labelled(issue: Found) -> bool:
    """Two of its fields stand under labels of their own."""
    roles = {section.role for part in issue.parts for section in part.walk()}
    described = "symptom" in roles or bool(issue.loose)
    return ("fix" in roles and (described or "cause" in roles)) or ("symptom" in roles and "cause" in roles)


def _remark_rest(
    sections: Sequence[Section], found: Sequence[Found], issues: Sequence[IssueFields], remarks: list[Remark]
) -> None:
    """A remark for every heading that is in no record, with the text under it."""
    used = {line.no for i in issues for parts in (i.symptom, i.cause, i.fix) for part in parts for line in part.lines}
    used |= {issue.head.line.no for issue in found if issue.head is not None and issue.head.line is not None}
    for issue in found:
        labels = [section for part in issue.parts for section in part.walk() if section.role in KEY_ROLES | {"reply"}]
        used |= {section.line.no for section in labels if section.line is not None}
    remarked = {remark.line for remark in remarks}
    # A line that was given to an issue may still be missing from its text.
    kept = "\n".join(
        text for i in issues for text in (i.title, *(p.render() for f in (i.symptom, i.cause, i.fix) for p in f))
    )
    for section in sections:
        line = section.line
        if line is None or not section.marked or line.no in remarked:
            continue
        if line.no in used and (section.role in KEY_ROLES | {"reply"} or section.title in kept):
            continue
        kind = section.role if section.role in REMARK_KINDS else "not-an-issue"
        title = section.title or line.text.strip()
        passed = slice_of([part for part in section.body if part.no not in used and part.no != line.no])
        remarks.append(Remark(line.no, kind, f"{title}\n{passed}" if passed else title))
