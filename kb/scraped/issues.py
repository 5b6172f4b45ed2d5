"""Here is the tree of sections; give me the issues it tells, each with the sections of its fields.

One reading for all layouts: the labels directly under a title make one issue; labels that come round again start the
next; titles that hold labels are issues themselves; symptoms and remedies in two lists are paired.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from kb.articles.items import list_items
from kb.articles.lines import Line
from kb.logs.classify import opens_with_error
from kb.scraped.pairing import pair, words_of
from kb.scraped.prose import is_action, is_problem, is_question_only
from kb.scraped.sections import KEY_ROLES, Section

__all__ = ["Found", "find_issues"]

_HOISTED_FROM = frozenset(
    ("theory", "background", "diagnosis", "timeline", "analysis", "impact", "environment", "progress", "faq")
)
_SILENT = frozenset(("prevention", "summary", "related", "toc", "rejected", "verification", "theory", "confusable"))
_SEVERAL = re.compile(
    r"(?:两|二|三|四|五|六|七|八|几|多|2|3|4|5|6|7|8|以下|下面|下列|这些|若干|一系列)\s?(?:个|种|类|处|条|"
    r"项)?(?:关键|主要|常见|典型|不同|独立)?(?:性)?的?(?:的)?(?:问题|错误|报错|反馈|故障|异常|情况|现象|坑|症状|障碍)|"
    r"\b(?:two|three|four|five|six|seven|several|multiple|following|various|different|"
    r"these) (?:\w+ ){0,2}(?:issues|problems|errors|failures|symptoms|bugs|things)\b",
    re.IGNORECASE,
)


@dataclass
class Found:
    """An issue: its title, and its sections (or loose lines) in the order of the article."""

    title: str
    head: Section | None
    parts: list[Section] = field(default_factory=list)
    loose: list[Line] = field(default_factory=list)
    """lines under the title, before any label"""
    asked: bool = False
    """the title is a question or a complaint, and what follows may answer it"""
    tabled: bool = False
    """a row of a table of errors"""
    cured: bool = False
    """its last section is a cure, whatever its words"""
    answered: bool = False
    """it does: the page asks and answers"""


def find_issues(root: Section, title: str) -> list[Found]:
    return _collect(root, title)


def _collect(node: Section, title: str) -> list[Found]:
    children = _hoist(node)
    labels = [child for child in children if child.role in KEY_ROLES]
    titles = [child for child in children if child.is_title]
    if not labels and not titles and any(child.role == "reply" for child in children):
        return [_thread(node, title, children)]
    if not labels:
        return _sibling_trees(node, children) or _from_titles(node, children)
    paired = _paired(node, children, title)
    if paired:
        return paired
    shared = _shared_fix(labels, titles)
    if shared:
        return shared
    if not any(_has_fix(child) for child in children) and (trees := _sibling_trees(node, children)):
        return trees
    groups = _groups(children)
    found: list[Found] = []
    for place, group in enumerate(groups):
        loose = node.body if place == 0 else []
        heading = _title(node, title, group, place, len(groups))
        tabled = node.is_title and not node.marked
        found.append(Found(heading, node, group, loose, asked=node.role == "question", tabled=tabled))
    inner = [issue for child in titles if _stands_alone(child) for issue in _collect(child, child.title)]
    if inner and len(found) == 1 and not any(part.role in ("fix", "cause+fix", "symptom+fix") for part in labels):
        return inner
    return found + inner


def _sibling_trees(node: Section, children: Sequence[Section]) -> list[Found]:
    """Two sections with as many titles each, the first of them without cures: the second has the cures."""
    trees = [child for child in children if child.is_title or child.role in ("symptom", "analysis", "background")]
    trees = [tree for tree in trees if len(tree.children) >= 2]
    trees = [tree for tree in trees if all(inner.is_title and not inner.children for inner in tree.children)]
    for told, remedy in pairwise(trees):
        left, right = told.children, remedy.children
        cured = sum(any(map(is_action, _text(entry).split("\n"))) for entry in left)
        wrong = sum(is_problem(entry.title + "\n" + _text(entry)) for entry in left)
        if remedy.is_title and len(left) == len(right) and cured * 2 <= len(left) and wrong:
            remedies = Section(remedy.level, "cause+fix", remedy.title, remedy.line, [], right)
            found = _pair_up(node, told, left, [remedies])
            for issue in found:
                issue.cured = True
            return found
    return []


def _thread(node: Section, title: str, replies: list[Section]) -> Found:
    """A title and comments under it; with nothing between, the first comment is the opening post."""
    told = any(line.kind != "blank" for line in node.body)
    opening, answers = ([], replies) if told or len(replies) < 2 else (replies[0].body, replies[1:])
    return Found(title, node if node.is_title else None, answers, [*node.body, *opening])


def _shared_fix(labels: Sequence[Section], titles: Sequence[Section]) -> list[Found]:
    """Several titles that each tell a problem, and after them one fix for all."""
    if len(titles) < 2 or any(label.role != "fix" for label in labels) or any(_has_fix(child) for child in titles):
        return []
    last = max(child.line.no for child in titles if child.line is not None)
    told = [child for child in titles if is_problem(child.title + "\n" + _text(child))]
    if len(told) < 2 or any(label.line is None or label.line.no < last for label in labels):
        return []
    found = []
    for child in told:
        issue = next(iter(_collect(child, child.title)), None) if child.children else _alone(child)
        if issue is not None:
            issue.parts = [*issue.parts, *labels]
            found.append(issue)
    return found


def _has_fix(section: Section) -> bool:
    return any(part.role in ("fix", "cause+fix", "symptom+fix", "answer") for part in section.walk())


def _from_titles(node: Section, children: Sequence[Section]) -> list[Found]:
    found: list[Found] = []
    faq = node.role == "faq" or sum(child.title.rstrip("*_ ").endswith(("?", "？")) for child in children) >= 2
    for child in children:
        if child.is_title:
            issues = _collect(child, child.title) if child.children else [_alone(child)]
            for issue in issues if faq else ():
                issue.asked = issue.answered = True
            found += issues
        elif child.role not in _SILENT and any(inner.is_title for inner in child.children):
            found += _from_titles(child, child.children)
    if not found and node.line is not None and node.is_title:
        return [_alone(node)]
    return found


def _alone(node: Section) -> Found:
    """A title with text and no labels: perhaps an issue; the record is refused later when nothing speaks for it."""
    lines = [line for section in node.walk() for line in _with_head(section, top=node)]
    question = node.role == "question" or node.title.endswith(("?", "？"))
    item = (
        node.line is not None and node.line.kind == "text" and node.line.text.lstrip()[:2] in ("- ", "* ", "+ ", "• ")
    )
    asked = question or item or (_is_complaint(node.title) and not _is_message(node.title))
    return Found(
        node.title,
        node,
        [],
        lines,
        asked=asked,
        answered=question or item,
    )


def _with_head(section: Section, *, top: Section) -> list[Line]:
    if section is top:
        return section.body
    if section.role in ("prevention", "theory", "summary", "related", "verification", "toc", "environment", "rejected"):
        return []
    return [section.line, *section.body] if section.line is not None and section.marked else section.body


def _is_message(title: str) -> bool:
    """The title is what the program printed, so the text begins with the circumstances."""
    return title[:1] in '`"“' or opens_with_error(title)


def _is_complaint(title: str) -> bool:
    return is_problem(title) and not is_question_only(title)


def _hoist(node: Section) -> list[Section]:
    """Children, and in place of a section that only frames them (技术细节分析) the labels nested in it."""
    children: list[Section] = []
    for child in node.children:
        children.append(child)
        if child.role in _HOISTED_FROM:
            inner = [grand for grand in child.children if grand.role in KEY_ROLES]
            if child.role == "analysis" and not inner:
                continue
            children += inner
            child.children = [grand for grand in child.children if grand not in inner]
    return children


def _stands_alone(section: Section) -> bool:
    roles = {child.role for child in _peek(section)}
    return bool(roles & {"fix", "cause+fix", "symptom+fix", "answer"}) or len(roles & KEY_ROLES) >= 2


def _peek(section: Section) -> list[Section]:
    found: list[Section] = []
    for child in section.children:
        found.append(child)
        if not child.is_title or _stands_alone(child):
            found += child.children
    return found


def _groups(children: Sequence[Section]) -> list[list[Section]]:
    """Labels in order, cut where a symptom comes round again after a cause or a fix."""
    groups: list[list[Section]] = [[]]
    for child in children:
        if child.is_title and _stands_alone(child):
            continue
        roles = {part.role for part in groups[-1]}
        again = (
            child.role in ("symptom", "symptom+cause", "symptom+fix")
            and bool(roles & {"fix", "cause+fix"})
            and bool(roles & {"symptom", "background"})
        )
        if again:
            groups.append([])
        groups[-1].append(child)
    complete = [group for group in groups if {part.role for part in group} & {"fix", "cause", "cause+fix"}]
    if len(groups) > 1 and len(complete) == len(groups):
        return _dealt(groups)
    return [[child for group in groups for child in group]]


def _dealt(groups: list[list[Section]]) -> list[list[Section]]:
    """A last section with a title for each group is dealt out to the groups."""
    for part in list(groups[-1]):
        titles = [child for child in part.children if child.is_title]
        if part.role not in ("cause", "fix", "cause+fix") or len(titles) != len(groups):
            continue
        groups[-1].remove(part)
        told = ["\n".join(_text(section) for section in group) for group in groups]
        for child, place in zip(titles, pair(told, [c.title + "\n" + _text(c) for c in titles]), strict=True):
            if place is not None:
                dealt = Section(
                    part.level, part.role, child.title, child.line, child.body, child.children, marked=False
                )
                groups[place].append(dealt)
    return groups


def _title(node: Section, title: str, group: Sequence[Section], place: int, groups: int) -> str:
    if groups == 1:
        return node.title or title
    symptom = next((part for part in group if part.role.startswith("symptom")), None)
    first = next((line.text.strip() for line in symptom.body if line.text.strip()), "") if symptom else ""
    return first[:120] or f"{title} ({place + 1})"


# --- symptoms first, remedies later ------------------------------------------------------------------------------


def _paired(node: Section, children: Sequence[Section], title: str) -> list[Found]:
    symptoms = [child for child in children if child.role in ("symptom", "analysis", "symptom+cause", "background")]
    remedies = [child for child in children if child.role in ("fix", "cause+fix")]
    if not symptoms or not remedies:
        return []
    for told in symptoms:
        left = _entries(told)
        if len(left) < 2:
            continue
        if left[0].level < 90 and any(map(_has_fix, left)) and not all(map(_has_fix, left)):
            return _completed(left, remedies)
        remedy = max(remedies, key=lambda section: len(_entries(section)))
        right = _entries(remedy, wanted=len(left))
        if not _several(node, told, left, remedy, right, title):
            continue
        causes = [child for child in children if child.role in ("cause", "analysis", "theory") and child is not told]
        return _pair_up(node, told, left, [remedy, *[r for r in remedies if r is not remedy], *causes])
    return []


def _completed(left: Sequence[Section], remedies: list[Section]) -> list[Found]:
    """Some titles have their fix with them; what is told later is for the others."""
    found = []
    for entry in left:
        symptom = Section(_INNER, "symptom", entry.title, entry.line, entry.body, [], marked=False)
        parts = [symptom, *entry.children] if _has_fix(entry) else [symptom, *entry.children, *remedies]
        found.append(Found(entry.title, entry, parts))
    return found


def _entries(section: Section, *, wanted: int = 0) -> list[Section]:
    """Titles under a section, or the items of its list, as sections; of `wanted` number if some reading has it."""
    titles = [child for child in section.children if child.is_title]
    if titles and len(titles) != wanted:
        level = [child for child in section.children if child.level == titles[0].level]
        titles = level if len(level) == wanted else titles
    if len(titles) >= 2:
        return titles
    _, items, numbered = list_items(section.body)
    if len(items) < 2:
        return []
    entries = []
    for item in items:
        entry = Section(90, "", _lead(item[0].text), item[0], body=item, marked=False)
        entry.level = 91 if numbered else 92
        entries.append(entry)
    return entries


_BOLD_ITEM = re.compile(r"^\s{0,12}(?:[-*+•]|\d{1,2}[.、)）])\s{1,4}\*\*[^*\n]{2,60}\*\*")
_LEAD = re.compile(
    r"^\s{0,12}(?:[-*+•]\s{1,4}|(?:\*\*)?(?:\d{1,2}\s?[.、)）]|[（(]\d{1,2}[)）]|[①-⑳]))\s{0,4}(.{0,400})"
)


def _lead(text: str) -> str:
    found = _LEAD.match(text)
    inner = (found[1] if found else text).strip()
    bold = re.match(r"\*\*([^*]{2,120})\*\*", inner)
    if bold:
        return bold[1].rstrip(":：")
    head = re.split(r"[:：。]|(?<=[a-z\"`)])\. ", inner, maxsplit=1)[0]
    return (head if 3 < len(head) <= 80 else inner[:120]).strip("* ")


def _several(
    node: Section, told: Section, left: Sequence[Section], remedy: Section, right: Sequence[Section], title: str
) -> bool:
    """Are the entries of the symptom section issues of their own, rather than sides of one?"""
    as_titles = left[0].level < 90
    if len(right) != len(left):
        alike = (as_titles or left[0].level == 91) and len(right) < 2
        alike = alike and all(is_problem(entry.title + _text(entry)) for entry in left)
        return alike and told.role != "background" and _SEVERAL.search(_page(node, told, title)) is not None
    page = _page(node, told, title)
    if as_titles and told.role in ("symptom", "analysis", "symptom+cause"):
        return True
    if told.role == "background" and left[0].level != 91:
        return False
    numbered = left[0].level == 91
    shares = sum(
        bool(words_of(a.title + _text(a)) & words_of(b.title + _text(b)) - _frequent(left))
        for a, b in zip(left, right, strict=True)
    )
    told_several = _SEVERAL.search(page) is not None
    if told_several and all(_BOLD_ITEM.match(entry.line.text) for entry in [*left, *right] if entry.line):
        return True
    problems = sum(is_problem(_text(entry)) for entry in left)
    if told_several and problems * 2 >= len(left):
        return numbered or right[0].level < 90 or shares * 2 >= len(left)
    return (numbered or right[0].level < 90) and problems == len(left) and shares == len(left)


def _frequent(entries: Sequence[Section]) -> set[str]:
    bags = [words_of(_text(entry)) for entry in entries]
    return {word for bag in bags for word in bag if sum(word in other for other in bags) > 1}


def _page(node: Section, told: Section, title: str) -> str:
    before, _, _ = list_items(told.body)
    near = (
        [line.text for line in node.body]
        + [line.text for line in before]
        + [line.text for c in node.children for line in c.body if c.role == "background"]
    )
    return title + "\n" + "\n".join(near) + "\n" + told.title


def _text(section: Section) -> str:
    return "\n".join(line.text for part in section.walk() for line in part.body)


def _pair_up(node: Section, told: Section, left: Sequence[Section], others: Sequence[Section]) -> list[Found]:
    found = []
    for entry in left:
        symptom = Section(
            _INNER, "symptom", entry.title, entry.line, list(entry.body), list(entry.children), marked=False
        )
        found.append(Found(entry.title, entry, [symptom]))
    lefts = [entry.title + "\n" + _text(entry) for entry in left]
    for section in others:
        entries = _entries(section, wanted=len(left))
        if len(entries) < 2 or len(entries) > len(left) or (section.role != "fix" and len(entries) != len(left)):
            if section.role in ("fix", "cause+fix"):
                for issue in found:
                    issue.parts.append(section)
            continue
        for entry, place in zip(entries, pair(lefts, [e.title + "\n" + _text(e) for e in entries]), strict=True):
            if place is None:
                continue
            role = section.role if section.role in ("fix", "cause+fix", "cause") else "cause"
            head = entry.title if entry.level < 90 else ""
            part = Section(_INNER, role, head, entry.line, list(entry.body), list(entry.children), marked=False)
            found[place].parts.append(part)
            lefts[place] += "\n" + entry.title + "\n" + _text(entry)  # a cause may share its words with the cure
    return found


_INNER = 70
