"""Nests the sections of a page, given in order, into a tree.

The level of a section decides. Where headings are guessed, titles go above labels or below them: whichever comes first.
"""

from __future__ import annotations

from collections.abc import Sequence

from kb.scraped.sections import (
    BARE_LABEL,
    INLINE,
    KEY_ROLES,
    NUMBERED,
    TITLE_ABOVE,
    TITLE_BELOW,
    Section,
)

__all__ = ["build_tree"]


def build_tree(sections: list[Section], *, plain: bool) -> Section:
    """Nest the sections by level; guessed titles go above or below guessed labels, by which comes first."""
    if plain and _titles_hold_labels(sections):
        for section in sections:
            if section.is_title and section.level in (TITLE_BELOW, NUMBERED):
                section.level = TITLE_ABOVE
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


def _is_thread(stack: Sequence[Section]) -> bool:
    """Replies belong to the title above them, not to the form the opening post was filled in by."""
    section, parent = stack[-1], stack[-2]
    return section.role == "" and not any(child.role in KEY_ROLES for child in parent.children)


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
