"""Selects the replies of a thread that explain or solve its problem."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kb.scraped.prose import is_action, is_cause, sentences
from kb.scraped.sections import Section
from kb.scraped.sorting import is_code

__all__ = ["useful_replies"]

_SOLVED = re.compile(
    r"正常了|解决了|已解决|好了|可以了|搞定|稳定(?:了|在)|没再(?:出现|报)|不再(?:出现|报)|恢复了|有效|能用了|"
    r"生效了|确认(?:可行|有效)|"
    r"多谢|感谢|谢谢|可以关闭|\bthank|\b(?:it|that|this|now|everything) (?:all )?works\b|\bworks (?:now|again|"
    r"for me|fine|"
    r"like a charm)|\b(?:that|the \w+|this|it) (?:did (?:it|the trick)|was it|fixed|solved|worked|helped)|\bclosing\b|"
    r"\bcan confirm\b|\bconfirmed\b|\bsolved\b|\bfixed for me\b|you are right|\bperfect\b",
    re.IGNORECASE,
)


def useful_replies(replies: Sequence[Section]) -> list[Section]:
    """The replies that explain or name an action; not questions back, and not thanks.

    Once a reply says that it works now, only the advice just before it counts.
    """
    texts = ["\n".join(line.text for line in reply.body if line.kind != "fence") for reply in replies]
    useful = []
    for n, text in enumerate(texts):
        asks = all(piece.strip().endswith(("?", "？")) for piece in sentences(text))
        informs = any(is_cause(piece) or is_action(piece) for line in text.split("\n") for piece in sentences(line))
        if not asks and (informs or len(texts) == 1 or any(map(is_code, replies[n].body))):
            useful.append(n)
    solved = [n for n, text in enumerate(texts) if n and _SOLVED.search(text)]
    if solved:
        useful = [n for n in useful if n < solved[-1]][-1:]
    return [replies[n] for n in useful]
