"""What `kb check` finds in articles, what `kb check --stats` counts, and what `kb new` lays out."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kb.articles.scaffold import PLACEHOLDER, scaffold
from kb.cli import cli
from kb.config import Settings
from kb.errors import ArticleError, IndexWriteFailed, QueryError
from kb.records import Problem
from kb.review.lint import review
from kb.review.rules import RULES, choose
from kb.review.tally import tally
from kb.scraped import parse

ERROR = "RuntimeError: size mismatch for lm_head.weight: copying a param with shape torch.Size([0])"
FRONT = """\
---
project: DeepSpeed
tags: [zero3]
versions: [deepspeed 0.16]
sources:
  - https://github.com/deepspeedai/DeepSpeed/issues/1
updated: 2026-01-31
---
"""
EN = (
    FRONT
    + """
# Empty weights

## The saved weights are empty

### Symptom

```
RuntimeError: size mismatch for lm_head.weight: copying a param with shape torch.Size([0])
```

Saving works, loading what was saved does not: every tensor in the file has no elements.

### Cause

The weights are partitioned, and one rank saved its own placeholder.

### Fix

1. Gather the weights before saving.

### Not to be confused with

- Another one: [`other#1`](other.md).
"""
)
ZH = (
    FRONT
    + """
# 权重存成空的

## 保存下来的权重是空的

### 现象

```
RuntimeError: size mismatch for lm_head.weight: copying a param with shape torch.Size([0])
```

保存时不报错，一加载就失败，文件里每个张量都没有元素。

### 原因

权重是分片的，某个进程存下了自己的占位符。

### 解决方案

1. 保存之前先把权重收集起来。

### 容易混淆

- 另一个问题：[`other#1`](other.md)。
"""
)
OTHER = EN.replace("Empty weights", "A hang").replace("The saved weights are empty", "Everything stands still")
OTHER = OTHER.replace(
    "Saving works, loading what was saved does not: every tensor in the file has no elements.",
    "At the first step of the second epoch all cards show full load, and nothing is logged any more until midnight.",
).replace("The weights are partitioned, and one rank saved its own placeholder.", "One rank waits for data.")
OTHER = OTHER.replace("Gather the weights before saving.", "Give every rank the same number of batches.")
OTHER = OTHER.replace(
    "RuntimeError: size mismatch for lm_head.weight: copying a param with shape torch.Size([0])",
    "Watchdog caught collective operation timeout",
).replace("other", "empty")

# What is replaced in en/empty.md -> what is found there: line (None: about the file), level, a part of the message.
CHANGES: dict[str, tuple[str, str, int | None, str, str]] = {
    "list of lists": ("tags: [zero3]", "tags: [[zero3]]", 3, "error", "tags: wants a text or a list of texts"),
    "a mapping": ("project: DeepSpeed", "project: {name: DeepSpeed}", 2, "error", "project: wants a text"),
    "two dates": ("updated: 2026-01-31", "updated: [2026-01-31]", 7, "error", "updated: wants one text"),
    "no date": ("updated: 2026-01-31", "updated: yesterday", 7, "error", "updated: wants a date"),
    "no such day": ("updated: 2026-01-31", "updated: 2026-02-31", 7, "error", "updated: wants a date"),
    "mistyped key": ("versions:", "verions:", 4, "error", "versions is meant?"),
    "broken YAML": ("tags: [zero3]", "tags: [zero3", 4, "error", "not YAML"),
    "no URL": ("- https://github.com/", "- github.com/", 12, "error", "is no URL"),
    "dead link": ("(other.md)", "(another.md)", 32, "error", "another.md leads nowhere"),
    "dead link upwards": ("(other.md)", "(../../other.md)", 32, "error", "leads nowhere"),
    "no such issue": ("`other#1`", "`other#2`", 32, "error", "other has no issue 2"),
    "no fix": ("### Fix\n\n1. Gather the weights before saving.\n", "", 12, "warning", "has no fix"),
    "no step": ("1. Gather the weights", "Gather the weights", 12, "warning", "names no step"),
    "no cause": ("### Cause\n\nThe weights are partitioned, and one rank saved its own placeholder.\n", "",
                 12, "warning", "has no cause"),
    "left to write": ("Saving works", "<to write: when>", 20, "error", "is left to write: <to write: when>"),
    "left in the title": ("# Empty weights", "# <to write: title>", 10, "error", "is left to write"),
    "hidden tags": ("Saving works", "Saving\U000e0041\U000e0042 works", 20, "warning", "nobody sees (U+E0041)"),
    "hidden styles": ("Saving works", "Saving\ufe01\ufe02 works", 20, "warning", "nobody sees (U+FE02)"),
    "left in the tags": ("[zero3]", "'<to write: tags>'", 3, "error", "is left to write"),
    "left below": ("Another one:", "<to write: what> ", 32, "error", "is left to write"),
    "no source": ("sources:\n  - https://github.com/deepspeedai/DeepSpeed/issues/1\n", "sources: []\n",
                  11, "warning", "no source"),
    "no host": ("https://github.com/deepspeedai/DeepSpeed/issues/1", "https://", 12, "error", "is no URL"),
    "no such scheme": ("https://github.com", "file://github.com", 12, "error", "is no URL"),
    "twice": ("tags: [zero3]", "tags: [zero3]\ntags: [nccl]", 1, "error", "tags: given more than once"),
    "a quoted list": ("project: DeepSpeed", 'project: "[DeepSpeed, TRL]"', 2, "error", "looks like a list"),
    "aliases": ("tags: [zero3]", "tags: &a [zero3]\nversions: *a", 1, "error", "aliases are not read"),
    "a date and more": ("updated: 2026-01-31", "updated: 2026-01-31 or so", 7, "error", "updated: wants a date"),
    "link with a title": ("(other.md)", '(another.md "x")', 32, "error", "another.md leads nowhere"),
    "link by reference": ("[`other#1`](other.md)", "[x][y]\n\n[y]: another.md\n", 34, "error", "leads nowhere"),
}  # fmt: skip


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Two articles in two languages in which nothing is wrong."""
    for lang, one, two in (("en", EN, OTHER), ("zh", ZH, OTHER.replace("At the first step", "卡住了：第一步"))):
        (tmp_path / lang).mkdir()
        (tmp_path / lang / "empty.md").write_text(one, "utf-8")
        (tmp_path / lang / "other.md").write_text(two, "utf-8")
    return tmp_path


