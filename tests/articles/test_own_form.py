"""This project's own article form is read exactly: no guess, no loss, line by line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kb.records import IssueRecord
from kb.scraped import parse

ENGLISH = """---
project: Example
tags: [startup, disk]
versions: [example 2.x, example-plugin 1.4]
sources:
  - https://example.org/issues/1
updated: 2026-01-02
---

# Two ways to fail at startup

An introduction that belongs to no record.

## The service cannot write its log

### Symptom

The unit stops at once:

```
error: cannot open log: No space left on device
```

Solution: this word opens no section here.

### Cause

`/var` is full.

### Fix

1. Remove old logs.

```bash
# journalctl keeps a copy
journalctl --vacuum-size=200M
```

#### When that is not enough

Do not delete the journal by hand.

### Only when

- `free < 0.1 GiB`: with more, something else
  fills it.
- `requested > free`, in words.

### Not to be confused with

A missing folder.

## The port is taken
Project: Other

### Symptom
Nothing answers.

### Cause

### Fix
Choose another port.
"""

CHINESE = """---
project: [示例, 其他]
---
# 单个问题

项目：另一个

## 现象

启动后 `端口被占用`。

## 原因

旧进程没有退出。

## 解决方案

结束旧进程。

## 容易混淆

权限不足。
"""


def test_issues_are_slices_of_the_article() -> None:
    article = parse(ENGLISH.encode(), path="en/startup.md")
    assert (article.slug, article.lang, article.title) == ("startup", "en", "Two ways to fail at startup")
    first, second = article.records
    assert first.id == "startup#1/en"
    assert first.title == "The service cannot write its log"
    assert first.symptom == (
        "The unit stops at once:\n\n```\nerror: cannot open log: No space left on device\n```\n\n"
        "Solution: this word opens no section here."
    )
    assert first.cause == "`/var` is full."
    assert first.fix == (
        "1. Remove old logs.\n\n```bash\n# journalctl keeps a copy\njournalctl --vacuum-size=200M\n```\n\n"
        "#### When that is not enough\n\nDo not delete the journal by hand."
    )
    assert first.errors == ("error: cannot open log: No space left on device",)
    assert first.project == "Example"
    assert first.tags == ("startup", "disk")
    assert first.versions == ("example 2.x", "example-plugin 1.4")
    assert first.sources == ("https://example.org/issues/1",)
    lines = ENGLISH.split("\n")
    assert lines[first.source.first_line - 1] == "## The service cannot write its log"
    assert lines[first.source.last_line - 1] == "A missing folder."
    assert first.only_when == (
        "- `free < 0.1 GiB`: with more, something else\n  fills it.\n- `requested > free`, in words."
    )
    assert first.conditions == ("free < 0.1 GiB", "requested > free")
    assert first.confusable == "A missing folder."
    assert (second.only_when, second.conditions, second.confusable) == ("", (), "")
    assert (second.title, second.project, second.cause, second.errors) == ("The port is taken", "Other", "", ())
    assert second.fix == "Choose another port."
    assert [(remark.kind, remark.line) for remark in article.remarks] == [("background", 12)]


def test_single_issue_in_chinese() -> None:
    article = parse(CHINESE.encode(), path="zh/single.zh.md")
    (record,) = article.records
    assert record.id == "single#1/zh"
    assert (record.title, record.project) == ("单个问题", "另一个")
    assert (record.symptom, record.cause, record.fix) == ("启动后 `端口被占用`。", "旧进程没有退出。", "结束旧进程。")
    assert record.confusable == "权限不足。"
    assert [remark.text for remark in article.remarks] == ["项目：另一个"]


@pytest.mark.parametrize(
    ("section", "conditions"),
    [
        ("### Only when\n\n- `seqnum < 100`: a barrier.\n", ("seqnum < 100",)),
        (
            "### 判别\n\n- `seqnum < 100 or numel == 1`：是 barrier。\n- `timeout == 600 s`\n",
            ("seqnum < 100 or numel == 1", "timeout == 600 s"),
        ),
        ("### Only when:\n\nWords first.\n\n* `numel == 1`\n  - `seqnum < 3` is said of it\n", ("numel == 1",)),
        ("### Only when\n\n- the number is small\n", ("the number is small",)),  # which `kb check` reports
        ("### Only when\n\n```\n- `seqnum < 100`\n```\n", ()),
        ("### Only when\n", ()),
    ],
)
def test_conditions_are_what_the_bullets_begin_with(section: str, conditions: tuple[str, ...]) -> None:
    text = ENGLISH.replace("Choose another port.\n", f"Choose another port.\n\n{section}")
    article = parse(text.encode(), path="en/startup.md")
    assert article.records[1].conditions == conditions
    assert article.records[1].only_when == section.partition("\n")[2].strip()
    assert article.records[1].fix == "Choose another port."
    assert [remark.kind for remark in article.remarks] == ["background"]


def test_a_record_survives_json() -> None:
    for record in parse(ENGLISH.encode(), path="en/startup.md").records:
        assert IssueRecord.from_dict(json.loads(json.dumps(record.as_dict()))) == record


@pytest.mark.parametrize("name", ["only_when", "confusable", "conditions"])
def test_what_a_record_says_is_in_its_digest_and_has_to_be_there(name: str) -> None:
    record = parse(ENGLISH.encode(), path="en/startup.md").records[0]
    other = {**record.as_dict(), name: ("x",) if name == "conditions" else "x"}
    assert IssueRecord.from_dict(other).digest != record.digest
    del other[name]
    with pytest.raises(KeyError):
        IssueRecord.from_dict(other)


def test_both_translations_share_the_issue() -> None:
    english = parse(ENGLISH.encode(), path="en/twin.md").records
    chinese = parse(ENGLISH.replace("### Symptom", "### 现象").encode(), path="zh/twin.zh.md").records
    assert [record.issue for record in english] == [record.issue for record in chinese] == ["twin#1", "twin#2"]
    assert {record.lang for record in chinese} == {"zh"}


@pytest.mark.parametrize(
    ("path", "head", "lang"),
    [
        ("zh/a.md", "lang: en", "zh"),
        ("en/a.zh.md", "", "en"),
        ("a.md", "lang: zh", "zh"),
        ("notes/a.zh.md", "title: x", "zh"),
        ("a.md", "title: x", "en"),
    ],
)
def test_language_is_what_is_filed_then_stated_then_spelled(path: str, head: str, lang: str) -> None:
    text = f"---\n{head}\n---\n# T\n\n## Symptom\n\nIt stops with an error.\n\n## Fix\n\nRestart it.\n"
    assert parse(text.encode(), path=path).lang == lang


def test_code_does_not_decide_the_language() -> None:
    code = "\n".join(["error: nothing to do here at all"] * 30)
    text = f"# 启动失败\n\n## 现象\n\n进程退出，没有输出。\n\n```\n{code}\n```\n\n## 解决方案\n\n重新安装。\n"
    assert parse(text.encode(), path="a.md").lang == "zh"


def test_broken_front_matter_still_names_the_project() -> None:
    head = '---\nproject: Example\ntitle: "unclosed\ntags: [a, b]\n---\n'
    text = head + "# T\n\n## Symptom\n\nFails.\n\n## Fix\n\nRestart.\n"
    article = parse(text.encode(), path="a.md")
    assert [record.project for record in article.records] == ["Example"]
    assert article.records[0].tags == ("a", "b")
    assert "front-matter" in [remark.kind for remark in article.remarks]


@pytest.mark.parametrize(
    ("section", "aliases"),
    [
        (
            "### Asked as\n\n- the log cannot be written\n- it stops\n  at once\n",
            ("the log cannot be written", "it stops at once"),
        ),
        ("### 常见问法\n\n- 日志写不进去\n- 一启动就退出\n- 日志写不进去\n", ("日志写不进去", "一启动就退出")),
        ("### Asked as\n\n* one way only\n", ("one way only",)),
        ("### Asked as:\n\nin a plain line\n\nand another\n", ("in a plain line", "and another")),
        ("### Asked as\n", ()),
    ],
)
def test_aliases_are_a_list_of_their_own(section: str, aliases: tuple[str, ...]) -> None:
    text = ENGLISH.replace("## The port is taken", f"{section}\n## The port is taken")
    article = parse(text.encode(), path="en/startup.md")
    plain = parse(ENGLISH.encode(), path="en/startup.md")
    assert [record.aliases for record in article.records] == [aliases, ()]
    assert [(one.symptom, one.cause, one.fix) for one in article.records] == [
        (one.symptom, one.cause, one.fix) for one in plain.records
    ]
    assert [remark.kind for remark in article.remarks] == [remark.kind for remark in plain.remarks]


_BUILD = """
import json, sys
from pathlib import Path
from kb.index.build import build
report = build(Path(sys.argv[1]), Path(sys.argv[2]))
assert report.articles == report.parsed == 2, report
print(json.dumps(sorted(sys.modules)))
"""


def _modules_of_a_build(articles: Path, index: Path) -> set[str]:
    ended = subprocess.run(
        [sys.executable, "-c", _BUILD, str(articles), str(index)], capture_output=True, timeout=120, check=True
    )
    return set(json.loads(ended.stdout))


@pytest.mark.thorough
def test_own_articles_load_no_part_of_the_free_form_reader(tmp_path: Path) -> None:
    """Its modules compile many patterns; only a page in another form is worth their time."""
    folder = tmp_path / "articles"
    for lang, text in (("en", ENGLISH), ("zh", CHINESE)):
        (folder / lang).mkdir(parents=True)
        (folder / lang / f"{lang}-a.md").write_text(text, encoding="utf-8")
    loaded = _modules_of_a_build(folder, tmp_path / "index")
    assert {name for name in loaded if name.startswith("kb.scraped")} == {"kb.scraped", "kb.scraped.parse"}
    assert "markdown_it" not in loaded
    (folder / "zh" / "zh-a.md").write_text("## 问题描述\n\n启动报错。\n\n## 处理办法\n\n重新安装。\n", encoding="utf-8")
    (folder / "en" / "en-a.md").write_text(ENGLISH + "\n", encoding="utf-8")
    assert "kb.scraped.reader" in _modules_of_a_build(folder, tmp_path / "index")


def test_a_project_is_guessed_only_where_none_is_stated() -> None:
    text = "# T\n\n## vLLM 启动失败\n{}\n### 现象\n\n退出。\n\n### 解决方案\n\n重装。\n"
    assert parse(text.format("项目：别的").encode(), path="a.md").records[0].project == "别的"
    stated = parse(("---\nproject: 示例\n---\n" + text.format("")).encode(), path="a.md")
    assert stated.records[0].project == "示例"
    tagged = parse(("---\ntags: [vllm]\n---\n" + text.format("")).encode(), path="a.md")
    assert tagged.records[0].project == "vLLM"
