"""Gives a meaning to unknown labels that repeat from entry to entry, by their order and their texts.

`Seen with: … / Turned out to be: … / Try: …`: no vocabulary holds these, but their order and the texts after them show
that they are symptom, cause and fix.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kb.articles.lines import Line
from kb.scraped.headings import is_reply
from kb.scraped.labels import read_label, role_of
from kb.scraped.prose import is_action, is_advice, is_cause

__all__ = ["name_labels"]

_LABEL = re.compile(
    r"^(\s{0,4}(?:[-*+•]\s{1,3})?(?:\*\*)?)([^:：*`\n|/]{2,24}?)((?:\*\*)?\s?[:：](?:\*\*)?)\s?(\S.{3,2000})$"
)
_KEYS = ("symptom", "cause", "fix")
_NAMES = {"symptom": "Symptom", "cause": "Cause", "fix": "Fix", "answer": "Answer"}


def name_labels(lines: Sequence[Line]) -> None:
    """Renames repeated labels without a role to Symptom, Cause and Fix. Changes the lines."""
    found = [(line, hit) for line in lines if line.kind == "text" and (hit := _LABEL.match(line.text))]
    order: dict[str, list[tuple[Line, re.Match[str]]]] = {}
    for line, hit in found:
        order.setdefault(hit[2].strip().casefold(), []).append((line, hit))
    recurring = {key: hits for key, hits in order.items() if len(hits) >= 2}
    unknown = [key for key in recurring if not role_of(key) and read_label(key + ":") is None]
    if len(recurring) < 2 or len(recurring) > 4 or not unknown:
        return
    roles = {key: role_of(key) for key in recurring}
    for place, key in enumerate(recurring):
        if not roles[key] and is_reply(f"{key}：…"):  # 回复 beside 解决: its sentences are sorted one by one
            roles[key] = "answer"
        roles[key] = roles[key] or _role(recurring[key], place, len(recurring), set(roles.values()))
    if "fix" not in roles.values():
        return
    for key in unknown:
        for line, hit in recurring[key]:
            if roles[key] in _NAMES:
                line.text = f"{hit[1]}{_NAMES[roles[key]]}{hit[3]} {hit[4]}"


def _role(hits: Sequence[tuple[Line, re.Match[str]]], place: int, count: int, taken: set[str]) -> str:
    """The role of a label: by what most of its texts are, else by its place among the labels."""
    texts = [hit[4] for _, hit in hits]
    actions = sum(is_advice(text) or is_action(text) for text in texts)
    if "fix" not in taken and place > 0 and actions * 2 > len(texts):
        return "fix"
    if "cause" not in taken and sum(map(is_cause, texts)) * 2 > len(texts):
        return "cause"
    return next((role for role in _KEYS[min(place, count - 1) :] if role not in taken), "")
