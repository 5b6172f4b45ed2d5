"""Writes docs/coverage.md and docs/coverage.zh.md: which failures people meet, and which of them the articles cover.

    python scripts/coverage.py --write

In: docs/coverage.jsonl, one failure a line, as counted by neutral searches (a project and a generic word, in both
languages, results in the order found), and docs/coverage-searches.jsonl, those searches. Both are kept by hand. An
`issue` that is not below articles/ is an error.
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

{searches} searches over {projects} projects, {chinese} of them in Chinese: each a project and a generic word
("hangs", "OOM", "报错"), never a failure already in mind. Their results were read in the order found.
{failures} failures were counted in {threads} threads; the articles cover {covered} of them, which are
{share:.0%} of the threads. The counts say what is asked in public threads, not what happens most, and the
articles were written from the top of this table: how many questions drawn otherwise are covered stands in
[retrieval](retrieval.md).
Data: [coverage.jsonl](coverage.jsonl) and [coverage-searches.jsonl](coverage-searches.jsonl), from which
`python scripts/coverage.py --write` makes this page.

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

检索 {searches} 次，涉及 {projects} 个项目，其中中文 {chinese} 次：每次都是一个项目加一个通用词
（"hangs"、"OOM"、「报错」），不带任何预想的故障，结果按出现的顺序读。共在 {threads} 个帖子里数到 {failures} 种故障，
文章覆盖其中 {covered} 种，占帖子的 {share:.0%}。
这些数字说明公开帖子里在问什么，不等于实际发生得最多的是什么；文章就是照着这张表从上往下写的，
另外抽取的提问能覆盖多少，见[检索效果](retrieval.zh.md)。数据：[coverage.jsonl](coverage.jsonl)、
[coverage-searches.jsonl](coverage-searches.jsonl)；本页由 `python scripts/coverage.py --write` 生成。

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


def page(lang: str, failures: list[Failure], searches: list[dict[str, Any]]) -> str:
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
    if astray := {one.issue for one in failures if one.issue} - issues():
        print(f"not below articles/: {', '.join(sorted(astray))}", file=sys.stderr)
        return 1
    stale = []
    for lang, name in (("en", "coverage.md"), ("zh", "coverage.zh.md")):
        text = page(lang, failures, searches)
        if write:
            (DOCS / name).write_text(text, "utf-8")
        elif not (DOCS / name).exists() or (DOCS / name).read_text("utf-8") != text:
            stale.append(name)
    print(f"stale: {', '.join(stale)}; run it with --write" if stale else f"{len(failures)} failures")
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main())
