"""The reader's language: who decides it, what it changes, and that every message has both."""

from __future__ import annotations

import ast
import io
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from conftest import CORPUS, run_kb

import kb
from kb import KnowledgeBase
from kb.cli import cli
from kb.cli.words import chinese, told
from kb.config import settings
from kb.errors import QueryError
from kb.hooks.guard import Guard
from kb.language import reader_language
from kb.review.files import HAS_FOLD, IS_DRAFT

POP = "IndexError: pop from an empty deque"
ZH = "GRPO 训练报错怎么办 pop from an empty deque"
PACKAGE = Path(kb.__file__).parent


@pytest.fixture(autouse=True)
def fresh_settings() -> Iterator[None]:
    settings.cache_clear()
    yield
    settings.cache_clear()


# --- who decides ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"KB_LANG": "zh"}, "zh"),
        ({"KB_LANG": "en", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"KB_LANG": "zh_CN.UTF-8"}, "zh"),
        ({"KB_LANG": "zh-Hans"}, "zh"),
        ({"KB_LANG": "EN"}, "en"),
        ({"KB_LANG": " "}, None),
        ({"KB_LANG": "fr", "LANG": "zh_TW"}, "zh"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh"}, "zh"),
        ({"LANG": "en_US.UTF-8"}, None),
        ({"LANG": "C.UTF-8"}, None),
        ({"LC_ALL": "C", "LANG": "zh_CN"}, None),
        ({"LC_MESSAGES": "zh_CN", "LANG": "en_US"}, "zh"),
        ({"LC_ALL": "", "LC_MESSAGES": "en_US", "LANG": "zh_CN"}, None),
        ({"LANG": "zhuang"}, None),
    ],
)
def test_the_environment(environment: dict[str, str], expected: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert reader_language() == expected
    assert reader_language("en") == "en"
    assert reader_language("zh") == "zh"


def test_the_settings_come_before_the_locale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kb.index.user import config_folder

    config_folder().mkdir(parents=True, exist_ok=True)
    file = config_folder() / "kb.toml"
    file.write_text('lang = "en"\n', "utf-8")
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    assert reader_language() == "en"
    monkeypatch.setenv("KB_LANG", "zh")
    assert reader_language() == "zh"
    monkeypatch.delenv("KB_LANG")
    settings.cache_clear()
    file.write_text("lang = 3\n", "utf-8")  # whoever opens a base is told
    assert reader_language() == "zh"


def test_a_bad_value_has_one_line(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KB_LANG", "klingon\x1b[31m")
    with caplog.at_level(logging.WARNING, "kb"):
        assert reader_language() is None
        assert reader_language() is None
    (record,) = caplog.records
    assert record.getMessage().startswith("KB_LANG is 'klingon\\x1b[31m'; it can be en or zh")


def test_the_command_line_says_it_as_its_own(index: Path) -> None:
    environment = {**os.environ, "KB_LANG": "fr", "KB_INDEX": str(index), "PYTHONPATH": str(PACKAGE.parent)}
    ended = subprocess.run(
        [sys.executable, "-m", "kb", "search", POP], capture_output=True, env=environment, timeout=60, check=False
    )
    assert ended.returncode == 0
    assert ended.stderr.decode("utf-8") == "kb: KB_LANG is 'fr'; it can be en or zh 只能是 en 或 zh\n"


@pytest.mark.costly
@pytest.mark.parametrize("lang", ["", "zh"])
def test_a_warning_about_the_settings_is_told_once(lang: str, index: Path, tmp_path: Path) -> None:
    (tmp_path / "kb.toml").write_text('lang = "zh"\n', "utf-8")  # of a folder that nobody trusts
    environment = {**os.environ, "KB_LANG": lang, "KB_INDEX": str(index), "PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, "-m", "kb", "search", POP]
    ended = subprocess.run(
        command, capture_output=True, env=environment, timeout=60, check=False, cwd=tmp_path, encoding="utf-8"
    )
    assert (ended.returncode, ended.stderr.count("\n")) == (0, 1)
    assert ({"": "trust", "zh": "信任"}[lang]) in ended.stderr
    assert ("一句话" in ended.stdout) == (lang == "zh")


# --- what it shows --------------------------------------------------------------------------------------------------


@pytest.fixture
def run(index: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setenv("KB_INDEX", str(index))

    def invoke(*arguments: str, stdin: str = "", **environment: str) -> Result:
        return CliRunner().invoke(cli, arguments, input=stdin, env=environment)

    return invoke


@pytest.mark.parametrize(
    ("arguments", "environment", "lang"),
    [
        ([POP], {}, "en"),
        ([ZH], {}, "zh"),
        ([POP], {"KB_LANG": "zh"}, "zh"),
        ([POP], {"LANG": "zh_CN.UTF-8"}, "zh"),
        ([ZH], {"KB_LANG": "en"}, "en"),
        ([ZH], {"LANG": "en_US.UTF-8"}, "zh"),
        (["--lang", "en", ZH], {"KB_LANG": "zh"}, "en"),
        (["--lang", "zh", POP], {}, "zh"),
    ],
)
def test_search(arguments: list[str], environment: dict[str, str], lang: str, run: Callable[..., Result]) -> None:
    ended = run("search", *arguments, **environment)
    assert ended.exit_code == 0
    assert {"en": "In short: ", "zh": "一句话："}[lang] in ended.output
    assert {"en": "Searched: ", "zh": "检索范围："}[lang] in ended.output
    assert f"#2/{lang}" in ended.output


def test_what_programs_read_does_not_depend_on_who_started_them(run: Callable[..., Result]) -> None:
    for lang in ("en", "zh"):
        answer = json.loads(run("search", "--json", POP, KB_LANG=lang).output)
        assert answer["results"][0]["lang"] == "en"
        shown = json.loads(run("show", "--json", "ms-swift-ovis2-grpo#2", KB_LANG=lang).output)
        assert [record["lang"] for record in shown] == ["en", "zh"]
    assert json.loads(run("search", "--json", "--lang", "zh", POP).output)["results"][0]["lang"] == "zh"


def test_lang_shows_and_only_narrows(index: Path) -> None:
    with KnowledgeBase.open(index) as base:
        both, shown, only = (base.search(POP, 5), base.search(POP, 5, lang="zh"), base.search(POP, 5, only="zh"))
        assert [hit.issue for hit in shown.hits] == [hit.issue for hit in both.hits]
        assert [hit.confidence for hit in shown.hits] == [hit.confidence for hit in both.hits]
        assert {hit.record.lang for hit in shown.hits} == {hit.record.lang for hit in only.hits} == {"zh"}
        assert [hit.score for hit in only.hits] != [hit.score for hit in both.hits]
        assert {hit.record.lang for hit in base.search(POP, only="zh", lang="en").hits} == {"zh"}
        with pytest.raises(QueryError, match="only is 'fr'"):
            base.search(POP, only="fr")  # type: ignore[arg-type]


def test_show_and_scan(run: Callable[..., Result], tmp_path: Path) -> None:
    shown = run("show", "ms-swift-ovis2-grpo#2", LANG="zh_CN.UTF-8").output
    assert "解决方案" in shown and "Fix\n" not in shown
    log = tmp_path / "a.log"
    log.write_text(f"step 1\n{POP}\n", "utf-8")
    scanned = run("scan", str(log), KB_LANG="zh").output
    assert "一句话：" in scanned
    assert f"{log} 共 2 行，1 个已知问题。" in scanned
    log.write_text("fine\n", "utf-8")
    assert f"{log} 共 1 行，没有已知问题。" in run("scan", str(log), KB_LANG="zh").output
    assert f"No known issue in 1 line of {log}." in run("scan", str(log)).output


def test_hooks_go_by_the_reader(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, explicit, lang in (("zh", None, "zh"), ("zh", "en", "en"), ("", None, "en")):
        monkeypatch.setenv("KB_LANG", variable)
        result = Guard(index, lang=explicit).ask_in_time(lambda: POP, 60)  # type: ignore[arg-type]
        assert result is not None
        assert result.hits[0].record.lang == lang


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["search", "!?"], ["kb: 提问中没有可以检索的内容", "    请贴上报错信息，或描述问题"]),
        (["search", "x", "--project", "NoSuch"], ["kb: 没有关于项目 'NoSuch' 的文章", "`kb projects` 列出全部项目："]),
        (["search", "x", "-k", "0"], ["用法：kb search", "错误：'-k' 的值不对：0 不在范围 1<=x<=100 之内。"]),
        (["search", "x", "--index", "nowhere"], ["这里没有索引", "请先运行 `kb build`"]),
        (["show", "ms-swfit-ovis2-grpo#2"], ["库中没有问题 'ms-swfit-ovis2-grpo#2'", "是不是 ms-swift-ovis2-grpo#2"]),
        (["nonsense"], ["错误：没有命令 'nonsense'"]),
        (["show"], ["错误：缺少参数 'ISSUE'。", "用法见 kb show --help"]),
        (["build", "--index", "i"], ["当前目录及上级目录都没有 articles/"]),
    ],
    ids=lambda value: "-".join(value)[:40],
)
def test_errors_in_chinese(arguments: list[str], said: list[str], index: Path) -> None:
    told = run_kb(*arguments, KB_LANG="zh", KB_INDEX=str(index)).stderr
    for words in said:
        assert words in told


def test_help_has_a_chinese_line_for_every_command(run: Callable[..., Result]) -> None:
    listed = run("--help", KB_LANG="zh").output.partition("Commands:")[2]
    names = cli.list_commands(click.Context(cli))
    assert len(names) > 10
    for name in names:
        assert re.search(rf"^  {name} +\S*[\u4e00-\u9fff]", listed, re.MULTILINE), name
        assert chinese()["help"][name][:10] in run(name, "--help", KB_LANG="zh").output
    assert not re.search(r"[\u4e00-\u9fff]", run("--help").output.partition("Commands:")[2])


# --- every message in both ------------------------------------------------------------------------------------------

PLACEHOLDER = re.compile(r"\{(\w*)[^}]*\}")


def _said(path: Path) -> Iterator[str]:
    """What the commands say in words of their own: `say("...")`, and the nouns of `counted(n, "...")`."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("say", "counted"):
            for argument in node.args:
                if isinstance(argument, ast.JoinedStr):  # in `counted`, whose nouns are collected here
                    continue
                for one in ast.walk(argument):
                    if isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value:
                        yield one.value if node.func.id == "say" else f"{{n}} {one.value}"
        if isinstance(node, ast.Dict):
            yield from (
                value.value
                for value in node.values
                if isinstance(value, ast.Constant)
                and isinstance(value.value, str)
                and "{lines} of {log}" in value.value
            )


# What a worker of the server says goes through the command that started it.
TOLD = re.findall(r'self\._tell\("([^"]+)"', (PACKAGE / "serve" / "workers.py").read_text("utf-8"))
SAID = sorted({*TOLD, *(text for path in (PACKAGE / "cli").glob("*.py") for text in _said(path))})


@pytest.mark.parametrize("english", SAID)
def test_what_a_command_says_has_its_chinese(english: str) -> None:
    assert english in chinese()["said"]


def test_no_chinese_is_left_over() -> None:
    assert set(chinese()["said"]) == set(SAID)


@pytest.mark.parametrize("part", ["said", "heard"])
def test_both_have_the_same_values(part: str) -> None:
    for english, other in chinese()[part].items():
        assert sorted(PLACEHOLDER.findall(english)) == sorted(PLACEHOLDER.findall(other)), english
        assert re.search(r"[\u3000-\u9fff\uff00-\uffef]", other), english


ERRORS = {"KbError", "QueryError", "ArticleError", "IndexCorrupt", "IndexMismatch", "IndexMissing", "IndexWriteFailed"}
ERRORS |= {"IndexBusy", "EncoderUnavailable", "UsageError"}
COVERED = ["base.py", "search/searcher.py", "logs/read.py", "articles/source.py", "articles/folder.py"]
COVERED += ["index/snapshot.py", "index/trust.py", "index/locate.py", "cli/search.py", "cli/scan.py", "cli/show.py"]
COVERED += ["cli/question.py", "cli/build.py", "cli/trust.py", "cli/run.py", "cli/common.py"]


def _raised(path: Path) -> Iterator[str]:
    """The texts of errors and hints, with their values as braces."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        name = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call) and name in ERRORS:
            for value in [*node.args[:1], *(word.value for word in node.keywords if word.arg == "hint")]:
                yield from _texts(value)


def _texts(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from (*_texts(node.body), *_texts(node.orelse))
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(one.value) if isinstance(one, ast.Constant) else "7" for one in node.values)


@pytest.mark.parametrize("path", COVERED)
def test_the_errors_that_people_meet_have_their_chinese(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KB_LANG", "zh")
    for text in _raised(PACKAGE / path):
        if text.startswith(("kb ", "--", "pip ")) or not re.search(r"[a-z]{3} [a-z]", text) or text == "`7`":
            continue  # a command is the same in both
        assert re.search(r"[\u4e00-\u9fff]", told(text)), text


def _found_by_check() -> Iterator[str]:
    """The messages of `kb check`, with their values as braces."""
    places = {"Found": 3, "at": 2, "note": 1}  # where a call has the message
    for path in (*(PACKAGE / "review").glob("*.py"), PACKAGE / "index" / "fsck.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            place = places.get(getattr(node.func, "id", "")) if isinstance(node, ast.Call) else None
            if isinstance(node, ast.Call) and place is not None and len(node.args) > place:
                yield from _texts(node.args[place])


@pytest.mark.parametrize("english", sorted({*_found_by_check(), IS_DRAFT, HAS_FOLD}))
def test_what_check_finds_has_its_chinese(english: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KB_LANG", "zh")
    shown = told(english)
    assert shown != english
    assert not re.search(r"[a-z]{3} [a-z]{2,}", re.sub("`[^`]*`|front matter", "", shown))


@pytest.mark.parametrize(
    ("english", "chinese_"),
    [
        ("13 issues here, 14 in en/a.md: 10 are the same; only here #15 (慢) and 2 more; only there #2 (No)",
         "这里有 13 个问题，en/a.md 里有 14 个：相同的 10 个；只在这里：#15 (慢)，还有 2 个；只在那里：#2 (No)"),
        ("front matter: tags: wants a text or a list of texts", "front matter：tags：应为文字或文字列表"),
        ("skipped: a symbolic link", "略过：符号链接"),
    ],
)  # fmt: skip
def test_what_check_puts_together_is_chinese_as_a_whole(
    english: str, chinese_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KB_LANG", "zh")
    assert told(english) == chinese_


@pytest.mark.thorough
def test_figures_are_told_in_chinese(index: Path, tmp_path: Path) -> None:
    questions = tmp_path / "q.jsonl"
    questions.write_text(
        '{"id": "a", "issue": "ms-swift-ovis2-grpo#2", "kind": "line", "query": "pop from an empty deque"}\n'
        '{"id": "b", "issue": null, "kind": "far", "lang": "en", "query": "how do I fix a flat tyre"}\n'
        '{"id": "c", "issue": "nosuch#1", "kind": "far", "lang": "en", "query": "x y"}\n'
    )
    for words in (("eval",), ("eval", str(questions), "--misses"), ("check", "--stats", "--articles", str(CORPUS))):
        shown = run_kb(*words, KB_LANG="zh", KB_INDEX=str(index)).stdout
        names = "|".join(
            ("recall", "nDCG", "MRR", "known-at", "min-confidence", "toml", "line", "far", "title", "sentence")
        )
        left = [line for line in shown.splitlines() if re.search("[a-z]{3} [a-z]{2,}", re.sub(names, "", line))]
        assert left == []
        assert re.search("[\u4e00-\u9fff]", shown)


USUAL = [  # what people meet who mistype something
    ("search", "x", "--lang", "fr"),
    ("search", "x", "--k", "3"),
    ("search", "x", "--min-confidence", "3"),
    ("search", "x", "--base", "nosuch"),
    ("search", "x", "--base", "http://127.0.0.1:1/"),
    ("search", "pop deque", "--project", "nosuch"),
    ("search", "./"),
    ("scan", "no.log"),
    ("scan", "."),
    ("show",),
    ("show", "nosuch#1"),
    ("serach", "x"),
    ("nosuchcommand",),
    ("import", "page", "x"),
    ("import", "github", "nosuch"),
    ("trust", "nosuch"),
    ("new", "Bad_Slug"),
    ("serve", "--port", "99999"),
    ("serve", "--host", "0.0.0.0"),
    ("feedback", "nosuch"),
    ("run", "--", "nosuchprogram"),
    ("check", "--only", "nosuch"),
    ("eval", "q.jsonl", "--fail-under", "nosuch=1"),
]


@pytest.mark.parametrize("words", USUAL, ids=" ".join)
def test_the_usual_mistakes_are_told_in_chinese(words: tuple[str, ...], index: Path) -> None:
    a_base = {} if "--base" in words else {"KB_INDEX": str(index)}  # the shipped one would be built for this
    if words[:2] == ("run", "--"):
        command = [sys.executable, "-m", "kb", *words]
        said = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "KB_LANG": "zh"}).stderr
    else:
        said = run_kb(*words, KB_LANG="zh", **a_base).stderr
    first = next(line for line in said.splitlines() if line.startswith(("kb: ", "错误：", "Error")))
    assert re.search(r"[\u4e00-\u9fff]", first.removeprefix("错误：")), said


def test_what_is_not_known_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KB_LANG", "zh")
    assert told("the moon is round") == "the moon is round"
    assert told("x" * 100_000) == "x" * 100_000
    assert told("no article is about the project 'a{b}c'") == "没有关于项目 'a{b}c' 的文章"
    monkeypatch.setenv("KB_LANG", "en")
    assert told("there is no index here") == "there is no index here"


def test_json_stays_english(run: Callable[..., Result]) -> None:
    ended = run("search", "--batch", "-", stdin='{"id": 1}\n', KB_LANG="zh")
    first = json.loads(io.StringIO(ended.stdout).readline())
    assert first["error"] == 'line 1: each line is an object with "id" and "query"'
    assert "第 1 行：每行应是" in ended.stderr
