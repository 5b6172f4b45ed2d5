"""Here are the lines of an article in any form; give me its title, its issues and a remark for the rest."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kb.articles.draft import Draft, slice_of
from kb.articles.errors import errors_in
from kb.articles.kinds import REMARK_KINDS
from kb.articles.lines import Line
from kb.logs.errors import has_error, looks_like_code
from kb.records import Remark
from kb.scraped.clean import clean
from kb.scraped.fields import draft_of
from kb.scraped.furniture import mark_furniture
from kb.scraped.headings import question_or_answer, unmark_commands
from kb.scraped.issues import Found, find_issues
from kb.scraped.labels import read_label, role_of
from kb.scraped.prose import is_problem, is_question_only
from kb.scraped.sections import KEY_ROLES, Section, flat_sections
from kb.scraped.shapes import name_labels
from kb.scraped.tree import build_tree

__all__ = ["page_tags", "read_any_form"]

_NO_ISSUES = re.compile(
    r"release notes?\b|changelog|what['’]s new|更新日志|发布说明|版本说明|发行说明|新版本发布|版本发布|"
    r"\btutorial\b|教程|入门|getting started|quick ?start|快速开始|从零开始|手把手|walkthrough|roadmap|announc",
    re.IGNORECASE,
)
_RELEASE_PART = re.compile(
    r"^(?:highlights|fixed issues|bug fixes|known issues|new features|new issues|deprecations?|breaking changes|"
    r"what['’]s (?:new|changed)|improvements|"
    r"新特性|新功能|新增功能|已解决的?问题|问题修复|已知问题|弃用(?:说明)?|优化与改进|不兼容变更)$",
    re.IGNORECASE,
)
_TAGS = re.compile(
    r"\W{0,8}(?:文章标签|标签|分类专栏|关键词|Tags?|Labels?|Filed under|Categories)\W{0,4}[:：](.{1,200})",
    re.IGNORECASE,
)
_ITEM = re.compile(r"^\s{0,3}(?:[-*+•]\s|\d{1,2}[.)、])")
_LINKED = re.compile(
    r"(?:办法|方法|处理|原因|步骤|分析|方案|建议|排查|指南|汇总|解决)\s{0,3}$|"
    r"^\W{0,6}(?:How to|Troubleshoot\w*|Fix(?:ing)?|Resolv\w+|Understanding) [^.]{4,90}$",
    re.IGNORECASE,
)
_ENTRY = re.compile(r"^\s{0,8}(?:原创|转载|翻译)?\s?\d{4}-\d\d-\d\d.{0,20}(?:阅读|浏览|views|reads)")
_ASKS = re.compile(
    r"[?？]\W{0,3}$|^\W{0,4}(?:how|what|which|where|when|who|can|does|do|is|are|如何|怎么|怎样|哪)\b", re.IGNORECASE
)
_GUIDE = re.compile(
    r"^(?:how to (?:read|understand|interpret|write|choose|use)|understanding|an? (?:short |brief |quick |"
    r"complete )?(?:guide|introduction|overview)|introduction to|anatomy of)\b|"
    r": an? (?:\w+ )?(?:guide|introduction|primer|overview|tour)$|cheat ?sheet|一文读懂|一文看懂|科普|名词解释|"
    r"命令大全|知识点",
    re.IGNORECASE,
)
_LESSON = re.compile(
    r"^(?:in this (?:tutorial|guide|lesson|post,? (?:we|you|i) will (?:build|learn|train))|this (?:tutorial|guide|"
    r"lesson|release|version)|we are (?:happy|pleased|excited)|本(?:教程|课程|节课|版本)|在本教程|这篇教程)",
    re.IGNORECASE,
)
_TROUBLE = re.compile(
    r"troubleshoot|faq|问题|报错|故障|排查|错误|踩坑|error|fail|issue(?! tracker)|解决", re.IGNORECASE
)


def page_tags(remarks: Sequence[Remark]) -> list[str]:
    """`文章标签： jenkins 运维`: what the page files the article under."""
    found = [hit for remark in remarks if remark.kind == "furniture" and (hit := _TAGS.match(remark.text))]
    return [tag for hit in found for tag in re.split(r"[\s,，、#|·/]+", hit[1]) if tag]


def read_any_form(lines: list[Line], *, front_title: str = "") -> tuple[str, list[Draft], list[Remark], list[str]]:
    """Title, drafts, remarks, and the opening text (in which a project may be named)."""
    unmark_commands(lines)
    plain = not any(line.kind == "heading" for line in lines)
    lines = clean(lines, scraped=plain)
    if plain:
        for line in lines:
            if line.kind == "text" and looks_like_code(line.text) and "|" not in line.text and not role_of(line.text):
                line.kind = "code"
    mark_furniture(lines)
    remarks = [Remark(line.no, "furniture", line.text.strip()) for line in lines if line.kind == "furniture"]
    catalogue = _is_catalogue(lines)
    title, lines = _take_title(lines, front_title, plain=plain)
    name_labels(lines)
    sections = flat_sections(lines, plain=plain)
    sections = _drop_repeats(sections, title, remarks)
    root = build_tree(sections, plain=plain)
    everything = root.walk()
    first = [*root.body, *[line for section in everything[1:6] for line in section.body]]
    opening = _breadcrumbs(lines) + [line.text for line in first if line.kind == "text"][:6]
    opening += [section.title for section in everything if section.role == "question"][:6]
    asked = any(section.role == "question" for section in everything)
    silent = not asked and _tells_no_issue(title, opening)
    silent = silent or _is_release(everything) or catalogue
    found = [] if silent else find_issues(root, title)
    if not found and not silent:
        found = [Found(title, root, [], list(root.body))]
    pairs = [(issue, draft_of(issue, remarks)) for issue in found]
    for _, draft in pairs:
        draft.errors = draft.errors or errors_in(draft.title, draft.symptom)
    accepted = [_is_record(issue, draft) for issue, draft in pairs]
    # Among issues, what has a symptom and a fix under labels of their own is one too, whatever its words.
    good = [
        good or (any(accepted) and (_is_labelled(issue) or _is_item(issue, draft)))
        for (issue, draft), good in zip(pairs, accepted, strict=True)
    ]
    kept = [issue for (issue, _), keep in zip(pairs, good, strict=True) if keep]
    drafts = [draft for (_, draft), keep in zip(pairs, good, strict=True) if keep]
    _remark_rest(everything, kept, drafts, remarks)
    return title, drafts, remarks, opening


def _breadcrumbs(lines: Sequence[Line]) -> list[str]:
    """What the page says about its place before the article begins."""
    return [
        line.text.strip()
        for line in lines[:6]
        if line.kind == "furniture" and len(line.text) < 120 and "/" in line.text
    ]


def _take_title(lines: list[Line], front_title: str, *, plain: bool) -> tuple[str, list[Line]]:
    """The article's title and the lines without it."""
    marks = [line for line in lines if line.kind == "heading"]
    first = next((n for n, line in enumerate(lines) if line.kind not in ("blank", "furniture", "rule")), None)
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


