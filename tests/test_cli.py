"""The command line: what is printed where, exit codes, and what a terminal is spared."""

from __future__ import annotations

import io
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from conftest import CORPUS, THOROUGH, article, run_kb, running

import kb
from kb import KnowledgeBase
from kb.cli import cli, main
from kb.index import trust

ROOT = Path(__file__).parent.parent
POP = "IndexError: pop from an empty deque"
DEQUE = "ms-swift-ovis2-grpo#2"

on_posix = pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals and signals are POSIX")


@dataclass
class Ran:
    code: int
    out: str
    err: str


Kb = Callable[..., Ran]


@pytest.fixture
def kb_(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Kb:
    """Runs `kb ARGUMENTS` in this process, through the same `main` as the console script."""

    def run(*arguments: str, stdin: bytes = b"", base: Path | None = None) -> Ran:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["kb", *arguments])
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
            if base:
                patch.setenv("KB_INDEX", str(base))
            with pytest.raises(SystemExit) as ended:
                main()
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Ran(int(ended.value.code or 0), out, err)

    return run


def _process(*arguments: str | bytes, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [os.fsencode(sys.executable), b"-m", b"kb", *map(os.fsencode, arguments)]
    ended = subprocess.run(
        command, input=stdin, capture_output=True, env={**os.environ, **environment}, timeout=60, check=False
    )
    assert b"Traceback" not in ended.stderr, ended.stderr.decode()
    return ended


# --- search ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        ([POP], ""),
        (POP.split(), ""),
        (["-"], f"[rank0]: {POP}\n"),
        ([], POP),
        (["-k", "2", "pop from an", "empty deque"], ""),
        (["--lang", "zh", POP], ""),
        (["--only", "zh", POP], ""),
        (["--project", "MS-SWIFT", POP], ""),
        (["两台机器跑 RL 第二步从空队列里 popleft 取元素就崩 deque"], ""),
    ],
    ids=["quoted", "words", "dash", "pipe", "options", "lang", "only", "project", "chinese"],
)
def test_a_known_issue_is_answered(arguments: list[str], stdin: str, kb_: Kb, index: Path) -> None:
    ran = kb_("search", *arguments, stdin=stdin.encode(), base=index)
    assert (ran.code, ran.err) == (0, "")
    assert f"{DEQUE}/" in ran.out.splitlines()[1]
    assert "\x1b" not in ran.out


def test_the_answer_is_in_the_language_of_the_question(kb_: Kb, index: Path) -> None:
    english = kb_("search", "--full", POP, base=index).out
    chinese = kb_("search", "--full", "报错了怎么办 " + POP, base=index).out
    for section in ("Symptom", "Cause", "Fix", "confidence"):
        assert section in english
    for section in ("现象", "原因", "解决方案", "置信度"):
        assert section in chinese


@pytest.mark.parametrize(
    ("question", "said"), [("my sourdough spreads flat in the oven", "Not known"), ("红烧肉炒糖色总是发苦", "未收录")]
)
def test_an_unknown_issue_exits_with_one_and_says_so(question: str, said: str, kb_: Kb, index: Path) -> None:
    ran = kb_("search", question, base=index)
    assert ran.code == 1
    assert ran.out.startswith(said)
    assert json.loads(kb_("search", "--json", question, base=index).out)["answered"] is False


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["search", ""], 64, "nothing to look for"),
        (["search", "!?"], 64, "nothing to look for"),
        (["search", "-"], 64, "nothing to look for"),
        (["search", "x", "--project", "NoSuch"], 64, "NoSuch"),
        (["search", "x", "-k", "0"], 2, "0 is not in the range"),
        (["search", "x", "-k", "101"], 2, "101 is not in the range"),
        (["search", "x", "--lang", "fr"], 2, "fr"),
        (["search", "x", "--batch", "-"], 2, "not both"),
        (["search", "--batch", "no-such-file"], 2, "no-such-file"),
        (["search", "--no-such-option", "x"], 2, "no-such-option"),
        (["search", "x", "--index", "nowhere"], 66, "nowhere"),
        (["projects", "--index", "nowhere"], 66, "nowhere"),
        (["show", "x#1", "--index", "nowhere"], 66, "nowhere"),
        (["show", "ms-swfit-ovis2-grpo#2"], 66, DEQUE),
        (["show"], 2, "ISSUE"),
        (["build", "--articles", "nowhere", "--index", "i"], 65, "nowhere"),
        (["build", "--index", "i"], 66, "--articles"),
        (["parse", "nowhere.md"], 2, "nowhere.md"),
        (["parse", "."], 2, ""),
        (["completion", "tcsh"], 2, "tcsh"),
        (["nonsense"], 2, "nonsense"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else None,
)
def test_what_goes_wrong_has_a_code_and_a_word(
    arguments: list[str], code: int, said: str, kb_: Kb, index: Path
) -> None:
    ran = kb_(*arguments, base=index)
    assert ran.code == code
    assert said in ran.err
    assert ran.out == ""


def test_a_damaged_index_is_named(kb_: Kb, index: Path, tmp_path: Path) -> None:
    shutil.copytree(index, tmp_path / "index")
    damaged = next((tmp_path / "index").glob("lexical-*"))
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"\x00")
    ran = kb_("search", POP, base=tmp_path / "index")
    assert ran.code == 65
    assert damaged.name in ran.err
    assert "kb build" in ran.err