def edit(base: Path, old: str, new: str, path: str = "en/empty.md") -> None:
    text = (base / path).read_text("utf-8")
    assert old in text
    (base / path).write_text(text.replace(old, new), "utf-8")


def test_nothing_is_wrong(base: Path) -> None:
    assert review(base) == []


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_found(name: str, base: Path) -> None:
    old, new, line, level, message = CHANGES[name]
    edit(base, old, new)
    (found,) = [finding for finding in review(base) if finding.path == "en/empty.md"]
    assert (found.line, found.level) == (line, level)
    assert message in found.message


SHORT, STEP = ("### Symptom", "### In short\n\nGather.\n\n### Symptom"), "1. Gather the weights"
WAYS = "### Not to be", "### Which one is it\n\n- Later: [`other#1`](other.md)\n- Sooner.\n\n### Not to be"
EDITS: dict[str, tuple[list[tuple[str, str]], str, str]] = {
    "a long summary": ([SHORT, ("Gather.\n", "Gather. " * 40)], "warning", "at most 260"),
    "a step without a basis": ([SHORT], "warning", "step 1 does not say what stands behind it"),
    "a summary in one language": ([SHORT], "warning", "only one language of empty#1 has In short"),
    "no summary": ([SHORT], "warning", "other#1/en does not say it in short"),
    "harm": ([SHORT, (STEP, "1. `rm -rf out`")], "warning", "step 1 has `rm -rf` and no **warning**"),
    "ways in words only": ([WAYS], "warning", "no way out begins with a condition"),
    "other ways out": ([WAYS], "error", "lead to different issues"),
    "no way out": ([WAYS, ("[`other#1`](other.md)\n", "alas\n")], "error", "empty#1/en leads nowhere"),
    "a wrong way": ([WAYS, ("- Later: [`other#1`]", "- [`other#7`]")], "error", "other#7, which is not there"),
    "round in a circle": ([WAYS, ("- Later: [`other#1`]", "- [`empty#1`]")], "error", "empty#1/en leads to itself"),
    "a riddle": ([WAYS, ("- Later: [", "- `moon == 3`: [")], "error", "'moon' is no quantity"),
}