_LESSON_AHEAD = re.compile(
    r"(?:^|[.!?。！]\s?)(?:in this (?:post|article|guide|talk|chapter|tutorial|note),? (?:we|you|i)(?:['’]ll|"
    r" will| are going to)? "
    r"(?:look|learn|explore|walk|discuss|explain|build|see|cover|show|compare)|本(?:文|篇|节)(?:将|会|"
    r"主要)?(?:介绍|讲解|带你|"
    r"带大家|演示|对比|"
    r"梳理.{0,10}用法))",
    re.IGNORECASE,
)


def _tells_no_issue(title: str, opening: Sequence[str]) -> bool:
    if _TROUBLE.search(title) and not _GUIDE.search(title):
        return False
    if _NO_ISSUES.search(title) or _GUIDE.search(title):
        return True
    if any(has_error(text) for text in opening):
        return False
    return bool(opening) and (_LESSON.search(opening[0][:200]) or _LESSON_AHEAD.search(opening[0][:600])) is not None


def _is_release(sections: Sequence[Section]) -> bool:
    return len({found[0].lower() for section in sections if (found := _RELEASE_PART.match(section.title))}) >= 2


def _is_catalogue(lines: Sequence[Line]) -> bool:
    """A list of other articles: date and counter, again and again."""
    if sum(_ENTRY.match(line.text) is not None for line in lines) >= 3:
        return True
    items = [line.text for line in lines if line.kind == "text" and _ITEM.match(line.text)]
    titles = sum(_LINKED.search(text) is not None for text in items)
    prose = sum(line.kind == "text" and len(line.text) > 40 and line.text not in items for line in lines)
    return titles >= 5 and titles * 5 >= len(items) * 2 and prose * 2 < len(items)


