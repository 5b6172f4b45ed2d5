"""kb run: the command runs as if kb were not there; only when it fails is there a word at the end."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import check_growth

from kb.run.tail import TAIL_BYTES, Tail

if sys.platform == "win32":
    pytest.skip("needs POSIX", allow_module_level=True)

import fcntl
import pty
import termios

PYTHON = sys.executable
KB = [PYTHON, "-m", "kb", "run"]
DOOR = [PYTHON, "-c", "import sys; from kb.run import leave, run; leave(run(sys.argv[1:]))"]  # without the explanation
DEQUE = "IndexError: pop from an empty deque"
DEQUE_ISSUE = "ms-swift-ovis2-grpo#2"
FAILING = f"import deepspeed 2> /dev/null; echo '{DEQUE}' >&2; exit"
"""for a shell; the name is what makes it a failure of DeepSpeed"""


def door(*command: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*DOOR, *command], **{"capture_output": True, "timeout": 30, **options})


def python(code: str) -> list[str]:
    return [PYTHON, "-c", code]


@pytest.fixture
def kb(index: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    monkeypatch.setenv("KB_INDEX", str(index))
    return lambda *arguments, **options: subprocess.run([*KB, *arguments], capture_output=True, timeout=60, **options)


# --- what passes through --------------------------------------------------------------------------------------------


def test_streams_apart_and_byte_for_byte() -> None:
    code = (
        "import os; os.write(1, bytes(range(256)) * 99); os.write(2, b'\\x1b[31mred\\xff\\r\\n'); os.write(1, b'end')"
    )
    ended = door(*python(code))
    assert (ended.returncode, ended.stdout, ended.stderr) == (
        0,
        bytes(range(256)) * 99 + b"end",
        b"\x1b[31mred\xff\r\n",
    )


def test_one_pipe_for_both_keeps_the_order() -> None:
    code = "import os\nfor i in range(300): os.write(1 + i % 2, b'%d\\n' % i)"
    ended = door(*python(code), capture_output=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert ended.stdout.split() == [b"%d" % i for i in range(300)]


def test_stdin_and_arguments() -> None:
    code = "import sys; print(sys.argv[1:], sys.stdin.read(), sys.stdin.isatty(), sys.stdout.isatty())"
    ended = door(*python(code), "--", "-x", "--index", "a b", "", input=b"in")
    assert ended.stdout.decode().strip() == "['--', '-x', '--index', 'a b', ''] in False False"


def test_each_byte_at_once() -> None:
    code = "import os, sys; os.write(1, b'.'); sys.stdin.read(1); os.write(2, b'!'); sys.stdin.read(1)"
    with subprocess.Popen([*DOOR, *python(code)], stdin=-1, stdout=-1, stderr=-1, bufsize=0) as process:
        assert process.stdin and process.stdout and process.stderr
        assert process.stdout.read(1) == b"."  # hangs if it is kept back
        process.stdin.write(b"x")
        assert process.stderr.read(1) == b"!"
        process.stdin.write(b"x")
        assert process.wait(10) == 0


@pytest.mark.parametrize("code", [0, 1, 3, 127, 255])
def test_the_exit_code(code: int) -> None:
    assert door("sh", "-c", f"exit {code}").returncode == code


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGINT])
def test_the_signal_that_ended_it(number: signal.Signals) -> None:
    """Who called kb sees the signal itself; a shell makes 128 + n of it as it would without kb."""
    assert door("sh", "-c", f"kill -{number.value} $$").returncode == -number
    shell = subprocess.run(
        ["sh", "-c", '"$@"; echo $?', "sh", *DOOR, "sh", "-c", f"kill -{number.value} $$"], stdout=-1
    )
    if number != signal.SIGINT:  # which ends the shell as well, as it should
        assert shell.stdout.split()[-1] == b"%d" % (128 + number)


def test_what_cannot_be_run(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no program")
    assert door("no-such-command-anywhere").returncode == 127
    assert door(str(tmp_path / "none")).returncode == 127
    assert door(str(tmp_path / "data")).returncode == 126
    assert door(str(tmp_path)).returncode == 126


def test_extra_descriptors_belong_to_the_child() -> None:
    source, end = os.pipe()
    ended = door(*python(f"import os; os.write({end}, b'there')"), pass_fds=[end])
    os.close(end)
    assert (ended.returncode, os.read(source, 99)) == (0, b"there")
    os.close(source)


def test_a_reader_that_leaves() -> None:
    """`| head -1`: the child dies of it as it would without kb."""
    with subprocess.Popen([*DOOR, "yes"], stdout=-1) as process:
        assert process.stdout
        process.stdout.read(10)
        process.stdout.close()
        assert process.wait(10) == -signal.SIGPIPE


@pytest.mark.costly
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize(("code", "ended"), [(0, 74), (7, 7)])
def test_output_that_is_lost_is_told(code: int, ended: int) -> None:
    """The command wrote into our pipe, and does not know that the disk is full."""
    command = [sys.executable, "-m", "kb", "run", "--", "sh", "-c", f"echo figures; exit {code}"]
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE)
    assert ran.returncode == ended
    assert ran.stderr == b"kb: the output of the command could not be written (No space left on device)\n"


def test_output_closed_early_is_no_end() -> None:
    ended = door(*python("import os, time; os.close(1); os.close(2); time.sleep(0.2); os._exit(7)"))
    assert ended.returncode == 7


@pytest.mark.thorough
def test_a_daemon_left_behind_does_not_hold_kb(tmp_path: Path) -> None:
    """And does not die of its next word."""
    go, mark = tmp_path / "go", tmp_path / "alive"
    waiting = f"until [ -e {go} ]; do sleep 0.02; done; echo late; echo later; echo alive > {mark}"
    ended = door("sh", "-c", f"({waiting}) & echo hi")
    assert (ended.returncode, ended.stdout) == (0, b"hi\n")
    go.touch()
    for _ in range(500):
        if mark.exists():
            return
        time.sleep(0.02)
    pytest.fail("the daemon died")


@pytest.mark.thorough
def test_something_left_behind_that_goes_on_writing_does_not_hold_kb(tmp_path: Path) -> None:
    """What it says later still comes where it would have come."""
    file = tmp_path / "out"
    code = "(for i in $(seq 60); do echo y; sleep 0.05; done) & head -c 3000000 /dev/zero; echo own; exit 4"
    with file.open("wb") as out:
        ended = door("bash", "-c", code, capture_output=False, stdout=out, stderr=-1)
    assert ended.returncode == 4
    said = file.read_bytes()
    assert said.count(b"\0") == 3000000
    assert b"own\n" in said
    assert said.count(b"y") < 60
    for _ in range(600):  # on a busy machine each `sleep` of the shell takes its time to start
        if file.read_bytes().count(b"y") == 60:
            return
        time.sleep(0.1)
    pytest.fail(f"of 60 lines {file.read_bytes().count(b'y')} came")


@pytest.mark.thorough
def test_the_childs_own_words_come_through_a_slow_reader() -> None:
    """Who reads slowly gets all that was written before the end, whatever is written after it."""
    code = "(while :; do echo y; sleep 0.01; done) & head -c 1500000 /dev/zero; echo own; exit 4"
    with subprocess.Popen([*DOOR, "bash", "-c", code], stdout=-1, start_new_session=True) as process:
        assert process.stdout
        said = b""
        while b"own" not in said and (data := os.read(process.stdout.fileno(), 20_000)):
            said += data
            time.sleep(0.03)
        assert process.wait(10) == 4
        os.killpg(process.pid, signal.SIGKILL)
    assert said.count(b"\0") == 1500000


def test_a_slow_reader_of_one_stream_does_not_hold_the_other() -> None:
    code = "import os; os.write(2, b'e'); os.write(1, b'x' * (8 << 20)); os.write(2, b'f')"
    with subprocess.Popen([*DOOR, *python(code)], stdout=-1, stderr=-1, bufsize=0) as process:
        assert process.stdout and process.stderr
        assert process.stderr.read(1) == b"e"
        size = 0
        while chunk := process.stdout.read(1 << 20):
            size += len(chunk)
        assert (size, process.stderr.read(), process.wait(10)) == (8 << 20, b"f", 0)


@pytest.mark.thorough
def test_throughput() -> None:
    """A hundred megabytes, beside the bare command, whose output costs nothing where it goes to."""
    code = "import os\nfor i in range(400): os.write(1, b'step 1 loss 2.31 failed 0\\n' * 10083)"
    seconds = []
    for command in (python(code), [*DOOR, *python(code)]):
        started = time.monotonic()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        seconds.append(time.monotonic() - started)
    assert seconds[1] < 1.0 + 20 * seconds[0]


# --- signals --------------------------------------------------------------------------------------------------------

TRAP = """
import os, signal, sys, time
def told(number, frame):
    os.write(1, b'%d\\n' % number)
    if number != signal.SIGUSR1: os._exit(40 + number)
