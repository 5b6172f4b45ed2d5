"""Here is text without labels; put each of its sentences into the symptom, the cause or the fix of a draft.

What happens comes first, then the reason, then the deeds; an answer begins with the reason. Sentences that only
announce what comes next decide for the rest of their paragraph.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kb.articles.draft import Draft, Part
from kb.articles.items import list_items
from kb.articles.lines import Line
from kb.logs.classify import opens_with_error
from kb.logs.errors import has_error, looks_like_code
from kb.scraped.prose import is_action, is_advice, is_cause, is_problem, sentences, sort_of
from kb.scraped.sayings import lead_of

__all__ = ["is_code", "reason_told", "sort_lines"]


# The circumstances of an error rather than its reason.
_SEEN = re.compile(
    r"\b(?:seen|see|appears?|shows?|happens?|when|while|after|during|since|every|only|fails?|stops?|prints?|"
    r"reported|you get)\b|"
    r"时|后|出现|提示|报|发生|显示|遇到",
    re.IGNORECASE,
)


def _paragraphs(lines: Sequence[Line]) -> Iterable[list[Line]]:
    """Runs of text or of code; code stays whole."""
    run: list[Line] = []
    for line in lines:
        coded = is_code(line)
        if line.kind == "blank" and not (run and is_code(run[-1])):
            if run:
                yield run
            run = []
        elif line.kind == "blank":
            run.append(line)
        elif run and is_code(run[-1] if run[-1].kind != "blank" else run[0]) != coded:
            yield run
            run = [line]
        else:
            run.append(line)
    if run:
        yield run


def is_code(line: Line) -> bool:
    return line.kind in ("code", "fence") or (line.kind == "text" and looks_like_code(line.text))


def sort_lines(lines: Sequence[Line], draft: Draft, *, mode: str) -> None:
    """Put each sentence where it belongs. `answer`: reasons first, then deeds; `body`: what happens, then the rest."""
    last = "symptom" if mode == "body" else "cause"
    steps = _steps(lines)
    acted = False
    printed = opens_with_error(draft.title.strip('`"“ '))
    guess = ""  # a plain statement between what happens and what to do is most likely the reason
    runs = list(_paragraphs(lines))
    for place, run in enumerate(runs):
        before_code = place + 1 < len(runs) and is_code(runs[place + 1][0]) and not _prints(runs[place + 1])
        if is_code(run[0]):
            where = last if last in ("symptom", "cause", "fix") else ""
            if where != "fix" and has_error("\n".join(line.text for line in run)):
                where = "symptom"
            elif where == "cause" and mode == "answer":
                where = "fix"
            if where == "symptom" and acted:
                where = "fix"
            if where:
                getattr(draft, where).append(Part(run))
            continue
        for line in run:
            if not line.text.strip():
                continue
            if mode == "answer" and line.no in steps:
                draft.fix.append(Part([line]))
                last, acted = "fix", True
                continue
            pieces: dict[str, list[str]] = {}
            told = _complaint(line.text) if mode == "answer" and not acted else ""
            lead = ""
            for piece in sentences(line.text):
                sort = sort_of(piece)
                if lead == "theory":
                    continue
                if (announced := lead_of(piece)) and (mode == "answer" or draft.symptom or pieces):
                    lead = last = announced
                    continue
                introduces = before_code and line is run[-1] and line.text.rstrip().endswith(piece.strip())
                if sort == "" and introduces and piece.rstrip().endswith((":", "：")):
                    sort = "fix" if mode == "answer" or draft.cause or acted else ""
                if sort == "theory":
                    lead = sort
                if (lead == "cause" and not (sort == "fix" and is_advice(piece))) or (
                    sort == "fix" and mode == "answer" and not acted and not is_advice(piece) and _advised(lines, line)
                ):
                    sort = "cause"
                if sort == "" and steps and mode == "answer" and acted and not draft.cause and is_problem(piece):
                    sort = "cause"  # what follows the steps explains them
                if sort == "":
                    sort = "symptom" if piece in told else _plain(last, mode, acted, piece)
                elif sort == "cause+fix" and mode == "body" and not acted and last == "symptom" and not draft.symptom:
                    sort = "symptom"
                if (
                    sort == "fix"
                    and mode == "body"
                    and not acted
                    and guess
                    and not draft.cause
                    and "cause" not in pieces
                ):
                    pieces["cause"] = [guess]
                guess = (
                    piece
                    if sort == "symptom"
                    and (draft.symptom or pieces.get("symptom") or printed)
                    and not is_problem(piece)
                    else ""
                )
                if sort in ("fix", "cause+fix"):
                    told_of = draft.symptom or pieces.get("symptom") or (printed and draft.cause)
                    if mode == "body" and not told_of:
                        sort = "symptom"
                    else:
                        if mode == "body" and not acted and "symptom" not in pieces:
                            reason_told(draft, printed=printed)
                        acted = True
                for field in ("cause", "fix") if sort == "cause+fix" else (sort,):
                    pieces.setdefault(field, []).append(piece)
                last = "fix" if sort == "cause+fix" else sort
            for field in ("symptom", "cause", "fix"):
                if field in pieces:
                    getattr(draft, field).append(Part(text="".join(pieces[field]).strip()))


def _prints(run: Sequence[Line]) -> bool:
    return has_error("\n".join(line.text for line in run))


def reason_told(draft: Draft, *, printed: bool) -> None:
    """The paragraph between the error and the first deed is the reason, when nothing else is."""
    if draft.cause:
        return
    if printed and len(draft.symptom) == 1 and draft.symptom[0].text and not _SEEN.search(draft.symptom[0].text):
        draft.cause.append(draft.symptom.pop())
    if len(draft.symptom) < 3:
        return
    shown = any(part.lines and is_code(part.lines[0]) for part in draft.symptom[:-1])
    if shown and draft.symptom[-1].text and not draft.symptom[-2].lines:
        draft.cause.append(draft.symptom.pop())


def _advised(lines: Sequence[Line], first: Line) -> bool:
    """From the line `first` on, somebody is told to do something."""
    return any(
        is_advice(piece)
        for line in lines
        if line.no >= first.no and line.kind == "text"
        for piece in sentences(line.text)
    )


def _complaint(text: str) -> str:
    """The first sentence of an answer that tells the trouble again, before at least two that explain it."""
    pieces = list(sentences(text))
    reasons = 0
    for piece in pieces[1:]:
        if is_action(piece):
            break
        reasons += 1
    return pieces[0] if pieces and reasons >= 2 and is_problem(pieces[0]) and not sort_of(pieces[0]) else ""


def _steps(lines: Sequence[Line]) -> set[int]:
    """Numbers of the lines that are numbered steps; reasons may be numbered too, and then say so."""
    _, items, numbered = list_items(lines)
    if not numbered or any(is_cause(item[0].text) for item in items):
        return set()
    return {line.no for item in items for line in item if line.kind == "text"} - {line.no for line in items[-1][1:]}


def _plain(last: str, mode: str, acted: bool, piece: str) -> str:
    if last in ("prevention", "theory", "rejected"):
        return last if last != "rejected" else ("fix" if acted else "symptom" if mode == "body" else "cause")
    if mode == "answer":
        return "fix" if acted else "cause"
    return last if last != "unresolved" else ""