def test_json_of_a_search(kb_: Kb, index: Path) -> None:
    ran = kb_("search", "--json", "-k", "3", POP, base=index)
    answer = json.loads(ran.out)
    head = ["id", "query", "lang", "answered", "verdict", "likely", "took_ms", "snapshot", "bases", "silent", "results"]
    assert list(answer) == head
    assert (answer["id"], answer["query"], answer["lang"], answer["answered"]) == (None, POP, "en", True)
    assert [result["rank"] for result in answer["results"]] == [1, 2, 3]
    assert answer["results"][0]["issue"] == DEQUE
    assert (CORPUS.parent / answer["results"][0]["path"]).is_file()


# --- batch ----------------------------------------------------------------------------------------------------------

BATCH = [
    '{"id": "a", "query": "IndexError: pop from an empty deque"}',
    "not json",
    "",
    '{"id": 7, "query": "断点续训从第 0 步开始"}',
    '{"id": "no query"}',
    '{"id": ["x"], "query": "sourdough"}',
    '{"id": "empty", "query": " "}',
    "[1, 2]",
    '{"query": "reward_std nan num_generations=1", "more": 1}',
]


@pytest.mark.parametrize("way", ["file", "stdin"])
def test_batch(way: str, kb_: Kb, index: Path, tmp_path: Path) -> None:
    data = "\n".join(BATCH).encode()
    (tmp_path / "questions.jsonl").write_bytes(data)
    path = "-" if way == "stdin" else str(tmp_path / "questions.jsonl")
    ran = kb_("search", "--batch", path, "-k", "1", stdin=data if way == "stdin" else b"", base=index)
    answers = [json.loads(line) for line in ran.out.splitlines()]
    assert ran.code == 64
    assert [answer["id"] for answer in answers] == ["a", None, 7, "no query", ["x"], "empty", None, None]
    assert [answer["answered"] for answer in answers] == [True, False, True, False, False, False, False, True]
    assert [("error" in answer) for answer in answers] == [False, True, False, True, False, True, True, False]
    assert [answers[i]["results"][0]["issue"] for i in (0, 2, 7)] == [
        DEQUE,
        "vlm-r1-oom-and-resume#2",
        "vlm-r1-training-errors#1",
    ]
    assert re.findall(r"^kb: line (\d+): ", ran.err, re.MULTILINE) == ["2", "5", "7", "8"]


def test_a_batch_of_good_lines_exits_with_zero_and_agrees_with_single_questions(kb_: Kb, index: Path) -> None:
    questions = [json.loads(line) for line in (ROOT / "tests/cases/questions.jsonl").read_text("utf-8").splitlines()]
    data = "\n".join(json.dumps(question) for question in questions[:12]).encode()
    ran = kb_("search", "--batch", "-", stdin=data, base=index)
    answers = [json.loads(line) for line in ran.out.splitlines()]
    assert (ran.code, ran.err) == (0, "")
    assert [answer["id"] for answer in answers] == [question["id"] for question in questions[:12]]
    alone = json.loads(kb_("search", "--json", "-", stdin=questions[3]["query"].encode(), base=index).out)
    assert {**answers[3], "id": 0, "took_ms": 0} == {**alone, "id": 0, "took_ms": 0}


def test_a_batch_with_a_byte_order_mark_and_bad_bytes(kb_: Kb, index: Path) -> None:
    data = b"\xef\xbb\xbf" + BATCH[0].encode() + b'\r\n{"id": "b", "query": "pop from an empty deque \xff"}\r\n'
    ran = kb_("search", "--batch", "-", stdin=data, base=index)
    assert [json.loads(line)["results"][0]["issue"] for line in ran.out.splitlines()] == [DEQUE, DEQUE]
    assert ran.code == 0


# --- build, show, projects, parse, check ----------------------------------------------------------------------------


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one's own with two articles, which is the current one."""
    folder = tmp_path / "site"
    for lang in ("en", "zh"):
        (folder / "articles" / lang).mkdir(parents=True)
        shutil.copy(CORPUS / lang / "ms-swift-ovis2-grpo.md", folder / "articles" / lang)
    monkeypatch.chdir(folder)
    return folder


