"""Adds what this Python and this system print to kb/logs/everyones.json.

kb reads that list and never asks the host: the same text has the same words on every machine, so that the same question
gets the same answer. Run it on another system or a newer Python to add what these say; nothing is taken away.

    python scripts/everyones.py            # says how much would be added
    python scripts/everyones.py --write
"""

from __future__ import annotations

import builtins
import errno
import json
import os
import signal
import sys
from http import HTTPStatus

from kb.logs.everyones import LISTS
from kb.logs.words import words_of


def printed_here() -> dict[str, set[str]]:
    """What this Python and this system say, by the name of the list that it belongs to."""
    types = {name: value for name, value in vars(builtins).items() if isinstance(value, type) and name[0] != "_"}
    exceptions = {name for name, value in types.items() if issubclass(value, BaseException)}
    docstrings = (getattr(value, "__doc__", None) or "" for value in vars(builtins).values() if callable(value))
    return {
        "system": {
            *(os.strerror(number) for number in errno.errorcode),
            *(signal.strsignal(number) or "" for number in signal.valid_signals() if number < 32),
        },
        "names": {*errno.errorcode.values(), *(one.name for one in signal.Signals), *exceptions},
        "http": {f"{one.value} {one.phrase}" for one in HTTPStatus if one >= HTTPStatus.BAD_REQUEST},
        "types": {name.lower() for name in types},
        "docstrings": {"nonetype", *(word for text in docstrings for word in words_of(text).split())},
    }


def main() -> None:
    lists = {name: set(words) for name, words in json.loads(LISTS.read_text("utf-8")).items()}
    for name, here in printed_here().items():
        words = {words_of(one).strip() for one in here} - {""}
        print(f"{name}: {len(lists[name])}, and {len(words - lists[name])} more")
        lists[name] |= words
    if "--write" in sys.argv[1:]:
        ordered = {name: sorted(words) for name, words in lists.items()}
        LISTS.write_text(json.dumps(ordered, ensure_ascii=False, indent=0) + "\n", "utf-8")


if __name__ == "__main__":
    main()
