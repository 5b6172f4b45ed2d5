"""What a part of the nightly run tells: how much it tried, and what went wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Outcome:
    tried: Counter[str] = field(default_factory=Counter[str])
    """what was tried -> how often"""
    wrong: list[str] = field(default_factory=list[str])
    """what went wrong, each in a line or more; empty is good"""

    def __iadd__(self, other: Outcome) -> Outcome:
        self.tried += other.tried
        self.wrong += other.wrong
        return self
