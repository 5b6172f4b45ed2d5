"""Cuts repaired lines into sections, in order; `tree` nests them.

A section opens at a heading (marked, or guessed where scraping left no marks), a bold label, `label: text`, a question,
an answer, a numbered title that labels follow, or a row of an error table. What opened it gives its level.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from kb.articles.lines import Line
from kb.logs.classify import is_error_line, opens_with_error
from kb.scraped.headings import is_bare_heading, is_reply, question_or_answer, text_after_name
from kb.scraped.labels import bare, read_label, role_of
from kb.scraped.numbered import numbered_titles
from kb.scraped.prose import is_action
from kb.scraped.tables import read_table

__all__ = [
    "BARE_LABEL",
    "BOLD_LABEL",
    "INLINE",
    "KEY_ROLES",
    "NUMBERED",
    "QUESTION",
    "TITLE_ABOVE",
    "TITLE_BELOW",
    "Section",
    "flat_sections",
]

KEY_ROLES = frozenset(("symptom", "cause", "fix", "cause+fix", "symptom+cause", "symptom+fix", "analysis", "answer"))

# Depth by kind; marked headings take 10 to 60.
_REPLY = 15
TITLE_ABOVE, BARE_LABEL, TITLE_BELOW, QUESTION, NUMBERED, BOLD_TITLE, BOLD_LABEL, ANSWER, INLINE = (
    61, 63, 64, 65, 66, 67, 68, 75, 80,
)  # fmt: skip

_BOLD_ONLY = re.compile(
    r"^\s{0,8}(?:[-*+•]\s{1,3})?(?:\d{1,2}[.、)]\s{0,2})?(?:\*\*|__)([^*\n]{1,300}?)(?:\*\*|__)\s{0,3}[:：]?\s{0,4}"
)
_INLINE_ROLES = KEY_ROLES | frozenset(
    "prevention diagnosis environment verification background rejected confusable impact summary".split()
)
# Words that inside a line mostly open an ordinary sentence of the section: no labels there.
_NOT_INLINE = frozenset(
    (
        "注意 提示 说明 结果 建议 步骤 方法 处理 尝试 介绍 示例 效果 测试 提醒 配置 方案 修改 验证一下 操作步骤 "
        "具体步骤 场景 描述 日志 版本 检查项 示范 技巧 经验 规范 "
        "check checks note notes tip tips warning warnings caution result results output message options option "
        "action method methods test testing expected update description overview context general answer log logs "
        "os hardware component components approach platform details intro about scenario "
    ).split()
)
_ERROR_WORD = re.compile(r"^(?:error|exception|issue|failure|bug)\b")


@dataclass(slots=True)
class Section:
    level: int
    role: str
    """"" for a title, "question" for a Q, "answer" for an A, else a role of `vocabulary`"""
    title: str
    line: Line | None = None
    body: list[Line] = field(default_factory=list)
    children: list[Section] = field(default_factory=list)
    marked: bool = True
    """its line is a heading or label by itself: it is printed when the section is part of a field"""

    def walk(self) -> list[Section]:
        found = [self]
        for child in self.children:
            found += child.walk()
        return found

    @property
    def is_title(self) -> bool:
        return self.role in ("", "question")


def flat_sections(lines: Sequence[Line], *, plain: bool) -> list[Section]:
    """Sections in order, the first one holding what stands before any heading. `plain`: no heading is marked."""
    sections = [Section(0, "root", "")]
    titles = numbered_titles(lines) or _stages(lines)
    n = 0
    while n < len(lines):
        line = lines[n]
        current = sections[-1]
        if line.kind == "boilerplate":
            n += 1
        elif line.kind == "table" or (line.kind == "text" and "|" in line.text):
            rows, stop = read_table(lines, n)
            if sum(not role for role, _, _ in rows) >= 2 and current.role in KEY_ROLES and current.level < QUESTION:
                current.role = ""  # 报错与处理 over a table of errors: the rows are the issues
            for role, title, cell in rows:
                section = Section(INLINE if role else NUMBERED, role, title, cell, marked=False)
                section.body = [cell] if role else []
                sections.append(section)
            if rows:
                sections.append(Section(NUMBERED, "unread", "", None))
            else:
                current.body += [row for row in lines[n:stop] if row.kind != "boilerplate"]
            n = stop
        else:
            opened = _open(lines, n, current, plain=plain, titles=titles)
            if opened is None and current.role == "fix" and current.level == INLINE and _next_stage(lines, n):
                opened = Section(INLINE, "symptom", "", line, body=[line], marked=False)
            if opened is None:
                current.body.append(line)
            else:
                sections.append(opened)
                if opened.role == "question" and not opened.title:  # 【问】 alone: the next line asks
                    n = next((k for k in range(n + 1, len(lines)) if lines[k].kind != "blank"), n)
                    opened.title = lines[n].text.strip(" *❌❓🙋")
            n += 1
    return sections


def _stages(lines: Sequence[Line]) -> dict[int, str]:
    """Index -> title, where running text goes from failure to failure: announcement, error, fix, next announcement."""
    starts = [n for n in range(len(lines)) if _next_stage(lines, n)]
    if len(starts) < 2:
        return {}
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        ends = (n for n in range(start + 1, stop) if lines[n].kind == "heading" or role_of(lines[n].text))
        body = lines[start + 1 : next(ends, stop)]
        if not any(is_action(line.text) and not opens_with_error(line.text) for line in body if line.kind == "text"):
            return {}
    return {n: lines[n].text.strip().rstrip(":：") for n in starts}


def _next_stage(lines: Sequence[Line], n: int) -> bool:
    """`训练阶段,…:` with an error under it: here the next failure begins."""
    after = lines[n + 1] if n + 1 < len(lines) else None
    announces = lines[n].kind == "text" and lines[n].text.rstrip().endswith((":", "："))
    return announces and after is not None and after.kind in ("text", "code") and opens_with_error(after.text)


def _open(lines: Sequence[Line], n: int, current: Section, *, plain: bool, titles: dict[int, str]) -> Section | None:
    line = lines[n]
    if line.kind in ("heading", "text") and is_reply(line.text):
        return Section(_REPLY, "reply", line.text.strip(), line, body=_rest(line, text_after_name(line.text)))
    if line.kind == "heading":
        return _from_heading(line)
    if line.kind != "text":
        return None
    text = line.text
    found = question_or_answer(text)
    if found:
        role, rest = found
        if role == "question":
            return Section(QUESTION, role, rest, line)
        return Section(ANSWER, role, "", line, body=_rest(line, rest))
    if n in titles:
        return Section(NUMBERED, "", titles[n], line)
    bold = _BOLD_ONLY.fullmatch(text)
    if bold:
        return _from_bold(line, bold[1])
    label = read_label(text)
    if label is not None and label.role not in KEY_ROLES | {"topic"} and is_bare_heading(lines, n, plain=plain):
        return Section(BARE_LABEL, label.role, text.strip(), line)
    if label is not None:
        section = _from_label(lines, n, label.role, label.rest, current, plain=plain)
        if section is not None:
            return section
    if is_bare_heading(lines, n, plain=plain):
        role = role_of(text) or (label.role if label and label.role != "topic" else "")
        return Section(BARE_LABEL if role else TITLE_BELOW, role, text.strip(), line)
    return None


def _from_heading(line: Line) -> Section:
    text = line.heading_text
    level = line.level * 10
    found = question_or_answer(text)
    if found:
        return Section(level, "question", found[1], line)
    label = read_label(text)
    role = "" if label is not None and label.role == "topic" else role_of(text)
    if role:
        return Section(level, role, text, line)
    if label is None or (label.role not in ("fix", "cause", "topic") and is_error_line(text)):
        return Section(level, "", text, line)
    if label.role in ("topic", "symptom", "question"):
        return Section(level, "", label.rest or text, line)
    return Section(level, label.role, text, line)


def _from_bold(line: Line, inner: str) -> Section | None:
    text = inner.strip()
    role = role_of(text)
    if role:
        return Section(BOLD_LABEL, role, text, line)
    label = read_label(text)
    if label is not None and label.role != "topic" and (label.role in ("fix", "cause") or not is_error_line(text)):
        return Section(BOLD_LABEL, label.role, text, line, body=_rest(line, label.rest))
    if label is not None and label.role == "topic":
        return Section(NUMBERED, "", label.rest or text, line)
    if text.endswith(("。", "；", ".", "，", ",")):
        return None
    return Section(BOLD_TITLE, "", text.rstrip(":："), line)


def _from_label(
    lines: Sequence[Line], n: int, role: str, rest: str, current: Section, *, plain: bool
) -> Section | None:
    line = lines[n]
    if role == "topic":
        if line.text.lstrip()[:1] in "-*•" or (not rest and not plain) or len(rest) > 120:
            return None
        return Section(NUMBERED, "", rest or line.text.strip(), line)
    key = bare(re.split(r"[:：]", line.text.strip(" *>-•#【[「"), maxsplit=1)[0].rstrip("】]」*"))
    if (
        role not in _INLINE_ROLES
        or (key in _NOT_INLINE and not (role == "fix" and current.role in ("symptom", "cause", "diagnosis")))
        or (role == "symptom" and _ERROR_WORD.match(key) is not None and is_error_line(line.text))
    ):
        return None
    if not rest:
        inside = line.text.startswith((" ", "-")) or current.level in (QUESTION, ANSWER, BOLD_LABEL)
        return Section(BARE_LABEL if plain and not inside else BOLD_LABEL, role, line.text.strip(), line)
    return Section(INLINE, role, "", line, body=_rest(line, rest), marked=False)


def _rest(line: Line, rest: str) -> list[Line]:
    rest = rest.strip()
    return [Line(line.no, rest, "text")] if rest else []
