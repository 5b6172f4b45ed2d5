"""Sorts text without labels sentence by sentence into symptom, cause and fix.

What happens comes first, then the reason, then the actions; an answer begins with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kb.articles.fields import IssueFields, Part
from kb.articles.items import list_items
from kb.articles.lines import Line
from kb.logs.classify import opens_with_error
from kb.logs.errors import has_error, looks_like_code
from kb.scraped.prose import is_advice, is_cause, is_problem, sentences, sort_of

__all__ = ["is_code", "move_reason", "sort_lines"]


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


def sort_lines(lines: Sequence[Line], fields: IssueFields, *, mode: str) -> None:
    """Puts each sentence where it belongs. `answer`: reasons, then actions; `body`: what happens, then the rest."""
    last = "symptom" if mode == "body" else "cause"
    steps = _steps(lines)
    acted = False
    printed = opens_with_error(fields.title.strip('`"“ '))
    guess = ""  # a plain statement between what happens and what to do is most likely the reason
    runs = list(_paragraphs(lines))
    for place, run in enumerate(runs):
        before_code = place + 1 < len(runs) and is_code(runs[place + 1][0])
        if is_code(run[0]):
            where = last if last in ("symptom", "cause", "fix") else ""
            if where != "fix" and has_error("\n".join(line.text for line in run)):
                where = "symptom"
            elif where == "cause" and mode == "answer":
                where = "fix"
            if where == "symptom" and acted:
                where = "fix"
            if where:
                getattr(fields, where).append(Part(run))
            continue
        for line in run:
            if not line.text.strip():
                continue
            if mode == "answer" and line.no in steps:
                fields.fix.append(Part([line]))
                last, acted = "fix", True
                continue
            pieces: dict[str, list[str]] = {}
            for piece in sentences(line.text):
                sort = sort_of(piece)
                introduces = before_code and line is run[-1] and line.text.rstrip().endswith(piece.strip())
                if sort == "" and introduces and piece.rstrip().endswith((":", "：")):
                    sort = "fix" if mode == "answer" or fields.cause or acted else ""
                done = sort == "fix" and not is_advice(piece)
                if done and mode == "answer" and not acted and _advises_after(lines, line):
                    sort = "cause"
                if sort == "" and steps and mode == "answer" and acted and not fields.cause and is_problem(piece):
                    sort = "cause"  # what follows the steps explains them
                if sort == "":
                    sort = _plain(last, mode, acted)
                elif sort == "cause+fix" and mode == "body" and not acted and last == "symptom" and not fields.symptom:
                    sort = "symptom"
                if (
                    sort == "fix"
                    and mode == "body"
                    and not acted
                    and guess
                    and not fields.cause
                    and "cause" not in pieces
                ):
                    pieces["cause"] = [guess]
                guess = (
                    piece
                    if sort == "symptom"
                    and (fields.symptom or pieces.get("symptom") or printed)
                    and not is_problem(piece)
                    else ""
                )
                if sort in ("fix", "cause+fix"):
                    has_symptom = bool(fields.symptom or pieces.get("symptom") or (printed and fields.cause))
                    if mode == "body" and not has_symptom:
                        sort = "symptom"
                    else:
                        if mode == "body" and not acted and "symptom" not in pieces:
                            move_reason(fields, printed=printed)
                        acted = True
                for field in ("cause", "fix") if sort == "cause+fix" else (sort,):
                    pieces.setdefault(field, []).append(piece)
                last = "fix" if sort == "cause+fix" else sort
                if sort == "theory":
                    break
            for field in ("symptom", "cause", "fix"):
                if field in pieces:
                    getattr(fields, field).append(Part(text="".join(pieces[field]).strip()))


def move_reason(fields: IssueFields, *, printed: bool) -> None:
    """Without a cause, the paragraph between the error and the first action moves from symptom to cause.

    `printed`: the title is an error message.
    """
    if fields.cause:
        return
    if printed and len(fields.symptom) == 1 and fields.symptom[0].text:
        fields.cause.append(fields.symptom.pop())
    if len(fields.symptom) < 3:
        return
    shown = any(part.lines and is_code(part.lines[0]) for part in fields.symptom[:-1])
    if shown and fields.symptom[-1].text and not fields.symptom[-2].lines:
        fields.cause.append(fields.symptom.pop())


def _advises_after(lines: Sequence[Line], first: Line) -> bool:
    """From the line `first` on, a sentence instructs the reader."""
    return any(
        is_advice(piece)
        for line in lines
        if line.no >= first.no and line.kind == "text"
        for piece in sentences(line.text)
    )


def _steps(lines: Sequence[Line]) -> set[int]:
    """Numbers of the lines that are numbered steps; empty when the items are reasons."""
    _, items, numbered = list_items(lines)
    if not numbered or any(is_cause(item[0].text) for item in items):
        return set()
    return {line.no for item in items for line in item if line.kind == "text"} - {line.no for line in items[-1][1:]}


def _plain(last: str, mode: str, acted: bool) -> str:
    """Where a plain statement goes, after a sentence of the kind `last`."""
    if last in ("prevention", "theory"):
        return last
    if mode == "answer":
        return "fix" if acted else "cause"
    return last if last != "unresolved" else ""
