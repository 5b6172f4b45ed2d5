"""`kb hook` and `kb last`, in real shells inside a real tmux and screen, and what the shells must not notice of it."""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kb.run.screen import output_of

POP = "IndexError: pop from an empty deque"
FRAME = '  File "/x/site-packages/deepspeed/runtime/zero/partitioned_param_coordinator.py", line 9, in fetch'
DEQUE = "ms-swift-ovis2-grpo#2"
SHELLS = ["bash", "zsh", "fish"]
EVAL = {"bash": 'eval "$(kb hook bash)"', "zsh": 'eval "$(kb hook zsh)"', "fish": "kb hook fish | source"}
START = {"bash": "bash --norc --noprofile", "zsh": "zsh -f", "fish": "fish --no-config"}


@pytest.fixture
def path(tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `kb` of this checkout on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "kb"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kb "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("KB_INDEX", str(index))
    for name in ("TMUX", "TMUX_PANE", "STY", "WINDOW", "KB_LAST_COMMAND", "PROMPT_COMMAND"):
        monkeypatch.delenv(name, raising=False)
    return folder


def _needs(*programs: str) -> None:
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")


class Pane:
    """A shell in a tmux of its own."""

    def __init__(self, socket: Path, shell: str) -> None:
        self._tmux = ["tmux", "-S", str(socket), "-f", "/dev/null"]
        self._count = 0
        self._run("new-session", "-d", "-x", "100", "-y", "24", START[shell])
        self._shell = shell
        self.type(EVAL[shell])

    def _run(self, *arguments: str) -> str:
        return subprocess.run([*self._tmux, *arguments], capture_output=True, text=True, check=True, timeout=20).stdout

    def type(self, line: str) -> str:
        """Types the line, waits until it is done, and returns the whole text of the pane."""
        self._count += 1
        done = Path.cwd() / f"done{self._count}"
        self._run("send-keys", "-l", line)
        self._run("send-keys", "Enter")
        self._run("send-keys", "-l", f"touch {done}")  # it may be shown before the line has printed: without a prompt
        self._run("send-keys", "Enter")
        for _ in range(400):
            if done.exists():
                return self._run("capture-pane", "-p", "-J", "-S", "-2000")
            time.sleep(0.05)
        raise AssertionError(self._run("capture-pane", "-p", "-S", "-100"))

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], check=False, capture_output=True)


class Window(Pane):
    """A shell in a GNU screen of its own."""

    def __init__(self, name: str, shell: str) -> None:
        self._name = name
        self._count = 0
        self._shell = shell
        command = ["screen", "-U", "-h", "2000", "-c", "/dev/null", "-dmS", name, *START[shell].split()]
        subprocess.run(command, check=True, timeout=20, env={**os.environ, "LC_ALL": "C.UTF-8"})
        self._send("width -w 100")
        self.type(EVAL[shell])

    def _send(self, *words: str) -> None:
        for _ in range(100):  # it may not be there yet
            ran = subprocess.run(
                ["screen", "-S", self._name, "-p", "0", "-X", *words], check=False, capture_output=True
            )
            if ran.returncode == 0:
                return
            time.sleep(0.05)
        raise AssertionError(ran.stdout)

    def type(self, line: str) -> str:
        self._count += 1
        done, copy = Path.cwd() / f"done{self._count}", Path.cwd() / f"copy{self._count}"
        self._send("stuff", line.replace("\\", "\\\\").replace("^", "\\^").replace("$", "\\$") + "\n")
        self._send("stuff", f"touch {done}\n")  # it may be shown before the line has printed: then without a prompt
        for _ in range(400):
            if done.exists():
                break
            time.sleep(0.05)
        self._send("hardcopy", "-h", str(copy))
        time.sleep(0.3)
        text = copy.read_text("utf-8", "replace")
        assert done.exists(), text
        return text

    def close(self) -> None:
        subprocess.run(["screen", "-S", self._name, "-X", "quit"], check=False, capture_output=True)


@pytest.fixture(params=SHELLS)
def window(request: pytest.FixtureRequest, path: Path) -> Iterator[Window]:
    _needs("screen", request.param)
    window = Window(f"kb{os.getpid()}{request.param}", request.param)
    yield window
    window.close()


