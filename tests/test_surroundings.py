"""What kb makes of its surroundings: no home, NO_COLOR, a host's logging, Ctrl-C in the middle of a scan."""

from __future__ import annotations

import importlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import CORPUS, THOROUGH, running

from kb import KnowledgeBase
from kb.cli import cli
from kb.errors import ExtraMissing, QueryError

POP = "IndexError: pop from an empty deque"
DEQUE = "ms-swift-ovis2-grpo#2"
COMMANDS = [
    ["search", POP],
    [POP],
    ["scan", "a.log"],
    ["show", "deque"],
    ["projects"],
    ["info"],
    ["check", "--articles", str(CORPUS)],
    ["run", "--", "false"],
    ["last"],
    ["hook", "bash"],
    ["completion", "zsh"],
]


HOMES = [None, "/nonexistent-home", "/dev/null/home", "missing"]


@pytest.mark.costly
@pytest.mark.parametrize(
    ("command", "home"),
    [
        (one, home)
        for i, one in enumerate(COMMANDS)
        for home in (HOMES if THOROUGH and one[0] in ("search", "run") else [HOMES[i % len(HOMES)]])
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else str(one),
)
def test_without_a_home_every_command_works_and_nothing_is_written(
    command: list[str], home: str | None, index: Path
) -> None:
    Path("a.log").write_text(POP)
    given = {"HOME": str(Path.cwd() / home) if home == "missing" else home} if home else {}
    ran = subprocess.run(
        [sys.executable, "-m", "kb", *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={"KB_INDEX": str(index), "PYTHONPATH": os.environ.get("PYTHONPATH", ""), **given},
        check=False,
    )
    assert "Traceback" not in ran.stderr
    assert "bug in kb" not in ran.stderr
    assert ran.returncode in {"last": (66,), "check": (65,)}.get(command[0], (0, 1))
    assert [path.name for path in Path.cwd().iterdir()] == ["a.log"]
    assert not Path("/nonexistent-home").exists()


@pytest.mark.thorough
@pytest.mark.parametrize(("environment", "plain"), [({}, False), ({"NO_COLOR": "1"}, True), ({"TERM": "dumb"}, True)])
@pytest.mark.parametrize("command", [["search", POP], ["run", "--", "sh", "-c", f"echo '{POP}'; exit 3"]], ids=str)
def test_no_color_means_no_bold_either(
    command: list[str], environment: dict[str, str], plain: bool, index: Path
) -> None:
    leader, follower = pty.openpty()
    known = {"TERM": "xterm-256color", "KB_INDEX": str(index), "PATH": os.environ["PATH"]}
    with running(
        [sys.executable, "-m", "kb", *command],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**known, "PYTHONPATH": os.environ.get("PYTHONPATH", ""), **environment},
    ) as child:
        os.close(follower)
        seen = b""
        try:
            while data := os.read(leader, 1 << 16):
                seen += data
        except OSError:  # the other end is closed
            pass
        child.wait()
    os.close(leader)
    assert b"deque" in seen
    assert (b"\x1b" not in seen) == plain


HOST = """
import logging, sys
logging.basicConfig(level=logging.DEBUG, stream=sys.stdout, format="%(name)s %(message)s")
if {own}: logging.getLogger("faiss.loader").setLevel(logging.DEBUG)
before = logging.getLogger("faiss.loader").level
from kb import KnowledgeBase
with KnowledgeBase.open({index!r}) as base:
    base.search("pop from an empty deque")
assert logging.getLogger("faiss.loader").level == before
assert logging.getLogger().level == logging.DEBUG
"""


@pytest.mark.thorough
@pytest.mark.parametrize("own", [False, True])
def test_faiss_is_silent_in_a_host_that_logs_everything_unless_it_asked(own: bool, index: Path) -> None:
    code = HOST.format(index=str(index), own=own)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ("faiss" in ran.stdout) == own


@pytest.mark.parametrize("question", [123, None, b"boom", ValueError("boom"), ["boom"]])
def test_a_question_that_is_no_text_is_refused_by_its_type(question: object, index: Path) -> None:
    with KnowledgeBase.open(index) as base, pytest.raises(QueryError, match=type(question).__name__):
        base.search(question)  # type: ignore[arg-type]


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
@pytest.mark.parametrize("options", [[], ["--json"]], ids=str)
def test_ctrl_c_in_a_scan_prints_what_was_found(options: list[str], index: Path) -> None:
    command = [sys.executable, "-m", "kb", "scan", *options, "--index", str(index), "-"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with running(command, **pipes) as child:
        assert child.stdin
        child.stdin.write(f"step 1\n{POP}\nstep 2\n".encode())
        child.stdin.flush()
        _wait_until_idle(child.pid)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=30)
    assert child.returncode == 130
    assert DEQUE in out.decode()
    assert b"interrupted; the rest is not read" in err
    if options:
        assert json.loads(out)["logs"][0]["lines"] == 3


def _wait_until_idle(pid: int) -> None:
    """Until the process waits for its stdin: it has used no time for a while."""
    used, quiet = -1.0, 0
    for _ in range(600):
        time.sleep(0.05)
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        now = int(fields[11]) + int(fields[12])
        quiet = quiet + 1 if now == used and now > 10 else 0
        used = now
        if quiet >= 8:
            return


@pytest.mark.parametrize(("command", "extra"), [(["serve"], "serve"), (["mcp", "--http"], "mcp")])
def test_what_is_missing_is_said_before_the_base_is_opened(
    command: list[str], extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("kb.cli.serve")
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    monkeypatch.setattr(module, "open_base", lambda *_, **__: pytest.fail("the base was opened"))
    monkeypatch.setattr(importlib.import_module("kb.cli.mcp"), "find_spec", lambda name: True)
    ended = CliRunner().invoke(cli, command)
    assert isinstance(ended.exception, ExtraMissing)
    assert f"the extra `{extra}`" in str(ended.exception)
