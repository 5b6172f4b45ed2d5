"""Headings that are whole phrases, as people say them: `why does it happen`, `what lies behind this`.

`vocabulary` covers most headings word by word; these are the ones that it cannot.
"""

from __future__ import annotations

import re

__all__ = ["role_of_phrase"]

_IT = r"(?:it|this|that|these|they|them|those|things|the (?:problem|error|issue|failure|crash)s?)"
_PATTERNS = [
    (role, re.compile(rf"(?:{pattern})\??"))
    for role, pattern in (
        ("cause", rf"why (?:does |did |is |are |do |was )?{_IT}(?: \w+){{0,3}}|what (?:is|was|lies|"
                  rf"lay) behind {_IT}|what (?:really )?went on"
                  rf"|where {_IT} (?:comes|came) from|behind the (?:error|failure|problem)|what (?:triggers|"
                  rf"triggered|broke) {_IT}"),
        ("cause", r"why (?:you(?:['’]re| are)?|we(?:['’]re| are)?|i) (?:see|saw|get|got|hit)\w*(?: \w+){0,3}"),
        ("fix", r"(?:最后|最终|后来|我们?|于是)?(?:就?是)?(?:这么|这样|如此)(?:去|来)?"
                r"(?:改|解决|处理|弄|搞定|修|做|修复)(?:好|掉)?的?"),
        ("cause", r"(?:真正的?|根本)?原因(?:说起来|说来|讲起来|其实|倒|也|并|很|不|挺){1,4}(?:复杂|简单|难|好找)"),
    )
]  # fmt: skip


def role_of_phrase(key: str) -> str:
    """The role of a heading that is a whole phrase; "" when it is none of them. `key`: as `labels.bare` gives it."""
    return next((role for role, pattern in _PATTERNS if pattern.fullmatch(key)), "")
