"""Tagged blocks -> issues. A title opens an issue; what follows belongs to it until the next one.

A page that tells all symptoms first and all fixes later is put in order by `pairing`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from kb.articles.fields import IssueFields, Part
from kb.articles.lines import Line
from kb.scraped.blocks import Block
from kb.scraped.labels import read_label, role_of, split_ordinal
from kb.scraped.pairing import pair, words_of

__all__ = ["Issue", "fields_of", "find_issues", "slice_of_page", "title_of"]

_FIELDS = ("symptom", "cause", "fix")
_SAME = 0.5  # share of the words of a title that names an earlier issue
_LEVEL = re.compile(r"\W{0,3}(?:error|warning|fatal|panic|exception|错误)\b", re.IGNORECASE)
_NUMBERED = re.compile(r"\W{0,3}(?:问题|故障|错误|Issue|Problem|Error)\s?[一二三四五六七八九十\d]{1,2}", re.IGNORECASE)
_QUESTION = re.compile(
    r"^\W{0,4}(?:【(?:问|提问|问题|Q)】\s?\d{0,2}|(?:Q|Question|问|问题)\s?[#＃]?\d{0,3}\s?[:：.、)])\s{0,3}",
    re.IGNORECASE,
)
_ANSWER = re.compile(
    r"^\W{0,4}(?:【(?:答|回答|解答|答案|A)】|(?:A|Answer|答|回答|解答)\s?\d{0,3}\s?[:：])\s{0,3}", re.IGNORECASE
)


@dataclass(slots=True)
class Issue:
    title: int
    """number of the block that opens it"""
    fields: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in _FIELDS})
    """numbers of blocks"""

    @property
    def has_remedy(self) -> bool:
        return bool(self.fields["cause"] or self.fields["fix"])


def find_issues(blocks: Sequence[Block], tags: Sequence[str], *, every_question: bool = False) -> list[Issue]:
    """The issues in the order of the page. A title that nothing follows is none. `every_question`: questions about
    no failure, too."""
    found: list[Issue] = []
    asked, said = False, ""
    roles = [_role_of_line(block) for block in blocks]
    for n, (tag, role) in enumerate(zip(_whole(blocks, tags, roles), roles, strict=True)):
        if (
            tag == "title"
            and found
            and blocks[n].kind == "text"
            and title_of(blocks[n]) == title_of(blocks[found[-1].title])
        ):
            continue  # the page shows its title twice
        said = role if role or tag in ("title", "label", "question") else said
        if said == "rejected" or (role in _FIELDS and tag in _FIELDS):
            continue  # advice that does not help; a label by its words
        if tag == "other" and found and not asked and not found[-1].has_remedy and blocks[n].kind != "heading":
            # what stands between a title and its remedy tells what happened, unless it says that it answers
            answers = _ANSWER.match(blocks[n].text) is not None or said == "fix"
            tag = "fix" if answers else "cause" if said == "cause" else "symptom"
        if blocks[n].kind == "rule":
            continue
        if tag == "title" and found and role_of(blocks[n].text):
            continue  # a label by its words
        if tag == "title" or (tag == "question" and every_question):
            found.append(Issue(n))
            asked = tag == "question"
        elif tag == "question" or (tag == "other" and found and _ends(blocks[n], found[-1], blocks)):
            asked = True
        elif found and tag in _FIELDS and (not asked or every_question):
            found[-1].fields[tag].append(n)
        elif found and tag == "answer" and (every_question or not asked):
            found[-1].fields["fix"].append(n)
        if tag == "title":
            asked = False
    _share_answers(found)
    _deal(found, blocks)
    _join_halves(found, blocks)
    return [issue for issue in found if any(issue.fields.values())]


def _ends(block: Block, issue: Issue, blocks: Sequence[Block]) -> bool:
    """A heading beside the title of an issue that has its remedy: what follows is about something else."""
    return block.kind == "heading" and block.level <= blocks[issue.title].level and issue.has_remedy


def _whole(blocks: Sequence[Block], tags: Sequence[str], roles: Sequence[str]) -> list[str]:
    """The tags, so that no remedy is torn: a list item that holds a step is a step as a whole; what stands between two
    steps under one heading is one, too, and so is what a step announces by its colon. A heading is what stands below
    it."""
    whole = list(tags)
    if "title" not in whole and {"symptom", "cause"} & set(whole) and "fix" in whole:
        # a page about one problem, whose title was not taken for one
        heads = [n for n, block in enumerate(blocks) if block.kind == "heading" and whole[n] != "boilerplate"]
        whole[heads[0] if heads else min(whole.index(tag) for tag in ("symptom", "cause", "fix") if tag in whole)] = (
            "title"
        )
    _level_lists(blocks, whole, roles)
    starts = [n for n, block in enumerate(blocks) if block.opens]
    for start, stop in pairwise([*starts, len(blocks)]):
        if blocks[start].marker and "fix" in whole[start:stop] and not {"title", "question"} & set(whole[start:stop]):
            whole[start:stop] = ["fix"] * (stop - start)
    step = -1  # the last step under this heading
    for n, (block, tag) in enumerate(zip(blocks, whole, strict=True)):
        if block.kind == "heading" or tag in ("title", "question", "boilerplate"):
            step = -1
        elif tag == "fix":
            if step >= 0 and set(whole[step + 1 : n]) <= {"other", "label"}:
                whole[step + 1 : n] = ["fix"] * (n - step - 1)
            step = n
        elif (
            step == n - 1 >= 0
            and tag == "other"
            and (blocks[step].text.endswith((":", "：")) or (block.marker and blocks[step].marker))
        ):
            whole[n] = "fix"
            step = n
    for n, (block, below) in enumerate(pairwise(blocks)):
        if block.kind == "heading" and whole[n] in _FIELDS and below.kind != "heading" and whole[n + 1] in _FIELDS:
            whole[n] = whole[n + 1]
    return whole


def _role_of_line(block: Block) -> str:
    """The role of a heading or line of its own that is a label by its words; a sentence is none."""
    lone = block.opens and block.ends and block.kind in ("heading", "text")
    return role_of(block.text) if lone and not block.text.endswith((".", "。", "!", "！")) else ""


def _level_lists(blocks: Sequence[Block], tags: list[str], roles: Sequence[str]) -> None:
    """A list under `Causes` of which some items were taken for something else: all of them are causes."""
    said, n = "", 0
    while n < len(blocks):
        if not blocks[n].depth:
            said = roles[n] if roles[n] or blocks[n].kind == "heading" or tags[n] in ("title", "label") else said
            n += 1
            continue
        stop = next((k for k in range(n, len(blocks)) if not blocks[k].depth), len(blocks))
        inside = {*tags[n:stop]}
        if said in inside and (
            (said == "cause" and inside <= {*_FIELDS, "other"}) or inside <= {"symptom", "title", "other"}
        ):
            tags[n:stop] = [said] * (stop - n)
        n = stop


def _share_answers(found: list[Issue]) -> None:
    """Two titles in a row, of which only the second has text: both are titles of one issue."""
    for issue, after in pairwise(found):
        if not any(issue.fields.values()) and after.title == issue.title + 1:
            issue.fields = {name: list(numbers) for name, numbers in after.fields.items()}
            issue.fields["symptom"] = [after.title, *issue.fields["symptom"]]
            after.fields = {name: [] for name in _FIELDS}


def _deal(found: Sequence[Issue], blocks: Sequence[Block]) -> None:
    """Gives each issue its own of the remedies that all stand behind the last one."""
    start = 0
    for stop, last in enumerate(found):
        if not last.has_remedy:
            continue
        group = found[start : stop + 1]
        start = stop + 1
        numbers = sorted(last.fields["cause"] + last.fields["fix"])
        heads = [n for n in numbers if blocks[n].kind == "heading" or blocks[n].bold]
        heads = [n for n in numbers if _is_topic(blocks[n])] if len(heads) != len(group) else heads
        heads = heads if len(heads) >= 2 else [n for n in numbers if blocks[n].marker and blocks[n].depth <= 1]
        if len(group) < 2 or len(heads) != len(group):
            continue
        cuts = [*heads, numbers[-1] + 1]
        remedies = [[n for n in numbers if a <= n < b] for a, b in pairwise(cuts)]
        told = [" ".join(blocks[n].text for n in (issue.title, *issue.fields["symptom"])) for issue in group]
        owners = pair(told, [" ".join(blocks[n].text for n in remedy) for remedy in remedies])
        causes = set(last.fields["cause"])
        last.fields["cause"], last.fields["fix"] = [], []
        for remedy, owner in zip(remedies, owners, strict=True):
            issue = group[owner if owner is not None else -1]
            issue.fields["cause"] += [n for n in remedy if n in causes]
            issue.fields["fix"] += [n for n in remedy if n not in causes]


def _join_halves(found: Sequence[Issue], blocks: Sequence[Block]) -> None:
    """`The NoneType error` with its symptom, and later `On the NoneType error` with its remedy: one issue."""
    for n, half in enumerate(found):
        words = words_of(blocks[half.title].text)
        if half.fields["symptom"] or not half.has_remedy or not words:
            continue
        open_ = [issue for issue in found[:n] if issue.fields["symptom"] and not issue.has_remedy]
        told = [words_of(" ".join(blocks[k].text for k in (issue.title, *issue.fields["symptom"]))) for issue in open_]
        shares = [len(words & other) / len(words) for other in told]
        if shares and max(shares) >= _SAME:
            first = open_[shares.index(max(shares))]
            first.fields["cause"], first.fields["fix"] = half.fields["cause"], half.fields["fix"]
            half.fields = {name: [] for name in _FIELDS}


def _is_topic(block: Block) -> bool:
    """It begins with a number of its own: `问题二的解决：…`, `Issue 2: …`."""
    label = read_label(block.text)
    return block.opens and (_NUMBERED.match(block.text) is not None or (label is not None and label.role == "topic"))


# --- as fields ------------------------------------------------------------------------------------------------------


def fields_of(issue: Issue, blocks: Sequence[Block], lines: Sequence[Line]) -> IssueFields:
    """The issue with its text: slices of the page."""
    numbers = [issue.title, *(n for part in issue.fields.values() for n in part)]
    fields = IssueFields(
        title=title_of(blocks[issue.title]),
        first=min(lines[blocks[n].first].no for n in numbers),
        last=max(lines[blocks[n].last].no for n in numbers),
    )
    for name in _FIELDS:
        setattr(fields, name, [Part(run) for run in _runs(issue.fields[name], blocks, lines)])
    return fields


def title_of(block: Block) -> str:
    """The text of a title without its number, its `Q:` and its `问题一：`."""
    text = " ".join(block.text.split())
    text = text[found.end() :] if (found := _QUESTION.match(text)) else text
    label = read_label(text)
    if label and label.rest and label.role in ("topic", "symptom") and not _LEVEL.match(text):
        text = label.rest
    _, text = split_ordinal(text)
    return text.strip(" *_#:：").strip() or block.text.strip()


def _runs(numbers: Iterable[int], blocks: Sequence[Block], lines: Sequence[Line]) -> list[list[Line]]:
    """The lines of neighbouring blocks, each run as it stands in the page; every cell of a table by itself."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][-1] + 1 and "cell" not in (blocks[n].kind, blocks[n - 1].kind):
            runs[-1].append(n)
        else:
            runs.append([n])
    return [slice_of_page(blocks[run[0]], blocks[run[-1]], lines) for run in runs]


def slice_of_page(first: Block, last: Block, lines: Sequence[Line]) -> list[Line]:
    """The lines from one block to another, cut at both ends; without the label that opens them."""
    run = list(lines[first.first : last.last + 1])
    cut = run[-1]
    if last.stop < len(cut.text.rstrip()):
        run[-1] = Line(cut.no, cut.text[: last.stop].rstrip(), cut.kind, cut.level, cut.block)
    head = run[0]
    text = run[0].text[first.start :].lstrip(" |") if first.start else _without_label(run[0].text, first)
    run[0] = Line(head.no, text, head.kind, head.level, head.block)
    return run


def _without_label(text: str, block: Block) -> str:
    """The line without a label that opens it: `原因：`, `**Fix:**`, `A:`."""
    if block.kind != "text":
        return text
    answer = _ANSWER.match(text)
    if answer:
        return text[answer.end() :].lstrip("* ")
    label = read_label(text)
    return label.rest if label and label.rest and label.role.split("+")[0] in _FIELDS else text