@pytest.mark.parametrize("name", EDITS)
def test_what_is_found_in_summaries_and_ways_out(name: str, base: Path) -> None:
    edits, level, message = EDITS[name]
    for old, new in edits:
        edit(base, old, new)
    assert [f for f in review(base) if f.level == level and message in f.message]


def test_links_in_code_and_to_the_web_are_not_followed(base: Path) -> None:
    edit(base, "```\nRuntimeError", "```\n[x](nowhere.md) `other#9`\nRuntimeError")
    edit(base, "(other.md)", "(other.md#cause) [y](https://example.org/nowhere.md) `trl#3199` [z](../zh/other.md)")
    assert review(base) == []


def test_names_that_only_look_wrong(base: Path) -> None:
    edit(base, "tags: [zero3]", "tags: [R&D, '*note*']")
    edit(base, "https://github.com/deepspeedai/DeepSpeed/issues/1", "HTTPS://github.com/a?b=1&c=*")
    edit(base, "updated: 2026-01-31", "updated: 2026-01-31 12:00:00")
    edit(base, "Saving works", "`[x](nowhere.md)` Saving works")
    assert review(base) == []


def test_front_matter_that_is_never_closed(base: Path) -> None:
    edit(base, "updated: 2026-01-31\n---\n", "updated: 2026-01-31\n")
    assert any("never closed" in f.message for f in review(base) if f.path == "en/empty.md")


def test_no_error_line_and_no_description(base: Path) -> None:
    edit(base, f"```\n{ERROR}\n```", "```bash\nls -l model.bin\n```")
    assert [finding.message for finding in review(base)] == ["empty#1/en has no error line, empty#1/zh has"]
    edit(base, "Saving works, loading what was saved does not: every tensor in the file has no elements.", "")
    messages = [finding.message for finding in review(base)]
    assert "empty#1/en has neither an error line nor a description" in messages


def test_between_the_tellings(base: Path) -> None:
    text = (base / "en/other.md").read_text("utf-8")
    (base / "en/other.md").write_text(
        text + "\n## Second\n\n### Symptom\n\nIt hangs.\n\n### Fix\n\n1. Wait.\n", "utf-8"
    )
    (base / "zh/empty.md").rename(base / "zh/third.md")
    found = {(f.path, f.level, f.message) for f in review(base)}
    message = "1 issues here, 2 in en/other.md: 1 are the same; only there #2 (Second)"
    assert ("zh/other.md", "error", message) in found
    assert ("en/empty.md", "warning", "empty has no translation in zh") in found
    assert ("zh/third.md", "warning", "third has no translation in en") in found


def test_a_copy_of_the_english_telling_is_no_chinese_one(base: Path) -> None:
    (base / "zh" / "empty.md").write_text(EN, "utf-8")
    assert [f.message for f in review(base)] == ["empty#1/zh has no Chinese character"]


def test_issues_in_another_order(base: Path) -> None:
    edit(base, ERROR, "Watchdog caught collective operation timeout", "zh/empty.md")
    assert any("in the same order?" in f.message for f in review(base))


def test_projects_of_the_tellings_differ(base: Path) -> None:
    edit(base, "project: DeepSpeed", "project: TRL", "zh/empty.md")
    assert [f.message for f in review(base)] == ["the project is TRL here, DeepSpeed in en/empty.md"]


def test_a_project_written_in_two_ways(base: Path) -> None:
    for lang in ("en", "zh"):
        edit(base, "project: DeepSpeed", "project: Deepspeed", f"{lang}/empty.md")
    (base / "en" / "third.md").write_text(OTHER.replace("`empty#1`", "").replace("One rank", "Nobody"), "utf-8")
    messages = [f.message for f in review(base) if f.path == "en/empty.md"]
    assert messages == ["Deepspeed is written DeepSpeed elsewhere"]


