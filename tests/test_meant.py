"""What `kb` does without a command: a question, a log's name and a pipe are searched, a misspelled command is not."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import run_kb

from kb.cli import cli
from kb.cli.meant import is_question, near_commands, no_command

COMMANDS = cli.list_commands(None)  # type: ignore[arg-type]
POP = "IndexError: pop from an empty deque"
DEQUE = "ms-swift-ovis2-grpo#2"


@pytest.fixture
def asked(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KB_INDEX", str(index))


@pytest.mark.parametrize(
    "words",
    [
        ["CUDA out of memory"],
        ["显存不足"],
        ["RuntimeError"],
        ["OOMKilled", "--json"],
        ["507899"],
        ["torch.cuda"],
        ["logs/train.log"],
        ["pop", "from", "an", "empty", "deque", "-k", "1"],
        ["error:"],
        ["-"],
    ],
    ids=" ".join,
)
def test_a_question(words: list[str]) -> None:
    assert is_question(words, COMMANDS)


def test_a_log_with_a_space_in_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my train.log").touch()
    assert "did you mean `kb 'my train.log'`?" in str(no_command(["my", "train.log"], COMMANDS))


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["serach"], "search"),
        (["serach", "CUDA out of memory"], "search"),
        (["serach", "out", "of", "memory"], "search"),
        (["project"], "projects"),
        (["biuld"], "build"),
        (["completions", "bash"], "completion"),
        (["help"], "--help"),
        (["list", "projects"], None),
        (["install"], None),
        (["upgrade", "--json"], None),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_no_question(words: list[str], near: str | None) -> None:
    assert not is_question(words, COMMANDS)
    assert near is None or near in near_commands(words[0], COMMANDS)


def test_a_file_with_a_name_like_a_command_is_a_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("serach").write_text("boom")
    assert is_question(["serach"], COMMANDS)


def test_a_mistyped_command_runs_nothing_and_is_told_what_it_may_have_been() -> None:
    ran = run_kb("serach", "it's", stdin=POP.encode())
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "did you mean `kb search`?" in ran.stderr
    assert """kb search serach 'it'"'"'s'""" in ran.stderr


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(
    "arguments",
    [[POP, "--json", "-k", "1"], ["--json", "-k1", POP], ["--lang=en", "--json", *POP.split()]],
    ids=["behind", "before", "words"],
)
def test_a_question_without_a_command_takes_the_options_of_search(arguments: list[str]) -> None:
    ran = run_kb(*arguments, stdin=None)
    assert ran.returncode == 0
    assert f'"{DEQUE}"' in ran.stdout
    assert ran.stderr == ""


@pytest.mark.usefixtures("asked")
def test_a_pipe_alone_is_searched_and_nothing_at_all_is_help() -> None:
    piped = run_kb(stdin=POP.encode())
    assert piped.returncode == 0
    assert DEQUE in piped.stdout
    assert DEQUE in run_kb("--json", stdin=POP.encode()).stdout
    alone = run_kb(stdin=None)
    assert alone.returncode == 2
    assert "Usage: kb" in alone.stderr
    assert run_kb("--nonsense", POP, stdin=None).returncode == 2


@pytest.mark.thorough
@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize("name", ["train.log", "a log", "error", "train.log.gz"])
@pytest.mark.parametrize("command", [["search"], []], ids=["search", "alone"])
def test_the_name_of_a_file_means_what_stands_in_it(name: str, command: list[str]) -> None:
    log = f"step 1\nstep 2\nTraceback (most recent call last):\n{POP}\n".encode()
    Path(name).write_bytes(gzip.compress(log) if name.endswith(".gz") else log)
    ran = run_kb(*command, name, stdin=None)
    assert ran.returncode == 0
    assert DEQUE in ran.stdout
    assert ran.stderr.startswith(f"kb: reading the log {name}")
    assert ran.stderr.count("\n") == 1
    words = ran.stderr.partition("themselves: ")[2].replace("| kb", f"| {sys.executable} -m kb")
    asked = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=False)
    assert DEQUE not in asked.stdout  # the words were searched, as it says


@pytest.mark.usefixtures("asked")
def test_a_folder_is_no_log() -> None:
    Path("logs.log").mkdir()
    for name in ("logs.log", "logs.log/", "./logs.log"):
        ran = run_kb(name, stdin=None)
        assert ran.returncode == 64
        assert f"kb: {name}: this is a folder, and no log" in ran.stderr
        assert "kb scan" in ran.stderr


@pytest.mark.usefixtures("asked")
def test_a_log_is_packed_by_its_content_not_by_its_name() -> None:
    log = f"fine\n{POP}\n".encode()
    Path("train.log.1").write_bytes(gzip.compress(log))
    Path("renamed.gz").write_bytes(log)
    asked = [("train.log.1", None), ("renamed.gz", None), ("-", gzip.compress(log)), ("-", log)]
    for command in ("search", "scan"):
        for name, stdin in asked:
            ran = run_kb(command, name, stdin=stdin)
            assert DEQUE in ran.stdout, (command, name, ran)


@pytest.mark.thorough
@pytest.mark.usefixtures("asked")
def test_of_a_damaged_log_the_rest_is_read_and_a_missing_one_is_named() -> None:
    noise = b"".join(b"%d\n" % (n * 7919 % 100003) for n in range(100_000))
    Path("cut.gz").write_bytes(gzip.compress(f"{POP}\n".encode() + noise)[:-20_000])
    ran = run_kb("cut.gz", stdin=None)
    assert "cannot be read to its end" in ran.stderr
    assert DEQUE in ran.stdout
    Path("none.gz").write_bytes(b"\x1f\x8bno gzip")
    assert run_kb("none.gz", stdin=None).returncode == run_kb("scan", "none.gz", stdin=None).returncode == 65
    missing = run_kb("trian.log", stdin=None)
    assert missing.returncode == 1
    assert "there is no file trian.log" in missing.stderr


def test_only_the_ends_of_a_huge_log_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kb.cli import common, question

    for module in (common, question):
        monkeypatch.setattr(module, "MAX_STDIN", 1000)
    lines = b"".join(b"%06d\n" % n for n in range(10_000))
    for name, data in (("a.log", lines), ("a.log.gz", gzip.compress(lines))):
        (tmp_path / name).write_bytes(data)
        read = question.question_of([str(tmp_path / name)]).encode()
        assert read == lines[:500] + lines[-500:]
    assert common.ends_of(iter([lines])) == lines[:500] + lines[-500:]
    assert common.ends_of(iter([lines[:400], lines[400:1000]])) == lines[:1000]
    assert common.ends_of(iter([])) == b""


@pytest.mark.thorough
@pytest.mark.usefixtures("asked")
@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="this system has no /dev/fd")
def test_a_substituted_command_is_read() -> None:
    command = f'{sys.executable} -m kb <(echo "{POP}")'
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert DEQUE in ran.stdout
