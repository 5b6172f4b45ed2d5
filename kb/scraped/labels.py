"""Reads labels: the role of a heading, or of the part of a line before a colon, and the text after it."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kb.text import HAN

__all__ = ["PRODUCT_OF", "WORDS", "Label", "read_label", "role_of", "split_ordinal"]

WORDS = json.loads((Path(__file__).parent / "words.json").read_text(encoding="utf-8"))
"""labels: by language and role, the words of headings; topics: what numbered problems are called; products: names"""

PRODUCT_OF = {name.casefold(): name for name in reversed(WORDS["products"])}
PRODUCT_OF |= {key.replace(" ", mark): name for key, name in PRODUCT_OF.items() for mark in ("-", "") if " " in key}
"""a widely used product by its name in small letters, with marks for spaces too"""


@dataclass(frozen=True, slots=True)
class Label:
    role: str
    """a role of `words.json`, or "cause+fix", "symptom+cause", "symptom+fix"; "topic" for a numbered issue"""
    rest: str
    """what follows the label on the same line, in the article's own characters"""


_NUMERAL = r"(?:\d{1,3}|[一二三四五六七八九十]{1,3}|[①-⑳❶-❿]|[ivxIVX]{1,4}|[A-Ha-h])"
# A number of three digits by itself is a code: `502 Bad Gateway`.
_ORDINAL = re.compile(
    r"(?:第?[一二三四五六七八九十]{1,3}[、.，,:：]|第(?:\d{1,3}|[一二三四五六七八九十]{1,3})(?:步|章|节|部分|个|种|"
    r"类|条|点)?[、.:：]|"
    r"[(（\[【](?:\d{1,3}|[一二三四五六七八九十]{1,3})[)）\]】][、.]?|(?:\d{1,3}(?:\.\d{1,3}){1,4}[、.)）:：]?|\d{1,3}[、.)）:：]|\d{1,2})(?=\s|"
    rf"[^\s\w.,:/%-]|[{HAN}])|"
    r"\d{1,3}[.、)）](?=\S)|[①-⑳❶-❿]|(?i:step|part|section|chapter) \d{1,2}[.:：)]? ?-?|[ivxIVX]{1,4}[.、)](?= )|"
    r"[A-H][.)、](?= ))\s{0,3}"
)
_TRIM = " \t#¶*_~`:：-—–>.。!！?？|=•·◆◇■□●○▶►✅❌⚠️🔍💡🛠🔧📌📝❗\ufe0f\u200b\u3000"
_COLON = re.compile(r"[:：]|\s[-–—]{1,2}\s|——")

_MAX_LABEL = 48


def _roles(lang: str) -> dict[str, str]:
    """The role of each word; of a word with two roles the first."""
    return {word: role for role, words in reversed(WORDS["labels"][lang].items()) for word in words}


_ZH, _EN = _roles("zh"), _roles("en")
_LONGEST_ZH = max(map(len, _ZH))
_LONGEST_EN = max(len(phrase.split()) for phrase in _EN)
_FILL_ZH = frozenset(WORDS["labels"]["zh"][""])


