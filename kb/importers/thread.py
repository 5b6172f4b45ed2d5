"""Here is a thread about a failure; give me a draft of what it tells: its first post, and the comment that is the fix.

A fix is chosen, not written: one comment, as it stands, or none. Which one is a guess that a reviewer checks.
"""

from __future__ import annotations

import re
from contextlib import suppress

from kb.articles.source import detect_lang
from kb.errors import QueryError
from kb.importers.body import Body, read_body
from kb.importers.form import DraftArticle, DraftIssue, fenced, slug_from
from kb.importers.github import Comment, Thread
from kb.importers.mask import mask_secrets
from kb.logs.read import read
from kb.scraped.products import PRODUCT_OF

__all__ = ["accepted_fix", "thread_draft"]

MAX_ERRORS = 5
MAX_QUESTION = 20_000  # characters of a post that are looked at for error lines and words of a cure

_DATE = re.compile(r"\d{4}-\d\d-\d\d")

_KIND = re.compile(
    r"(?i)\s{0,4}(?:[\[【(](?:bug|question|issue|help|usage|feature|problem|问题|求助|报错)[^\]】)]{0,20}[\]】)]"
    r"|bug|question)[\s:：-]{0,6}(?<=[\s:：\]】)-])(?=\S)"
)
_FIXES = re.compile(
    r"(?i)\b(?:fix(?:ed|es)?|solve[ds]?|resolve[ds]?|work(?:s|ed|ing)? (?:for me|now|around|fine)|work-?around|"
    r"(?:up|down)grad\w{1,5}|updat(?:e|ed|ing) (?:to|your)|pin(?:ned|ning)? |revert\w{0,4}|instead|pip3? install|"
    r"conda install|export [A-Z]|set(?:ting)? [`\w]|pass(?:ing)? [`-]|add(?:ing)? [`-]|should (?:use|be|set)|"
    r"need to|please (?:use|try|update|set|install|add)|try |remove)|解决|修复|升级|降级|回退|改成|换成|改为|设置|设为|"
    r"加上|去掉|重装|安装|规避|更新到|需要"
)
_FIXED = re.compile(
    r"(?i)\b(?:fixed|solved|resolved|work(?:s|ed) for me|(?:fix|work)(?:es|s)? (?:it|this|the)|closing|closed)\b|"
    r"已?(?:解决|修复)了?|搞定"
)
_NOT_FIXED = re.compile(
    r"(?i)\b(?:not|isn'?t|n't|never|still|didn'?t|doesn'?t|without) (?:\w{1,12} ){0,2}(?:fix|solv|resolv|work|help)|"
    r"\bsame (?:issue|problem|error|here|question)|\bany (?:update|news|progress|solution|idea)|"
    r"\b(?:did|have|has|how|can) (?:you|anyone|anybody|somebody)\b|\+1\b|(?:没|未|不)(?:有|能)?(?:解决|修复|用)|"
    r"(?:同样|相同)的?(?:问题|错误)|同问|怎么解决|如何解决|解决了?[吗么嘛]|请问"
)
_CODE = re.compile(r"`|#\d{1,7}\b|\b\d{1,4}\.\d{1,4}|/(?:pull|commit)/")
_STILL_ASKED = re.compile(r"[?？]\s{0,9}\Z")


def thread_draft(thread: Thread, project: str | None = None) -> DraftArticle:
    """What the opening post tells, and the comment that speaks most for being the fix."""
    opening = read_body(thread.body)
    fix = accepted_fix(thread)
    cure = read_body(fix.body, reply=True) if fix else Body("", "", ())
    lang = detect_lang(f"{thread.title}\n{opening.prose}\n{cure.prose}")
    repository = thread.repository
    owner = project or PRODUCT_OF.get(repository.casefold(), repository) or None
    named = mask_secrets(thread.title)
    title = _KIND.sub("", named) or named
    told = DraftIssue(title, _symptom(opening), "", cure.text)
    number = str(thread.number) if thread.number else ""
    address = fix.url if fix else ""
    return DraftArticle(
        slug=slug_from(repository or "issue", number, title),
        lang=lang,
        title=f"{owner}: {title}" if owner else title,
        project=owner,
        tags=thread.labels,
        versions=opening.versions,
        sources=tuple(url for url in (thread.url, address) if url.startswith(("https://", "http://"))),
        updated=max((date[0] for at in (thread.at, fix.at if fix else "") if (date := _DATE.match(at))), default=""),
        issues=(told,),
        address=thread.url,
    )


def accepted_fix(thread: Thread) -> Comment | None:
    """The comment that speaks of a fix and that most speaks for: its author's standing, who liked it, that it names
    something to do, that it is the last word of a closed thread. None when none is good enough."""
    best, most = None, 1.5
    for place, comment in enumerate(thread.comments):
        body = comment.body[:MAX_QUESTION]
        if not _FIXES.search(body) or _STILL_ASKED.search(body):
            continue
        last = thread.closed and place == len(thread.comments) - 1
        score = 2.0 * comment.insider + min(comment.likes, 8) * 0.75 + 1.0 * bool(_CODE.search(body)) + 1.0 * last
        score += 1.0 * bool(_FIXED.search(body)) - 3.0 * bool(_NOT_FIXED.search(body))
        score -= 1.0 * (comment.by == thread.by and not _FIXED.search(body))
        if score > most:
            best, most = comment, score
    return best


def _symptom(opening: Body) -> str:
    """The post; above it, in a fence, the error lines that stand in its prose."""
    prose = [line.strip() for line in opening.prose.split("\n") if not line.startswith("    ")]
    found: tuple[str, ...] = ()
    with suppress(QueryError):  # a post without a word
        found = read(opening.prose[:MAX_QUESTION]).signatures
    lines = [line for line in found if any(line in told for told in prose)][:MAX_ERRORS]
    text = "\n".join(line for line in opening.text.split("\n") if line.strip() not in lines).strip("\n")
    return "\n\n".join([*([fenced("\n".join(lines))] if lines else []), *([text] if text else [])])
