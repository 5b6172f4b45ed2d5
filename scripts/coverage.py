"""Writes docs/coverage.md and docs/coverage.zh.md: what people meet, what the articles cover, and how right they are.

    python scripts/coverage.py --write

In: docs/coverage.jsonl, one failure a line, as counted by neutral searches (a project and a generic word, in both
languages, results in the order found), and docs/coverage-searches.jsonl, those searches; tests/cases/held/drawn.jsonl,
questions that were drawn after the writing; docs/checked.jsonl, the claims of articles that somebody checked who wrote
none of them. All are kept by hand. An `issue` that is not below articles/ is an error.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from kb.articles.folder import read_articles
from kb.scraped import parse

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SHOWN = 150  # failures in the table; all of them are in the data

TEXT = {
    "en": """\
# What people meet, and what is covered

[中文](coverage.zh.md)

{searches} searches over {projects} projects, {chinese} of them in Chinese: nearly all a project and a generic word
("hangs", "OOM", "报错") without a failure in mind, their results read in the order found; of the last 1,088 about a
third follow up a failure that was met, or check a claim.
{failures} failures were counted in {threads} threads; the articles cover {covered} of them, which are
{share:.0%} of the threads. The counts say what is asked in public threads, not what happens most, and the
articles were written from this table: it says nothing about questions drawn otherwise.
Data: [coverage.jsonl](coverage.jsonl), [coverage-searches.jsonl](coverage-searches.jsonl) and the files named below,
from which `python scripts/coverage.py --write` makes this page.

## Questions drawn anew

After the writing {drawn} questions were drawn by pairs of project and word that were picked at random, two
thirds in English and one in Chinese; two stand in the sources of an article. Most of the threads do not tell what it
was; somebody who had neither drawn nor written judged by the failure. The base answers {answered} of them, and
{helped} more in part: [drawn.jsonl](../tests/cases/held/drawn.jsonl). So most failures of the world are still not in
it, above all those of programs that few articles are about, and slowness without a message. Of 373 threads drawn
before, most of them about the programs that the articles are about, {world} are answered.

## How right the articles are

{once} once, claim by claim (error lines, causes, commands, flags,
versions), by somebody who wrote none of them: in the sources of packages, by running, in documentation and threads.
Grave is a step that fails or harms for many who take it word for word. The counts are those before mending; all that
was found is mended in both languages. Not checkable is what no source within reach tells: symptoms of threads that
are gone, hardware that was not there, remedies by reasoning. One reading does not find everything. The counts are the
readers' own tallies; those of each issue, and what was found: [checked.jsonl](checked.jsonl).

| articles | issues | claims | right | not checkable | imprecise | wrong | grave |
|---|---:|---:|---:|---:|---:|---:|---:|
{checked}

## By project

| project | threads | covered |
|---|---:|---:|
{by_project}

## The failures met most

| failure | project | threads | issue |
|---|---|---:|---|
{rows}
""",
    "zh": """\
# 大家遇到什么，收录了什么

[English](coverage.md)

检索 {searches} 次，涉及 {projects} 个项目，其中中文 {chinese} 次：绝大多数是一个项目加一个通用词
（"hangs"、"OOM"、「报错」），不带预想的故障，结果按出现的顺序读；最近 1,088 次里约三分之一是追查遇到的故障或核对说法。
共在 {threads} 个帖子里数到 {failures} 种故障，文章覆盖其中 {covered} 种，占帖子的 {share:.0%}。
这些数字说明公开帖子里在问什么，不等于实际发生得最多的是什么；文章就是照着这张表写的，所以它说明不了另外抽取的提问能覆盖多少。
数据：[coverage.jsonl](coverage.jsonl)、[coverage-searches.jsonl](coverage-searches.jsonl) 和下面提到的文件；
本页由 `python scripts/coverage.py --write` 生成。

## 写完之后另抽的提问

写完之后，随机抽取“项目 + 词”再检索，得到 {drawn} 个提问，英文占三分之二，中文占三分之一；其中两个在某篇文章的出处里。
多数帖子没有说出最后的原因，由既没参与抽取也没参与写作的人按故障本身判断。
库里能回答其中 {answered} 个，另有 {helped} 个只能帮上一部分：[drawn.jsonl](../tests/cases/held/drawn.jsonl)。
可见大多数故障库里还没有，尤其是文章很少写到的程序，以及没有报错、只是慢的情况。
之前抽的 373 个帖子多半来自文章写到的项目，其中能回答 {world} 个。

## 文章有多准

{once}由没有参与写作的人逐条核对过一遍（报错原文、原因、命令、参数、版本）：
看软件包源码、实际运行、查文档和帖子。
“严重”指照着做会失败或造成损害的步骤。表中是修改前的数目，发现的问题都已在中英文里改正。“无法核对”指手边没有依据的：
帖子已不在的现象、没有的硬件、推断出来的做法。读一遍找不全。数目由核对的人自己统计，每个问题的数目和发现见
[checked.jsonl](checked.jsonl)。