@pytest.mark.thorough
def test_inside_of_screen(window: Window) -> None:
    Path("train.sh").write_text(f"seq 60\necho '{FRAME}\n{POP}' >&2\nexit 3\n")
    window.type("sh train.sh")
    window.type("echo well")
    text = window.type("kb last --lang en")
    said = text[text.rindex("kb last") :]
    assert "$ sh train.sh" in said
    assert "exit code 3" in said
    assert DEQUE in said


@pytest.fixture(params=SHELLS)
def pane(request: pytest.FixtureRequest, path: Path, tmp_path: Path) -> Iterator[Pane]:
    _needs("tmux", request.param)
    pane = Pane(Path(os.environ.get("TMPDIR", "/tmp")) / f"kb{os.getpid()}{request.param}", request.param)
    yield pane
    pane.close()


@pytest.mark.thorough
def test_the_last_failing_command_is_explained(pane: Pane) -> None:
    Path("train.sh").write_text(f"seq 60\necho '{FRAME}\n{POP}' >&2\nexit 3\n")
    nothing = pane.type("kb last")
    assert "no command has failed" in nothing
    pane.type("sh train.sh")
    pane.type("ls")
    pane.type("echo well")
    text = pane.type("kb last --lang en")
    said = text[text.rindex("kb last") :]
    assert "$ sh train.sh" in said
    assert "exit code 3" in said
    assert DEQUE in said
    pane.type("kb search --json zzzz")  # exits with 1, and is none of the user's commands
    again = pane.type("kb last")
    assert "$ sh train.sh" in again[again.rindex("kb last") :]
    pane.type("clear; tmux clear-history" if shutil.which("tmux") else "clear")
    pane.type("sh -c 'exit 4'")
    other = pane.type("kb last --lang en")
    assert "not known to kb" in other[other.rindex("kb last") :]


def test_outside_of_tmux_it_says_what_it_takes(path: Path) -> None:
    ran = subprocess.run(["kb", "last"], capture_output=True, text=True, check=False)
    assert ran.returncode == 66
    assert "kb hook" in ran.stderr
    environment = {**os.environ, "KB_LAST_COMMAND": "make\x1b]0;x\x07", "KB_LAST_CODE": "2"}
    ran = subprocess.run(["kb", "last"], capture_output=True, text=True, check=False, env=environment)
    assert ran.returncode == 66
    assert "tmux" in ran.stderr
    assert "\x1b" not in ran.stderr


def _said(out: str, name: str) -> str:
    """The last one: what was typed stands before it."""
    found = re.findall(rf"{name}=\[(.*?)\]", out)
    assert len(found) > 1, out
    return str(found[-1])


# An editor of lines may read ahead and lose it.
_READS = {"bash": ["-i"], "zsh": ["-i", "-o", "nozle", "-o", "nopromptcr", "-o", "nopromptsp"]}


def _shell(shell: str, script: str) -> str:
    """What an interactive shell prints that reads `script` from a terminal of its own."""
    import pty

    (Path.cwd() / "history").unlink(missing_ok=True)
    leader, follower = pty.openpty()
    child = subprocess.Popen(
        [*START[shell].split(), *_READS.get(shell, [])],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm", "PS1": "> ", "HISTFILE": str(Path.cwd() / "history")},
    )
    os.close(follower)
    seen = b""
    select.select([leader], [], [], 8)  # its prompt: zsh forgets what was typed before
    os.write(leader, script.encode() + b"\nexit 0\n")
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if not select.select([leader], [], [], 8)[0]:
            break
        try:
            data = os.read(leader, 1 << 16)
        except OSError:
            break
        if not data:
            break
        seen += data
    child.kill()
    child.wait()
    os.close(leader)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", seen.decode("utf-8", "replace"))


BASH = [
    "(exit 7)",
    'echo "code=[$?]"',
    "set -u",
    "false",
    "",
    "sleep 0.1 &",
    "wait %1; echo job=[$?]",
    "trap -p DEBUG",
    'echo "seen=[$seen] debugs=[$((debugs > 5))]"',
    'echo "history=[$(history | wc -l)]"',
]