def _is_record(issue: Found, draft: Draft) -> bool:
    """Something went wrong, and the article says more about it than that."""
    labelled = {section.role for part in issue.parts for section in part.walk()}
    symptom = "\n".join(part.render() for part in draft.symptom)
    if not draft.symptom and not draft.title:
        return False
    if is_question_only(draft.title) and issue.asked and not issue.tabled:
        return False
    complaint = issue.head is not None and issue.head.role == "question" and not _ASKS.search(draft.title)
    wrong = (
        issue.tabled or issue.cured or complaint or bool(draft.errors) or is_problem(draft.title) or is_problem(symptom)
    )
    if not wrong and not {"symptom", "cause", "fix"} <= labelled:
        return False
    if issue.parts:
        return bool(draft.cause or draft.fix or "symptom" in labelled)
    if issue.asked and draft.errors and draft.cause:
        return True
    return bool(draft.fix) and (issue.asked or bool(draft.symptom))


def _is_item(issue: Found, draft: Draft) -> bool:
    """An item of a list of errors, cured like its neighbours."""
    text = issue.head.line.text if issue.head is not None and issue.head.line is not None else ""
    label = read_label(text)
    numbered = _ITEM.match(text) is not None or (label is not None and label.role == "topic")  # `## 坑二：…`
    return numbered and not issue.parts and bool(draft.fix) and _ASKS.search(draft.title) is None


def _is_labelled(issue: Found) -> bool:
    roles = {section.role for part in issue.parts for section in part.walk()}
    told = "symptom" in roles or bool(issue.loose)
    return ("fix" in roles and (told or "cause" in roles)) or ("symptom" in roles and "cause" in roles)


def _remark_rest(
    sections: Sequence[Section], issues: Sequence[Found], drafts: Sequence[Draft], remarks: list[Remark]
) -> None:
    """Every heading in no record is told of, with the text under it: as a title, as a label, or inside a field."""
    used = {line.no for d in drafts for parts in (d.symptom, d.cause, d.fix) for part in parts for line in part.lines}
    used |= {issue.head.line.no for issue in issues if issue.head is not None and issue.head.line is not None}
    for issue in issues:
        labels = [section for part in issue.parts for section in part.walk() if section.role in KEY_ROLES | {"reply"}]
        used |= {section.line.no for section in labels if section.line is not None}
    told = {remark.line for remark in remarks}
    for section in sections:
        line = section.line
        if line is None or not section.marked or line.no in used or line.no in told:
            continue
        kind = section.role if section.role in REMARK_KINDS else "not-an-issue"
        title = section.title or line.text.strip()
        passed = slice_of([part for part in section.body if part.no not in used and part.no != line.no])
        remarks.append(Remark(line.no, kind, f"{title}\n{passed}" if passed else title))
