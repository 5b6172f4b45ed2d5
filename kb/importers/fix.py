"""Finds the fix of a thread as a maintainer would: each post gets evidence for and against it, named and weighed.

The candidates are the comments and the first post (number 0). The weights make a conditional logit: a candidate's
chance is exp(score) over the sum of all of them and of 1, which stands for "no post is the fix". They are fitted by
`scripts/import_threads.py`; no weight has a sign that makes no sense. McFadden, "Conditional logit analysis of
qualitative choice behavior" (1974).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kb.importers.github import Thread
from kb.importers.wording import Said, announces_solution, read_words

__all__ = ["EVIDENCE", "Candidate", "evidence_of", "find_fix", "is_convincing", "rank", "solving_part"]

LEAST, MOST_NONE = 1 / 3, 0.4
"""A post is taken for the fix when its own chance is at least `LEAST`, and that of "no post is the fix" at most
`MOST_NONE`: two posts that tell the same cure share their chance."""

EVIDENCE = {
    "post": 0,  # what any comment starts with
    "opening": 0,
    "by_asker": 0,
    "by_insider": 1,
    "solved_by_asker": 1,
    "solved_by_other": 1,
    "solved_and_how": 1,
    "opening_solved": 1,
    "opening_advises": 1,
    "action": 1,
    "code": 1,
    "heading": 1,
    "link": 1,
    "change": 1,
    "closing_pull": 1,
    "released": 1,
    "confirmed_by_asker": 1,
    "confirmed_by_other": 1,
    "thanked_by_asker": 1,
    "says_how": 1,
    "liked": 1,
    "last_word": 1,
    "only_answer": 1,
    "solved_label": 1,
    "denied": -1,
    "unsolved": -1,
    "same": -1,
    "asks": -1,
    "question": -1,
    "unsure": -1,
    "pending": -1,
    "closing": -1,
    "error": -1,
    "nothing": -1,
    "rejected_label": -1,
}
"""the kinds of evidence, and the sign that each weight may have; 0: either"""

SHORT_ADVICE, STORY = 12, 20  # words
FEW_WORDS = 3  # beside a command that says all by itself; code in longer prose without an action is only mentioned
_UNSAID = ("post", "opening", "by_asker")  # no reasons, only what the others start from
_SOLVED_LABEL = re.compile(r"(?i)\b(?:solved|resolved|fixed|answered|accepted|completed)\b|已?解决|已修复|已回答")
_REJECTED_LABEL = re.compile(
    r"(?i)wont ?fix|won't fix|invalid|stale|not planned|needs? (?:info|repro)|pending|duplicate"
)


@dataclass(frozen=True, slots=True)
class Candidate:
    number: int
    """of the comment, from 1; 0 is the first post"""
    chance: float
    reasons: tuple[str, ...]
    """kinds of evidence that speak for it, then, each with a "-" in front, those against it; weightiest first"""


def rank(thread: Thread) -> list[Candidate]:
    """All posts that may be the fix, likeliest first."""
    found = evidence_of(thread)
    weights = _weights()
    scores = [_weigh(values, weights) for values in found.values()]
    most = max(scores, default=0.0)
    total = math.exp(-max(most, 0.0)) + sum(math.exp(score - max(most, 0.0)) for score in scores)
    ranked = [
        Candidate(number, math.exp(score - max(most, 0.0)) / total, _reasons(values, weights))
        for (number, values), score in zip(found.items(), scores, strict=True)
    ]
    return sorted(ranked, key=lambda one: (-one.chance, one.number))


def find_fix(ranked: Sequence[Candidate]) -> Candidate | None:
    """The first of the ranked posts when it is convincing."""
    if ranked and is_convincing(ranked[0].chance, 1.0 - sum(one.chance for one in ranked)):
        return ranked[0]
    return None


def is_convincing(best: float, none: float) -> bool:
    """`best`: the chance of the likeliest post; `none`: of there being no fix."""
    return best >= LEAST and none <= MOST_NONE


def _weigh(values: dict[str, float], weights: dict[str, float]) -> float:
    return sum(weights[name] * value for name, value in values.items())


def _reasons(values: dict[str, float], weights: dict[str, float]) -> tuple[str, ...]:
    earned = sorted(((weights[name] * value, name) for name, value in values.items()), reverse=True)
    told = [(worth, name) for worth, name in earned if abs(worth) >= 0.1 and name not in _UNSAID]
    return (*(name for worth, name in told if worth > 0), *(f"-{name}" for worth, name in told[::-1] if worth < 0))


def evidence_of(thread: Thread) -> dict[int, dict[str, float]]:
    """For each post that may be the fix, its evidence: kind -> a number, 1.0 for most kinds that hold."""
    said = [read_words(comment.body) for comment in thread.comments]
    heard = [number for number, comment in enumerate(thread.comments) if not comment.aside]
    answers = _answered(thread, said, heard)
    others = [number for number in heard if not _asks(thread, number) and not _idle(said[number])]
    solved_label = any(map(_SOLVED_LABEL.search, thread.labels))
    rejected = any(map(_REJECTED_LABEL.search, thread.labels))
    told: dict[int, dict[str, float]] = {}
    opening = _opening(thread)
    if opening:
        told[0] = opening
    for number in heard:
        comment, words = thread.comments[number], said[number]
        by_asker = _asks(thread, number)
        solved = words.solved
        how = words.action or words.code or words.change
        values = {
            "post": True,
            "by_asker": by_asker,
            "by_insider": comment.insider,
            "solved_by_asker": solved and by_asker,
            "solved_by_other": solved and not by_asker,
            "solved_and_how": solved and how and not words.question and not (words.closing and not words.code),
            "action": words.action,
            "code": words.code and (words.action or solved or words.words <= FEW_WORDS),
            "heading": words.heading and how,
            "link": words.link and not words.code,
            "change": words.change and not words.unsolved,
            "closing_pull": any(
                url in comment.body or f"#{url.rpartition('/')[2]}" in comment.body for url in thread.closed_by
            ),
            "released": words.released,
            "confirmed_by_asker": "asker" in answers[number],
            "confirmed_by_other": "other" in answers[number],
            "thanked_by_asker": "thanks" in answers[number] and "asker" not in answers[number],
            "says_how": how and _was_asked_how(thread, said, heard, number),
            "last_word": thread.closed and number == heard[-1],
            "only_answer": others == [number],
            "solved_label": solved_label and (not by_asker or solved),
            "denied": "denied" in answers[number],
            "unsolved": words.unsolved,
            "same": words.same and not (solved and how),
            "asks": words.asks and not solved,
            "question": words.question,
            "unsure": words.unsure and not solved,
            "pending": words.pending,
            "closing": words.closing and not how,
            "error": words.error and not solved,
            "nothing": not (how or words.link or words.solved or words.heading or words.released),
            "rejected_label": rejected,
        }
        told[number + 1] = {name: float(value) for name, value in values.items() if value}
        if comment.likes and not (
            words.same or words.asks or words.unsolved or values["nothing"]
        ):  # "+1" is liked as well
            told[number + 1]["liked"] = math.log2(1 + min(comment.likes, 31)) / 2
    return told


def _asks(thread: Thread, number: int) -> bool:
    return bool(thread.by) and thread.comments[number].by == thread.by


def _idle(words: Said) -> bool:
    """It cannot be a fix: it asks, thanks, or has the same problem."""
    told = words.action or words.code or words.link or words.solved
    return not told or words.closing or ((words.asks or words.same or words.unsolved) and not words.solved)


def _was_asked_how(thread: Thread, said: Sequence[Said], heard: Sequence[int], number: int) -> bool:
    """Its author had said that it is solved, and somebody asked how."""
    place = heard.index(number)
    author = thread.comments[number].by
    claimed = [one for one in heard[:place] if thread.comments[one].by == author and said[one].solved]
    return bool(claimed) and any(
        said[one].same and said[one].question and thread.comments[one].by != author
        for one in heard[heard.index(claimed[0]) : place]
    )


def _answered(thread: Thread, said: Sequence[Said], heard: Sequence[int]) -> dict[int, set[str]]:
    """For each comment what later ones say of it: "asker" or "other" confirms it, "thanks" of the asker, "denied"."""
    answers: dict[int, set[str]] = {number: set() for number in heard}
    for place, number in enumerate(heard):
        words = said[number]
        by_asker = _asks(thread, number)
        solved = words.solved and not words.unsolved
        if not (solved or words.thanks or words.unsolved):
            continue
        if words.unsolved and not (words.solved or words.same or words.error):
            for one in heard[:place]:  # what somebody takes back
                if thread.comments[one].by == thread.comments[number].by and said[one].solved:
                    answers[one].add("denied")
        target = _meant(thread, said, heard[:place], number)
        if target is None:
            continue
        if words.unsolved and not words.solved:
            if by_asker or words.quoted or words.named:
                answers[target].add("denied")
        elif solved:
            own_way = words.code and words.action  # it speaks for itself, and not for what was said before
            thanks = words.quoted or ((words.named or words.thanks) and words.words <= STORY)
            if thanks or not own_way:
                answers[target].add("asker" if by_asker else "other")
        elif by_asker and words.thanks and not words.unsolved:
            answers[target].add("thanks")
    return answers


def _meant(thread: Thread, said: Sequence[Said], before: Sequence[int], number: int) -> int | None:
    """The comment that a reply speaks of: the one it quotes, the last of somebody it names, else the nearest before it
    that proposes something. None when there is none by another author."""
    words, author = said[number], thread.comments[number].by
    candidates = [one for one in before if thread.comments[one].by != author or not author]
    if words.quoted:
        for one in reversed(candidates):
            if any(len(line) > 15 and line in thread.comments[one].body for line in words.quoted.split("\n")):
                return one
    proposing = [one for one in candidates if _proposes(said[one])]
    for one in reversed(proposing):
        if thread.comments[one].by.casefold() in words.named:
            return one
    return proposing[-1] if proposing else None


def _proposes(words: Said) -> bool:
    return (words.action or words.code or words.link or words.released) and not (words.unsolved and not words.solved)


def _opening(thread: Thread) -> dict[str, float]:
    """The evidence for the first post; empty when it does not say that something solved it."""
    title = read_words(thread.title)
    part = solving_part(thread.body, thread.title)
    words = read_words(part)
    if not part or not (words.action or words.code or words.change):
        return {}
    values = {
        "opening": True,
        "opening_solved": words.cured,
        "opening_advises": part == thread.body,
        "heading": words.heading,
        "code": words.code,
        "solved_label": any(map(_SOLVED_LABEL.search, thread.labels)),
        "question": words.question or title.question,
        "unsolved": words.unsolved,
        "unsure": words.unsure,
    }
    return {name: float(value) for name, value in values.items() if value}


def solving_part(body: str, title: str = "") -> str:
    """Of a first post the part that says how it was solved: from the paragraph that says so to the next heading. All of
    it when the title announces a solution, or when it is nothing but advice. "" when there is none."""
    whole = read_words(body)
    advises = whole.action and whole.code and not (whole.question or whole.same)
    if advises and announces_solution(title):
        return body
    paragraphs = [part for part in re.split(r"\n[ \t]*\n", body) if part.strip()]
    for place, part in enumerate(paragraphs):
        words = read_words(part)
        if not (words.heading or (words.cured and not words.unsolved)) or words.asks or words.question:
            continue
        kept = [part]
        if not (words.action or words.code) and place:  # "... by running / `x` / I was able to fix it"
            kept = paragraphs[max(0, place - 2) : place + 1]
        for below in paragraphs[place + 1 :]:
            if below.lstrip().startswith("#"):
                break
            kept.append(below)
        return "\n\n".join(kept)
    only = whole.words <= SHORT_ADVICE and "`" in body and not (whole.error or whole.asks or whole.unsolved)
    return body if advises and only else ""


@cache
def _weights() -> dict[str, float]:
    found: dict[str, float] = json.loads((Path(__file__).parent / "fix.json").read_text("utf-8"))
    return {name: found.get(name, 0.0) for name in EVIDENCE}
