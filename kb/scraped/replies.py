"""Here are the replies of a thread; give me those that explain or cure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kb.scraped.prose import is_action, is_cause, sentences
from kb.scraped.sections import Section
from kb.scraped.sorting import is_code

__all__ = ["USELESS", "useful_replies"]

USELESS = re.compile(
    r"^\W{0,6}(?:don['’]t|do not) try\b|^\W{0,6}注意\W{0,3}(?:不要|切勿|请勿)|试过|没用|没有用|无效|"
    r"没有(?:任何)?效果|没效果|不起作用|不管用|浪费时间|"
    r"问题依旧|依然报错|依旧报错|无济于事|"
    r"(?:did|does|do)(?: not|n['’]t) (?:help|fix|change anything|solve)|no difference|no effect|to no avail|in vain",
    re.IGNORECASE,
)
_UNCHANGED = re.compile(
    r"没有?(?:任何)?变化|没变化|一模一样|还是(?:不行|一样|这样|报错|老样子)|依旧|照旧|仍然(?:不行|报错|一样)|"
    r"也不行|没改善|没有改善|"
    r"\bno (?:change|luck|improvement)\b|\bsame (?:\w+ )?(?:result|error|output|thing|problem|behaviou?r|here|issue)\b|"
    r"\bstill (?:the same|happens|fails|crashes|hangs|broken|see)|did that .{0,20}no\b|not a solution",
    re.IGNORECASE,
)
_CURED = re.compile(
    r"正常了|解决了|已解决|好了|可以了|搞定|稳定(?:了|在)|没再(?:出现|报)|不再(?:出现|报)|恢复了|有效|能用了|"
    r"生效了|确认(?:可行|有效)|"
    r"多谢|感谢|谢谢|可以关闭|\bthank|\b(?:it|that|this|now|everything) (?:all )?works\b|\bworks (?:now|again|"
    r"for me|fine|"
    r"like a charm)|\b(?:that|the \w+|this|it) (?:did (?:it|the trick)|was it|fixed|solved|worked|helped)|\bclosing\b|"
    r"\bcan confirm\b|\bconfirmed\b|\bsolved\b|\bfixed for me\b|you are right|\bperfect\b",
    re.IGNORECASE,
)


def useful_replies(replies: Sequence[Section]) -> list[Section]:
    """Replies that explain or cure; not questions back, thanks, or advice the next reply calls useless.

    Once somebody says that it works now, only the advice just before counts, and what is said with the thanks.
    """
    texts = ["\n".join(line.text for line in reply.body if line.kind != "fence") for reply in replies]
    useless = [USELESS.search(text) is not None or _UNCHANGED.search(text) is not None for text in texts]
    useful = []
    for n, text in enumerate(texts):
        asks = all(piece.strip().endswith(("?", "？")) for piece in sentences(text))
        refused = (useless[n] and not is_cause(text)) or (n + 1 < len(texts) and useless[n + 1])
        tells = any(is_cause(piece) or is_action(piece) for line in text.split("\n") for piece in sentences(line))
        if not asks and not refused and (tells or len(texts) == 1 or any(map(is_code, replies[n].body))):
            useful.append(n)
    cured = [n for n, text in enumerate(texts) if n and _CURED.search(text) and not useless[n]]
    if cured:
        advice = [n for n in useful if n < cured[-1]][-1:]
        useful = [n for n in useful if n in advice or (n == cured[-1] and _tells_more(texts[n]))]
    return [replies[n] for n in useful]


def _tells_more(thanks: str) -> bool:
    """The thanks hold the cure or the reason, not only the news that it works."""
    return "`" in thanks or any(is_cause(piece) for piece in sentences(thanks))
