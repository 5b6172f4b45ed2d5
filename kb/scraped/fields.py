"""Fills an issue's symptom, cause and fix from its sections, in the article's own words.

A label decides for the text under it. Without a label the sentences are sorted (`sorting`). Sections on prevention,
verification and theory are left out, and a fix that only says that there is none yet is no fix.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kb.articles.fields import IssueFields, Part
from kb.articles.lines import Line
from kb.records import Remark
from kb.scraped.issues import Found
from kb.scraped.prose import is_action, is_advice, is_cause, is_problem, is_unresolved, sentences, sort_of
from kb.scraped.replies import useful_replies
from kb.scraped.sections import INLINE, Section
from kb.scraped.sorting import move_reason, sort_lines

__all__ = ["fields_of"]

_REASON = re.compile(r"原因|因此|导致|所以|\bcause|because|therefore|\bhence\b", re.IGNORECASE)
_BOLD_LEAD = re.compile(r"\*\*[^*\n]{1,60}\*\*\s?[:：]?\s?|[^，,。:：`]{1,20}[:：]\s?")
_CLAUSE = re.compile(r"[^，；;]{1,400}[，；;]?")
_CONDITION = re.compile(
    r"如果|若|当|为了|对于|先|打开|进入|登录|时$|后$|之后|以后|\b(?:if|when|once|after|before|for|to|in order|"
    r"as a|on)\b",
    re.IGNORECASE,
)


def fields_of(issue: Found, remarks: list[Remark]) -> IssueFields:
    """The fields of one issue. A fix that is dropped adds a "no-fix" remark."""
    numbers = [
        line.no for part in issue.parts for section in part.walk() for line in [*section.body, section.line] if line
    ]
    numbers += [line.no for line in issue.loose]
    if issue.head is not None and issue.head.line is not None:
        numbers.append(issue.head.line.no)
    fields = IssueFields(title=_one_line(issue.title), first=min(numbers, default=1), last=max(numbers, default=1))
    explicit = {section.role for part in issue.parts for section in part.walk()}
    backgrounds: list[Section] = []
    replies = [part for part in issue.parts if part.role == "reply"]
    for part in useful_replies(replies):
        sort_lines(part.body, fields, mode="answer")
    for part in issue.parts:
        if part.role in ("background", "impact", "summary", "progress") and not fields.cause and not fields.fix:
            backgrounds.append(part)
        _assign(part, _resolve(part, explicit, issue), fields)
    _loose(issue, fields, explicit)
    _fill_symptom(fields, issue, backgrounds)
    if issue.from_table and issue.title.strip("` ").isascii() and " " in issue.title:
        fields.errors = [issue.title.strip("` ")]
    if not fields.symptom and fields.title:
        fields.symptom = [Part(text=fields.title)]
    if issue.ends_in_fix and fields.cause and not fields.fix:
        _split_off_fix(fields)
    _fill_cause(fields)
    _drop_waiting(fields, remarks)
    return fields


def _one_line(title: str) -> str:
    return " ".join(title.strip(" #*").split())[:300]


def _resolve(part: Section, explicit: set[str], issue: Found) -> str:
    """The role of a section; what an `analysis` or a `diagnosis` is depends on the other labels of the issue."""
    if part.role == "diagnosis" and part.level == INLINE and not explicit & {"cause", "cause+fix", "symptom+cause"}:
        return "cause"  # `定位：热点分片都落在同一个节点上。`
    if part.role != "analysis":
        return part.role
    text = "\n".join(line.text for section in part.walk() for line in section.body)
    caused = bool(explicit & {"cause", "cause+fix", "symptom+cause"})
    described = bool(explicit & {"symptom", "symptom+cause", "symptom+fix"}) or any(
        is_problem(line.text) for line in issue.loose
    )
    if caused:
        return "theory" if described else "symptom"
    if described or is_cause(text) or not is_problem(text):
        return "cause"
    return "symptom"


def _assign(section: Section, role: str, fields: IssueFields, *, nested: bool = False) -> None:
    """Puts the section's text, and that of the sections in it, into the fields of its role."""
    body = section.body
    if role in ("cause+fix", "symptom+cause", "symptom+fix", "answer"):
        sort_lines(body, fields, mode="answer" if role in ("answer", "cause+fix") else "body")
    elif role in ("symptom", "cause", "fix"):
        head = [section.line] if nested and section.line is not None and section.marked else []
        lines = [*head, *body]
        if any(line.kind != "blank" for line in lines):
            getattr(fields, role).append(Part(lines))
    elif section.line is not None and not nested:
        return
    for child in section.children:
        inner = role if child.is_title else child.role
        if child.is_title and role in ("cause+fix", "symptom+cause", "symptom+fix", "answer"):
            _assign(child, role, fields, nested=True)
        elif inner in ("symptom", "cause", "fix", "cause+fix", "symptom+cause", "symptom+fix", "answer"):
            _assign(child, inner, fields, nested=True)
        elif inner == "analysis":
            _assign(child, "cause" if role != "fix" else "theory", fields, nested=True)
        elif inner == "background" and role in ("fix", "symptom"):
            _assign(child, role, fields, nested=True)


