"""What to try first: the first steps of a fix with their commands, in as few rows as there is room for.

One function decides it for every door: `to_try`. A command is shown whole or not at all, below the words of its own
step; a warning of the step stands above the command; words that end in a colon are followed by what they lead to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from kb.brief.prose import joined, paragraphs, pieces_of, plain, sentences
from kb.brief.words import LABELS, Line
from kb.records import IssueRecord
from kb.text.steps import BASES, steps
from kb.text.steps import Step as ListItem
from kb.text.width import CODE_SPAN, cells, cut, rows, wrap

__all__ = ["MOST_STEPS", "Step", "first_to_try", "steps_of", "to_try"]

MOST_STEPS = 3
MAX_SAID = 240  # columns of what a step says
CODE_INDENT = 5

_MARK = re.compile(rf"\s{{0,8}}\*([(（](?:{'|'.join(BASES)})[)）])\*", re.IGNORECASE)
_WARNS = re.compile(
    r"\W{0,4}(?:(?:warning|caution|careful|danger|beware|never)\b|注意|警告|当心|小心|危险|谨慎|切勿|千万)",
    re.IGNORECASE,
)
_LABEL = re.compile(r"\W{0,4}[\w ]{1,20}\W{0,6}")
_LEADS = re.compile(r"[:：][\s*)）]{0,4}$")
_ASKS = re.compile(r"[?？][\s*)）]{0,4}$")
_PREPARES = re.compile(r"(?:#|//|(?:REM|rem|import|from|cd)\b)")
_GOES_ON = re.compile(r"[\\|&,:({\[]$|^(?:for|while|until|if|case|def|class|with|try)\b")

Piece = tuple[str | None, str]  # as `kb.brief.prose.pieces_of` has them


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a fix, in plain words."""

    number: int
    """its place in the fix, from 1"""
    says: str
    """what to do: its first sentence, and the one that leads to its code; ends with a full stop when there is a
    warning or no code"""
    warnings: tuple[str, ...]
    """every sentence that warns, wherever it stands in the step"""
    mark: str
    """what stands behind it, as the article writes it: `(reported)`; may be empty"""
    code: tuple[str, ...]
    """the lines of its first fenced block; empty when it has none"""
    more: bool
    """the step has more code than that"""


def steps_of(fix: str) -> list[Step]:
    """The steps in their order, without those at the end that only say how to see that it worked. A fix without a list
    has a step for each of its paragraphs."""
    listed = steps(fix)
    while len(listed) > 1 and not listed[-1].claims:
        listed.pop()
    bold = any(step.basis for step in listed)  # in this project's own form bold words warn; elsewhere they name menus
    every = map(_pieces, listed) if listed else _loose(fix)
    found = [_step(number, pieces, bold=bold) for number, pieces in enumerate(every, 1)]
    return [step for step in found if step.says or step.warnings or step.code]


def to_try(record: IssueRecord, room: int, width: int, *, indent: str = "  ", most: int = MOST_STEPS) -> list[Line]:
    """The first steps, `most` at most, in `room` rows of `width` columns; at least one, and nothing when there is no
    fix. A block of code that is higher than the room is named and not shown."""
    found = steps_of(record.fix)
    shown: list[Line] = []
    for step in found[:most]:
        mark = f"{step.number}. " if len(found) > 1 else ""
        lines = _lines(step, mark, indent, width, record, with_code=True)
        if rows([line.text for line in lines], width) > room and not shown:
            shorter = replace(step, says=cut(step.says, max(room - 2, 1) * (width - 10)))
            lines = _lines(shorter, mark, indent, width, record, with_code=False)
        needed = rows([line.text for line in lines], width)
        if needed > room and shown:
            break
        room -= needed
        shown += lines
    return shown


def first_to_try(record: IssueRecord) -> str:
    """The first command or setting in one line: of a step, what it says with its code. Empty when there is no fix."""
    found = steps_of(record.fix)
    for step in found:
        if len(step.code) == 1 and not step.more:
            return _in_one_line(step, _span(step.code[0].strip()))
        if CODE_SPAN.search(step.says):
            return _in_one_line(step, "")
        if command := _first_command(step.code):
            return _in_one_line(step, f"{_span(command)} …")
    return _in_one_line(found[0], "") if found else ""


def _in_one_line(step: Step, code: str) -> str:
    said = [step.says, *step.warnings]
    if not code:
        return joined([_ended(step.says), *step.warnings])
    return joined([*said, code] if _LEADS.search(step.says) and not step.warnings else [*map(_ended, said), code])


def _span(code: str) -> str:
    return f"`` {code} ``" if "`" in code else f"`{code}`"


