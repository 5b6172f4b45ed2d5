"""What Python and the system print by themselves is told from what a library prints: the interpreter is the oracle."""

from __future__ import annotations

import importlib
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import check_growth
from hypothesis import given
from hypothesis import strategies as st

from kb.logs.interpreter import is_own_message, key_of

NOTHING: Any = None
FAILURES: dict[str, Callable[[], object]] = {
    "deque": lambda: deque[int]().pop(),
    "int": lambda: int("two"),
    "attribute": lambda: NOTHING.get_max_length,
    "subscript": lambda: NOTHING["key"],
    "iterable": lambda: list(3),  # type: ignore[call-overload]
    "name": lambda: undefined_name,  # type: ignore[name-defined]  # noqa: F821
    "arguments": lambda: len(),  # type: ignore[call-arg]
    "keyword": lambda: int("3", nothing=1),  # type: ignore[call-overload]
    "module": lambda: importlib.import_module("no_such_module"),
    "import": lambda: exec("from os import no_such_name"),
    "file": lambda: Path("/no/such/file").read_text(),
    "division": lambda: 1 // 0,
    "unpack": lambda: exec("a, b = 1, 2, 3"),
    "index": lambda: [][3],
    "refused": lambda: socket.create_connection(("127.0.0.1", 1), timeout=5),
    "command": lambda: subprocess.run([sys.executable, "-c", "exit(3)"], check=True),
}


@pytest.mark.parametrize("name", FAILURES)
def test_messages_of_the_interpreter(name: str) -> None:
    try:
        FAILURES[name]()
    except Exception as error:
        (line,) = traceback.format_exception_only(type(error), error)
    assert is_own_message(line), line


@pytest.mark.parametrize("number", [1, 2, 13, 24, 28, 98, 104, 110, 111, 122])
def test_messages_of_the_system(number: int) -> None:
    words = os.strerror(number)
    assert is_own_message(words)
    assert is_own_message(f"OSError: [Errno {number}] {words}: '/var/run/frob.sock'")


def test_messages_of_signals() -> None:
    assert is_own_message(f"{signal.strsignal(signal.SIGSEGV)} (core dumped)")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "KeyError: 'qwen3'",
        "RuntimeError: CUDA error: device-side assert triggered",
        "ValueError: Target modules {'q_proj', 'v_proj'} not found in the base model.",
        "RuntimeError: Trying to backward through the graph a second time",
        "AssertionError: Torch not compiled with CUDA enabled",
        "fatal: not a git repository",
        "训练卡住不动",
    ],
)
def test_messages_of_others(line: str) -> None:
    assert not is_own_message(line)


@given(st.text(max_size=60), st.text(alphabet=st.characters(exclude_characters="'\"`"), max_size=20))
def test_what_is_quoted_makes_no_difference(message: str, name: str) -> None:
    assert key_of(f"no such 'x' {message}") == key_of(f"no such '{name}' {message}")


@pytest.mark.parametrize("piece", ["a/", "'", "{", "[1", "%5.5", "a: ", "E  Error: "])
def test_time_is_linear(piece: str) -> None:
    check_growth(lambda n: partial(is_own_message, piece * n), 2000)