def test_an_issue_told_twice(base: Path) -> None:
    (base / "en" / "copy.md").write_text(EN.replace("partitioned", "split over the ranks"), "utf-8")
    messages = [f.message for f in review(base) if f.path == "en/empty.md"]
    assert any("the same as copy#1/en" in message for message in messages)
    (base / "en" / "Empty.markdown").write_text(EN, "utf-8")
    assert any(f.message == "empty#1/en is in en/Empty.markdown already" for f in review(base))


@pytest.mark.parametrize("copies", [2, 30, 31, 100])
def test_copies_are_found_however_many(copies: int, base: Path) -> None:
    for n in range(copies):
        (base / "en" / f"copy{n:03}.md").write_text(EN.replace("all it holds", f"number {n}"), "utf-8")
    found = [f for f in review(base) if "the same as" in f.message]
    assert len(found) == copies  # each but the first, and the one that was there


def test_unreadable_articles_are_findings(base: Path) -> None:
    (base / "en" / "gbk.md").write_bytes("# 标题".encode("gbk"))
    edit(base, "(other.md)", "(gbk.md)")
    (base / "zh" / "gbk.md").write_text(ZH, "utf-8")
    found = [f for f in review(base) if "gbk" in f.path or "gbk" in f.message]
    told = [(f.path, f.level) for f in found if f.rule not in ("duplicate", "same-title")]
    assert told == [("en/gbk.md", "error")]


def test_tally(base: Path) -> None:
    edit(base, f"```\n{ERROR}\n```", "```bash\nls -l model.bin\n```")
    en, zh, both = tally(base)
    assert (en.lang, en.articles, en.issues, en.records, en.projects) == ("en", 2, 2, 2, 1)
    assert (en.with_errors, zh.with_errors, both.with_errors) == (1, 2, 3)
    assert (en.without_errors, zh.without_errors, both.without_errors) == (1, 0, 1)
    assert (both.lang, both.articles, both.issues, both.records, both.sources) == ("all", 4, 2, 4, 1)
    words = 0
    for record in parse((base / "zh/empty.md").read_bytes(), path="zh/empty.md").records:
        for text in (record.symptom, record.cause, record.fix):
            latin = "".join(c if c.isascii() and (c.isalnum() or c == "_") else " " for c in text)
            words += len(latin.split()) + sum("\u4e00" <= c <= "\u9fd5" for c in text)
    (base / "zh/other.md").unlink()
    assert tally(base)[1].mean_words == words


def test_new_lays_out_what_check_wants_filled(base: Path) -> None:
    paths = scaffold(base, "nccl-timeout", project="NCCL: the library", today=date(2026, 1, 31))
    assert [path.relative_to(base).as_posix() for path in paths] == ["en/nccl-timeout.md", "zh/nccl-timeout.md"]
    for path in paths:
        lang = path.parent.name
        article = parse(path.read_bytes(), path=f"{lang}/nccl-timeout.md")
        (record,) = article.records
        assert record.project == "NCCL: the library"
        assert all(
            PLACEHOLDER.search(text)
            for text in (record.title, record.summary, record.symptom, record.cause, record.fix)
        )
        assert len([f for f in review(base) if f.path == article.path and "left to write" in f.message]) == 11
    for path in paths:
        filled = PLACEHOLDER.sub("words 和字", path.read_text("utf-8"))
        filled = filled.replace("other-slug", "other").replace("sources: []", "sources: [https://github.com/x/y]")
        path.write_text(filled, "utf-8")
    assert {f.path.partition("/")[2] for f in review(base)} == {"empty.md", "other.md"}  # they say nothing in short


def test_new_leaves_no_half_of_a_file(base: Path) -> None:
    with pytest.raises(ArticleError, match="UTF-8"):
        scaffold(base, "half", project="\udcff")
    assert not (base / "en" / "half.md").exists()
    (base / "zh").rename(base / "gone")
    (base / "zh").write_text("a file where a folder belongs", "utf-8")
    with pytest.raises(IndexWriteFailed, match="cannot be written"):
        scaffold(base, "half")


