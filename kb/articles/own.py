"""Here are the lines of an article in this project's own form; give me its issues exactly as they stand.

    # Article title
    ## Issue title            one for each issue (an article of one issue may leave it out)
    ### Symptom | 现象
    ### Cause | 原因
    ### Fix | 解决方案
    ### Not to be confused with | 容易混淆
    ### Asked as | 常见问法

No guessing here: a section is what its heading says, and anything else becomes a remark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kb.records import Remark
from kb.articles.draft import Draft, Part, slice_of
from kb.articles.items import list_items
from kb.articles.kinds import REMARK_KINDS
from kb.articles.lines import Line

__all__ = ["OWN_LABELS", "read_own_form"]

RoleOf = Callable[[str], str]
"""the role that a heading has in the vocabulary of pages in other forms; empty when it has none"""

# The labels of this project's own article form.
OWN_LABELS = {
    "symptom": "symptom",
    "现象": "symptom",
    "cause": "cause",
    "原因": "cause",
    "fix": "fix",
    "解决方案": "fix",
    "not to be confused with": "confusable",
    "容易混淆": "confusable",
    "asked as": "aliases",
    "常见问法": "aliases",
}

_PROJECT = re.compile(
    r"^\s{0,3}(?:\*\*)?(?:Project|项目)(?:\*\*)?\s?[:：]\s?(?:\*\*)?\s?(\S[^\n]{0,80})", re.IGNORECASE
)
_BULLET = re.compile(r"^\s{0,8}(?:[-*+•]|\d{1,2}[.)、])\s{1,4}")


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
) -> tuple[str, list[Draft], list[Remark]] | None:
    """Title, drafts and remarks; None when the article is in some other form: `role_of` tells whether a heading is a
    label there. `titled`: the front matter names the article."""
    tree = _tree(lines, titled=titled)
    if tree is None:
        return None
    title, intro, nodes = tree
    remarks = [Remark(line.no, "background", line.text.strip()) for line in intro if line.kind != "blank"]
    if any(node.own_role for node in nodes):
        if title is None:
            return None
        root = _Node(title, [], nodes)
        drafts = [_draft(root, remarks, role_of)] if _is_issue(root, role_of) else []
        project = _project(intro)
        if drafts and project:
            drafts[0].project = project
    else:
        drafts = []
        for node in nodes:
            if _is_issue(node, role_of):
                drafts.append(_draft(node, remarks, role_of))
            elif node.children or not role_of(node.title):
                return None
            else:
                _pass_over(node, remarks, role_of)
    return (title.heading_text if title else "", drafts, remarks) if drafts else None


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
    """A symptom under its own label, no label twice, and no label of another vocabulary beside it."""
    own = [child.own_role for child in node.children if child.own_role]
    others = {role_of(child.title) for child in node.children if not child.own_role}
    return "symptom" in own and len(own) == len(set(own)) and not others & {"symptom", "cause", "fix", "analysis"}


def _project(lines: Sequence[Line]) -> str | None:
    first = next((line for line in lines if line.kind != "blank"), None)
    found = _PROJECT.fullmatch(first.text) if first else None
    return found[1].strip(" *`") if found else None


def _draft(node: _Node, remarks: list[Remark], role_of: RoleOf) -> Draft:
    draft = Draft(title=node.title, first=node.heading.no, last=node.heading.no, own=True)
    draft.project = _project(node.body)
    loose = [line for line in node.body if line.kind != "blank" and not _PROJECT.fullmatch(line.text)]
    remarks += [Remark(line.no, "unread", line.text.strip()) for line in loose]
    for child in node.children:
        role = child.own_role
        if role in ("symptom", "cause", "fix"):
            part = Part(child.body)
            getattr(draft, role).append(part)
            draft.last = max([draft.last, child.heading.no, *(line.no for line in child.body if line.kind != "blank")])
        elif role == "aliases":
            draft.aliases = _aliases(child.body)
        else:
            _pass_over(child, remarks, role_of, role)
    return draft


def _aliases(lines: Sequence[Line]) -> list[str]:
    """The items of a list, or each line that is none: how people put this problem, in words and one way a line."""
    _, items, _ = list_items(lines)
    texts = [" ".join(line.text.strip() for line in item) for item in items] or [line.text for line in lines]
    return [told for text in texts if (told := _BULLET.sub("", text).strip())]


def _pass_over(node: _Node, remarks: list[Remark], role_of: RoleOf, role: str = "") -> None:
    kind = role or role_of(node.title)
    kind = kind if kind in REMARK_KINDS else "unread"
    text = slice_of(node.body)
    remarks.append(Remark(node.heading.no, kind, f"{node.title}\n{text}" if text else node.title))
    for child in node.children:
        _pass_over(child, remarks, role_of, role)