| 文章 | 问题 | 论断 | 正确 | 无法核对 | 不精确 | 错误 | 严重 |
|---|---:|---:|---:|---:|---:|---:|---:|
{checked}

## 按项目

| 项目 | 帖子 | 已覆盖 |
|---|---:|---:|
{by_project}

## 遇到最多的故障

| 故障 | 项目 | 帖子 | 问题 |
|---|---|---:|---|
{rows}
""",
}


class Failure(NamedTuple):
    failure: str
    project: str
    count: int
    threads: list[str]
    issue: str | None


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DOCS / name).read_text("utf-8").splitlines() if line.strip()]


def issues() -> set[str]:
    found = set()
    for path, data in read_articles(ROOT / "articles"):
        if isinstance(data, bytes):
            found |= {record.issue for record in parse(data, path=path).records}
    return found


ROUNDS = {"en": {"old": "older ones", "new": "written in November 2026"}}
ROUNDS["zh"] = {"old": "较早写的", "new": "2026 年 11 月新写的"}


def questions(*names: str) -> list[dict[str, Any]]:
    return [question for name in names for question in read(f"../tests/cases/{name}.jsonl")]


def checked(lang: str) -> str:
    """A row for each round of checks."""
    rows = []
    for name, title in ROUNDS[lang].items():
        found = [one for one in read("checked.jsonl") if one["round"] == name]
        columns = ("claims", "confirmed", "unchecked", "imprecise", "wrong", "grave")
        sums = [sum(one[column] for one in found) for column in columns]
        rows.append(" | ".join([f"| {title}", str(len(found)), *(f"{n:,}" for n in sums)]) + " |")
    return "\n".join(rows)


# Whether somebody else has read every issue, or some wait for it.
ALL = {"en": "All articles were checked", "zh": "所有文章都"}
ALL_BUT = {"en": "All articles but {left} issues were checked", "zh": "除 {left} 个问题外，所有文章都"}


def page(lang: str, failures: list[Failure], searches: list[dict[str, Any]], left: int) -> str:
    drawn = questions("held/drawn")
    by_project: dict[str, Counter[str]] = defaultdict(Counter)
    for one in failures:
        by_project[one.project].update(threads=one.count, covered=one.count if one.issue else 0)
    total = sum(one.count for one in failures)
    order = sorted(by_project, key=lambda name: (-by_project[name]["threads"], name))
    return TEXT[lang].format(
        searches=len(searches),
        projects=len(by_project),
        chinese=sum(any("\u4e00" <= char <= "\u9fff" for char in one["query"]) for one in searches),
        failures=len(failures),
        threads=total,
        covered=sum(one.issue is not None for one in failures),
        share=sum(one.count for one in failures if one.issue) / max(total, 1),
        drawn=len(drawn),
        answered=sum(one["issue"] is not None for one in drawn),
        helped=sum(one["issue"] is None and bool(one["partly"]) for one in drawn),
        world=sum(one["issue"] is not None for one in questions("world/threads-en", "world/threads-zh")),
        once=(ALL_BUT if left else ALL)[lang].format(left=left),
        checked=checked(lang),
        by_project="\n".join(
            f"| {name} | {by_project[name]['threads']} | {by_project[name]['covered']} |" for name in order
        ),
        rows="\n".join(row(one, lang) for one in failures[:SHOWN]),
    )


def row(one: Failure, lang: str) -> str:
    link = "" if one.issue is None else f"[{one.issue}](../articles/{lang}/{one.issue.partition('#')[0]}.md)"
    return f"| {one.failure.replace('|', '/')} | {one.project} | {one.count} | {link} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the pages, not only say whether they are old")
    write = parser.parse_args().write
    failures = sorted((Failure(**one) for one in read("coverage.jsonl")), key=lambda one: (-one.count, one.failure))
    searches = read("coverage-searches.jsonl")
    known = issues()
    if astray := {one.issue for one in failures if one.issue} - known:
        print(f"not below articles/: {', '.join(sorted(astray))}", file=sys.stderr)
        return 1
    left = len(known - {one["issue"] for one in read("checked.jsonl")})
    stale = []
    for lang, name in (("en", "coverage.md"), ("zh", "coverage.zh.md")):
        text = page(lang, failures, searches, left)
        if write:
            (DOCS / name).write_text(text, "utf-8")
        elif not (DOCS / name).exists() or (DOCS / name).read_text("utf-8") != text:
            stale.append(name)
    print(f"stale: {', '.join(stale)}; run it with --write" if stale else f"{len(failures)} failures")
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main())
