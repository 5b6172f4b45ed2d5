"""Here are the sections of an article in order; nest them.

What is deeper is decided by kind, then, for guessed headings, by whether titles hold labels or labels hold titles.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from kb.scraped.sections import (
    BARE_LABEL,
    BOLD_LABEL,
    INLINE,
    KEY_ROLES,
    NUMBERED,
    QUESTION,
    TITLE_ABOVE,
    TITLE_BELOW,
    Section,
)

__all__ = ["build_tree"]


def build_tree(sections: list[Section], *, plain: bool) -> Section:
    """Nest the sections by level; guessed titles go above or below guessed labels, by which comes first."""
    if plain and _titles_hold_labels(sections):
        for section in sections:
            if (section.is_title and section.level in (TITLE_BELOW, NUMBERED)) or (
                section.role not in KEY_ROLES and section.level == BARE_LABEL and _closes_page(section.role)
            ):
                section.level = TITLE_ABOVE
        _share_last_fix(sections)
    _ask(sections)
    _close(sections)
    if plain:
        _level_by_ordinal(sections)
        _keep_in_questions(sections)
    root = sections[0]
    stack = [root]
    for section in sections[1:]:
        if section.role == "unread" and section.line is None:
            # What follows a table belongs to the section the table stands in.
            while len(stack) > 1 and stack[-1].level >= NUMBERED:
                stack.pop()
            stack[-1].body += section.body
            continue
        if section.role == "reply":
            while len(stack) > 1 and not _is_thread(stack):
                stack.pop()
            section.level = stack[-1].level + 1
        while len(stack) > 1 and stack[-1].level >= section.level:
            stack.pop()
        stack[-1].children.append(section)
        stack.append(section)
    return root


def _ask(sections: list[Section]) -> None:
    """`**Question**` over a paragraph and `**Answer**` over the next: the paragraph is the question."""
    for section, after in pairwise(sections):
        lines = [n for n, line in enumerate(section.body) if line.kind == "text" and line.text.strip()]
        if section.role == "symptom" and after.role == "answer" and section.marked and lines:
            section.role, section.title = "question", section.body[lines[0]].text.strip()
            section.body = section.body[lines[0] + 1 :]
            after.level = max(after.level, section.level + 1)


def _close(sections: list[Section]) -> None:
    """Every answer is one paragraph, and after the last there are more: these close the page."""
    answers = [section for section in sections if section.role == "answer" and section.body]
    if len(answers) < 3 or answers[-1] is not sections[-1] or any(len(_gaps(answer)) for answer in answers[:-1]):
        return
    gaps = _gaps(answers[-1])
    after = answers[-1].body[gaps[0] :] if gaps else []
    if after and all(line.kind in ("text", "blank") for line in after):
        answers[-1].body = answers[-1].body[: gaps[0]]
        sections.append(Section(TITLE_ABOVE, "summary", "", after[1] if len(after) > 1 else None, after, marked=False))


def _gaps(section: Section) -> list[int]:
    """Where a blank line stands between two others."""
    filled = [n for n, line in enumerate(section.body) if line.kind != "blank"]
    return [a + 1 for a, b in pairwise(filled) if b > a + 1]


def _is_thread(stack: Sequence[Section]) -> bool:
    """Replies belong to the title above them, not to the form the opening post was filled in by."""
    section, parent = stack[-1], stack[-2]
    return section.role == "" and not any(child.role in KEY_ROLES for child in parent.children)


def _level_by_ordinal(sections: list[Section]) -> None:
    """`一、问题描述 … 三、safetensors 格式`: one run of ordinals, one level."""
    counted = [s for s in sections if s.line is not None and _CJK_ORDINAL.match(s.line.text.strip())]
    if any(s.role in KEY_ROLES and s.level == BARE_LABEL for s in counted):
        for section in counted:
            if section.level == TITLE_BELOW:
                section.level = BARE_LABEL


_CJK_ORDINAL = re.compile(r"[一二三四五六七八九十]{1,3}、")


def _keep_in_questions(sections: list[Section]) -> None:
    """`解决办法：` on a line of its own, inside an answer, does not end the question."""
    asked = False
    for section in sections[1:]:
        asked = (
            section.level == QUESTION or (asked and section.level > QUESTION) or (asked and section.role in KEY_ROLES)
        )
        if asked and section.level == BARE_LABEL and section.title.endswith((":", "：")):
            section.level = BOLD_LABEL


def _share_last_fix(sections: list[Section]) -> None:
    """A fix after the last of several titles, none of which has its own, is for all of them."""
    titles = [n for n, s in enumerate(sections) if s.level == TITLE_ABOVE and s.is_title]
    fixes = [n for n, s in enumerate(sections) if s.role in ("fix", "cause+fix", "symptom+fix")]
    if len(titles) >= 2 and fixes and fixes[0] > titles[-1] and sections[fixes[0]].level == BARE_LABEL:
        for section in sections[fixes[0] :]:
            if section.level == BARE_LABEL:
                section.level = TITLE_ABOVE


def _closes_page(role: str) -> bool:
    return role in ("summary", "prevention", "related")


def _titles_hold_labels(sections: list[Section]) -> bool:
    """Do titles come with labels of their own (T s c f T s c f), or do labels hold titles (s T T f T T)?"""
    bare_ones = [s for s in sections[1:] if s.level in (BARE_LABEL, TITLE_BELOW, NUMBERED, INLINE)]
    titles = [n for n, s in enumerate(bare_ones) if s.is_title]
    if not titles:
        return False
    before = [s for s in bare_ones[: titles[0]] if s.role in KEY_ROLES and s.level == BARE_LABEL]
    if before:
        return False
    with_labels = 0
    for place, n in enumerate(titles):
        stop = titles[place + 1] if place + 1 < len(titles) else len(bare_ones)
        with_labels += any(s.role in KEY_ROLES for s in bare_ones[n + 1 : stop])
    return with_labels > 0
