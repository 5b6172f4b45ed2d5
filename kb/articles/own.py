"""Reads an article in this project's own form. Every field is an exact slice of the article.

    # Article title
    ## Issue title            one for each issue (an article of one issue may leave it out)
    ### In short | 一句话
    ### Symptom | 现象
    ### Cause | 原因
    ### Fix | 解决方案
    ### Which one is it | 先分清是哪一种
    ### Only when | 判别
    ### Not to be confused with | 容易混淆
    ### Asked as | 常见问法

Nothing is guessed: a heading says what its section is, and everything else becomes a remark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kb.articles.fields import IssueFields, Part, slice_of
from kb.articles.items import list_items
from kb.articles.kinds import REMARK_KINDS
from kb.articles.lines import Line
from kb.records import Branch, Remark

__all__ = ["OWN_LABELS", "read_own_form"]

RoleOf = Callable[[str], str]
"""the role of a heading in the vocabulary for pages in any form; "" when it has none"""

OWN_LABELS = {
    "in short": "summary",
    "一句话": "summary",
    "symptom": "symptom",
    "现象": "symptom",
    "cause": "cause",
    "原因": "cause",
    "fix": "fix",
    "解决方案": "fix",
    "which one is it": "triage",
    "先分清是哪一种": "triage",
    "only when": "only_when",
    "判别": "only_when",
    "not to be confused with": "confusable",
    "容易混淆": "confusable",
    "asked as": "aliases",
    "常见问法": "aliases",
}
"""heading in lower case -> role: the labels of this form in both languages"""

_PROJECT = re.compile(
    r"^\s{0,3}(?:\*\*)?(?:Project|项目)(?:\*\*)?\s?[:：]\s?(?:\*\*)?\s?(\S[^\n]{0,80})", re.IGNORECASE
)
_BULLET = re.compile(r"^\s{0,8}(?:[-*+•]|\d{1,2}[.)、])\s{1,4}")
_LINK = re.compile(r"\[`?([\w-]{1,100}#\d{1,4})`?\]")
_CONDITION = re.compile(r"^\s{0,1}[-*+•]\s{1,4}(?:`([^`\n]{1,300})`|(\S[^\n]{0,80}))")


@dataclass
class _Node:
    heading: Line
    body: list[Line] = field(default_factory=list)
    children: list[_Node] = field(default_factory=list)

    title: str = ""
    own_role: str = ""

    def __post_init__(self) -> None:
        self.title = self.heading.heading_text
        self.own_role = OWN_LABELS.get(self.title.casefold().rstrip(":： "), "")


def read_own_form(
    lines: Sequence[Line], *, role_of: RoleOf, titled: bool = False
) -> tuple[str, list[IssueFields], list[Remark]] | None:
    """Title, issues and remarks; None when the article is in another form.

    `role_of` is called only for headings that are no label of this form: a label of the other vocabulary among them
    means another form. `titled`: the front matter holds the title, so that the body needs none.
    """
    tree = _tree(lines, titled=titled)
    if tree is None:
        return None
    title, intro, nodes = tree
    remarks = [Remark(line.no, "background", line.text.strip()) for line in intro if line.kind != "blank"]
    if any(node.own_role for node in nodes):
        if title is None:
            return None
        root = _Node(title, [], nodes)
        issues = [_read_issue(root, remarks, role_of)] if _is_issue(root, role_of) else []
        project = _project(intro)
        if issues and project:
            issues[0].project = project
    else:
        issues = []
        for node in nodes:
            if _is_issue(node, role_of):
                issues.append(_read_issue(node, remarks, role_of))
            elif node.children or not role_of(node.title):
                return None
            else:
                _remark_section(node, remarks, role_of)
    return (title.heading_text if title else "", issues, remarks) if issues else None


def _tree(lines: Sequence[Line], *, titled: bool) -> tuple[Line | None, list[Line], list[_Node]] | None:
    title: Line | None = None
    intro: list[Line] = []
    nodes: list[_Node] = []
    for line in lines:
        if line.kind == "heading" and line.level == 1:
            if title is not None or nodes:
                return None
            title = line
        elif line.kind == "heading" and line.level == 2:
            nodes.append(_Node(line))
        elif line.kind == "heading" and line.level == 3 and nodes and not nodes[-1].own_role:
            nodes[-1].children.append(_Node(line))
        elif nodes:
            (nodes[-1].children or nodes)[-1].body.append(line)
        elif line.kind == "heading":
            return None
        else:
            intro.append(line)
    return (title, intro, nodes) if nodes and (title or titled) else None


def _is_issue(node: _Node, role_of: RoleOf) -> bool:
    """It has a symptom section, no label twice, and no label of the other vocabulary."""
    own = [child.own_role for child in node.children if child.own_role]
    others = {role_of(child.title) for child in node.children if not child.own_role}
    return "symptom" in own and len(own) == len(set(own)) and not others & {"symptom", "cause", "fix", "analysis"}


def _project(lines: Sequence[Line]) -> str | None:
    first = next((line for line in lines if line.kind != "blank"), None)
    found = _PROJECT.fullmatch(first.text) if first else None
    return found[1].strip(" *`") if found else None


def _read_issue(node: _Node, remarks: list[Remark], role_of: RoleOf) -> IssueFields:
    issue = IssueFields(title=node.title, first=node.heading.no, last=node.heading.no)
    issue.project = _project(node.body)
    loose = [line for line in node.body if line.kind != "blank" and not _PROJECT.fullmatch(line.text)]
    remarks += [Remark(line.no, "unread", line.text.strip()) for line in loose]
    for child in node.children:
        role = child.own_role
        if role in ("summary", "symptom", "cause", "fix", "triage", "only_when", "confusable"):
            part = Part(child.body)
            getattr(issue, role).append(part)
            issue.last = max([issue.last, child.heading.no, *(line.no for line in child.body if line.kind != "blank")])
            if role == "only_when":
                issue.conditions = _conditions(child.body)
            elif role == "triage":
                issue.branches = _branches(child.body)
        elif role == "aliases":
            issue.aliases = _aliases(child.body)
        else:
            _remark_section(child, remarks, role_of, role)
    return issue


def _conditions(lines: Sequence[Line]) -> list[str]:
    """The inline code that each bullet begins with. Where there is none, the words: `kb check` says that they are no
    condition."""
    found = (_CONDITION.match(line.text) for line in lines if line.kind == "text")
    return [(match[1] or match[2]).strip() for match in found if match]


def _branches(lines: Sequence[Line]) -> list[Branch]:
    """The bullets that link to an issue: the condition that each begins with, if any, and the issue."""
    bullets: list[str] = []
    for line in (line.text for line in lines if line.kind == "text"):
        if _CONDITION.match(line):
            bullets.append(line)
        elif bullets:
            bullets[-1] += " " + line.strip()
    linked = ((_CONDITION.match(text), _LINK.search(text)) for text in bullets)
    return [Branch((found[1] or "").strip() if found else "", link[1]) for found, link in linked if link]


def _aliases(lines: Sequence[Line]) -> list[str]:
    """The items of the list, or the lines when there is no list: how people put this problem, one way each."""
    _, items, _ = list_items(lines)
    texts = [" ".join(line.text.strip() for line in item) for item in items] or [line.text for line in lines]
    return [alias for text in texts if (alias := _BULLET.sub("", text).strip())]


def _remark_section(node: _Node, remarks: list[Remark], role_of: RoleOf, role: str = "") -> None:
    kind = role or role_of(node.title)
    kind = kind if kind in REMARK_KINDS else "unread"
    text = slice_of(node.body)
    remarks.append(Remark(node.heading.no, kind, f"{node.title}\n{text}" if text else node.title))
    for child in node.children:
        _remark_section(child, remarks, role_of, role)