def test_new_overwrites_nothing(base: Path) -> None:
    (base / "zh" / "other.md").unlink()
    before = (base / "en" / "other.md").read_bytes()
    (written,) = scaffold(base, "other")
    assert written == base / "zh" / "other.md"
    assert (base / "en" / "other.md").read_bytes() == before
    with pytest.raises(ArticleError, match="in both languages"):
        scaffold(base, "other")


@pytest.mark.parametrize(
    "slug", ["", "../up", "a/b", "A", "ä", "a--b", "-a", "a-", "con", "a" * 81, "a b", "a.md", "a\n"]
)
def test_what_cannot_be_a_slug(slug: str, tmp_path: Path) -> None:
    with pytest.raises(ArticleError, match="cannot be a slug"):
        scaffold(tmp_path / "articles", slug)
    assert not (tmp_path / "articles").exists()


@pytest.mark.parametrize(
    ("en", "zh", "found"),
    [
        ("- `unallocated >= 0.5 GiB`: with less, it is full.", "- `unallocated >= 0.5 GiB`：比这少就是满了。", ""),
        ("- `seqnum < 9`\n- `numel == 1`", "- `numel == 1`\n- `seqnum < 9`", ""),
        ("- `checkpoint_numel == 0`", "- `checkpoint_numel == 0`", ""),
        ("- `seqnum < 9`", "- `seqnum < 8`", "empty#1/zh and empty#1/en have different conditions"),
        ("- `seqnum < 9`", "", "empty#1/zh and empty#1/en have different conditions"),
        ("- `seqno < 9`", "- `seqno < 9`", "a condition of empty#1/en cannot be read: 'seqno' is no quantity"),
        ("- it is small", "- it is small", "a condition of empty#1/en cannot be read: 'it is small' is no comparison"),
        ("It is small.", "很小。", "empty#1/en has no condition below Only when"),
        ("- `model_numel == 0`", "- `model_numel == 0`", "the error lines of empty#1/en do not meet its conditions"),
    ],
)
def test_conditions_are_read_and_compared(base: Path, en: str, zh: str, found: str) -> None:
    for path, heading, section, before in (
        ("en/empty.md", "Only when", en, "### Not to be"),
        ("zh/empty.md", "判别", zh, "### 容易混淆"),
    ):
        edit(
            base,
            "torch.Size([0])",
            "torch.Size([0]) from checkpoint, the shape in current model is torch.Size([4])",
            path,
        )
        edit(base, before, f"### {heading}\n\n{section}\n\n{before}" if section else before, path)
    problems = review(base)
    assert any(found in problem.message for problem in problems) if found else not problems
    assert all(problem.level == "error" for problem in problems)


# rules: by name, off and on, where they count

FOREIGN = "# Volumes\n\n## It cannot be mounted\n\nmount: wrong fs type. See [more](gone.md).\n\nInstall nfs-common.\n"


def rules_of(found: list[Problem]) -> set[str]:
    return {one.rule for one in found}


def test_every_problem_has_a_rule_of_the_table(base: Path) -> None:
    (base / "en" / "gbk.md").write_bytes("# 标题".encode("gbk"))
    (base / "en" / "page.md").write_text(FOREIGN, "utf-8")
    edit(base, "(other.md)", "(another.md)")
    edit(base, "updated: 2026-01-31", "updated: soon")
    found = review(base, choose(on=RULES))
    assert {"dead-link", "front-matter", "unreadable", "no-source", "no-translation"} <= rules_of(found) <= RULES.keys()
    for name, rule in RULES.items():
        assert re.fullmatch(r"[a-z]+(?:-[a-z]+)*", name)
        assert rule.name == name
        assert rule.en != rule.zh