for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1): signal.signal(one, told)
os.write(1, b'ready\\n')
while True: time.sleep(1)
"""


@pytest.mark.costly
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_kb_reaches_the_child(number: signal.Signals) -> None:
    with subprocess.Popen([*DOOR, *python(TRAP)], stdout=-1, stderr=-1) as process:
        assert process.stdout and process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGUSR1)
        assert process.stdout.readline() == b"%d\n" % signal.SIGUSR1
        process.send_signal(number)
        assert process.stdout.readline() == b"%d\n" % number
        assert process.wait(10) == 40 + number


COUNT = """
import os, signal, time
count = 0
def told(number, frame):
    global count
    count += 1
for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1): signal.signal(one, told)
os.write(1, b'ready\\n')
while not count: time.sleep(0.01)
end = time.monotonic() + 0.4
while time.monotonic() < end: time.sleep(0.01)
os.write(1, b'%d\\n' % count)
"""


def _count(send: Callable[[int], object], door: list[str] = DOOR) -> int:
    """How often a child counts what `send` sends to kb's process."""
    with subprocess.Popen([*door, *python(COUNT)], stdout=-1, start_new_session=True) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        send(process.pid)
        counted = int(process.stdout.readline())
        assert process.wait(10) == 0
    return counted


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_to_the_group_reaches_the_child_once(number: signal.Signals) -> None:
    """As a scheduler sends it. A trainer that saves at the first signal quits at the second."""
    assert _count(lambda pid: os.killpg(pid, number)) == 1
    assert _count(lambda pid: os.kill(pid, number)) == 1


