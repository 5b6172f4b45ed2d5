"""kb.logs.read: pasted texts and what identifies them, as a table in cases/signatures.json; hostile ones; time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import check_growth, examples
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.errors import QueryError
from kb.logs.codes import codes, contradicts
from kb.logs.prefix import strip_prefix
from kb.logs.read import MAX_LINE_CHARS, MAX_QUERY_CHARS, MAX_SIGNATURES, read
from kb.logs.variables import mask

CASES = json.loads((Path(__file__).parent / "cases" / "signatures.json").read_text("utf-8"))
POP = "IndexError: pop from an empty deque"


def _text(value: str | list[str]) -> str:
    """In the file a text of several lines is a list of them."""
    return value if isinstance(value, str) else "\n".join(value)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"].replace(" ", "-"))
def test_case(case: dict[str, Any]) -> None:
    query = read(_text(case["text"]))
    assert list(query.signatures) == case["signatures"]
    assert query.lang == case["lang"]
    if "prose" in case:
        assert query.prose == _text(case["prose"])


def test_the_table_covers_both_languages_and_every_form() -> None:
    assert len(CASES) >= 25
    assert len({case["name"] for case in CASES}) == len(CASES)
    assert sum(case["lang"] == "zh" for case in CASES) >= 4
    assert sum(not case["signatures"] for case in CASES) >= 4


def test_the_text_is_kept_as_it_was_pasted() -> None:
    text = "\x1b[31m[rank0]: RuntimeError: ＢＡＤ\x1b[0m\r\n"
    assert read(text).text == text


def test_frames_keep_file_and_function_once() -> None:
    frame = '[rank{}]:   File "/home/u{}/lib/python3.10/site-packages/torch/_tensor.py", line 58{}, in backward\n'
    log = "Traceback (most recent call last):\n" + "".join(frame.format(i, i, i) for i in range(4)) + POP
    assert read(log).context == "_tensor.py backward"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", " \n", "\n\t\n"], ids=repr)
def test_line_ends_do_not_matter(end: str) -> None:
    lines = [
        "训练报错，求助",
        "Traceback (most recent call last):",
        '  File "a.py", line 1, in f',
        "    g()",
        POP,
        "谢谢大家",
    ]
    query = read(end.join(lines) + end)
    assert query.signatures == (POP,)
    assert query.prose == "训练报错,求助\n谢谢大家"
    assert query.context == "a.py f\ng()"
    assert query.lang == "zh"


def test_the_last_error_is_foremost_and_there_are_not_too_many() -> None:
    names = ["Alpha", "Beta", "Gamma", "Delta", "Epsilon", "Zeta", "Eta"]
    found = read("\n".join(f"{name}Error: the {name} part is broken" for name in names)).signatures
    assert found == tuple(f"{name}Error: the {name} part is broken" for name in reversed(names))[:MAX_SIGNATURES]


def test_a_message_may_begin_below_the_name_of_the_exception() -> None:
    text = 'Traceback (most recent call last):\n  File "a", line 1, in f\nRuntimeError: \n\n    An attempt\nbye'
    assert read(text).signatures == ("RuntimeError: An attempt",)
    assert read("x y\nValueError:\n").signatures == ("ValueError:",)


def test_a_repeated_line_counts_where_it_stands_last() -> None:
    log = "RuntimeError: first at 0x7f01\nValueError: second\nRuntimeError: first at 0x7f02"
    assert read(log).signatures == ("RuntimeError: first at 0x7f02", "ValueError: second")


# --- prefixes -------------------------------------------------------------------------------------------------------

PREFIXES = [
    "[rank0]: ",
    "[rank12]:",
    "[Rank 3] ",
    "[0]: ",
    "rank3: ",
    "worker-1: ",
    "node_2: ",
    "2025-02-25 11:20:18,100 ",
    "[2025-02-25 11:20:18,655] ",
    "2025-02-25T11:20:18.123456Z ",
    "[11:20:18] ",
    "11:20:18.123 ",
    "E0225 11:20:18.142001       9 controller.go:54] ",
    "2025-02-25 11:20:18,100 ERROR (heartbeat 10.0.0.5(-1)|1) [Catalog.getRole():1021] ",
    "2025-02-25 11:20:18.123 ERROR 4312 --- [nio-8080-exec-1] o.a.c.c.Dispatcher   : ",
    "[2025-02-25 11:20:18,100] [main] ERROR org.example.Broker - ",
    "2025-02-25 11:20:18,100 ERROR [main] Node.java:54 - ",
    "E0225 11:20:18.100000 91 torch/distributed/run.py:793] ",
    "[E225 11:20:18.142813 ProcessGroupNCCL.cpp:616] ",
    "[E ProcessGroupNCCL.cpp:475] ",
    "(VllmWorker rank=1 pid=8812) ",
    "(RayTrainWorker pid=1234, ip=10.0.0.3) ",
    "[ERROR] ",
    "[INFO|trainer.py:2452] ",
    "ERROR 02-25 11:20:18 [core.py:390] ",
    "WARNING 02-25 11:20:18 engine.py:120] ",
    "[launch.py:325:sigkill_handler] ",
    ">> ",
    "| ",
    "+ ",
    "[2025-02-25 11:20:18 TP3] ",
    "[2025-02-25 11:20:18 DP0 TP3] ",
    "api-1     | ",
    "training_db_1  | ",
    "[pod/train-7d9c/main] ",
    "build\tRun tests\t2025-02-25T11:20:18.1234567Z ",
    "│ ",
    "E   ",
    "  [rank0]: ",
    "worker-1: [rank9]: ",
    "[rank3]:[E225 11:20:18.142 ProcessGroupNCCL.cpp:616] [Rank 3] ",
    "[2025-02-25 11:20:19,655] [ERROR] [launch.py:325:sigkill_handler] ",
    "(VllmWorker rank=0 pid=1) ERROR 04-02 09:11:07 [multiproc_executor.py:375] ",
]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_strip_prefix(prefix: str) -> None:
    assert strip_prefix(prefix + POP) == POP


@pytest.mark.parametrize(
    "prefix",
    ["[rank0]: ", "worker-1: [rank9]: ", "ERROR 02-25 11:20:18 [core.py:390] ", "api-1  | ", "[pod/a/b] ", "3: ", ""],
)
def test_what_is_indented_behind_a_prefix_stays_indented(prefix: str) -> None:
    assert strip_prefix(prefix + '  File "a.py", line 1, in f') == '  File "a.py", line 1, in f'


@pytest.mark.parametrize(
    "line",
    [
        POP,
        "RuntimeError: [Errno 28] No space left on device",
        "ERROR: Could not find a version that satisfies the requirement",
        "[Errno 2] No such file or directory",
        "rank 3 hangs",
        "2 GPUs, one dies",
        "error[E0382]: borrow of moved value",
        "worker process died",
        "",
    ],
)
def test_strip_prefix_leaves_a_message_alone(line: str) -> None:
    assert strip_prefix(line) == line


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ("at 0x7f3a9c00 of /home/li/train.py", "at # of /#"),
        (r"in C:\Users\li\train.py", "in /#"),
        ("Tried to allocate 12.41 GiB on GPU 3", "Tried to allocate # GiB on GPU #"),
        ("10.0.0.5:5432 12,345", "# #"),
        ("  many   spaces\t", "many spaces"),
        ("and/or", "and/or"),
        (POP, POP),
        ("", ""),
    ],
)
def test_mask(line: str, masked: str) -> None:
    assert mask(line) == masked


def test_mask_tells_messages_apart() -> None:
    assert mask("KeyError: 'lr'") != mask("KeyError: 'wd'")


# --- odd and long questions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\n\n\t",
        "!?",
        "。。。",
        "🙂",
        "---",
        "\x1b[31m\x1b[0m",
        "\x00\x07",
        "\u200b\ufeff",
        "\ud800",
        "_" * 9,
        "|",
    ],
    ids=ascii,
)
def test_a_question_without_a_word_is_refused(text: str) -> None:
    with pytest.raises(QueryError, match="nothing to look for") as caught:
        read(text)
    assert caught.value.hint


@pytest.mark.parametrize("text", ["a", "的", "7", "é", "a\ud800", "🙂 x", "[rank0]:"])
def test_a_question_of_one_character_is_a_question(text: str) -> None:
    query = read(text)
    assert query.text == text
    assert query.lang == ("zh" if text == "的" else "en")


@settings(max_examples=examples(300), deadline=None, derandomize=True, database=None)
@given(
    st.lists(
        st.one_of(
            st.text(alphabet=st.characters(exclude_categories=()), max_size=12),
            st.sampled_from(
                ["\n", "\r\n", "\r", POP, "[rank0]: ", "\x1b[31m", "100%|██", '  File "a.py", line 1, in f', "报错"]
            ),
            st.sampled_from(PREFIXES),
        ),
        max_size=25,
    ).map("".join)
)
def test_whatever_is_pasted_is_read_or_refused(text: str) -> None:
    try:
        query = read(text)
    except QueryError:
        return
    assert query.text == text
    assert len(query.signatures) <= MAX_SIGNATURES
    for part in (*query.signatures, query.prose, query.context):
        part.encode("utf-8")
        assert "\x1b" not in part
    assert not any("\n" in signature for signature in query.signatures)


@pytest.mark.parametrize("size", [MAX_QUERY_CHARS - len(POP), MAX_QUERY_CHARS, 1 << 20], ids=["just", "64KiB", "1MB"])
def test_the_last_line_of_a_long_log_is_read(size: int) -> None:
    filler = "INFO step done and all is well\n"
    query = read("训练日志\n" + filler * (size // len(filler)) + POP)
    assert query.signatures == (POP,)
    assert query.prose.startswith("训练日志")
    assert len(query.prose) + len(query.context) <= MAX_QUERY_CHARS


def test_a_long_line_keeps_its_ends() -> None:
    (line,) = read("begin " + "x " * MAX_LINE_CHARS + POP).signatures
    assert line.startswith("begin x")
    assert line.endswith(POP)
    assert len(line) <= MAX_LINE_CHARS + 1


@pytest.mark.thorough
@pytest.mark.parametrize(
    "unit", ["的", "a", "\n", " ", "x\n", "\x1b[", "\r", "[rank0]: ", "0x", "/a", "9", "| ", "Error: "]
)
def test_time_grows_with_a_long_question(unit: str) -> None:
    def text(size: int) -> Callable[[], object]:
        whole = "q " + unit * (size // len(unit))
        return lambda: read(whole)

    check_growth(text, 1 << 17)


GROWING = {
    "escapes": "\x1b[",
    "osc": "\x1b]0;",
    "prefixes": "[rank0]: ",
    "spaces": " ",
    "slashes": "/a",
    "back slashes": "\\a",
    "digits": "1.",
    "times": "11:20:18 ",
    "brackets": "[",
    "lines": "RuntimeError: at 1\n",
    "frames": '  File "a.py", line 1, in f\n',
    "quotes": '"',
    "percent": "100% ",
    "carriage returns": "1%\r",
}


@pytest.mark.parametrize("unit", GROWING.values(), ids=GROWING)
def test_time_grows_with_the_text(unit: str) -> None:
    """Below the cut of 64 KiB; the lines are masked and stripped whole, which `read` would not ask for."""

    def work(size: int) -> Callable[[], object]:
        text = "q" + unit * (size // len(unit))
        return lambda: (read(text), mask(text), strip_prefix(text))

    check_growth(work, 7500)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[ERROR] [launch.py:321:sigkill_handler] ['python', 'train.py'] exits with return code = -9", {("exit", "9")}),
        ("exitcode  : -9 (pid: 438)", {("exit", "9")}),
        ("Process finished with exit code 137 (interrupted by signal 9: SIGKILL)", {("exit", "9")}),
        ("RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed.", {("exit", "9")}),
        ("RuntimeError: DataLoader worker (pid 7) is killed by signal: Segmentation fault.", {("exit", "11")}),
        ("Caught signal 11 (Segmentation fault: address not mapped to object)", {("exit", "11")}),
        ("Bus error (core dumped)", {("exit", "7")}),
        ("traceback : Signal 8 (SIGFPE) received by PID 7731", {("exit", "8")}),
        ("npm ERR! exit code 1", {("exit", "code")}),
        ("训练进程以 exit code 139 退出", {("exit", "11")}),
        ("NVRM: Xid (PCI:0000:3b:00): 79, pid=12, GPU has fallen off the bus", {("xid", "79")}),
        ("Xid 31 一直刷屏", {("xid", "31")}),
        ("Sending process 2290 closing signal SIGTERM", set()),  # how a launcher ends the others
        ("exit status 0, 12 of 128 steps", set()),
        ("signal processing with 9 channels", set()),
    ],
)
def test_codes_that_name_a_failure(text: str, found: set[tuple[str, str]]) -> None:
    assert codes(text) == found


@pytest.mark.parametrize(
    ("asked", "told", "no"),
    [
        ("return code = -11", "return code = -9", True),
        ("return code = -9", "exitcode: -9, or exit code 137", False),
        ("return code = -9", "IndexError: pop from an empty deque", False),
        ("", "return code = -9", False),
        ("Xid 31", "Xid 48 or Xid 95", True),
        ("Xid 31, then exit code -9", "Xid 48, exit code -9", True),
        ("exit code 1 on rank 0, exit code -9 on rank 1", "exitcode: -9", False),
    ],
)
def test_contradiction_is_a_code_of_one_kind_and_never_the_same(asked: str, told: str, no: bool) -> None:
    assert contradicts(codes(asked), codes(told)) is no
