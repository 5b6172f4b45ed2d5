"""Makes a draft of an issue thread: the first post is the symptom, one post is the fix, unchanged, or none is.

Which post is the fix is a guess (`kb.importers.fix`) that a reviewer checks; all of them go into the folded part.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kb.importers.body import Body, read_body
from kb.importers.failures import failures_in, goes_on, marked
from kb.importers.fix import Candidate, find_fix, rank, solving_part
from kb.importers.form import DraftArticle, DraftIssue, fenced, slug_from
from kb.importers.github import Thread
from kb.importers.mask import mask_secrets
from kb.importers.posts import Post, folded_posts, posts_of
from kb.records import Lang
from kb.scraped.labels import PRODUCT_OF
from kb.text import detect_lang, fences

__all__ = ["fix_text", "open_fix", "thread_draft"]

MAX_ERRORS = 5
MAX_NAMED, LEAST_NAMED = 3, 0.1  # posts that a draft without a fix names, and their least chance

_DATE = re.compile(r"\d{4}-\d\d-\d\d")

_KIND = re.compile(
    r"(?i)\s{0,4}(?:[\[【(](?:bug|question|issue|help|usage|feature|problem|问题|求助|报错)[^\]】)]{0,20}[\]】)]"
    r"|bug|question)[\s:：-]{0,6}(?<=[\s:：\]】)-])(?=\S)"
)


def thread_draft(thread: Thread, project: str | None = None) -> DraftArticle:
    """A draft with one issue. `project` overrides the name of the repository."""
    ranked = rank(thread)
    fix = find_fix(ranked)
    told = solving_part(thread.body, thread.title) if fix and not fix.number else ""
    opening = read_body(thread.body.replace(told, "", 1) if told else thread.body)
    comment = thread.comments[fix.number - 1] if fix and fix.number else None
    answer = read_body(comment.body if comment else told, reply=True)
    lang = detect_lang(f"{thread.title}\n{opening.prose}\n{answer.prose}")
    repository = thread.repository
    owner = project or PRODUCT_OF.get(repository.casefold(), repository) or None
    named = mask_secrets(thread.title)
    title = _KIND.sub("", named) or named
    issue = DraftIssue(title, _symptom(thread, opening), "", answer.text, open_fix=open_fix(ranked, lang))
    number = str(thread.number) if thread.number else ""
    address = comment.url if comment else ""
    return DraftArticle(
        slug=slug_from(repository or "issue", number, title),
        lang=lang,
        title=f"{owner}: {title}" if owner else title,
        project=owner,
        tags=thread.labels,
        versions=opening.versions,
        sources=tuple(url for url in (thread.url, address) if url.startswith(("https://", "http://"))),
        updated=max(
            (date[0] for at in (thread.at, comment.at if comment else "") if (date := _DATE.match(at))), default=""
        ),
        issues=(issue,),
        address=thread.url,
        folded=folded_posts(posts_of(thread, ranked)),
    )


def fix_text(post: Post) -> str:
    """What a post says as a fix: of the first post the part that tells it, of a comment all but quotes and mentions."""
    return read_body((solving_part(post.text) or post.text) if not post.number else post.text, reply=True).text


def open_fix(ranked: Sequence[Candidate], lang: Lang) -> str:
    """What stands in the place of a fix that was not found: the likeliest posts by their numbers."""
    near = [one for one in ranked if one.chance >= LEAST_NAMED][:MAX_NAMED]
    if lang == "zh":
        told = "、".join(f"{_number(one, lang)}（{round(100 * one.chance)}%）" for one in near)
        return (
            f"kb 在这个帖子里没有找到可信的解决办法；{'候选：' + told if near else '没有候选'}；kb review 列出全部评论"
        )
    told = ", ".join(f"{_number(one, lang)} ({round(100 * one.chance)} %)" for one in near)
    likeliest = f"the likeliest: {told}" if near else "no post looks like one"
    return f"kb found no convincing fix in the thread; {likeliest}; kb review shows all comments"


def _number(one: Candidate, lang: Lang) -> str:
    if lang == "zh":
        return f"评论 {one.number}" if one.number else "首帖"
    return f"comment {one.number}" if one.number else "the first post"


def _symptom(thread: Thread, opening: Body) -> str:
    """The post, with the error lines of its prose above it, in a fence. Where it shows none, those of the title or
    of what the asker wrote later."""
    lines = failures_in(opening.text, warnings=False)
    inside = {
        line.strip() for block in fences.split(opening.text) if isinstance(block, fences.Code) for line in block.lines
    }
    shown = [line for line in lines if line not in inside]
    if not lines:
        title = _KIND.sub("", thread.title)
        told = [title, *(post.body for post in thread.comments if thread.by and post.by == thread.by)]
        more = (failures_in(read_body(text, reply=True).text, warnings=text is title) for text in told)
        shown = next((found for found in more if found), failures_in(opening.text))
    shown = shown[:MAX_ERRORS]
    kept: list[str] = []
    for block in fences.split(opening.text):
        for line in block.lines:
            if isinstance(block, fences.Code) or line.startswith("    "):
                kept.append(line)
            elif line.strip(" \t*_>#") not in shown and not (shown and goes_on(line)):
                kept.append(marked(line))
    text = "\n".join(kept).strip("\n")
    return "\n\n".join([*([fenced("\n".join(shown))] if shown else []), *([text] if text else [])])