@pytest.mark.thorough
def test_a_signal_to_the_group_reaches_the_child_once_through_two() -> None:
    assert _count(lambda pid: os.killpg(pid, signal.SIGTERM), door=[*DOOR, *DOOR]) == 1
    assert _count(lambda pid: os.kill(pid, signal.SIGTERM), door=[*DOOR, *DOOR]) == 1


@pytest.mark.thorough
def test_a_signal_to_each_process_of_a_job_reaches_the_child_once() -> None:
    """As systemd and Slurm do it, one by one."""

    def each(group: int) -> None:
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.getpgid(int(folder.name)) == group:
                    os.kill(int(folder.name), signal.SIGTERM)

    assert _count(each) == 1


@pytest.mark.thorough
def test_a_signal_to_kb_and_then_to_its_group_is_one() -> None:
    """As timeout(1) does it."""

    def both(pid: int) -> None:
        os.kill(pid, signal.SIGTERM)
        os.killpg(pid, signal.SIGTERM)

    assert _count(both) == 1


@pytest.mark.thorough
def test_each_of_several_signals_is_told_apart() -> None:
    code = COUNT.replace("end = time.monotonic() + 0.4", "end = time.monotonic() + 1.5")
    with subprocess.Popen([*DOOR, *python(code)], stdout=-1, start_new_session=True) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        for send in (os.killpg, os.kill, os.killpg, os.kill, os.kill):
            send(process.pid, signal.SIGTERM)
            time.sleep(0.2)
        assert process.stdout.readline() == b"5\n"


