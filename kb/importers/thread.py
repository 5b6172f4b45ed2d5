"""Makes a draft of an issue thread: the first post is the symptom, one comment is the fix, unchanged, or none is.

Which comment is the fix is a guess that a reviewer checks.
"""

from __future__ import annotations

import re
from contextlib import suppress

from kb.errors import QueryError
from kb.importers.body import Body, read_body
from kb.importers.form import DraftArticle, DraftIssue, fenced, slug_from
from kb.importers.github import Comment, Thread
from kb.importers.mask import mask_secrets
from kb.logs.read import read
from kb.scraped.labels import PRODUCT_OF
from kb.text import detect_lang

__all__ = ["accepted_fix", "thread_draft"]

MAX_ERRORS = 5
MAX_QUESTION = 20_000  # characters of a post in which error lines and words of a fix are looked for

# Points of a comment for being the fix. Set by hand on the cases of `test_which_comment_is_the_fix`, not fitted.
BY_INSIDER = 2.0  # the author belongs to the repository
PER_LIKE, MAX_LIKES = 0.75, 8  # two likes weigh less than an insider, three weigh more
NAMES_AN_ACTION = 1.0  # has code, a version, or a link to a change
LAST_OF_CLOSED = 1.0  # the last comment of a closed thread
SAYS_FIXED = 1.0
SAYS_NOT_FIXED = -3.0  # outweighs an insider: a question, "same here", "did not help"
BY_ASKER = -1.0  # the author asked the question, and does not say that it is fixed
ENOUGH = 1.5  # more than this, so no single weak sign is enough

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
    """A draft with one issue. `project` overrides the name of the repository."""
    opening = read_body(thread.body)
    fix = accepted_fix(thread)
    answer = read_body(fix.body, reply=True) if fix else Body("", "", ())
    lang = detect_lang(f"{thread.title}\n{opening.prose}\n{answer.prose}")
    repository = thread.repository
    owner = project or PRODUCT_OF.get(repository.casefold(), repository) or None
    named = mask_secrets(thread.title)
    title = _KIND.sub("", named) or named
    issue = DraftIssue(title, _symptom(opening), "", answer.text)
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
        issues=(issue,),
        address=thread.url,
    )


def accepted_fix(thread: Thread) -> Comment | None:
    """The comment with the most points, or None when none has enough. Only comments that mention a fix count."""
    best, most = None, ENOUGH
    for place, comment in enumerate(thread.comments):
        body = comment.body[:MAX_QUESTION]
        if not _FIXES.search(body) or _STILL_ASKED.search(body):
            continue
        last = thread.closed and place == len(thread.comments) - 1
        fixed = bool(_FIXED.search(body))
        score = BY_INSIDER * comment.insider + PER_LIKE * min(comment.likes, MAX_LIKES)
        score += NAMES_AN_ACTION * bool(_CODE.search(body)) + LAST_OF_CLOSED * last
        score += SAYS_FIXED * fixed + SAYS_NOT_FIXED * bool(_NOT_FIXED.search(body))
        score += BY_ASKER * (comment.by == thread.by and not fixed)
        if score > most:
            best, most = comment, score
    return best


def _symptom(opening: Body) -> str:
    """The post; the error lines in its prose go above it, into a fence."""
    prose = [line.strip() for line in opening.prose.split("\n") if not line.startswith("    ")]
    found: tuple[str, ...] = ()
    with suppress(QueryError):  # a post without a word
        found = read(opening.prose[:MAX_QUESTION]).signatures
    lines = [line for line in found if any(line in other for other in prose)][:MAX_ERRORS]
    text = "\n".join(line for line in opening.text.split("\n") if line.strip() not in lines).strip("\n")
    return "\n\n".join([*([fenced("\n".join(lines))] if lines else []), *([text] if text else [])])