@pytest.mark.parametrize(
    ("off", "on", "only", "own", "foreign"),
    [
        ("", "", "", {"dead-link", "no-fix"}, set()),
        ("dead-link", "", "", {"no-fix"}, set()),
        ("dead-link no-fix", "", "", set(), set()),
        ("", "dead-link", "", {"dead-link", "no-fix"}, {"dead-link"}),
        ("", "", "dead-link", {"dead-link"}, {"dead-link"}),
        ("dead-link", "dead-link", "", {"no-fix"}, set()),
        ("", "", "hollow", set(), set()),
    ],
)
def test_rules_are_switched_off_and_on(
    off: str, on: str, only: str, own: set[str], foreign: set[str], base: Path
) -> None:
    edit(base, "(other.md)", "(another.md)")
    edit(base, "### Fix\n\n1. Gather the weights before saving.\n", "")
    (base / "page.md").write_text(FOREIGN, "utf-8")
    found = review(base, choose(off=off.split(), on=on.split(), only=only.split()))
    assert rules_of([one for one in found if one.path == "en/empty.md"]) == own
    assert rules_of([one for one in found if one.path == "page.md"]) == foreign


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(QueryError, match="no rule 'ded-link'") as caught:
        choose(off=["ded-link"])
    assert "dead-link is meant?" in (caught.value.hint or "")


def test_what_costs_the_reader_answers_is_found_in_any_page(base: Path) -> None:
    pages = {
        "en/nothing.md": "# About\n\nThis is our handbook.\n",
        "en/one.md": FOREIGN,
        "en/two.md": FOREIGN.replace("Install nfs-common.", "Install the client of NFS 4.1 and start rpcbind."),
        "en/three.md": "# Disks\n\n## Error: disk pressure on the node\n",
        "en/odd.txt": "x",
    }
    for path, text in pages.items():
        (base / path).write_text(text, "utf-8")
    found = review(base)
    assert {(one.path, one.rule) for one in found if one.path not in ("en/empty.md", "en/other.md")} >= {
        ("en/nothing.md", "no-issue"),
        ("en/two.md", "same-title"),
        ("en/odd.txt", "left-out"),
    }
    house = {name for name, rule in RULES.items() if rule.house}
    assert not rules_of([one for one in found if one.path in pages]) & house


def test_headings_alone_are_not_our_form(base: Path) -> None:
    """Many a page says Symptom, Cause and Fix; ours have front matter or sections that nobody else has."""
    page = EN.replace(FRONT, "").replace("(other.md)", "(another.md)")
    (base / "en" / "theirs.md").write_text(page.partition("### Not to be")[0].replace("weights", "layers"), "utf-8")
    (base / "en" / "ours.md").write_text(page, "utf-8")
    found = review(base, choose(off=["duplicate", "same-title"]))
    assert rules_of([one for one in found if one.path == "en/theirs.md"]) == {"no-project"}
    assert {"no-source", "dead-link"} <= rules_of([one for one in found if one.path == "en/ours.md"])


# what the step says, front matter -> is it stale on 2026-06-01?
STALE = {
    "a flag": ("Pass `--shm-size=16g`.", "updated: 2025-01-31", "--shm-size"),
    "a path": ("Look into `/etc/nccl.conf`.", "updated: 2025-01-31", "/etc/nccl.conf"),
    "a variable": ("Set it:\n\n   ```bash\n   export NCCL_DEBUG=INFO\n   ```", "updated: 2025-01-31", "NCCL_DEBUG"),
    "fresh": ("Pass `--shm-size=16g`.", "updated: 2026-01-31", ""),
    "just a year": ("Pass `--shm-size=16g`.", "updated: 2025-06-01", ""),
    "versions were checked": ("Pass `--x-y`.", "updated: 2024-01-31\nversions: [torch 2.9 checked 2026-02]", ""),
    "checked long ago": ("Pass `--x-y`.", "updated: 2024-01-31\nversions: [torch 2.1 checked 2024-05]", "--x-y"),
    "words only": ("Gather -- before saving -- all and/or some.", "updated: 2025-01-31", ""),
    "an address": ("See `https://example.org/a/b`.", "updated: 2025-01-31", ""),
    "no date": ("Pass `--shm-size=16g`.", "tags: [b]", ""),
}


@pytest.mark.parametrize("name", STALE)
def test_what_nobody_has_checked_for_a_year(name: str, base: Path) -> None:
    step, front, found = STALE[name]
    edit(base, "1. Gather the weights before saving.", f"1. {step}")
    edit(base, "versions: [deepspeed 0.16]\n", "")
    edit(base, "updated: 2026-01-31", front)
    told = [one for one in review(base, choose(only=["stale"]), today=date(2026, 6, 1)) if one.path == "en/empty.md"]
    assert [f"`{found}`, last checked" in one.message for one in told] == ([True] if found else [])
    assert RULES["stale"].dated


