"""Collects the messages that Python and the system print by themselves, for `kb.logs.interpreter`.

    python scripts/interpreter_messages.py [PYTHON ...] --write

In: interpreters of CPython (this one without arguments). From each come the texts in the modules of its standard
library (docstrings left out), the format strings in its binaries, and the words for errors, signals and HTTP's status.
Out: kb/logs/interpreter.bin, checksums of what `key_of` makes of each.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import signal
import subprocess
import sys
import zlib
from array import array
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

from kb.logs.interpreter import MESSAGES, key_of

PRINTABLE = re.compile(rb"[\x20-\x7e]{8,400}")
LEFT_OUT = {"test", "tests", "idlelib", "site-packages", "lib2to3", "turtledemo", "ensurepip", "pydoc_data"}
PLACES = "import sys, sysconfig; print(sys.executable); print(sysconfig.get_paths()['stdlib'])"


def texts_of(module: Path) -> Iterator[str]:
    """The texts of a module that are no docstrings; a field of an f-string is a gap."""
    try:
        tree = ast.parse(module.read_bytes())
    except (SyntaxError, ValueError):
        return
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def texts(python: str) -> Iterator[str]:
    executable, library = subprocess.check_output([python, "-c", PLACES], text=True).splitlines()
    for module in Path(library).rglob("*.py"):
        if not LEFT_OUT & set(module.relative_to(library).parts):
            yield from texts_of(module)
    lib = Path(library).parent
    binaries = [Path(executable).resolve(), *lib.glob("libpython3*.so*"), *Path(library, "lib-dynload").glob("*.so")]
    for binary in binaries:
        yield from (found[0].decode("ascii") for found in PRINTABLE.finditer(binary.read_bytes()))


def of_the_system() -> Iterator[str]:
    yield from (os.strerror(number) for number in range(1, 134))
    yield from filter(None, (signal.strsignal(number) for number in range(1, 32)))
    yield from (one.phrase for one in HTTPStatus)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pythons", nargs="*", metavar="PYTHON", help="interpreters of CPython")
    parser.add_argument("--write", action="store_true", help=f"write {MESSAGES.name}")
    chosen = parser.parse_args()
    found = set(of_the_system())
    for python in chosen.pythons or [sys.executable]:
        found.update(texts(python))
    keys = {key for message in found if (key := key_of(message)).count(" ") and len(message) <= 300}
    numbers = array("I", sorted({zlib.crc32(key.encode()) for key in keys}))
    print(f"{len(found)} texts, {len(keys)} messages, {len(numbers) * numbers.itemsize} bytes")
    if chosen.write:
        if sys.byteorder == "big":
            numbers.byteswap()
        MESSAGES.write_bytes(numbers.tobytes())
    return 0


if __name__ == "__main__":
    sys.exit(main())
