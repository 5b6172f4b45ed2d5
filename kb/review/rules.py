"""The rules of `kb check`: each with its name, what it looks for in both languages, and where it counts.

A rule of the house is about our own form and counts in articles that were written for kb; the others count in all.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kb.errors import QueryError
from kb.index.fsck import RULE as INDEX
from kb.records import Lang
from kb.review import among, files, form, twins
from kb.review.pages import Found, Pages

__all__ = ["RULES", "Choice", "Rule", "choose"]


class Rule(NamedTuple):
    name: str
    house: bool
    """counts only in articles in our own form, unless it is switched on"""
    find: Callable[[Pages], Iterator[Found]] | None
    """None: `kb.index.fsck` finds it"""
    en: str
    """what it finds, in a few words; so is `zh`"""
    zh: str
    dated: bool = False
    """comes by the passing of time alone: `--strict` lets it through"""

    def words(self, lang: Lang) -> str:
        return self.zh if lang == "zh" else self.en


_ALL, _HOUSE = False, True

RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule("unreadable", _ALL, files.unreadable,
             "a file that cannot be read",
             "文件无法读取"),
        Rule("left-out", _ALL, files.left_out,
             "a file that is no article: a link, an odd name, not Markdown",
             "不算文章的文件：链接、异常的文件名、不是 Markdown"),
        Rule("same-id", _ALL, among.same_id,
             "two files that give the same ids; the first is kept",
             "两个文件得到同样的编号，只保留前一个"),
        Rule("no-issue", _ALL, form.no_issue,
             "an article in which no issue was found",
             "文章里没有找到问题"),
        Rule("hollow", _ALL, form.hollow,
             "an issue that names neither a cause nor a fix",
             "问题既没有原因，也没有解决方案"),
        Rule("duplicate", _ALL, among.duplicate,
             "two issues with mostly the same text",
             "两个问题的内容大半相同"),
        Rule("same-title", _ALL, among.same_title,
             "two issues under one title",
             "两个问题用同一个标题"),
        Rule("twins-differ", _ALL, twins.twins_differ,
             "English and Chinese do not tell the same issues in the same order",
             "中英文的问题不是一一对应"),
        Rule("no-project", _ALL, form.no_project,
             "an issue that names no project",
             "问题没有写明项目"),
        Rule("draft", _ALL, files.draft,
             "an article that waits for its review",
             "等待审阅的草稿"),
        Rule("duplicate-draft", _ALL, files.duplicate_draft,
             "a draft marked as a duplicate of an issue that is not there",
             "草稿标为某个问题的重复，而那个问题不存在"),
        Rule("folded", _ALL, files.folded,
             "an article that still holds the thread of its draft",
             "文章里还留着草稿附带的讨论"),
        Rule("to-write", _ALL, files.to_write,
             "what `kb new` left to write",
             "`kb new` 留下还没填的地方"),
        Rule("hidden-text", _ALL, files.hidden_text,
             "characters that nobody sees and an agent reads",
             "人看不见、智能体却会读到的字符"),
        Rule(INDEX, _ALL, None,
             "damage in the index, and where it lags behind its articles",
             "索引损坏，或落后于文章"),
        Rule("spelling", _HOUSE, among.spelling,
             "a project in two spellings",
             "同一个项目有两种写法"),
        Rule("front-matter", _HOUSE, form.front_matter,
             "front matter of a wrong type, or with a mistyped key",
             "front matter 类型不对，或键名写错"),
        Rule("no-symptom", _HOUSE, form.no_symptom,
             "an issue with neither an error line nor a description",
             "问题既无报错原文，也无描述"),
        Rule("no-cause", _HOUSE, form.no_cause,
             "an issue without a cause",
             "问题没有写原因"),
        Rule("no-fix", _HOUSE, form.no_fix,
             "an issue without a fix",
             "问题没有解决方案"),
        Rule("no-step", _HOUSE, form.no_step,
             "a fix without a list, a command or a setting",
             "解决方案没有步骤、命令或设置"),
        Rule("no-basis", _HOUSE, form.no_basis,
             "a step that does not say what stands behind it",
             "步骤没有写明依据"),
        Rule("no-warning", _HOUSE, form.no_warning,
             "a step that destroys something, without a warning in bold",
             "有破坏性的步骤没有用粗体写明"),
        Rule("stale", _HOUSE, files.stale,
             "a flag, a path or a variable that nobody has checked for a year",
             "命令参数、路径或环境变量一年多没有核对", dated=True),
        Rule("missing-summary", _HOUSE, form.missing_summary,
             "an issue without In short",
             "问题没有“一句话”"),
        Rule("long-summary", _HOUSE, form.long_summary,
             "In short that is not short",
             "“一句话”太长"),
        Rule("open-versions", _HOUSE, form.open_versions,
             "versions without an end or the date of a check",
             "版本没有上限，也没有核对日期"),
        Rule("condition", _HOUSE, form.condition,
             "a condition that cannot be read, or that rules out the issue itself",
             "判别条件无法读取，或排除了问题自身"),
        Rule("way-out", _HOUSE, form.way_out,
             "an issue that leads to no other one, or to one that is not there",
             "没有指向别的问题，或指向的问题不存在"),
        Rule("no-source", _HOUSE, form.no_source,
             "an article without a source",
             "文章没有写出处"),
        Rule("bad-source", _HOUSE, form.bad_source,
             "a source that is no URL",
             "出处不是网址"),
        Rule("dead-link", _HOUSE, files.dead_link,
             "a link to an article that is not there",
             "链接指向不存在的文章"),
        Rule("dead-issue", _HOUSE, files.dead_issue,
             "the id of an issue that its article does not have",
             "引用了文章里没有的问题编号"),
        Rule("no-translation", _HOUSE, twins.no_translation,
             "an article in one language only",
             "缺少另一种语言的文章"),
        Rule("twins-fields", _HOUSE, twins.twins_fields,
             "an issue whose project, conditions or marks differ between the languages",
             "两种语言的项目、条件或依据标记不一致"),
        Rule("twins-errors", _HOUSE, twins.twins_errors,
             "an issue whose error lines differ between the languages",
             "两种语言的报错原文不一致"),
        Rule("no-chinese", _HOUSE, form.no_chinese,
             "a Chinese article without Chinese",
             "中文文章里没有中文"),
    )
}  # fmt: skip
"""by name; in the order in which they are listed: first what costs the reader answers"""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which rules count."""

    off: frozenset[str] = frozenset()
    on: frozenset[str] = frozenset()
    """rules of the house that count in every article"""
    only: frozenset[str] = frozenset()
    """when there are any: these and no others, in every article"""

    def counts(self, rule: Rule, *, house: bool = True) -> bool:
        """`house`: in an article that was written for kb."""
        if self.only:
            return rule.name in self.only
        return rule.name not in self.off and (house or not rule.house or rule.name in self.on)


def choose(*, off: Iterable[str] = (), on: Iterable[str] = (), only: Iterable[str] = ()) -> Choice:
    """Raises QueryError for a name that is no rule."""
    named = [frozenset(names) for names in (off, on, only)]
    for name in sorted(frozenset().union(*named) - RULES.keys()):
        near = difflib.get_close_matches(name, RULES, 1)
        hint = f"{near[0]} is meant? " if near else ""
        raise QueryError(f"there is no rule {name!r}", hint=f"{hint}kb check --rules lists them")
    return Choice(*named)