def _first_command(code: tuple[str, ...]) -> str:
    """The first line of a script that does something; empty where it may not be a whole command by itself."""
    line = next((line.strip() for line in code if line.strip() and not _PREPARES.match(line.strip())), "")
    quoted = any(line.count(mark) % 2 for mark in "'\"`") or "<<" in line
    nested = any(line.count(a) != line.count(b) for a, b in ("()", "[]", "{}"))
    return "" if quoted or nested or _GOES_ON.search(line) else line


def _lines(step: Step, number: str, indent: str, width: int, record: IssueRecord, *, with_code: bool) -> list[Line]:
    words = LABELS[record.lang]
    code = step.code if with_code else ()
    said = [step.says] if _LEADS.search(step.says) and code and not step.warnings else [_ended(step.says)]
    if step.code and not code:
        said.append(words["code left out"].format(n=len(step.code)))
    said += [*step.warnings, *([step.mark] if step.mark and not _LEADS.search(said[-1]) else [])]
    lines = [
        Line(line, "text")
        for line in wrap(joined(filter(None, said)), width, first=indent + number, indent=indent + " " * len(number))
    ]
    lines += [Line(indent + " " * CODE_INDENT + line if line else "", "code") for line in code]
    if code and step.more:
        lines.append(Line(indent + " " * CODE_INDENT + "…", "note"))
    return lines


def _ended(says: str) -> str:
    """The same without a colon that leads to nothing."""
    if not _LEADS.search(says):
        return says
    return says.rstrip(":： ") + ("。" if "：" in says[-2:] else ".")


def _step(number: int, pieces: list[Piece], *, bold: bool) -> Step:
    mark = next((found[1] for fence, prose in pieces if fence is None and (found := _MARK.search(prose))), "")
    at = next((n for n, (fence, _) in enumerate(pieces) if fence is not None), len(pieces))
    before, after = (
        [one for fence, body in part if fence is None for one in _said(body)] for part in (pieces[:at], pieces[at:])
    )
    warnings = _warnings([*before, *after], bold=bold)
    code = pieces[at][1].strip("\n").split("\n") if at < len(pieces) else []
    says = _says([one for one in before if one not in warnings], has_code=bool(code))
    more = any(fence is not None for fence, _ in pieces[at + 1 :])
    return Step(number, says, tuple(_ended(plain(one)) for one in warnings), mark, tuple(code), more)


def _said(prose: str) -> list[str]:
    return [one for line in paragraphs(_MARK.sub("", prose)) for one in sentences(line)]


def _says(before: list[str], *, has_code: bool) -> str:
    """The first sentence; then, with code below, the last one if that leads to it, and without, those up to the first
    inline code."""
    if not before:
        return ""
    kept, rest = before[:1], before[1:]
    while rest and (
        _LEADS.search(kept[-1]) or _ASKS.search(kept[-1]) or not (has_code or any(map(CODE_SPAN.search, kept)))
    ):
        if sum(map(cells, (*kept, rest[0]))) > MAX_SAID:
            break
        kept.append(rest.pop(0))
    if has_code and rest and _LEADS.search(rest[-1]):
        kept.append(rest[-1])
    return cut(plain(joined(kept)), 2 * MAX_SAID)


def _warnings(said: list[str], *, bold: bool) -> list[str]:
    found: list[str] = []
    for number, one in enumerate(said):
        if _WARNS.match(one) or (bold and "**" in CODE_SPAN.sub("", one)):
            found.append(one)
            if _LABEL.fullmatch(plain(one)) and number + 1 < len(said):  # the mark of a warning alone in its line
                found.append(said[number + 1])
    return list(dict.fromkeys(found))


def _loose(fix: str) -> list[list[Piece]]:
    """The paragraphs of a fix without a list, each with the code and the warnings below it."""
    found: list[list[Piece]] = []
    for fence, body in pieces_of(fix):
        if fence is None:
            for paragraph in paragraphs(body):
                if found and _WARNS.match(paragraph):
                    found[-1].append((None, paragraph))
                else:
                    found.append([(None, paragraph)])
        elif found:
            found[-1].append((fence, body))
        else:
            found.append([(fence, body)])
    return found


def _dedented(text: str) -> str:
    indents = (len(line) - len(line.lstrip(" ")) for line in text.split("\n") if line.strip())
    least = min(indents, default=0)
    return "\n".join(line[least:] for line in text.split("\n"))


def _pieces(step: ListItem) -> list[Piece]:
    """All lines of a list item but its first may be indented."""
    first, _, rest = step.text.partition("\n")
    return list(pieces_of(f"{first}\n{_dedented(rest)}"))
