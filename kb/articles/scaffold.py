"""Writes the two files of a new article, English and Chinese, with an empty form to fill in."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from kb.errors import ArticleError, IndexWriteFailed
from kb.records import Lang

__all__ = ["PLACEHOLDER", "is_slug", "scaffold", "write_new"]

PLACEHOLDER = re.compile(r"<(?:to write|待写)[:：][^<>\n]*>")
"""a gap that `scaffold` leaves for the writer to fill; `kb check` reports those that are left"""

_MAX_SLUG = 80  # characters: a path on Windows may have 260
_SLUG = re.compile(rf"[a-z0-9-]{{1,{_MAX_SLUG}}}\Z")
_WINDOWS_DEVICES = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])\Z")

_BODY: dict[Lang, str] = {
    "en": """\
# {title}

## <to write: the issue's title, what fails where>

### In short

<to write: the cause in a sentence; then the one command or setting to try first, in `inline code`>

### Symptom

```
<to write: the literal error lines, as they appear, and their usual variants>
```

<to write: when it happens and what one sees, in words of somebody who has no error at hand>

### Cause

<to write: why; say so when it is not proven, and leave the section out when nobody knows>

### Fix

1. <to write: the first step, best remedy first> *(reasoned)*

   ```bash
   <to write: its commands or settings>
   ```

2. Check: <to write: how to see that it worked>

### Not to be confused with

- <to write: what looks alike and is something else, linked as [`other-slug#1`](other-slug.md); when a number in the message decides, a section `### Only when` says so to kb>

### Asked as

- <to write: how people title such a question: project, model, what it does; one way a line, six or so>
""",
    "zh": """\
# {title}

## <待写：问题的标题，什么地方出了什么错>

### 一句话

<待写：一句话说原因，再说最先试的那条命令或设置，写成 `inline code`>

### 现象

```
<待写：报错原文及常见变体，照原样贴>
```

<待写：什么时候出现、看到了什么；用手头没有报错的人会说的话来写>

### 原因

<待写：为什么；没有证实就直说，没人知道就删掉这一节>

### 解决方案

1. <待写：第一步，最有效的放最前> *（推断）*

   ```bash
   <待写：命令或配置>
   ```

2. 检查：<待写：怎样确认已经解决>

### 容易混淆

- <待写：看着像、其实是另一回事的问题，这样链接：[`other-slug#1`](other-slug.md)；报错里的数字就能区分的，另写一节 `### 判别`>

### 常见问法

- <待写：大家提问时的标题：项目、模型、现象；一行一种，六种左右>
""",
}
_FENCE: dict[Lang, re.Pattern[str]] = {
    "en": re.compile("<to write: the literal [^\n]*\n"),
    "zh": re.compile("<待写：报错原文[^\n]*\n"),
}
_ASKED: dict[Lang, re.Pattern[str]] = {
    "en": re.compile("- <to write: how people title"),
    "zh": re.compile("- <待写：大家提问"),
}
_TITLE: dict[Lang, str] = {"en": "<to write: the article's title>", "zh": "<待写：文章标题>"}


def is_slug(text: str) -> bool:
    """Whether it can name a file on every system: lower-case ASCII letters, digits, single hyphens; at most 80."""
    return bool(_SLUG.match(text)) and "" not in text.split("-") and not _WINDOWS_DEVICES.match(text)


def scaffold(
    articles: Path,
    slug: str,
    *,
    project: str | None = None,
    errors: Sequence[str] = (),
    asked: Sequence[str] = (),
    today: date | None = None,
) -> list[Path]:
    """Writes `<lang>/<slug>.md` for both languages below `articles` and returns their paths, English first. `errors`
    and `asked`: error lines and questions, one line each, that stand in their places already.

    A file that exists stays as it is and is not returned. Raises ArticleError when the slug or the project cannot be
    written or both files exist, IndexWriteFailed when a file cannot be written.
    """
    if not is_slug(slug):
        raise ArticleError(f"{slug!r} cannot be a slug", hint="as in: kb new deepspeed-zero3-empty-weights")
    paths = {lang: articles / lang / f"{slug}.md" for lang in _BODY}
    missing = [lang for lang in paths if not paths[lang].exists()]
    if not missing:
        raise ArticleError("exists already, in both languages", path=paths["en"], hint="choose another slug")
    owner = json.dumps(
        project or "<to write: DeepSpeed; of several, as [DeepSpeed, PEFT], the first owns it>", ensure_ascii=False
    )
    front = f"---\nproject: {owner}\ntags: []\nversions: []\nsources: []\nupdated: {today or date.today()}\n---\n\n"
    try:
        texts = {lang: (front + _body(lang, errors, asked)).encode() for lang in missing}
    except UnicodeEncodeError:
        raise ArticleError(f"{project!r} cannot be written as UTF-8", hint="choose another --project") from None
    for lang, data in texts.items():
        write_new(paths[lang], data)
    return [paths[lang] for lang in missing]


def _body(lang: Lang, errors: Sequence[str], asked: Sequence[str]) -> str:
    body = _BODY[lang].format(title=_TITLE[lang])
    fence, asked_as = _FENCE[lang].search(body), _ASKED[lang].search(body)
    assert fence is not None and asked_as is not None
    if asked:
        lines = "".join(f"- {line}\n" for line in asked)
        body = body[: asked_as.start()] + lines + body[asked_as.start() :]
    if errors:
        lines = "".join(f"{line.replace('```', '` ` `')}\n" for line in errors)
        body = body[: fence.start()] + lines + body[fence.end() :]
    return body


def write_new(path: Path, data: bytes) -> None:
    """Creates a file, whole or not at all, and the folders above it. Raises IndexWriteFailed, also when it exists, or
    when its folder is a link: a clone could lead it anywhere, and no article is read from there."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    if path.parent.is_symlink():
        raise IndexWriteFailed("is a symbolic link", path=path.parent, hint="put a folder in its place")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)
        try:
            with temporary.open("xb") as file:
                file.write(data)
            _publish(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise IndexWriteFailed(f"cannot be written ({error.strerror})", path=path) from None


def _publish(temporary: Path, path: Path) -> None:
    """Gives the file its name, which must be free. Where a file cannot have two names it is renamed."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        temporary.rename(path)