def test_the_docs_list_the_rules_as_they_are() -> None:
    for lang, name in (("en", "own-base.md"), ("zh", "own-base.zh.md")):
        text = (Path(__file__).parents[1] / "docs" / name).read_text("utf-8")
        rows = re.findall(r"^\| `([a-z-]+)` \| ([^|]+) \| ([^|]*) \|$", text, re.MULTILINE)
        assert [(rule, words, bool(mark.strip())) for rule, words, mark in rows] == [
            (rule.name, rule.words(lang), rule.house) for rule in RULES.values()
        ]


# the command


def check(base: Path, *options: str) -> Result:
    return CliRunner().invoke(cli, ["check", "--articles", str(base), *options])


def test_the_command_groups_by_rule_and_shortens(base: Path) -> None:
    edit(base, "(other.md)", "(other.md)" + "".join(f" [x](gone{n}.md)\n" for n in range(14)))
    edit(base, "sources:\n  - https://github.com/deepspeedai/DeepSpeed/issues/1\n", "")
    ran = check(base)
    assert ran.exit_code == 65
    lines = ran.stdout.splitlines()
    assert "dead-link (14): a link to an article that is not there" in lines
    assert "... and 4 more: kb check --only dead-link --all" in lines
    assert len([line for line in lines if line.startswith("en/empty.md:") and "leads nowhere" in line]) == 10
    assert lines[-2:] == ["     1  no-source", "    14  dead-link"]
    assert ran.stderr.endswith("14 errors, 1 warning\n")
    whole = check(base, "--all")
    assert whole.stdout.count("leads nowhere") == 14
    assert "more:" not in whole.stdout
    listed = json.loads(check(base, "--json", "--only", "no-source, dead-link").stdout)
    assert [one["rule"] for one in listed] == ["no-source"] + ["dead-link"] * 14
    assert check(base, "--off", "dead-link").exit_code == 0
    assert check(base, "--off", "dead-link", "--strict").exit_code == 65
    assert check(base, "--off", "dead-link,no-source", "--strict").exit_code == 0
    assert isinstance(check(base, "--off", "dead").exception, QueryError)


def test_time_alone_fails_no_strict_check(base: Path) -> None:
    edit(base, "1. Gather the weights before saving.", "1. Pass `--gather=1`.")
    edit(base, "updated: 2026-01-31", "updated: 2020-01-31")
    ran = check(base, "--strict")
    assert "stale (1)" in ran.stdout
    assert ran.exit_code == 0


def test_the_rules_are_listed_in_the_language_of_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "KB_LANG"):
        monkeypatch.delenv(name, raising=False)
    for variable, value, lang in (("LANG", "zh_CN.UTF-8", "zh"), ("LANG", "C.UTF-8", "en"), ("KB_LANG", "zh", "zh")):
        monkeypatch.setenv(variable, value)
        told = CliRunner().invoke(cli, ["check", "--rules"]).stdout
        assert all(f"  {rule.name:16} {rule.words(lang)}" in told.splitlines() for rule in RULES.values())
    listed = json.loads(CliRunner().invoke(cli, ["check", "--rules", "--json"]).stdout)
    assert [one["rule"] for one in listed] == list(RULES)


def test_the_users_settings_count(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(base, "(other.md)", "(another.md)")
    (base / "en" / "page.md").write_text(FOREIGN, "utf-8")
    asked = Settings(check_off=frozenset({"dead-link"}), check_on=frozenset({"no-source"}))
    monkeypatch.setattr("kb.config.settings", lambda: asked)
    listed = json.loads(check(base, "--json").stdout)
    assert "dead-link" not in {one["rule"] for one in listed}
    assert ("en/page.md", "no-source") in {(one["path"], one["rule"]) for one in listed}
    again = json.loads(check(base, "--json", "--on", "dead-link").stdout)
    assert {one["path"] for one in again if one["rule"] == "dead-link"} == {"en/empty.md", "en/page.md"}
