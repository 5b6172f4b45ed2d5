"""Here is an issue's sections; give me its symptom, cause and fix, each in the article's own words.

A label decides for the text under it. Without a label the sentences are sorted (`prose`). What rejects, prevents,
verifies or explains is left out, and a fix that only says "wait" is no fix.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kb.articles.draft import Draft, Part
from kb.articles.items import list_items
from kb.articles.lines import Line
from kb.records import Remark
from kb.scraped.issues import Found
from kb.scraped.prose import is_action, is_advice, is_cause, is_problem, is_unresolved, sentences, sort_of
from kb.scraped.replies import USELESS, useful_replies
from kb.scraped.sections import INLINE, Section
from kb.scraped.sorting import reason_told, sort_lines

__all__ = ["draft_of"]

_SUSPECTED = re.compile(
    r"怀疑|猜测|判断|排除|回滚|重启|扩容|切换|切走|切到|恢复|发布|上线|修复|执行|没有改善|"
    r"\b(?:suspect|restart|roll(?:ed)? |rollback|revert|scale|raised|changed|recover|fixed|resolved|mitigat|deploy)",
    re.IGNORECASE,
)
_REPORTED = re.compile(r"表现|反馈|有人|有用户|用户报告|却|\breported\b|\bcomplain", re.IGNORECASE)
_REASON = re.compile(r"原因|因此|导致|所以|\bcause|because|therefore|\bhence\b", re.IGNORECASE)
_BOLD_LEAD = re.compile(r"\*\*[^*\n]{1,60}\*\*\s?[:：]?\s?|[^，,。:：`]{1,20}[:：]\s?")
_CLAUSE = re.compile(r"[^，；;]{1,400}[，；;]?")
_CONDITION = re.compile(
    r"如果|若|当|为了|对于|先|打开|进入|登录|时$|后$|之后|以后|\b(?:if|when|once|after|before|for|to|in order|"
    r"as a|on)\b",
    re.IGNORECASE,
)
_MARKER_ONLY = re.compile(r"^[\s>*#\-•\d.、)）]{0,20}")


def draft_of(issue: Found, remarks: list[Remark]) -> Draft:
    numbers = [
        line.no for part in issue.parts for section in part.walk() for line in [*section.body, section.line] if line
    ]
    numbers += [line.no for line in issue.loose]
    if issue.head is not None and issue.head.line is not None:
        numbers.append(issue.head.line.no)
    draft = Draft(title=_one_line(issue.title), first=min(numbers, default=1), last=max(numbers, default=1))
    explicit = {section.role for part in issue.parts for section in part.walk()}
    backgrounds: list[Section] = []
    replies = [part for part in issue.parts if part.role == "reply"]
    for part in useful_replies(replies):
        sort_lines(part.body, draft, mode="answer")
    for part in issue.parts:
        if part.role in ("background", "impact", "summary", "progress") and not draft.cause and not draft.fix:
            backgrounds.append(part)
        _assign(part, _resolve(part, explicit, issue), draft, remarks, asked=issue.asked)
    _loose(issue, draft, explicit)
    _fill_symptom(draft, issue, backgrounds)
    if issue.tabled and issue.title.strip("` ").isascii() and " " in issue.title:
        draft.errors = [issue.title.strip("` ")]
    if not draft.symptom and draft.title:
        draft.symptom = [Part(text=draft.title)]
    if issue.cured and draft.cause and not draft.fix:
        _part_cure(draft)
    _fill_cause(draft, issue)
    _drop_waiting(draft, remarks)
    return draft


def _one_line(title: str) -> str:
    return " ".join(title.strip(" #*").split())[:300]


def _resolve(part: Section, explicit: set[str], issue: Found) -> str:
    """What an `analysis` is depends on what else the article labels."""
    if part.role == "diagnosis" and part.level == INLINE and not explicit & {"cause", "cause+fix", "symptom+cause"}:
        return "cause"  # `定位：热点分片都落在同一个节点上。`
    if part.role != "analysis":
        return part.role
    text = "\n".join(line.text for section in part.walk() for line in section.body)
    caused = bool(explicit & {"cause", "cause+fix", "symptom+cause"})
    told = bool(explicit & {"symptom", "symptom+cause", "symptom+fix"}) or any(
        is_problem(line.text) for line in issue.loose
    )
    if caused:
        return "theory" if told else "symptom"
    if told or is_cause(text) or not is_problem(text):
        return "cause"
    return "symptom"


def _assign(
    section: Section, role: str, draft: Draft, remarks: list[Remark], *, asked: bool, nested: bool = False
) -> None:
    body = section.body
    if role in ("cause+fix", "symptom+cause", "symptom+fix", "answer"):
        sort_lines(body, draft, mode="answer" if role in ("answer", "cause+fix") else "body")
    elif role in ("symptom", "cause", "fix"):
        head = [section.line] if nested and section.line is not None and section.marked else []
        lines = [*head, *body]
        if role == "fix":
            lines = _without_useless(lines)
        if any(line.kind != "blank" for line in lines):
            getattr(draft, role).append(Part(lines))
    elif section.line is not None and not nested:
        return
    for child in section.children:
        inner = role if child.is_title else child.role
        if child.is_title and role in ("cause+fix", "symptom+cause", "symptom+fix", "answer"):
            _assign(child, role, draft, remarks, asked=asked, nested=True)
        elif inner in ("symptom", "cause", "fix", "cause+fix", "symptom+cause", "symptom+fix", "answer"):
            _assign(child, inner, draft, remarks, asked=asked, nested=True)
        elif inner == "analysis":
            _assign(child, "cause" if role != "fix" else "theory", draft, remarks, asked=asked, nested=True)
        elif inner == "background" and role in ("fix", "symptom"):
            _assign(child, role, draft, remarks, asked=asked, nested=True)


def _part_cure(draft: Draft) -> None:
    """The last sentence of a cure that names no deed is how things are now: `The TTL is 15 minutes now.`"""
    pieces = list(sentences(draft.cause[-1].render()))
    draft.cause[-1:] = [Part(text="".join(pieces[:-1]).strip())] if len(pieces) > 1 else []
    draft.fix.append(Part(text=pieces[-1].strip()))


def _without_useless(lines: Sequence[Line]) -> list[Line]:
    """A fix without the sentences that say a thing did not help."""
    kept: list[Line] = []
    for line in lines:
        if line.kind in ("text", "heading") and USELESS.search(line.text):
            rest = "".join(piece for piece in sentences(line.text) if not USELESS.search(piece))
            if not _MARKER_ONLY.fullmatch(rest):
                kept.append(Line(line.no, rest, line.kind, line.level))
            continue
        kept.append(line)
    return kept


def _loose(issue: Found, draft: Draft, explicit: set[str]) -> None:
    """Text under the title without a label of its own."""
    lines = [line for line in issue.loose if line.kind not in ("rule", "furniture")]
    if not any(line.kind != "blank" for line in lines):
        return
    if explicit & {"answer"}:
        draft.symptom.insert(0, Part(lines))
    elif explicit & {"fix", "cause+fix"} or ("cause" in explicit):
        split = Draft("", 0, 0)
        sort_lines(lines, split, mode="body")
        draft.symptom[:0] = (
            [Part(lines)] if "symptom" not in explicit or any(is_problem(line.text) for line in lines) else []
        )
        if not explicit & {"cause", "cause+fix", "symptom+cause"}:
            reason_told(split, printed=False)
            draft.cause[:0] = split.cause
        if not explicit & {"fix", "cause+fix", "symptom+fix"}:
            draft.fix += split.fix
    else:
        sort_lines(
            lines,
            draft,
            mode="answer" if issue.answered or (issue.asked and not _starts_with_problem(lines)) else "body",
        )


def _starts_with_problem(lines: Sequence[Line]) -> bool:
    first = next((line for line in lines if line.kind != "blank"), None)
    if first is None or first.kind != "text":
        return first is not None and first.kind in ("code", "fence")
    lead = next(sentences(first.text), "")
    return is_problem(lead) and not is_cause(lead) and not is_action(lead)


def _from_timeline(section: Section) -> list[Line]:
    """Entries of a timeline that tell what was seen, with what is under them; not what was suspected or done."""
    before, items, _ = list_items(section.body)
    if not items:
        return [line for line in before if is_problem(line.text)]
    seen = [
        item for item in items if any(is_problem(line.text) for line in item) and not _SUSPECTED.search(item[0].text)
    ]
    return [line for item in seen for line in item]


def _fill_symptom(draft: Draft, issue: Found, backgrounds: Sequence[Section]) -> None:
    """The background tells the symptom when nothing else does, or when it quotes an error."""
    told = "".join(part.render() for part in draft.symptom)
    labelled = any(part.role.startswith("symptom") for part in issue.parts)
    for section in [] if labelled else [part for part in issue.parts if part.role == "timeline"]:
        lines = _from_timeline(section)
        if lines and not is_problem(told):
            draft.symptom.append(Part(lines))
    for section in backgrounds:
        lines = [line for part in section.walk() for line in part.body]
        text = "\n".join(line.text for line in lines)
        short = len(told) < 60 or not is_problem(told) or not labelled
        reported = section.role == "background" and _REPORTED.search(text) is not None
        if (short and is_problem(text)) or reported or section.role == "summary" or section.level == INLINE:
            draft.symptom.insert(0, Part(lines))


def _fill_cause(draft: Draft, issue: Found) -> None:
    """No cause is labelled: sentences of the fix or of the symptom that state one."""
    if any(part.render().strip() for part in draft.cause):
        return
    for parts, sure in ((draft.fix, True), (draft.symptom, False)):
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
            draft.cause = [Part(text=text) for text in dict.fromkeys(found)]
            return
    draft.cause = [Part(text=text) for text in _reason_before_deed(draft.fix)]


def _reason_before_deed(parts: Sequence[Part]) -> list[str]:
    """`默认以float32加载权重。在命令行追加 …`: a plain statement that opens a paragraph of the fix."""
    for part in parts:
        for text in [part.text] if part.text else [line.text for line in part.lines if line.kind == "text"]:
            pieces = [piece.strip() for piece in sentences(text)]
            if len(pieces) >= 2 and not sort_of(pieces[0]) and len(pieces[0]) > 8 and is_action(pieces[1]):
                return [pieces[0]]
            reason = _clauses_before_deed(pieces[0]) if pieces else ""
            if reason:
                return [reason]
    return []


def _clauses_before_deed(sentence: str) -> str:
    """`浏览器开了代理，把 127.0.0.1 加入白名单。`: what stands before the clause that tells what to do."""
    text = _MARKER_ONLY.sub("", sentence)
    lead = _BOLD_LEAD.match(text)
    text = text[lead.end() :] if lead else text
    clauses = _CLAUSE.findall(text)
    deed = next((n for n, clause in enumerate(clauses) if is_advice(clause)), 0)
    reason = "".join(clauses[:deed]).strip(" ，,；;")
    return reason if deed and len(reason) >= 6 and not _CONDITION.search(reason) else ""


def _drop_waiting(draft: Draft, remarks: list[Remark]) -> None:
    text = "\n".join(part.render() for part in draft.fix)
    pieces = [piece for line in text.split("\n") for piece in sentences(line) if piece.strip()]
    if not any(is_unresolved(piece) for piece in pieces):
        return
    left = [piece for piece in pieces if not is_unresolved(piece)]
    if not any(is_action(piece) for piece in left) and "```" not in text:
        remarks.append(Remark(draft.last, "no-fix", text.strip()[:500]))
        draft.fix = []