def _split_off_fix(fields: IssueFields) -> None:
    """The last sentence becomes the fix where none names an action: `The TTL is 15 minutes now.`"""
    pieces = list(sentences(fields.cause[-1].render()))
    fields.cause[-1:] = [Part(text="".join(pieces[:-1]).strip())] if len(pieces) > 1 else []
    fields.fix.append(Part(text=pieces[-1].strip()))


def _loose(issue: Found, fields: IssueFields, explicit: set[str]) -> None:
    """Text under the title without a label of its own."""
    lines = [line for line in issue.loose if line.kind not in ("rule", "boilerplate")]
    if not any(line.kind != "blank" for line in lines):
        return
    if explicit & {"answer"}:
        fields.symptom.insert(0, Part(lines))
    elif explicit & {"fix", "cause+fix"} or ("cause" in explicit):
        split = IssueFields("", 0, 0)
        sort_lines(lines, split, mode="body")
        fields.symptom[:0] = (
            [Part(lines)] if "symptom" not in explicit or any(is_problem(line.text) for line in lines) else []
        )
        if not explicit & {"cause", "cause+fix", "symptom+cause"}:
            move_reason(split, printed=False)
            fields.cause[:0] = split.cause
        if not explicit & {"fix", "cause+fix", "symptom+fix"}:
            fields.fix += split.fix
    else:
        sort_lines(
            lines,
            fields,
            mode="answer" if issue.is_answered or (issue.is_question and not _starts_with_problem(lines)) else "body",
        )


def _starts_with_problem(lines: Sequence[Line]) -> bool:
    first = next((line for line in lines if line.kind != "blank"), None)
    if first is None or first.kind != "text":
        return first is not None and first.kind in ("code", "fence")
    lead = next(sentences(first.text), "")
    return is_problem(lead) and not is_cause(lead) and not is_action(lead)


def _fill_symptom(fields: IssueFields, issue: Found, backgrounds: Sequence[Section]) -> None:
    """The background is the symptom when nothing else is, or when it quotes an error."""
    symptom = "".join(part.render() for part in fields.symptom)
    labelled = any(part.role.startswith("symptom") for part in issue.parts)
    for section in backgrounds:
        lines = [line for part in section.walk() for line in part.body]
        text = "\n".join(line.text for line in lines)
        short = len(symptom) < 60 or not is_problem(symptom) or not labelled
        if (short and is_problem(text)) or section.role == "summary" or section.level == INLINE:
            fields.symptom.insert(0, Part(lines))


def _fill_cause(fields: IssueFields) -> None:
    """Without a labelled cause: the sentences of the fix or of the symptom that state a reason."""
    if any(part.render().strip() for part in fields.cause):
        return
    for parts, sure in ((fields.fix, True), (fields.symptom, False)):
        found: list[str] = []
        for part in parts:
            texts = [part.text] if part.text else [line.text for line in part.lines if line.kind == "text"]
            for text in texts:
                found += [
                    p.strip()
                    for p in sentences(text)
                    if is_cause(p) and (not is_action(p) or _REASON.search(p) or not sure)
                ]
        if found:
            fields.cause = [Part(text=text) for text in dict.fromkeys(found)]
            return
    fields.cause = [Part(text=text) for text in _reason_before_action(fields.fix)]


def _reason_before_action(parts: Sequence[Part]) -> list[str]:
    """`默认以float32加载权重。在命令行追加 …`: a plain statement that opens a paragraph of the fix."""
    for part in parts:
        for text in [part.text] if part.text else [line.text for line in part.lines if line.kind == "text"]:
            pieces = [piece.strip() for piece in sentences(text)]
            if len(pieces) >= 2 and not sort_of(pieces[0]) and len(pieces[0]) > 8 and is_action(pieces[1]):
                return [pieces[0]]
            reason = _clauses_before_action(pieces[0]) if pieces else ""
            if reason:
                return [reason]
    return []


def _clauses_before_action(sentence: str) -> str:
    """`浏览器开了代理，把 127.0.0.1 加入白名单。`: the clauses before the one that says what to do."""
    lead = _BOLD_LEAD.match(sentence)
    text = sentence[lead.end() :] if lead else sentence
    clauses = _CLAUSE.findall(text)
    action = next((n for n, clause in enumerate(clauses) if is_advice(clause)), 0)
    reason = "".join(clauses[:action]).strip(" ，,；;")
    return reason if action and len(reason) >= 6 and not _CONDITION.search(reason) else ""


def _drop_waiting(fields: IssueFields, remarks: list[Remark]) -> None:
    """A fix that only says that there is none yet becomes a remark."""
    text = "\n".join(part.render() for part in fields.fix)
    pieces = [piece for line in text.split("\n") for piece in sentences(line) if piece.strip()]
    if not any(is_unresolved(piece) for piece in pieces):
        return
    left = [piece for piece in pieces if not is_unresolved(piece)]
    if not any(is_action(piece) for piece in left) and "```" not in text:
        remarks.append(Remark(fields.last, "no-fix", text.strip()[:500]))
        fields.fix = []