# Headings that are whole phrases: `why does it happen`, `what lies behind this`.
_IT = r"(?:it|this|that|these|they|them|those|things|the (?:problem|error|issue|failure|crash)s?)"
_PHRASES = [
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


def _bare(text: str) -> str:
    """A heading as it is looked up: NFKC, lower case, without marks, emoji, ordinal and closing colon."""
    text = unicodedata.normalize("NFKC", text[:200]).casefold().strip()
    text = text.strip(_TRIM)
    ordinal = _ORDINAL.match(text)
    if ordinal and ordinal.end() < len(text):
        text = text[ordinal.end() :].strip(_TRIM)
    return text


def split_ordinal(text: str) -> tuple[str, str]:
    """`6.1 Title` -> ("6.1 ", "Title"); no ordinal -> ("", text)."""
    found = _ORDINAL.match(text)
    if found and found.end() < len(text):
        return found.group(), text[found.end() :]
    return "", text


@lru_cache(maxsize=4096)
def role_of(text: str) -> str:
    """The role of these words as a heading; "" when they are a title or a sentence."""
    if len(text) > 120:
        return ""
    key = _bare(text)
    if not key or len(key) > _MAX_LABEL:
        return ""
    exact = _ZH.get(key) or _EN.get(key)
    if exact:
        return exact
    roles = _cover_en(key) if key.isascii() else _cover_zh(key)
    if not roles:
        return next((role for role, phrase in _PHRASES if phrase.fullmatch(key)), "")
    if key.endswith(("问题", "错误")) and not roles & {"symptom", "cause", "fix", "analysis"}:
        return ""  # 硬件环境问题 names a problem, not an environment
    if "分析" in key and "fix" in roles:
        roles.add("cause")
    return _decide(roles)


def _cover_zh(key: str) -> set[str]:
    """Roles of the words that cover the whole key, longest words first; empty when they do not cover it."""
    roles: set[str] = set()
    n = 0
    while n < len(key):
        for size in range(min(_LONGEST_ZH, len(key) - n), 0, -1):
            word = key[n : n + size]
            if word in _ZH:
                roles.add("" if word in _FILL_ZH else _ZH[word])
                n += size
                break
        else:
            if key[n] != " ":
                return set()
            n += 1
    if roles == {""}:  # 问题原因: words that only fill beside others have their own role alone
        for word in ("原因", "现象", "处理"):
            if word in key:
                return {_ZH[word]}
        if key.endswith(("方案", "办法", "方法", "措施", "做法")):
            return {"fix"}
    if "原因" in key and roles & {"analysis", "fix", "", "symptom"}:
        roles.add("cause")
    if "现象" in key:
        roles.add("symptom")
    return roles


def _cover_en(key: str) -> set[str]:
    words = key.replace("/", " / ").replace(",", " ").split()
    roles: set[str] = set()
    n = 0
    while n < len(words):
        for size in range(min(_LONGEST_EN, len(words) - n), 0, -1):
            phrase = " ".join(words[n : n + size])
            if phrase in _EN:
                roles.add(_EN[phrase])
                n += size
                break
        else:
            if words[n].isdigit():
                n += 1
                continue
            return set()
    return roles


def _decide(roles: set[str]) -> str:
    roles = roles - {""}
    if not roles:
        return ""
    if {"cause", "fix"} <= roles:
        return "cause+fix"
    if {"symptom", "fix"} <= roles:
        return "symptom+fix" if "cause" not in roles else "cause+fix"
    if {"analysis", "fix"} <= roles:
        return "cause+fix"
    if "fix" in roles:
        return "rejected" if "rejected" in roles else "fix"
    if {"symptom", "cause"} <= roles:
        return "symptom+cause" if len(roles) == 2 else "symptom"
    if "symptom" in roles:
        return "symptom"
    if "cause" in roles:
        return "cause"
    return next(iter(roles)) if len(roles) == 1 else ""


_TOPIC_ZH = "|".join(sorted(WORDS["topics"]["zh"], key=len, reverse=True))
_TOPIC_EN = "|".join(WORDS["topics"]["en"])
_TOPIC = re.compile(
    rf"(?:{_TOPIC_ZH}|{_TOPIC_EN})\s?[#＃]?\s?{_NUMERAL}\s?"
    rf"(?:[:：、.)）]|\s[-–—]\s)\s{{0,3}}|第(?:{_NUMERAL})(?:个|种|类)(?:关键|常见|典型|主要)?(?:问题|错误|故障|"
    rf"情况|场景|坑|报错|异常|情形|现象)\s?[:：、]\s{{0,3}}",
    re.IGNORECASE,
)
_TOPIC_BARE = re.compile(
    rf"(?:{_TOPIC_EN})s? [#＃]?(?:\d{{1,3}}|[A-H]|[ivx]{{1,4}})|(?:问题|错误|场景|案例|故障|坑|情形)\s?{_NUMERAL}",
    re.IGNORECASE,
)


def read_label(text: str) -> Label | None:
    """A label that opens a line: `原因：x`, `**Fix 2:** x`, `Issue 1 - x`. None for ordinary text."""
    stripped = text.lstrip(" \t>*_-•·#+").lstrip("\ufe0f")
    stripped = _emoji_off(stripped)
    head = stripped[:80]
    _, head = split_ordinal(head)
    offset = len(stripped[:80]) - len(head)
    topic = _TOPIC.match(head)
    if topic and not role_of(head[: topic.end()].rstrip(" :：、.")).startswith(("fix", "cause")):
        return Label("topic", stripped[offset + topic.end() :].strip("*_ "))
    if _TOPIC_BARE.fullmatch(head.strip("*_ #")):
        return Label("topic", "")
    for colon in _COLON.finditer(head):
        if colon.start() == 0 or colon.start() > _MAX_LABEL:
            return None
        role = role_of(head[: colon.start()])
        if role:
            return Label(role, stripped[offset + colon.end() :].strip().removeprefix("**").removeprefix("__").strip())
        if colon.group() in ":：":
            return None
    return None


def _emoji_off(text: str) -> str:
    n = 0
    while (
        n < len(text)
        and n < 8
        and (unicodedata.category(text[n]) in ("So", "Sk", "Mn") or text[n] in " \u200d\ufe0f*_")
    ):
        n += 1
    return text[n:]
