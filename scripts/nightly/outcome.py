"""What a part of the nightly run tells: how much it tried, and what went wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

KINDS = ("lost", "mixed", "crashed", "wrong", "hung")
"""lost: something that was written is not found. mixed: an answer of two states at once. crashed: a process died, or
an error came out that is no clear one. hung: no end in sight, or time that grows faster than the input. wrong: all
else."""


@dataclass
class Outcome:
    tried: Counter[str] = field(default_factory=Counter[str])
    """what was tried -> how often"""
    wrong: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """one of KINDS, and what was seen, in a line or more; empty is good"""
    remarks: list[str] = field(default_factory=list[str])
    """what is worth knowing and nothing wrong"""

    def note(self, kind: str, what: str) -> None:
        assert kind in KINDS
        self.wrong.append((kind, what))