def test_build_then_search_here_and_below(kb_: Kb, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = kb_("build")
    assert (built.code, built.err) == (0, "")
    assert "2 articles (2 new or changed, 0 removed), 2 issues, 4 records" in built.out
    assert (site / "index" / "manifest.json").is_file()
    (site / "deep" / "er").mkdir(parents=True)
    for folder in (site, site / "deep" / "er", site / "articles" / "zh"):
        monkeypatch.chdir(folder)
        answer = json.loads(kb_("search", "--json", "--base", "here", POP).out)
        assert answer["snapshot"] in built.out
        assert answer["results"][0]["issue"] == DEQUE
    again = json.loads(kb_("build", "--json").out)
    assert (again["parsed"], again["records"], again["snapshot"]) == (0, 4, answer["snapshot"])


def test_a_readme_in_the_folder_of_the_index_stops_no_build(kb_: Kb, site: Path) -> None:
    readme = site / "index" / "README.md"
    readme.parent.mkdir(exist_ok=True)
    readme.write_text("# index/\n\nWhat `kb build` writes.\n")
    assert kb_("build").code == 0
    assert readme.exists()
    (site / "index" / "mine.md").write_text("# An article\n")
    assert "holds articles" in kb_("build").err


def test_build_says_what_is_bad_and_can_go_on(kb_: Kb, site: Path) -> None:
    (site / "articles" / "en" / "gbk.md").write_bytes("# 标题\n\n正文说明".encode("gbk"))
    (site / "articles" / "en" / "nul.md").write_bytes(b"# T\x00\n")
    stopped = kb_("build", "--no-keep-going")
    assert stopped.code == 65
    assert "gbk.md" in stopped.err
    assert "nul.md" in stopped.err
    assert not (site / "index" / "manifest.json").exists()
    for options, code in ((["--keep-going"], 0), ([], 65)):
        went_on = kb_("build", *options)
        assert went_on.code == code
        assert "gbk.md" in went_on.err
        assert "2 articles left out" in went_on.err
        assert "4 records" in went_on.out


def test_show(kb_: Kb, index: Path) -> None:
    both = kb_("show", DEQUE, base=index)
    assert both.code == 0
    assert f"{DEQUE}/en" in both.out
    assert f"{DEQUE}/zh" in both.out
    assert "Not to be confused with\n  - " in both.out
    assert "\n容易混淆\n  - " in both.out
    assert "Only when" not in both.out  # the article has no such section
    assert f"{DEQUE}/en" not in kb_("show", DEQUE, "--lang", "zh", base=index).out
    assert f"{DEQUE}/en" not in kb_("show", DEQUE, "--only", "zh", base=index).out
    assert f"{DEQUE}/zh" not in kb_("show", f"{DEQUE}/en", base=index).out
    by_slug = json.loads(kb_("show", "ms-swift-ovis2-grpo", "--json", base=index).out)
    assert [record["id"] for record in by_slug] == [
        f"ms-swift-ovis2-grpo#{n}/{lang}" for lang in ("en", "zh") for n in (1, 2)
    ]
    assert {"title", "project", "lang", "symptom", "errors", "cause", "fix", "conditions"} <= by_slug[0].keys()
    assert kb_("show", f"{DEQUE}/en", "--lang", "zh", base=index).code == 0  # it shows, and --only narrows
    assert kb_("show", f"{DEQUE}/en", "--only", "zh", base=index).code == 66


def test_projects(kb_: Kb, index: Path) -> None:
    lines = kb_("projects", base=index).out.splitlines()
    listed = json.loads(kb_("projects", "--json", base=index).out)
    told = {record["issue"] for record in json.loads(kb_("show", "ms-swift-ovis2-grpo", "--json", base=index).out)}
    assert len(told) == 2
    assert next(p["issues"] for p in listed if p["project"] == "ms-swift") >= 2
    with KnowledgeBase.open(index) as base:
        assert sum(p["issues"] for p in listed) == len({one.issue for one in base.records()})
    assert [line.split(None, 1) for line in lines] == [[str(p["issues"]), p["project"]] for p in listed]


def test_parse(kb_: Kb, site: Path) -> None:
    path = site / "articles" / "zh" / "ms-swift-ovis2-grpo.md"
    records = json.loads(kb_("parse", str(path), "--json").out)
    assert [(record["id"], record["lang"]) for record in records] == [
        ("ms-swift-ovis2-grpo#1/zh", "zh"),
        ("ms-swift-ovis2-grpo#2/zh", "zh"),
    ]
    from_stdin = json.loads(kb_("parse", "-", "--json", stdin=path.read_bytes()).out)
    assert [record["title"] for record in from_stdin] == [record["title"] for record in records]
    shown = kb_("parse", str(path)).out
    assert records[0]["title"] in shown
    assert records[1]["title"] in shown


def test_parse_explain(kb_: Kb, site: Path) -> None:
    path = site / "articles" / "en" / "ms-swift-ovis2-grpo.md"
    both = json.loads(kb_("parse", str(path), "--explain", "--json").out)
    assert list(both) == ["draft", "records", "remarks", "passages"]
    page = b"# Notes\n\n## RuntimeError: no disk\n\nThe disk is full.\n\nDelete old logs.\n"
    told = json.loads(kb_("parse", "-", "--explain", "--json", stdin=page).out)["passages"]
    assert {no for one in told for no in range(one["first"], one["last"] + 1)} == set(range(1, 8))
    assert "because:" in kb_("parse", "-", "--explain", stdin=page).out
    shown = kb_("parse", str(path), "--explain").out
    assert ("What is in no record:" in shown) == bool(both["remarks"])
    assert ("Everything is in a record." in shown) == (not both["remarks"])
    nothing = kb_("parse", "-", "--explain", stdin=b"# Menu\n\nSoup of the day.\n")
    assert nothing.code == 0
    assert "no issue was found" in nothing.out
    assert "Everything is in a record" not in nothing.out


def test_every_question(kb_: Kb) -> None:
    page = b"# FAQ\n\n## Which formats are supported?\n\nParquet.\n\n## Which licence does it have?\n\nApache 2.0.\n"
    assert json.loads(kb_("parse", "-", "--json", stdin=page).out) == []
    more = json.loads(kb_("parse", "-", "--json", "--every-question", stdin=page).out)
    assert [record["title"] for record in more] == ["Which formats are supported?", "Which licence does it have?"]


def test_check_of_good_articles_and_index(kb_: Kb, site: Path) -> None:
    assert kb_("build").code == 0
    ran = kb_("check")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "0 errors, 0 warnings\n"
    assert json.loads(kb_("check", "--json").out) == []


def test_check_of_bad_articles_and_a_damaged_index(kb_: Kb, site: Path) -> None:
    assert kb_("build").code == 0
    (site / "articles" / "en" / "bad.md").write_bytes(b"\xff\xfe# x")
    (site / "articles" / "zh" / "ms-swift-ovis2-grpo.md").unlink()
    damaged = next((site / "index").glob("dense-*"))
    damaged.write_bytes(b"x")
    ran = kb_("check")
    assert ran.code == 65
    assert re.search(r"^en/bad\.md(:\d+)?: error: ", ran.out, re.MULTILINE)
    assert re.search(r"^en/ms-swift-ovis2-grpo\.md: warning: .*no translation in zh", ran.out, re.MULTILINE)
    assert re.search(rf"{re.escape(damaged.name)}: error: damaged", ran.out)
    found = json.loads(kb_("check", "--json").out)
    assert {finding["level"] for finding in found} == {"error", "warning"}
    assert len(found) == len(re.findall(r": (?:error|warning): ", ran.out))
    assert {finding["rule"] for finding in found} == {"unreadable", "index", "no-translation"}


def test_check_says_where_the_index_lags_behind(kb_: Kb, site: Path) -> None:
    assert kb_("build").code == 0
    article = site / "articles" / "en" / "ms-swift-ovis2-grpo.md"
    article.write_text(article.read_text("utf-8").replace("deque", "queue"), "utf-8")
    ran = kb_("check")
    assert "changed after it was indexed" in ran.out
    assert ran.code == 0


def test_check_where_there_is_nothing(kb_: Kb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert kb_("check").code == 66


def test_check_strict_and_stats(kb_: Kb, site: Path) -> None:
    (site / "articles" / "zh" / "ms-swift-ovis2-grpo.md").unlink()
    assert (kb_("check").code, kb_("check", "--strict").code) == (0, 65)
    rows = json.loads(kb_("check", "--stats", "--json").out)
    assert [(row["lang"], row["articles"], row["records"]) for row in rows] == [("en", 1, 2), ("all", 1, 2)]
    shown = kb_("check", "--stats")
    heads, en, both = (line.split() for line in shown.out.splitlines())
    assert heads[:5] == ["language", "articles", "issues", "records", "projects"]
    assert (en[:4], both[:4]) == (["en", "1", "2", "2"], ["all", "1", "2", "2"])


def test_new(kb_: Kb, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    laid_out = kb_("new", "nccl-timeout", "--project", "NCCL")
    assert laid_out.code == 0
    paths = [Path(line) for line in laid_out.out.splitlines()]
    assert [path.resolve() for path in paths] == [site / "articles" / lang / "nccl-timeout.md" for lang in ("en", "zh")]
    assert "is left to write" in kb_("check").out
    assert kb_("new", "../up").code == 2
    again = kb_("new", "nccl-timeout")
    assert (again.code, again.out) == (65, "")
    assert "exists already" in again.err
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert kb_("new", "first").code == 0
    assert (elsewhere / "articles" / "zh" / "first.md").is_file()


# --- help, version, completion --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str, kb_: Kb) -> None:
    ran = kb_("completion", shell)
    assert ran.code == 0
    assert f"_KB_COMPLETE={shell}_complete" in ran.out
    if program := shutil.which(shell):
        assert subprocess.run([program, "-n"], input=ran.out.encode(), check=False).returncode == 0


def test_completion_offers_the_commands() -> None:
    ended = _process(_KB_COMPLETE="bash_complete", COMP_WORDS="kb sea", COMP_CWORD="1")
    assert ended.stdout.decode().split() == ["plain,search"]


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version(flag: str, kb_: Kb) -> None:
    ran = kb_(flag)
    assert (ran.code, ran.out.split()[-1]) == (0, kb.__version__)


@pytest.mark.parametrize("name", [None, *cli.commands])
def test_help_explains(name: str | None, kb_: Kb) -> None:
    ran = kb_(*([name] if name else []), "-h")
    assert ran == kb_(*([name] if name else []), "--help")
    assert ran.code == 0
    assert ran.out.startswith("Usage: kb")
    command: click.Command = cli.commands[name] if name else cli
    assert len((command.help or "").split()) >= 8
    if name in (None, "search", "build", "parse", "completion"):
        assert re.search(rf"^  +(?:\w+:  +)?kb {name or 'search'} \S", ran.out, re.MULTILINE), "no example"
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name


def test_help_lists_every_exit_code(kb_: Kb) -> None:
    from kb import errors

    told = re.sub(r"\s+", " ", kb_("-h").out)
    codes = {getattr(errors, name).exit_code for name in errors.__all__} - {errors.KbError.exit_code}
    for code in (0, 1, 2, *codes):
        assert re.search(rf"\b{code} \w", told), code


def test_without_arguments_the_help_is_shown(kb_: Kb) -> None:
    ran = kb_()
    assert ran.code in (0, 2)
    assert "kb search" in ran.out + ran.err


# --- what a terminal is spared --------------------------------------------------------------------------------------

HOSTILE = {
    "emoji": ":lock: flux:key:value",
    "colour": "\x1b[31m",
    "title": "\x1b]0;owned\x07",
    "link": "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "device": "\x1bP+q\x1b\\",
    "c1 csi": "\x9b31m",
    "c1 osc": "\x9d0;owned\x9c",
    "bell": "\x07",
    "back space": "safe\x08\x08\x08\x08evil",
    "right to left": "\u202egpj.exe",
    "isolate": "\u2066x\u2069",
    "delete": "\x7f",
}
OURS = re.compile(rb"\x1b\[[0-9;]*m")  # the only sequences that kb writes: colours


@pytest.fixture(scope="module")
def hostile_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tmp_path = tmp_path_factory.mktemp("hostile")
    folder = tmp_path / "hostile" / "en"
    folder.mkdir(parents=True)
    evil = " ".join(f"{name} {payload}" for name, payload in HOSTILE.items())
    text = (
        f"---\nproject: Evil {HOSTILE['c1 csi']}\n---\n\n# Notes\n\n"
        f"## The frobnicator {HOSTILE['right to left']} overheats\n\n"
        f"### Symptom\n\nIt prints\n\n```\nFrobError: frobnicator too hot {evil}\n```\n\n"
        f"### Cause\n\nHeat {evil}.\n\n### Fix\n\n[wait](https://example.org/{HOSTILE['bell']}) {evil}\n"
    )
    (folder / "frob.md").write_text(text, "utf-8", newline="")
    KnowledgeBase.build(tmp_path / "hostile", tmp_path / "index")
    return tmp_path / "index"


def _pty(*arguments: str, stdin: str | None = None, cwd: Path | None = None, **environment: str) -> tuple[int, bytes]:
    """Exit code and every byte that `kb ARGUMENTS` writes to a terminal of 100 columns."""
    import fcntl
    import pty
    import struct
    import termios

    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    variables = {**os.environ, "TERM": "xterm-256color", **environment}
    child = subprocess.Popen(
        [sys.executable, "-m", "kb", *arguments],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=variables,
        cwd=cwd,
    )
    os.close(follower)
    if stdin is not None:
        os.write(leader, stdin.encode())
    seen = b""
    while True:
        try:
            ready, _, _ = select.select([leader], [], [], 30)
            data = os.read(leader, 1 << 16) if ready else b""
        except OSError:  # the other end is closed
            data = b""
        if not data:
            break
        seen += data
    os.close(leader)
    return child.wait(30), seen


def _harmless(data: bytes) -> None:
    rest = OURS.sub(b"", data)
    assert b"\x1b" not in rest
    text = rest.decode("utf-8")
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert not re.search("\r(?!\n)", text)


@pytest.mark.thorough
@on_posix
@pytest.mark.parametrize(
    "arguments",
    [
        ["search", "FrobError: frobnicator too hot"],
        ["show", "frob#1"],
        ["search", "".join(HOSTILE.values()) + " zzz"],
        ["scan", "-"],
    ],
    ids=["search", "show", "query", "scan"],
)
def test_a_terminal_gets_colours_and_nothing_else_of_an_article(arguments: list[str], hostile_base: Path) -> None:
    log = "".join(HOSTILE.values()).replace("\x08", "") + "\nFrobError: frobnicator too hot\n\x04"
    _, seen = _pty(*arguments, KB_INDEX=str(hostile_base), stdin=log if arguments[0] == "scan" else None)
    if arguments[0] == "scan":  # what was typed is shown by the terminal itself
        seen = seen.partition(b"frob#1")[2]
        assert seen, "the issue is told"
    assert OURS.search(seen) or arguments[0] == "scan"
    _harmless(seen)
    if arguments[0] == "show":
        text = OURS.sub(b"", seen).decode("utf-8")
        assert "␛]52;c;" in text
        assert "\ufffd" in text


MARKUP = """---
project: Demo
---

# Notes

## A worker with <angle> brackets hangs

### Symptom

It prints `<class 'Worker'>` and <b>bold</b> words.

<details>
<summary>The log</summary>

```
HangError: worker <pid> hangs
```

</details>

### Cause

List<int> & co; see [the notes](https://example.org/notes), [a reference][1] and ![a picture](chart.png).

[1]: https://example.org/reference

<!-- a comment -->

### Fix

1. Run kill -9 <pid>, then rm <old-folder>/cache.
   <div>Last words.</div>
2. Compare a < b && c > d.

       indented <code>
"""


@pytest.mark.thorough
@on_posix
@pytest.mark.parametrize("arguments", [["search", "HangError: worker hangs"], ["show", "hang#1"]])
def test_a_terminal_shows_every_word_that_a_pipe_gets(arguments: list[str], tmp_path: Path) -> None:
    """rich drops raw HTML: `kill -9 <pid>` was shown as `kill -9 `."""
    (tmp_path / "notes" / "en").mkdir(parents=True)
    (tmp_path / "notes" / "en" / "hang.md").write_text(MARKUP, "utf-8")
    KnowledgeBase.build(tmp_path / "notes", tmp_path / "base")
    _, seen = _pty(*arguments, KB_INDEX=str(tmp_path / "base"))
    shown = re.sub(r"\s+", "", OURS.sub(b"", seen).decode("utf-8"))
    piped = run_kb(*arguments, KB_INDEX=str(tmp_path / "base")).stdout
    for word in re.findall(r"<[^<>]{1,30}>|[\w./:-]*\w", piped):
        assert re.sub(r"\s+", "", word) in shown
    assert "kill-9<pid>,thenrm<old-folder>/cache" in shown


@pytest.mark.thorough
@pytest.mark.usefixtures("shipped_is_built")
@on_posix
@pytest.mark.parametrize("command", [["build"], ["build", "--keep-going"], ["check"], ["search", "boom"]])
def test_a_terminal_gets_no_escapes_of_names_and_placeholders(command: list[str], tmp_path: Path) -> None:
    """What is left to write in an article, and the names of folders, reached the terminal as they were."""
    root = tmp_path / "\x1b]0;title\x07here\x9b2J"
    (root / "articles" / "en").mkdir(parents=True)
    (root / "articles" / "en" / "a.md").write_text(article("boom"))
    (root / "articles" / "en" / "left.md").write_text(article("<to write: \x1b]52;c;ZXZpbA==\x07 \x9b31m>"))
    (root / "articles" / "en" / "bad.md").write_bytes(b"# \xff\x1b[2J")
    trust.remember(root, True)
    _, seen = _pty(*command, cwd=root)
    _harmless(seen)
    assert "␛".encode() in seen


@pytest.mark.thorough
@pytest.mark.usefixtures("shipped_is_built")
@on_posix
@pytest.mark.parametrize(("typed", "used"), [("y", True), ("n", False)])
def test_at_a_terminal_one_is_asked_once_whether_to_trust_a_base(
    typed: str, used: bool, tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "cloned"
    (root / "articles" / "en").mkdir(parents=True)
    (root / "articles" / "en" / "a.md").write_text(article("the flux capacitor boomed"))
    question = ["search", "the flux capacitor boomed"]
    code, seen = _pty(*question, cwd=root, stdin=f"{typed}\n")
    assert b"Trust it" in seen and (b"a#1" in seen) == used
    assert (code == 0) == used
    code, seen = _pty(*question, cwd=root)
    assert b"Trust it" not in seen and (b"a#1" in seen) == used


@pytest.mark.usefixtures("corpus_is_bundled")
def test_trust_and_revoke(kb_: Kb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "cloned"
    (root / "articles" / "en").mkdir(parents=True)
    (root / "articles" / "en" / "a.md").write_text(article("boom"))
    monkeypatch.chdir(root)
    assert trust.decision(root) is None
    assert kb_("trust", base=None).code == 0
    assert trust.decision(root) is True
    answer = json.loads(kb_("search", "--json", "RuntimeError: boom", base=None).out)
    assert answer["results"][0]["base"] == str(root / "articles")
    assert kb_("trust", "--revoke", base=None).code == 0
    assert trust.decision(root) is None
    assert kb_("trust", str(tmp_path / "home"), base=None).code == 66


@pytest.mark.usefixtures("corpus_is_bundled")
def test_whoever_builds_a_base_trusts_it(kb_: Kb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "own"
    (root / "articles" / "en").mkdir(parents=True)
    (root / "articles" / "en" / "a.md").write_text(article("boom"))
    monkeypatch.chdir(root)
    assert kb_("build", base=None).code == 0
    found = kb_("search", "RuntimeError: boom", base=None)
    assert str(root) in found.out, "an answer names its base"


@pytest.mark.usefixtures("corpus_is_bundled")
def test_so_does_whoever_has_only_drafts_yet(kb_: Kb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "own"
    (root / "articles" / "en").mkdir(parents=True)
    (root / "articles" / "en" / "a.md").write_text(article("boom").replace("---\n", "---\nstatus: draft\n", 1))
    monkeypatch.chdir(root)
    assert kb_("build", base=None).code == 0
    found = kb_("search", "RuntimeError: boom", base=None)
    assert (found.code, "trust" in found.err, str(root) in found.out) == (1, False, True)
    assert "ms-swift" in kb_("search", POP, base=None).out, "the other bases answer"


@pytest.mark.costly
@on_posix
@pytest.mark.parametrize("variable", ["NO_COLOR", "TERM"])
def test_colours_can_be_refused(variable: str, index: Path) -> None:
    code, seen = _pty("search", POP, KB_INDEX=str(index), **{variable: "dumb" if variable == "TERM" else "1"})
    assert code == 0
    assert DEQUE.encode() in seen
    assert not re.search(rb"\x1b\[[0-9;]*3[0-7]", seen)  # no colour; bold and dim may stay
    if variable == "TERM":
        assert b"\x1b" not in seen


@on_posix
def test_without_a_question_a_terminal_is_told_what_to_type() -> None:
    code, seen = _pty("search")
    assert code == 2
    assert b"what is the question?" in seen


def test_a_pipe_gets_symbols_too(kb_: Kb, hostile_base: Path) -> None:
    for arguments in (["search", "FrobError: frobnicator too hot"], ["show", "frob#1"], ["projects"]):
        ran = kb_(*arguments, base=hostile_base)
        assert ran.code == 0
        assert "\x1b" not in ran.out
        _harmless(ran.out.encode())


def test_messages_about_hostile_arguments_are_harmless(kb_: Kb, hostile_base: Path) -> None:
    for arguments in (["show", "".join(HOSTILE.values())], ["search", "x", "--project", "\x1b[31m\x9b\u202e"]):
        ran = kb_(*arguments, base=hostile_base)
        assert ran.code in (64, 66)
        _harmless(ran.err.encode())


def test_json_keeps_the_data_and_escapes_it(kb_: Kb, hostile_base: Path) -> None:
    for query in ("FrobError: frobnicator too hot", "FrobError " + "".join(HOSTILE.values())):
        ran = kb_("search", "--json", query, base=hostile_base)
        _harmless(ran.out.encode())
        answer = json.loads(ran.out)
        assert answer["query"] == query
        assert HOSTILE["clipboard"] in answer["results"][0]["fix"]


# --- the process ----------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_module_and_script_are_the_same() -> None:
    ended = _process("--version")
    assert (ended.returncode, ended.stderr) == (0, b"")
    script = shutil.which("kb", path=str(Path(sys.executable).parent))
    if script is None:
        pytest.skip("kb is not installed as a script here")
    assert subprocess.run([script, "--version"], capture_output=True, check=True).stdout == ended.stdout
    assert ended.stdout.split()[-1].decode() == kb.__version__


def test_bytes_that_are_no_utf8(index: Path) -> None:
    argument = b"\xff\xfe pop from an empty deque bad\xff"
    as_json = _process("search", "--json", argument, KB_INDEX=str(index))
    answer = json.loads(as_json.stdout)
    assert answer["results"][0]["issue"] == DEQUE
    assert os.fsencode(answer["query"]) == argument


def test_bytes_that_are_no_utf8_in_a_message(kb_: Kb, index: Path) -> None:
    ran = kb_("show", os.fsdecode(b"bad\xff"), base=index)
    assert ran.code == 66
    _harmless(ran.err.encode("utf-8"))


def test_stdin_that_is_no_utf8(kb_: Kb, index: Path) -> None:
    ran = kb_("search", "-", stdin=b"\xff\xfe\x00 pop from an empty deque \x80", base=index)
    assert ran.code == 0
    assert DEQUE in ran.out


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "gb18030"])
def test_logs_of_windows_are_read(kb_: Kb, index: Path, encoding: str) -> None:
    text = "训练在第二步崩了，有人见过吗\r\nIndexError: pop from an empty deque\r\n"
    ran = kb_("search", "-", stdin=text.encode(encoding), base=index)
    assert ran.code == 0
    assert "ms-swift-ovis2-grpo#2/zh" in ran.out


def test_a_machine_without_a_locale(index: Path) -> None:
    ended = _process(
        "search", "两台机器跑第二步从空队列里取元素 pop from an empty deque", LC_ALL="C", KB_INDEX=str(index)
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert "一句话" in ended.stdout.decode("utf-8")


@pytest.mark.costly
@on_posix
@pytest.mark.parametrize("command", [["search", "-"], ["parse", "-"], ["eval", "-"], ["search", "--batch", "-"]])
def test_stdin_that_cannot_be_read_is_named(command: list[str], index: Path, tmp_path: Path) -> None:
    """It was reported as a failure of stdout."""
    with (tmp_path / "input").open("wb") as write_only:
        ran = subprocess.run(
            [sys.executable, "-m", "kb", *command],
            stdin=write_only,
            capture_output=True,
            encoding="utf-8",
            env={**os.environ, "KB_INDEX": str(index)},
        )
    assert ran.returncode == 64, ran.stderr
    assert "stdin" in ran.stderr
    assert "stdout" not in ran.stderr


@pytest.mark.costly
@on_posix
@pytest.mark.parametrize("command", [["search", DEQUE], ["search", "--json", DEQUE], ["projects"]])
def test_a_closed_stdout_is_named(command: list[str], index: Path) -> None:
    ran = subprocess.run(
        ["/bin/sh", "-c", '"$@" >&-', "sh", sys.executable, "-m", "kb", *command],
        capture_output=True, encoding="utf-8", env={**os.environ, "KB_INDEX": str(index)}
    )  # fmt: skip
    assert ran.returncode == 74
    assert ran.stderr.startswith("kb: stdout: the answer could not be written")


@pytest.mark.costly
@on_posix
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize("command", ["--help", "--version", "search --help", "projects"])
@pytest.mark.parametrize("also", ["", "2>/dev/full"])
def test_a_full_disk_has_an_exit_code(command: str, also: str, index: Path) -> None:
    shell = f"{sys.executable} -m kb {command} >/dev/full {also}"
    ran = subprocess.run(["/bin/sh", "-c", shell], capture_output=True, env={**os.environ, "KB_INDEX": str(index)})
    assert ran.returncode == 74
    assert ran.stderr.startswith(b"" if also else b"kb: stdout: the answer could not be written (No space")


@pytest.mark.costly
@on_posix
@pytest.mark.parametrize("command", ["scan -", "mcp", "search -"])
def test_a_closed_stdin_is_named(command: str, index: Path) -> None:
    shell = f"{sys.executable} -m kb {command} <&-"
    ran = subprocess.run(["/bin/sh", "-c", shell], capture_output=True, env={**os.environ, "KB_INDEX": str(index)})
    assert ran.returncode in (2, 64, 69)  # 69: the extra is missing
    assert b"bug" not in ran.stderr and b"Traceback" not in ran.stderr and ran.stderr


INTERRUPTED = """
import os, signal, sys
class At:
    def find_spec(name, *_):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, At)
from kb.__main__ import main
main()
"""


@on_posix
@pytest.mark.parametrize("module", ["kb.cli", "click", "kb.cli.common", "kb.cli.words"])
def test_ctrl_c_while_kb_is_loaded_ends_it_in_silence(module: str) -> None:
    """Somebody who notices a mistake in the command presses it at once."""
    ran = subprocess.run([sys.executable, "-c", INTERRUPTED, module, "--version"], capture_output=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, b"", b"")


@on_posix
def test_a_reader_that_leaves_early_is_no_error(index: Path) -> None:
    shell = f"{sys.executable} -m kb search --batch - --index {index} | head -n 1; echo ${{PIPESTATUS[0]}}"
    data = (BATCH[0] + "\n").encode() * 300
    ended = subprocess.run(["bash", "-c", shell], input=data, capture_output=True, timeout=60, check=False)
    lines = ended.stdout.decode().splitlines()
    assert json.loads(lines[0])["results"][0]["issue"] == DEQUE
    assert lines[-1] == "141"
    assert ended.stderr == b""


@pytest.mark.thorough
@on_posix
def test_ctrl_c(index: Path) -> None:
    command = [sys.executable, "-m", "kb", "search", "--batch", "-", "--index", str(index)]
    with running(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdin
        assert child.stdout
        child.stdin.write((BATCH[0] + "\n").encode())
        child.stdin.flush()
        answer = child.stdout.readline()  # it is waiting for the next question now
        assert json.loads(answer)["id"] == "a"
        time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=30)
    assert child.returncode == 130
    assert b"Traceback" not in err


@pytest.fixture(scope="module", autouse=True)
def _no_colour_of_ours() -> Iterator[None]:
    """What the surroundings of the tests ask for is not what a user's would."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "COLUMNS", "PYTHONUTF8", "PYTHONIOENCODING"):
            patch.delenv(name, raising=False)
        yield


def test_a_hundred_megabytes_on_stdin_keep_their_end(kb_: Kb, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kb.cli.common.MAX_STDIN", 1 << 20)
    data: Any = b"start\n" + b"INFO all is well\n" * 200_000 + POP.encode()
    ran = kb_("search", "-", stdin=data, base=index)
    assert ran.code == 0
    assert DEQUE in ran.out


# --- the pager ------------------------------------------------------------------------------------------------------


def _at_a_terminal(*arguments: str, rows: int = 24, columns: int = 80, **environment: str) -> bytes:
    import fcntl
    import pty
    import struct
    import termios

    main_end, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    command = [sys.executable, "-m", "kb", *arguments]
    with running(
        command, stdin=end, stdout=end, stderr=end, env={**os.environ, "TERM": "xterm", **environment}
    ) as child:
        os.close(end)
        said = b""
        while True:
            try:
                piece = os.read(main_end, 1 << 16)
            except OSError:
                break
            if not piece:
                break
            said += piece
        child.wait(60)
    os.close(main_end)
    return said


@pytest.mark.thorough
@on_posix
def test_long_output_goes_through_the_pager(index: Path, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    script = tmp_path / "mypager"
    script.write_text(f'#!/bin/sh\ncat > {seen}; echo "paged with $1"\n')
    script.chmod(0o755)
    base = {"KB_INDEX": str(index), "KB_PAGER": f"{script} -x"}
    said = _at_a_terminal("show", DEQUE, **base)
    assert b"paged with -x" in said and b"Fix" not in said
    assert "Fix" in OURS.sub(b"", seen.read_bytes()).decode()
    short = _at_a_terminal("search", POP, rows=40, **base)
    assert b"paged" not in short and b"Try first" in short
    off_by = ({"KB_PAGER": ""}, {"KB_PAGER": "no-such-pager"}, {"TERM": "dumb"}, {"KB_PAGER": "cat"}, {"KB_PAGER": "'"})
    for off in off_by if THOROUGH else off_by[:3]:
        whole = _at_a_terminal("show", DEQUE, **{**base, **off})
        assert b"paged" not in whole and b"Fix" in whole
    assert b"paged" not in _at_a_terminal("show", "--no-pager", DEQUE, **base)
    assert b"paged" not in _process("show", DEQUE, **base).stdout


@pytest.mark.parametrize("width", [62, 74, 80, 100])
def test_the_head_of_an_answer_fits_and_no_label_stands_alone(width: int, index: Path) -> None:
    from kb.text.width import cells

    lines = run_kb("search", POP, KB_INDEX=str(index), COLUMNS=str(width)).stdout.split("\n")
    at = next(n for n, line in enumerate(lines) if line.startswith(DEQUE))
    assert max(map(cells, lines[: at + 1])) <= width
    assert len(lines[:at]) == (2 if width < 80 else 1)
    note = lines[at]
    assert re.search(r"confidence \d+%(?:  ·  matched: \S{4,}.*)?$", note), note


@pytest.mark.thorough
@on_posix
@pytest.mark.parametrize("width", [40, 60, 132, 250])
def test_the_short_answer_at_any_width(width: int, index: Path) -> None:
    from kb.text.width import cells

    said = _at_a_terminal("search", POP, rows=60, columns=width, KB_INDEX=str(index))
    lines = OURS.sub(b"", said).decode().split("\r\n")
    piped = run_kb("search", POP, KB_INDEX=str(index), COLUMNS=str(width)).stdout.split("\n")
    assert [line.rstrip() for line in lines] == [line.rstrip() for line in piped]
    prose = [line for line in lines if line.startswith(("In short", "  1. ", "     a"))]
    assert prose and max(map(cells, prose)) <= min(max(width, 60), 200)