@pytest.mark.thorough
def test_nothing_of_kb_is_left(tmp_path: Path) -> None:
    """Neither after the command's end nor after a SIGKILL of kb."""
    for kill in (False, True):
        with subprocess.Popen([*DOOR, "sleep", "1" if kill else "0.1"], start_new_session=True) as process:
            if kill:
                time.sleep(0.5)
                process.kill()
        for _ in range(250):
            try:
                os.killpg(process.pid, 0)
            except ProcessLookupError:
                break
            time.sleep(0.02)
        else:
            pytest.fail("a process is left")


# --- a terminal -----------------------------------------------------------------------------------------------------


class Terminal:
    """A command in a terminal of 100 columns and 30 lines."""

    def __init__(self, *command: str) -> None:
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.execv(command[0], command)
        self.shown = b""
        self.resize(30, 100)

    def resize(self, lines: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def until(self, text: bytes, seconds: float = 10) -> None:
        end = time.monotonic() + seconds
        while text not in self.shown and time.monotonic() < end:
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.shown += os.read(self.master, 65536)
                except OSError:
                    break
        assert text in self.shown, self.shown

    def end(self) -> int:
        with contextlib.suppress(OSError):
            while chunk := os.read(self.master, 65536):
                self.shown += chunk
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_a_terminal_stays_one_and_keeps_the_order() -> None:
    code = (
        "import os, sys\nprint([os.isatty(i) for i in range(3)], tuple(os.get_terminal_size()), flush=True)\n"
        "for i in range(50): os.write(1 + i % 2, b'%d,' % i)\n"
        "print()\nprint('got', input('name? '))\nsys.exit(5)"
    )
    screen = Terminal(*DOOR, "sh", "-c", 'sleep 0.1; exec "$@"', "sh", *python(code))
    screen.until(b"name? ")
    screen.type("库\n".encode())
    screen.until(b"got ")
    assert screen.end() == 5
    assert b"[True, True, True] (100, 30)\r\n" in screen.shown
    assert b",".join(b"%d" % i for i in range(50)) in screen.shown
    assert "name? 库\r\ngot 库\r\n".encode() in screen.shown  # echoed once, no line end doubled


def test_the_size_of_the_window_follows() -> None:
    code = (
        "import os, signal, time\n"
        "def told(*_): print(tuple(os.get_terminal_size(1)), tuple(os.get_terminal_size(0)), flush=True)\n"
        "signal.signal(signal.SIGWINCH, told)\nprint('ready', flush=True)\n"
        "for _ in range(99): time.sleep(0.05)"
    )
    screen = Terminal(*DOOR, *python(code))
    screen.until(b"ready")
    screen.resize(44, 133)
    screen.until(b"(133, 44) (133, 44)")
    screen.type(b"\x03")
    assert screen.end() == -signal.SIGINT


@pytest.mark.thorough
def test_a_key_reaches_the_child_once() -> None:
    code = (
        "import os, signal, time\nsignal.signal(signal.SIGINT, lambda *_: os.write(1, b'<int>'))\n"
        "print('ready', flush=True)\nfor _ in range(8): time.sleep(0.05)\n"
        "os.write(1, b'bye')"
    )
    screen = Terminal(*DOOR, *python(code))
    screen.until(b"ready")
    screen.type(b"\x03")
    assert screen.end() == 0
    assert screen.shown.count(b"<int>") == 1
    assert b"bye" in screen.shown


def test_a_full_screen_program_gets_its_keys() -> None:
    """It sets the modes of the terminal that it writes to, as curses does."""
    code = "import os, tty\ntty.setraw(1)\nos.write(1, b'ready')\nos.write(1, b'<' + os.read(0, 1) + b'>')"
    screen = Terminal(*DOOR, *python(code))
    before = termios.tcgetattr(screen.master)[3]
    screen.until(b"ready")
    time.sleep(0.05)
    screen.type(b"q")  # no Enter
    screen.until(b"<q>")
    after = termios.tcgetattr(screen.master)[3]
    assert screen.end() == 0
    assert after == before or not after & termios.ICANON
    assert b"ready<q>" in screen.shown  # not echoed


def test_errors_to_a_file_stay_apart_from_the_terminal(tmp_path: Path) -> None:
    code = "import os; print(os.isatty(1), os.isatty(2)); os.write(2, b'secret')"
    file = tmp_path / "err"
    screen = Terminal("/bin/sh", "-c", f'"$@" 2>{file}', "sh", *DOOR, *python(code))
    assert screen.end() == 0
    assert screen.shown == b"True False\r\n"
    assert file.read_bytes() == b"secret"


# --- the explanation ------------------------------------------------------------------------------------------------


def test_nothing_is_said_of_success(kb: Callable[..., subprocess.CompletedProcess[bytes]]) -> None:
    ended = kb("--", "sh", "-c", f"echo '{DEQUE}' >&2")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", DEQUE.encode() + b"\n")


def test_a_known_failure_is_explained(kb: Callable[..., subprocess.CompletedProcess[bytes]], tmp_path: Path) -> None:
    noise = "for i in range(40000): print('step', i, 'loss 2.31')"
    code = f"import sys  # deepspeed\n{noise}\nprint('{DEQUE}', file=sys.stderr, flush=True)\n{noise}\nsys.exit(3)"
    report = tmp_path / "why.json"
    ended = kb("--report", str(report), *python(code))
    assert ended.returncode == 3
    assert ended.stdout.count(b"\n") == 80000
    told = ended.stderr.decode()
    assert told.startswith(f"{DEQUE}\n── kb: exit code 3")
    assert DEQUE_ISSUE in told
    assert "In short: " in told
    assert "Try first:" in told
    assert told[told.index("── kb") :].count("\n") <= 15
    form = json.loads(report.read_text("utf-8"))
    assert (form["code"], form["signal"], form["answered"]) == (3, None, True)
    assert form["record"]["issue"] == DEQUE_ISSUE


@pytest.mark.thorough
def test_an_unknown_failure_is_one_line(kb: Callable[..., subprocess.CompletedProcess[bytes]]) -> None:
    ended = kb("--", "sh", "-c", "echo the flat tyre >&2; exit 9")
    assert ended.returncode == 9
    assert ended.stderr.endswith(b"\nkb: exit code 9; not known to kb\n")
    assert ended.stderr.count(b"\n") == 2
    glued = kb("--", "sh", "-c", "printf 'the flat tyre' >&2; exit 9")
    assert glued.stderr == b"the flat tyre\nkb: exit code 9; not known to kb\n"


@pytest.mark.costly
@pytest.mark.parametrize(("lang", "said"), [("en", "a line is like one of a known issue"), ("zh", "一个已知问题")])
def test_what_kb_knows_of_software_that_nothing_names_is_one_line_without_a_remedy(
    kb: Callable[..., subprocess.CompletedProcess[bytes]], monkeypatch: pytest.MonkeyPatch, lang: str, said: str
) -> None:
    """`not known` would be untrue."""
    monkeypatch.setenv("KB_LANG", lang)
    ended = kb("--", "sh", "-c", f"echo '{DEQUE}' >&2; exit 9")
    told = ended.stderr.decode().splitlines()
    assert told[0] == DEQUE
    assert told[1].startswith("kb: exit code 9; ")
    assert said in told[1]
    assert told[1].endswith(f"kb show '{DEQUE_ISSUE}'")
    assert len(told) == 2


def test_a_signal_is_named(kb: Callable[..., subprocess.CompletedProcess[bytes]]) -> None:
    ended = kb("--", "sh", "-c", "kill -9 $$")
    assert ended.returncode == -signal.SIGKILL
    assert ended.stderr == b"kb: ended by SIGKILL; not known to kb\n"


@pytest.mark.thorough
def test_after_ctrl_c_nothing_is_asked(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Launchers catch it, and end with an exit code of their own."""
    monkeypatch.setenv("KB_INDEX", str(index))
    code = (
        "import signal, sys, time  # deepspeed\n"
        f"def stop(*_): print('{DEQUE}', file=sys.stderr); sys.exit(1)\n"
        "signal.signal(signal.SIGINT, stop)\nprint('ready', flush=True)\ntime.sleep(30)"
    )
    for send in (os.kill, os.killpg):
        with subprocess.Popen([*KB, *python(code)], stdout=-1, stderr=-1, start_new_session=True) as process:
            assert process.stdout and process.stderr and process.stdout.readline() == b"ready\n"
            send(process.pid, signal.SIGINT)
            assert process.stderr.read() == f"{DEQUE}\n".encode()
            assert process.wait(30) == 1


@pytest.mark.thorough
def test_the_cause_among_many_failures(kb: Callable[..., subprocess.CompletedProcess[bytes]]) -> None:
    """Before the tail, after many warnings."""
    cause = "RuntimeError: CUDA error: invalid device ordinal"
    code = (
        "import sys\nfor i in range(40): print(f'WARN retry {i}: connection failed, will retry')\n"
        f"print('{cause}')\n"
        "for i in range(40000): print(f'node1:44:44 [0] NCCL INFO Channel {i:02}/08 : 0[0] -> 1[0] via P2P')\n"
        "sys.exit(1)"
    )
    ended = kb("--", *python(code))
    assert "this is a known issue" in ended.stderr.decode()
    assert "cuda-invalid-device-ordinal#1" in ended.stderr.decode()


@pytest.mark.thorough
def test_a_kb_in_a_kb_explains_once(kb: Callable[..., subprocess.CompletedProcess[bytes]], tmp_path: Path) -> None:
    scripts = ((f"{FAILING} 4", DEQUE_ISSUE), ("echo the flat tyre >&2; exit 4", "not known to kb"))
    for script, answer in scripts:
        ended = kb("--", *KB, "--", "sh", "-c", script)
        told = ended.stderr.decode()
        assert ended.returncode == 4
        assert told.count("kb: exit code 4") == 1
        assert answer in told
    assert kb("--", *KB, "no-such-command-anywhere").stderr.count(b"\n") == 1
    report = tmp_path / "why.json"
    kb("--report", str(report), "--", *KB, "--", "sh", "-c", f"{FAILING} 4")
    assert json.loads(report.read_text("utf-8"))["record"]["issue"] == DEQUE_ISSUE


@pytest.mark.thorough
def test_what_fails_after_a_kb_in_a_kb_is_explained(kb: Callable[..., subprocess.CompletedProcess[bytes]]) -> None:
    script = f"{' '.join(KB)} -- sh -c 'echo unsupported thing: failed; exit 4'; {FAILING} 5"
    told = kb("--", "sh", "-c", script).stderr.decode()
    assert told.count("kb: exit code 4") == 1
    assert told.count("kb: exit code 5; this is a known issue") == 1
    assert DEQUE_ISSUE in told


@pytest.mark.thorough
def test_a_kb_in_a_kb_at_a_terminal(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KB_INDEX", str(index))
    screen = Terminal(*KB, "--", *KB, "--", "sh", "-c", f"{FAILING} 4")
    assert screen.end() == 4
    assert screen.shown.count(b"kb: exit code 4") == 1


def test_whoever_pressed_ctrl_c_knows_why(kb: Callable[..., subprocess.CompletedProcess[bytes]]) -> None:
    ended = kb("--", "sh", "-c", "kill -INT $$")
    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, b"")


@pytest.mark.thorough
def test_a_base_that_is_broken_changes_nothing(kb: Callable[..., Any], index: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "manifest.json").write_text("{")
    for where in (broken, tmp_path / "none"):
        ended = kb("--index", str(where), "--", "sh", "-c", "echo out; echo err >&2; exit 6")
        assert (ended.returncode, ended.stdout) == (6, b"out\n")
        assert ended.stderr.startswith(b"err\nkb: ")


def test_usage(kb: Callable[..., subprocess.CompletedProcess[bytes]]) -> None:
    assert kb().returncode == 2
    ended = kb("no-such-command-anywhere", "--option")
    assert (ended.returncode, ended.stderr) == (127, b"kb: no-such-command-anywhere: command not found\n")


def test_the_child_starts_before_anything_heavy_is_loaded() -> None:
    code = (
        "import sys, json\nfrom kb.cli import cli, run as door\nfrom kb.run import run\nrun(['true'])\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    loaded = set(json.loads(subprocess.run(python(code), stdout=-1, check=True).stdout))
    assert not loaded & {"numpy", "faiss", "rich", "kb.base", "kb.scan", "kb.cli.render", "kb.logs.fingerprints"}


# --- the tail -------------------------------------------------------------------------------------------------------


TOLD = b"Traceback (most recent call last):\n  File 'x.py', line 3, in f\n    raise E\nRuntimeError: first\n"


def _tail(said: bytes, size: int) -> Tail:
    tail = Tail()
    for at in range(0, len(said), size):
        tail.add(said[at : at + size])
    return tail


@pytest.mark.thorough
def test_the_tail_is_bounded_and_remembers_the_first_failures() -> None:
    healthy = b"step 1 loss 2.31\n" * 20_000
    said = b"start\n" + TOLD + healthy + b"\nlast"
    read = {_tail(said, size).read() for size in (1, 7, 100, 4096, 1 << 20)}
    (kept,) = read  # where a piece ends changes nothing
    assert len(kept) < TAIL_BYTES + (80 << 10)
    assert kept.startswith(b"start\n" + TOLD)
    assert kept.endswith(b"\nlast")
    assert not _tail(said, 9).ends_a_line


def test_a_line_of_one_stream_is_not_glued_to_the_others() -> None:
    """What is buffered ends in the middle of a line."""
    tail = Tail()
    tail.add(b"step 1 loss 2.31\nstep 2 lo", 1)
    tail.add(TOLD, 2)
    tail.add(b"ss 2.30\n" + b"step 3 loss 2.29\n" * 20_000, 1)
    assert b"\n" + TOLD in tail.read()


def test_the_tail_remembers_a_failure_among_others() -> None:
    """A flood of the same line, of warnings, and of many others before it."""
    flood = b"".join(b"[%d] connection to 10.0.0.%d failed: error\n" % (i, i % 250) for i in range(20_000))
    names = [b"%c%c%c" % (97 + i % 26, 97 + i // 26 % 26, 97 + i // 676) for i in range(3000)]
    warnings = b"".join(b"WARNING %s failed\n" % name for name in names[:300])
    others = b"".join(b"error: %s is gone\n" % name for name in names)
    healthy = b"step 1 loss 2.31\n" * 20_000
    for before, after in ((flood, flood), (b"", warnings), (others, b""), (others, warnings[:5000])):
        kept = _tail(before + TOLD + after + healthy, 4096).read()
        assert TOLD in kept
        assert len(kept) < TAIL_BYTES + (80 << 10)
    assert b"WARNING" not in _tail(warnings + healthy, 4096).read()


@pytest.mark.thorough
def test_the_tail_of_distinct_failures_is_bounded_in_memory_and_time() -> None:
    said = [b"error: %r is gone\n" % f"{i:032x}".translate({48 + n: 97 + n for n in range(10)}) for i in range(100_000)]
    check_growth(lambda lines: lambda: _tail(b"".join(said[:lines]), 1 << 16), 12_500)
    assert len(_tail(b"".join(said), 1 << 16).read()) < TAIL_BYTES + (80 << 10)
    assert len(_tail(b"error " * 200_000, 1 << 16).read()) < TAIL_BYTES + (80 << 10)
