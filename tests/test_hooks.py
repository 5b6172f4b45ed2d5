"""Inside somebody else's program: what is known is said once, and whatever goes wrong with kb, the program goes on as
it would have without."""

from __future__ import annotations

import doctest
import io
import logging
import os
import re
import subprocess
import sys
import textwrap
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import NOISE_S, Write, article, cpu_seconds

import kb
from kb.brief import known_issue
from kb.errors import IndexCorrupt, IndexMissing
from kb.hooks import excepthook, guard, logs
from kb.hooks.hint import hint, is_failure, question
from kb.index import trust

KNOWN = "ms-swift-ovis2-grpo#2"
SHOWN = f"kb show '{KNOWN}'"


def _raised(work: Callable[[], object]) -> BaseException:
    try:
        work()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def _pop() -> None:
    deque[int]().popleft()


@pytest.fixture
def base(index: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The project's own base is the one that is asked, in a program that has loaded DeepSpeed."""
    monkeypatch.setitem(sys.modules, "deepspeed", ModuleType("deepspeed"))
    monkeypatch.setenv("KB_INDEX", str(index))
    guard._base.cache_clear()
    yield
    guard._base.cache_clear()


# --- faults ---------------------------------------------------------------------------------------------------------

released = threading.Event()


class _Hangs:
    def search(self, *_: object, **__: object) -> None:
        released.wait(20)


class _Raises:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def search(self, *_: object, **__: object) -> None:
        raise self.error


def _missing(index: str | None) -> Any:
    raise IndexMissing("there is no index here")


def _corrupt(index: str | None) -> Any:
    raise IndexCorrupt("damaged")


FAULTS: dict[str, Callable[[str | None], Any]] = {
    "missing": _missing,
    "corrupt": _corrupt,
    "hangs": lambda index: _Hangs(),
    "error": lambda index: _Raises(ValueError("oops")),
    "exits": lambda index: _Raises(SystemExit(3)),
    "interrupts": lambda index: _Raises(KeyboardInterrupt()),
    "no memory": lambda index: _Raises(MemoryError()),
    "too deep": lambda index: _Raises(RecursionError()),
}


@pytest.fixture(params=FAULTS)
def fault(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(guard, "_base", FAULTS[request.param])
    released.clear()
    yield request.param
    released.set()


def test_a_guard_gives_nothing_and_says_so_in_one_debug_line(fault: str, caplog: pytest.LogCaptureFixture) -> None:
    one = guard.Guard()
    with caplog.at_level(logging.DEBUG, "kb"):
        started = time.monotonic()
        assert one.ask_in_time(lambda: "pop from an empty deque", seconds=0.2) is None
        assert time.monotonic() - started < 20  # what hangs does so for ever
    assert [record.levelno for record in caplog.records] == [logging.DEBUG]


def test_after_a_question_that_hangs_nobody_waits_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "_base", FAULTS["hangs"])
    released.clear()
    one = guard.Guard("somewhere")
    assert one.ask_in_time(lambda: "q", seconds=0.1) is None
    started = time.monotonic()
    for _ in range(100):
        assert one.ask_in_time(lambda: "q", seconds=5) is None
    assert time.monotonic() - started < 100  # not 5 s each
    released.set()


def test_no_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    assert guard.Guard().ask_in_time(lambda: "q") is None


def test_a_question_that_cannot_be_put(base: None) -> None:
    def bad() -> str:
        raise SystemExit

    assert guard.Guard().ask_in_time(bad, seconds=10) is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_waits_for_what_is_being_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = threading.Event(), threading.Event()

    def slow(index: str | None) -> Any:
        begun.set()
        time.sleep(0.2)
        ended.set()
        raise IndexMissing("no")

    monkeypatch.setattr(guard, "_base", slow)
    worker = threading.Thread(target=guard.Guard().ask, args=(lambda: "q",))
    worker.start()
    assert begun.wait(10)
    child = os.fork()
    if not child:
        os._exit(0 if ended.is_set() and not guard._gate.torn else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    worker.join()


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_waits_once_for_what_hangs_and_its_child_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "_base", FAULTS["hangs"])
    monkeypatch.setattr(guard, "FORK_S", 0.5)
    released.clear()
    worker = threading.Thread(target=guard.Guard().ask, args=(lambda: "q",))
    worker.start()
    while not guard._gate._inside:
        time.sleep(0.001)
    started = time.monotonic()
    for _ in range(20):
        child = os.fork()
        if not child:
            os._exit(0 if guard._gate.torn and guard.Guard().ask(lambda: "q") is None else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert time.monotonic() - started < 5  # not 0.5 s each
    assert not guard._gate.torn
    released.set()
    worker.join()


@pytest.mark.parametrize("articles", ["here", "bundled"])
def test_a_hook_makes_no_index(
    articles: str, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if articles == "here":
        monkeypatch.chdir(write({"en/a.md": article("boom")}).parent)
    guard._base.cache_clear()
    with caplog.at_level(logging.DEBUG, "kb"):
        assert guard.Guard().ask_in_time(lambda: "boom", 10) is None
    assert [path.name for path in (tmp_path / "home").rglob("*") if path.is_file()] in ([], [guard.TOLD])
    assert [record.levelno for record in caplog.records] == [logging.DEBUG]


def test_a_hook_uses_what_the_cache_holds_and_does_not_renew_it(
    write: Write, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = write({"en/a.md": article("boom the flux capacitor")})
    trust.remember(folder.parent, True)
    monkeypatch.chdir(folder.parent)
    kb.KnowledgeBase.open().close()
    caplog.clear()
    write({"en/b.md": article("another")})
    guard._base.cache_clear()
    found = guard.Guard().ask_in_time(lambda: "RuntimeError: boom the flux capacitor", 10)
    guard._base.cache_clear()
    assert found is not None and found.hits[0].issue == "a#1"
    assert not caplog.records


def test_what_kb_warns_of_meanwhile_is_not_the_hosts_concern(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def warns(index: str | None) -> Any:
        logging.getLogger("kb").warning("stale")
        raise IndexMissing("no")

    monkeypatch.setattr(guard, "_base", warns)
    assert guard.Guard().ask_in_time(lambda: "q", 10) is None
    logging.getLogger("kb").warning("of the host's own base")
    assert _told(caplog) == ["of the host's own base"]


# --- exceptions -----------------------------------------------------------------------------------------------------


class _Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """What reached the hooks that were there before, with ours put over them."""
    seen: list[object] = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, trace: seen.append(error))
    monkeypatch.setattr(threading, "excepthook", lambda args: seen.append(args.exc_value))
    kb.install_excepthook(seconds=10)
    yield seen
    kb.uninstall_excepthook()


def _uncaught(error: BaseException) -> None:
    sys.excepthook(type(error), error, error.__traceback__)


def _chained() -> None:
    try:
        _pop()
    except IndexError as error:
        raise RuntimeError("the step failed") from error


def _context() -> None:
    try:
        raise KeyError("x")
    except KeyError:
        _pop()


@pytest.mark.parametrize("work", [_pop, _chained, _context])
def test_what_is_known_is_said(
    work: Callable[[], None], base: None, printed: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    error = _raised(work)
    _uncaught(error)
    assert printed == [error]
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("\nkb: known issue (")
    assert "IndexError: pop from an empty deque" in err
    assert re.search(r"^  In short: .{20,260}$", err, re.MULTILINE)
    assert 'pip install -U "deepspeed>=0.19.2"' in err
    assert SHOWN in err
    assert len(err.splitlines()) <= 13


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exception groups came with Python 3.11")
def test_a_group_is_known_by_what_is_in_it(
    base: None, printed: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    group: Any = vars(__import__("builtins"))["BaseExceptionGroup"]
    _uncaught(group("several", [KeyboardInterrupt(), _raised(_pop)]))
    assert SHOWN in capsys.readouterr().err
    assert not is_failure(group("several", [KeyboardInterrupt(), group("more", [SystemExit()])]))


def test_in_chinese(base: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "excepthook", lambda *_: None)
    monkeypatch.setattr(threading, "excepthook", lambda *_: None)
    kb.install_excepthook(seconds=10, lang="zh")
    _uncaught(_raised(_pop))
    kb.uninstall_excepthook()
    err = capsys.readouterr().err
    assert "已知问题" in err and "一句话：" in err and "先试：" in err and "查看全文" in err


@pytest.mark.parametrize(
    "error",
    [
        KeyboardInterrupt(),
        SystemExit(2),
        GeneratorExit(),
        ValueError("bad value"),
        ZeroDivisionError("division by zero"),
        _Unprintable(),
        ValueError("x" * 5_000_000),
        MemoryError(),
        UnicodeError("\udc80\x1b]52;c;\x07"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_of_what_is_not_known_nothing_is_said(
    error: BaseException, base: None, printed: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    _uncaught(error)
    assert printed == [error]
    assert capsys.readouterr() == ("", "")


def test_a_thousand_frames(base: None, printed: list[object]) -> None:
    def deeper() -> None:
        deeper()

    error = _raised(deeper)
    assert isinstance(error, RecursionError)
    assert len(question(error)) < 20_000
    _uncaught(error)
    assert printed == [error]


def test_a_line_for_the_unknown_where_it_is_wanted(
    base: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "excepthook", lambda *_: None)
    monkeypatch.setattr(threading, "excepthook", lambda *_: None)
    kb.install_excepthook(seconds=10, say_unknown=True)
    _uncaught(ValueError("bad value"))
    _uncaught(KeyboardInterrupt())
    kb.uninstall_excepthook()
    assert capsys.readouterr().err == "\nkb: not known · 未收录\n"


def test_threads_that_die_of_the_same_are_told_once(
    base: None, printed: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(3):
        thread = threading.Thread(target=_pop)
        thread.start()
        thread.join()
    assert len(printed) == 3
    assert capsys.readouterr().err.count(SHOWN) == 1


def test_a_host_is_as_it_was(
    fault: str, printed: list[object], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kb.install_excepthook(seconds=0.2)
    error = _raised(_pop)
    started = time.monotonic()
    _uncaught(error)
    _uncaught(error)
    assert time.monotonic() - started < 20
    assert printed == [error, error]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("broken", [None, io.TextIOWrapper(io.BytesIO(), encoding="ascii")], ids=["none", "ascii"])
def test_a_stderr_that_takes_nothing(
    broken: Any, base: None, printed: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    if broken is not None:
        broken.close()
    monkeypatch.setattr(sys, "stderr", broken)
    _uncaught(_raised(_pop))
    assert len(printed) == 1


def test_the_end_of_a_program_is_told_whatever_its_threads_did(
    base: None, printed: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    hook = excepthook._hook
    assert hook is not None
    for _ in range(50):
        hook._limiter_of_threads.take()
    released.clear()
    hook._of_threads._worker = threading.Thread(target=released.wait, args=(20,))  # a thread's hint that hangs
    hook._of_threads._worker.start()
    for _ in range(10):
        _uncaught(ValueError("bad value"))
    _uncaught(_raised(_pop))
    released.set()
    assert SHOWN in capsys.readouterr().err


def test_of_a_giant_message_little_is_looked_at() -> None:
    def giant(size: int) -> ValueError:
        error = ValueError("first" + "x\n" * (size // 2) + "last")
        if sys.version_info >= (3, 11):
            error.add_note("y" * size)
        error.__cause__ = ValueError("z" * size)
        return error

    small, large = giant(1_000_000), giant(40_000_000)
    least = [min(cpu_seconds(partial(question, error)) for _ in range(5)) for error in (small, large)]
    assert least[1] < 4 * least[0] + NOISE_S  # not 40 times as long
    asked = question(large)
    assert len(asked) <= 2 * guard.MAX_TEXT + 3
    assert "ValueError: z" in asked
    assert guard.clip("a" + "x" * 100_000 + "b")[:: 2 * guard.MAX_TEXT + 2] == "ab"


def test_hooks_over_ours_and_below(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    calls: list[str] = []
    below, below_thread = (lambda *_: calls.append("below")), (lambda *_: calls.append("thread"))
    monkeypatch.setattr(sys, "excepthook", below)
    monkeypatch.setattr(threading, "excepthook", below_thread)
    monkeypatch.setattr(excepthook._Hook, "_hint", lambda *_: calls.append("kb") or "")
    kb.install_excepthook()
    kb.install_excepthook()
    _uncaught(ValueError())
    assert calls == ["below", "kb"]
    kb.uninstall_excepthook()
    assert sys.excepthook is below
    assert threading.excepthook is below_thread
    kb.uninstall_excepthook()

    calls.clear()
    kb.install_excepthook()
    ours = sys.excepthook
    monkeypatch.setattr(sys, "excepthook", lambda *args: (calls.append("over"), ours(*args)))
    kb.uninstall_excepthook()
    _uncaught(ValueError())
    assert calls == ["over", "below"]


def test_what_an_article_holds_cannot_move_the_cursor(index: Path, base: None) -> None:
    with kb.KnowledgeBase.open(index) as opened:
        result = opened.search("pop from an empty deque", 1)
    nasty = "\x1b]52;c;aGk=\x07 \u202e evil\r"
    fix = f"1. {nasty}\n\n   ```bash\n   {nasty}\n   ```\n"

    def told(**changes: str) -> str:
        hit = replace(result.hits[0], record=replace(result.hits[0].record, **changes))
        found = hint(replace(result, verdict="known", hits=(hit,)))
        assert found is not None
        return found.text

    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", told(title=nasty, summary=nasty, cause=nasty, fix=fix))
    assert told(summary="", cause="", fix="").count("\n") == 2


# --- a program of its own -------------------------------------------------------------------------------------------


def _python(code: str, index: Path | str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    # On a busy machine a start alone may take longer than a program would wait.
    patient = "from kb.hooks import guard; guard.PATIENCE_S = guard.FORK_S = 20\n"
    return subprocess.run(
        [sys.executable, *options, "-c", patient + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        env={**os.environ, "KB_INDEX": str(index), "PYTHONIOENCODING": "utf-8", **environment},
    )


FAILING = """
import sys
sys.modules["deepspeed"] = sys
import kb
{}
from collections import deque
print("working")
deque().popleft()
"""


def test_a_program_that_ends(index: Path) -> None:
    plain = _python(FAILING.format(""), index)
    ended = _python(FAILING.format("kb.install_excepthook(seconds=20)"), index)
    assert (ended.returncode, ended.stdout) == (plain.returncode, plain.stdout) == (1, "working\n")
    before, _, after = ended.stderr.partition("\nkb: known issue")
    assert before == plain.stderr
    assert SHOWN in after


@pytest.mark.costly
@pytest.mark.parametrize("where", ["/nowhere", "here is no index"])
def test_a_program_without_an_index(where: str) -> None:
    ended = _python(FAILING.format("kb.install_excepthook()"), where)
    assert ended.returncode == 1
    assert "kb:" not in ended.stderr


@pytest.mark.thorough
def test_a_program_whose_search_hangs_ends_in_time(index: Path) -> None:
    hang = """
    import threading, time
    from kb.hooks import guard
    from kb.index import trust
    guard._base = lambda index: time.sleep(100)
    kb.install_excepthook(seconds=0.3)
    """
    started = time.monotonic()
    ended = _python(FAILING.format(textwrap.dedent(hang)), index)
    assert time.monotonic() - started < 10
    assert ended.returncode == 1
    assert ended.stderr.endswith("IndexError: pop from an empty deque\n")


def test_installing_loads_nothing_heavy() -> None:
    code = """
    import sys
    import kb
    light = set(sys.modules)
    kb.install_excepthook()
    heavy = {"numpy", "faiss", "logging", "kb.base", "kb.cli.render", "traceback", "json"}
    print(sorted((set(sys.modules) - light) & heavy))
    kb.uninstall_excepthook()
    """
    ended = _python(code, "", "-I")
    assert ended.stdout == "[]\n", ended.stderr


def test_importing_kb_imports_little_else() -> None:
    """Counted, for milliseconds are the machine's; scripts/cold_start.py measures those."""
    code = "import sys; before = set(sys.modules); import kb; print(*sorted(set(sys.modules) - before))"
    assert set(_python(code, "").stdout.split()) <= {"__future__", "kb"}


# --- logging --------------------------------------------------------------------------------------------------------


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    """A logger of a program that nobody else listens to; what kb says of it is in caplog."""
    logger = logging.Logger("train")
    yield logger
    for handler in logger.handlers[:]:
        logger.removeHandler(handler)
        handler.close()


def _told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_a_logged_exception_is_explained_once(
    base: None, log: logging.Logger, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "PATIENCE_S", 30)
    handler = kb.KbHandler()
    log.addHandler(handler)
    for step in range(50):
        try:
            _pop()
        except IndexError:
            log.exception("step %d failed", step)
    log.error("IndexError: pop from an empty deque")
    log.warning("ValueError: Can't find a valid checkpoint at /exp/checkpoint-1200")
    log.error("bad value 3")
    handler.flush()
    (told,) = _told(caplog)
    assert SHOWN in told


def test_messages_that_differ_in_numbers_are_one_question(log: logging.Logger, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(guard.Guard, "ask", lambda self, question: asked.append(question()))
    handler = kb.KbHandler(per_minute=5)
    log.addHandler(handler)
    for step in range(100):
        log.error("worker %d: lost %.2f of the batch", step, step / 7)
    handler.flush()
    assert asked == ["worker 0: lost 0.00 of the batch"]
    for step in range(100):
        log.error("worker %s", "a" * step)
        handler.flush()
    assert len(asked) == 5


@pytest.mark.thorough
def test_a_log_is_never_held_up(
    fault: str, log: logging.Logger, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "PATIENCE_S", 0.3)
    handler = kb.KbHandler(per_minute=1_000_000)
    log.addHandler(handler)
    started = time.monotonic()
    for step in range(2000):
        log.error("failed: %s", "x" * step)
    assert time.monotonic() - started < 60  # not 0.3 s each
    assert handler._waiting.qsize() <= logs.MAX_WAITING
    for _ in range(5):
        handler.flush()
    handler.close()
    log.error("after the end")
    assert time.monotonic() - started < 90
    assert not _told(caplog)


class _Odd:
    def __str__(self) -> str:
        raise ValueError("no")


@pytest.mark.parametrize(
    ("message", "values"),
    [("%d", ("x",)), ("%s %s", ("one",)), ("%s", (_Odd(),)), (_Odd(), ())],
    ids=["type", "count", "argument", "message"],
)
def test_a_record_that_cannot_be_formatted(
    message: Any, values: tuple[object, ...], log: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "_base", _missing)
    handler = kb.KbHandler()
    log.addHandler(handler)
    log.error(message, *values)
    try:
        raise _Unprintable
    except _Unprintable:
        log.exception("failed")
    handler.flush()


def test_it_does_not_explain_itself(
    base: None, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "PATIENCE_S", 30)
    root = logging.getLogger()
    handler = kb.KbHandler(logging.DEBUG)
    root.addHandler(handler)
    try:
        logging.getLogger("train").error("IndexError: pop from an empty deque")
        with handler.lock or threading.Lock():  # as logging.shutdown does
            handler.flush()
        logging.getLogger("kb").error("ValueError: Can't find a valid checkpoint at /exp/checkpoint-1200")
        handler.flush()
    finally:
        root.removeHandler(handler)
        handler.close()
    (told,) = _told(caplog)
    assert SHOWN in told


@pytest.mark.thorough
def test_a_program_without_another_handler_sees_what_it_saw(index: Path) -> None:
    code = """
    import logging, sys, kb
    sys.modules["deepspeed"] = sys
    if HOOKED:
        logging.getLogger().addHandler(kb.KbHandler())
    log = logging.getLogger("train")
    log.info("quiet")
    log.warning("disk nearly full")
    log.error("IndexError: pop from an empty deque")
    """
    plain = _python(code.replace("HOOKED", "False"), index)
    assert plain.stderr == "disk nearly full\nIndexError: pop from an empty deque\n"
    ended = _python(code.replace("HOOKED", "True"), index)
    before, _, after = ended.stderr.partition("kb: known issue")
    assert before == plain.stderr
    assert SHOWN in after


def test_with_a_handler_of_the_hosts_the_last_resort_is_silent(
    log: logging.Logger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guard, "_base", _missing)
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [logging.NullHandler(), kb.KbHandler()])
    logging.error("bad value")
    assert not capsys.readouterr().err
    monkeypatch.setattr(root, "handlers", [kb.KbHandler(), kb.KbHandler()])
    logging.error("bad value")
    assert capsys.readouterr().err == "bad value\n"


def test_nobody_who_logs_waits_for_the_last_words(log: logging.Logger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "_base", FAULTS["hangs"])
    released.clear()
    handler = kb.KbHandler()
    log.addHandler(handler)
    lock = handler.lock
    assert lock is not None
    lock.acquire()  # as logging.shutdown does
    other = threading.Thread(target=log.error, args=("failed",))
    other.start()
    other.join(5)
    assert not other.is_alive()
    lock.release()
    released.set()
    handler.flush()


def test_of_a_giant_message_little_is_formatted(log: logging.Logger, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(guard.Guard, "ask", lambda self, question: asked.append(question()))
    handler = kb.KbHandler()
    log.addHandler(handler)
    log.error("x" * 10_000_000)
    log.error("failed: %s", "y" * 10_000_000)
    handler.flush()
    assert [len(text) <= 2 * guard.MAX_TEXT + 20 for text in asked] == [True, True]


@pytest.mark.thorough
def test_the_last_words_of_a_program_are_explained(index: Path) -> None:
    code = """
    import logging, sys, kb
    sys.modules["deepspeed"] = sys
    logging.basicConfig()
    logging.getLogger().addHandler(kb.KbHandler())
    assert "numpy" not in sys.modules
    logging.error("IndexError: pop from an empty deque")
    sys.exit(3)
    """
    ended = _python(code, index)
    assert ended.returncode == 3
    assert ended.stderr.startswith("ERROR:root:IndexError")
    assert "WARNING:kb:kb: known issue" in ended.stderr and SHOWN in ended.stderr


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_forked_while_numpy_is_imported_explains_too(index: Path) -> None:
    """`_python` imports kb before logging: when logging's hook held its lock before kb's waited, a fork took 5 s."""
    code = """
    import logging, os, signal, sys, time, warnings, kb
    sys.modules["deepspeed"] = sys
    from kb.hooks import logs
    warnings.simplefilter("ignore")
    logs.PATIENCE_S = 20
    handler = kb.KbHandler()
    logging.basicConfig(handlers=[logging.StreamHandler(), handler])
    logging.error("something else")
    time.sleep(0.03)
    child = os.fork()
    if not child:
        signal.alarm(20)
        import numpy, faiss
        logging.error("IndexError: pop from an empty deque")
        handler.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    handler.flush()
    """
    ended = _python(code, index)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count(SHOWN) == 1


# --- IPython --------------------------------------------------------------------------------------------------------

CELLS = r"""
import sys
sys.modules["deepspeed"] = sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="NoColor")
if len(sys.argv) > 1:
    shell.run_line_magic("load_ext", "kb")
    assert "numpy" not in sys.modules
    from kb.hooks.guard import Guard
    Guard.ask_in_time.__defaults__ = (60,)  # a busy machine is slow, and then nothing is said
def cell(code):
    print("=====", flush=True)
    shell.run_cell(code, store_history=True)
cell("from collections import deque\ndeque().popleft()")
cell("int('x')")
cell("1 + 1")
if len(sys.argv) > 1:
    cell("%kb IndexError: pop from an empty {deque}")
    cell("%%kb\nTraceback (most recent call last):\n  File \"x.py\", line 3\nIndexError: pop from an empty deque\n")
    cell("%kb")
    cell("%kb how do I fix a flat tyre")
    cell("%unload_ext kb\n%reload_ext kb\n%unload_ext kb")
    cell("from collections import deque\ndeque().popleft()")
"""


def _cells(index: Path, *arguments: str) -> list[str]:
    pytest.importorskip("IPython", reason='needs IPython: pip install -e ".[dev]"')
    ended = subprocess.run(
        [sys.executable, "-c", CELLS, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        env={**os.environ, "KB_INDEX": str(index), "PYTHONIOENCODING": "utf-8"},
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split("=====\n")[1:]


def test_ipython(index: Path) -> None:
    plain, cells = _cells(index), _cells(index, "loaded")
    assert cells[0].startswith(plain[0])  # the traceback is IPython's own
    assert cells[0].removeprefix(plain[0]).startswith("kb: known issue")
    assert SHOWN in cells[0]
    assert cells[1:3] == plain[1:3]
    for cell in cells[3:5]:
        assert KNOWN in cell and "Try first:" in cell, cell
    assert "invalid literal for int" in plain[1]
    assert "Not known" in cells[5]  # the last exception, of the second cell
    assert "Not known" in cells[6]
    assert cells[8].replace("In[9]", "In[1]") == plain[0]


# --- pytest ---------------------------------------------------------------------------------------------------------

SUITE = """
from collections import deque

import pytest


def work():
    try:
        deque().popleft()  # of deepspeed
    except IndexError as error:
        raise RuntimeError("the step failed") from error


@pytest.mark.parametrize("i", range(3))
def test_known(i):
    work()


def test_unknown():
    assert 3 == 4


def test_passes():
    pass


@pytest.fixture
def broken():
    deque().popleft()  # of deepspeed


def test_error(broken):
    pass


@pytest.mark.xfail
def test_expected():
    work()


def test_last():
    import sys

    assert "numpy" not in sys.modules
"""


PATIENT = """
from kb.hooks.guard import Guard
Guard.ask_in_time.__defaults__ = (60.0,)  # a busy machine is no failure
"""


def _pytest(folder: Path, index: Path | str, *options: str, plugins: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "test_suite.py").write_text(SUITE, "utf-8")
    (folder / "patient.py").write_text(PATIENT, "utf-8")
    named = [part for plugin in ("kb.hooks.pytest_plugin", "patient", *plugins.split()) for part in ("-p", plugin)]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *named, *options, str(folder)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=folder,
        timeout=120,
        env={**os.environ, "KB_INDEX": str(index), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONIOENCODING": "utf-8"},
    )


SECTION = re.compile(r"-- (?:known issue · 已知问题|likely issue · 可能的问题) \(kb\) --")


@pytest.mark.thorough
def test_a_report_gets_a_section(tmp_path: Path, index: Path) -> None:
    ended = _pytest(tmp_path, index, "--kb", "-W", "error", "--junitxml", str(tmp_path / "r.xml"))
    assert ended.returncode == 1
    assert len(SECTION.findall(ended.stdout)) == ended.stdout.count(SHOWN) == 4, ended.stdout
    assert "5 failed, 1 passed, 1 xfailed, 1 error" in ended.stdout  # numpy is there when something is explained


def test_nothing_is_done_unless_asked_for(tmp_path: Path, index: Path) -> None:
    ended = _pytest(tmp_path, index)
    assert not SECTION.search(ended.stdout)
    assert "4 failed, 2 passed, 1 xfailed, 1 error" in ended.stdout


@pytest.mark.thorough
def test_asked_for_by_the_ini_file(tmp_path: Path, index: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nkb = true\naddopts = --strict-config\n", "utf-8")
    assert _pytest(tmp_path, index).stdout.count(SHOWN) == 4


@pytest.mark.thorough
def test_with_workers(tmp_path: Path, index: Path) -> None:
    pytest.importorskip("xdist", reason='needs pytest-xdist: pip install -e ".[dev]"')
    ended = _pytest(tmp_path, index, "--kb", "-n", "2", plugins="xdist.plugin")
    assert ended.stdout.count(SHOWN) == 4, ended.stdout
    assert "4 failed, 2 passed, 1 xfailed, 1 error" in ended.stdout  # the workers load nothing


@pytest.mark.thorough
def test_a_suite_without_an_index(tmp_path: Path) -> None:
    ended = _pytest(tmp_path, tmp_path / "nowhere", "--kb")
    assert not SECTION.search(ended.stdout)
    assert "failed" in ended.stdout and "INTERNALERROR" not in ended.stdout + ended.stderr


@pytest.mark.thorough
def test_a_suite_that_changes_its_home(tmp_path: Path, index: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import pytest\n@pytest.fixture(autouse=True)\ndef home(tmp_path, monkeypatch):\n"
        "    monkeypatch.delenv('KB_INDEX')\n    monkeypatch.setenv('HOME', str(tmp_path))\n"
        "    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path))\n    monkeypatch.chdir(tmp_path)\n",
        "utf-8",
    )
    made = tmp_path / "made"
    ended = _pytest(tmp_path, index, "--kb", "--basetemp", str(made))
    assert ended.stdout.count(SHOWN) == 4, ended.stdout
    assert not list(made.rglob("manifest.json"))


@pytest.mark.thorough
def test_a_module_that_cannot_be_collected(tmp_path: Path, index: Path) -> None:
    (tmp_path / "test_broken.py").write_text("from collections import deque\ndeque().popleft()  # deepspeed\n", "utf-8")
    ended = _pytest(tmp_path, index, "--kb")
    assert ended.stdout.count(SHOWN) == 1
    assert ended.returncode == 2


# --- what the docs say ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["python.md", "python.zh.md"])
def test_the_examples_of_the_docs_run(page: str, base: None) -> None:
    text = (Path(__file__).parents[1] / "docs" / page).read_text("utf-8")
    examples = "".join(re.findall(r"^```pycon\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    test = doctest.DocTestParser().get_doctest(examples, {}, page, page, 0)
    handlers = logging.getLogger().handlers[:]
    try:
        result = doctest.DocTestRunner(verbose=False).run(test)
    finally:
        logging.getLogger().handlers[:] = handlers
    assert result.failed == 0
    assert result.attempted > 10


def test_the_hint_in_the_docs_is_what_is_said(index: Path) -> None:
    """But for the lines of the fix that stand where the page says "…"."""
    for lang, page in (("en", "python.md"), ("zh", "python.zh.md")):
        text = (Path(__file__).parents[1] / "docs" / page).read_text("utf-8")
        shown = re.findall(r"^(kb: known.*?kb show.*?)$", text, re.MULTILINE | re.DOTALL)[0].splitlines()
        with kb.KnowledgeBase.open(index) as opened:
            hit = opened.search("IndexError: pop from an empty deque", 1, lang=lang).hits[0]  # type: ignore[arg-type]
        said = [re.sub(r"\(\d+%\)", "(%)", line) for line in known_issue(hit, 80)]
        assert [line for line in shown if re.sub(r"\(\d+%\)", "(%)", line) not in said] == []


HOST = "import kb; kb.install_excepthook(seconds=20); raise RuntimeError('boom')"


@pytest.mark.thorough
def test_a_new_user_is_told_once_why_the_hooks_are_silent(tmp_path: Path) -> None:
    def said(**environment: str) -> str:
        ran = subprocess.run(
            [sys.executable, "-c", HOST],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env={**os.environ, **environment},
        )
        return ran.stderr.partition("RuntimeError: boom\n")[2]

    assert said(XDG_CACHE_HOME="/dev/null/cache", HOME="/dev/null") == ""
    assert said(KB_INDEX="/nowhere") == ""
    first = said()
    assert "there is no index" in first
    assert "kb projects" in first
    assert said() == ""