@pytest.mark.thorough
@pytest.mark.parametrize("theirs", ["PROMPT_COMMAND=theirs", "PROMPT_COMMAND=(theirs 'seen=$seen,$?')", ":"])
def test_bash_goes_on_as_without_it(theirs: str, path: Path) -> None:
    _needs("bash")
    before = ["trap 'debugs=$((debugs+1))' DEBUG", 'theirs() { seen="$seen $?"; }', theirs]
    without, once, twice = (
        _shell("bash", "\n".join([*before, *[EVAL["bash"]] * times, *[":"] * (2 - times), "seen=", *BASH]))
        for times in range(3)
    )
    for out in (once, twice):
        for name in ("code", "job", "seen", "debugs", "history"):
            assert _said(out, name) == _said(without, name), name
        assert "\ntrap -- 'debugs=$((debugs+1))' DEBUG\n" in out
        assert "unbound" not in out
        assert "not found" not in out


def test_bash_inside_of_bash_works_alone_and_with_its_own_lines(path: Path) -> None:
    _needs("bash")
    lines = [
        EVAL["bash"],
        "export PROMPT_COMMAND",
        "false",
        "bash --norc --noprofile",
        "(exit 5)",
        'echo "inner=[${__kb_command-nothing}]"',
        EVAL["bash"],
        "(exit 6)",
        'echo "own=[$__kb_command]"',
        "exit 0",
        'echo "outer=[$__kb_command] code=[$__kb_code]"',
    ]
    out = _shell("bash", "\n".join(lines))
    assert [_said(out, name) for name in ("inner", "own", "outer", "code")] == ["nothing", "(exit 6)", "false", "1"]
    assert "not found" not in out


def test_bash_forgets_what_its_history_is_not_to_keep(path: Path) -> None:
    _needs("bash")
    lines = ["HISTCONTROL=ignorespace", EVAL["bash"], "(exit 3)", "true", " sh -c 'exit 4' secret"]
    lines += ["echo last=[$__kb_command]"]
    assert _said(_shell("bash", "\n".join(lines)), "last") == "(exit 3)"


@pytest.mark.parametrize("times", [1, 2])
def test_zsh_goes_on_as_without_it(times: int, path: Path) -> None:
    _needs("zsh")
    before = ['precmd() { seen="$seen $?" }; preexec() { ran="$ran;$1" }']
    after = ["seen= ran=", "(exit 7)", 'echo "code=[$?]"', "setopt nounset", "false", 'echo "seen=[$seen] ran=[$ran]"']
    without = _shell("zsh", "\n".join([*before, *after]))
    lines = [*before, *[EVAL["zsh"]] * times, *after]
    out = _shell("zsh", "\n".join([*lines, 'echo "last=[$__kb_command] hooks=[$precmd_functions]"']))
    for name in ("code", "seen", "ran"):
        assert _said(out, name) == _said(without, name), name
    assert _said(out, "last") == "false"
    assert _said(out, "hooks").count("__kb_precmd") == 1
    assert "parameter not set" not in out


@pytest.mark.thorough
@pytest.mark.parametrize("shell", SHELLS)
def test_the_lines_are_valid_and_print_nothing(shell: str, path: Path) -> None:
    _needs(shell)
    script = f"{EVAL[shell]}\n{EVAL[shell]}\n"
    ran = subprocess.run([*START[shell].split(), "-c", script], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("", "")


SCREEN = """\
user@host ~ $ ls
a.py
user@host ~ $ python a.py
out 1
python a.py failed
  error
user@host ~ $ ls
a.py
user@host ~ $ kb last
"""


@pytest.mark.parametrize(
    ("text", "command", "after", "output"),
    [
        (SCREEN, "python a.py", "ls", "out 1\npython a.py failed\n  error"),
        (SCREEN, "python a.py", "", "out 1\npython a.py failed\n  error\nuser@host ~ $ ls\na.py"),
        (SCREEN, "make", "", None),
        (SCREEN, "", "", None),
        ("", "make", "", None),
        ("$ make          [12:03]\nboom\n$ kb last", "make", "", "boom"),
        ("$ for i in 1\n> do false\n> done\nboom\n$ kb last", "for i in 1\ndo false\ndone", "", "boom"),
        ("$ make\nold\n$ make\nnew\n$ kb last\nkb: ...\n$ kb last --lang zh", "make", "kb last", "new"),
        ("$ make\n$ kb last", "make", "", ""),
        ("make\nboom\n$ kb last", "make", "", None),
    ],
)
def test_what_a_command_printed(text: str, command: str, after: str, output: str | None) -> None:
    assert output_of(text, command, after) == output
