"""Guesses the project of a page that does not state one, from its title, its text and its tags."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

from kb.scraped.products import PRODUCT_OF, PRODUCTS, SPACED
from kb.text import HAN, HAN_CHAR

__all__ = ["guess_project"]

_NAME = r"[A-Za-z][A-Za-z0-9_.+\-]{0,40}(?: [A-Z0-9][A-Za-z0-9_.+\-]{0,30}){0,3}"
# Where the page stands: owner/name
_PLACES = [
    re.compile(r"(?:^|[\s·])[\w.-]{2,40}/([A-Za-z][\w.-]{1,60})(?:\s{0,3}(?:[·»›>|#]|$)| (?:issue|pull))"),
    re.compile(r"(?<![\w.-])github\.com/[\w.-]{1,40}/([\w.-]{1,60})"),
]
_STATED = re.compile(
    rf"^\W{{0,6}}(?:Applies to|Products?|Software|产品(?:名称)?|适用(?:产品|软件|于))\W{{0,4}}[:：]\W{{0,4}}({_NAME})",
    re.MULTILINE,
)
# How a title or a first sentence opens that names a project.
_TITLES = [
    re.compile(rf"(?:^|[^A-Za-z0-9_])({_NAME})\s?项目(?!优选|推荐)"),
    re.compile(
        rf"[A-Za-z0-9]\s?(?:服务器|显卡|卡|集群|机器|环境)?上(?:跑|部署|运行|使用|用|的)?\s?"
        rf"({_NAME})\s?[{HAN}]"
    ),
    re.compile(
        rf"^({_NAME})\s?(?:[{HAN}].{{0,40}})?(?:报错|启动失败|异常|失败|答疑|常见|问答|踩坑|故障|问题|"
        rf"错误|排查|客户端|训练|部署|启动|安装|使用|运行|编译|写入|连接)"
    ),
    re.compile(rf"^({_NAME})(?: v?\d[\w.]{{0,12}})?\s?[:：]\s?(?!\d)\S"),
    re.compile(rf"^(?:Troubleshooting|Debugging|Fixing) ({_NAME})$"),
    re.compile(
        r"^\W{0,4}(?:Does|Can|Is|Will|Do I need|How do I (?:use|install|upgrade|update|"
        r"build)) ([A-Z][A-Za-z0-9_.+\-]{1,40}) "
    ),
]  # fmt: skip
# `... in X`: X may be a tool as well as the owner.
_WEAK = [
    re.compile(
        r"(?:\bin|\bto|\bfrom|\bwith|\bfor|\bon|\busing|"
        r"\bof) ([A-Z][A-Za-z0-9_.+\-]{1,40}(?: [A-Z][A-Za-z0-9_.+\-]{1,30}){0,2})\s?(?:$|[:,.(]| (?:project|"
        r"v?\d|when|after|on|and))"
    ),
]  # fmt: skip
_NOT_A_PROJECT = frozenset(
    (
        "warning warnings failed runbook handbook guide manual howto incident incidents notes plan tips "
        "report outage review "
        "ascend atlas nvidia amd intel geforce tesla radeon jetson 910 910a 910b 910c 310 310p 300i 800i 800t a10 a30 "
        "a40 a800 l4 l20 l40 l40s v100 t4 b200 gb200 mi300x rtx3090 rtx4090 3090 4090 5090 npu npus gpus kb "
        "pod pods node nodes container containers job jobs task tasks worker workers client clients cluster clusters "
        "volume volumes replica replicas requests request memory disk cannot dashboard queries query image images "
        "a a100 after all also an and answer api applies apr april article as at aug august before both bug build "
        "builds but by cannot cause common cpu cuda dec december dns docs dpo during each error error: errors "
        "every execution failed failure failures faq feb february fix fixes for friday from general gpu grpo h100 "
        "h20 h800 here home how http i if incident inference installation internal into introduction ip issue "
        "issues it its jan january java json jul july jun june just kb known last linux lora loss macos many mar "
        "march may monday most my nan new no node not note notes nov november now oct october of on once one only "
        "oom or our over page postmortem ppo problem problems production python q question rank release resolved "
        "rlhf rtx runtimeerror sep september server several sft since solution solved some ssl staging step such "
        "support symptom system tcp than that the their then there these they this those three through tls to "
        "training troubleshooting two ubuntu unable under until upon use user users using valueerror was we were "
        "what when where while who why windows with within without yaml you your"
    ).split()
)
_TAGGED = re.compile(r"^\s{0,4}(?:[\[【][^\]】\n]{1,20}[\]】]\s{0,3}|KB-?\d{3,8}\s?[:：]\s?){1,3}")
_WORD = re.compile(r"[A-Za-z][\w.+\-]{1,40}")


def guess_project(title: str, texts: Iterable[str], tags: Sequence[str], whole: str = "") -> str | None:
    """The project that the page says it is about: by its place or title, then by tags, then by the product it names.

    `texts`: its first sentences; `whole`: all of its text. None when nothing names a project.
    """
    title = _TAGGED.sub("", unicodedata.normalize("NFKC", title))
    body = list(texts)
    filed = _STATED.search(whole[:4000])
    in_title = [tag for tag in tags if tag.isascii() and tag.casefold() in title.casefold()]
    in_title = [tag for tag in in_title if tag.casefold() not in _NOT_A_PROJECT]
    tagged = next((tag for tag in in_title if tag.casefold() in PRODUCT_OF), next(iter(in_title), None))
    known = next((PRODUCT_OF[tag.casefold()] for tag in tags if tag.casefold() in PRODUCT_OF), None)
    titled = _match(_TITLES, [title])
    if known and titled and titled not in PRODUCTS and re.fullmatch("[A-Z]?[a-z]{1,40}", titled):
        titled = None  # an ordinary word that opens the title
    first = re.match(rf"[A-Za-z][\w.+-]{{1,30}}(?=[ {HAN}])", title)
    opens = PRODUCT_OF.get(first[0].casefold()) if first and HAN_CHAR.search(title) else None
    return (
        _match(_PLACES, body[:6])
        or (_trim(filed[1]) if filed else "")
        or titled
        or opens
        or tagged
        or _longer(_product(title), _match(_WEAK, [title]))
        or _before_chinese(title)
        or _match(_WEAK, [title])
        or known
        or _match(_TITLES, body[:12])
        or _product("\n".join(body))
        or _product(unicodedata.normalize("NFKC", whole))
        or _leading_word(title)
    )


def _match(patterns: Sequence[re.Pattern[str]], texts: Sequence[str]) -> str | None:
    for text in texts:
        for pattern in patterns:
            for found in pattern.finditer(text[:600]):
                name = found[1] if patterns is _PLACES else _trim(found[1])
                if name and not name.endswith("Error") and not (" " in name and name.isupper()):
                    return name
    return None


def _longer(product: str | None, name: str | None) -> str | None:
    """`Proxmox` is known, the title says `in Proxmox VE`."""
    return name if product and name and name.startswith(f"{product} ") else product


def _product(text: str) -> str | None:
    """The known product a text names most often, the earlier one first."""
    text = text[:20_000]
    named = Counter({name: text.count(name) * 2 for name in SPACED if name in text})
    named.update(word for word in _WORD.findall(text) if word in PRODUCTS)
    return max(named, key=lambda word: named[word]) if named else None


def _before_chinese(title: str) -> str | None:
    """`Frigate 摄像头画面全绿`: a Latin name that opens a Chinese title."""
    found = re.match(rf"({_NAME})\s?[{HAN}]", title)
    name = _trim(found[1]) if found else ""
    return name if name and name[0].isupper() and not name.endswith("Error") else None


def _leading_word(title: str) -> str | None:
    first = _WORD.match(title.lstrip("# 【】：:"))
    if first is None or not _trim(first[0]) or "Error" in first[0]:
        return None
    return first[0] if first[0][0].isupper() or "_" in first[0] else None


def _trim(name: str) -> str:
    """The name without words that are none; empty when nothing is left that looks like a name."""
    words = name.strip(" .-").split()
    while words and words[0].lower() in _NOT_A_PROJECT:
        words.pop(0)
    while words and (words[-1].lower() in _NOT_A_PROJECT or _VERSION.fullmatch(words[-1])):
        words.pop()
    trimmed = " ".join(words)
    if not _LETTERS.search(trimmed):
        return ""
    named = trimmed in PRODUCTS or not trimmed.islower() or any(mark in trimmed for mark in "-_.0123456789")
    return trimmed if named and len(trimmed) > 1 else ""


_LETTERS = re.compile(r"[A-Za-z]{2}|[A-Za-z]\d")
_VERSION = re.compile(r"v?\d[\d.x]*")
