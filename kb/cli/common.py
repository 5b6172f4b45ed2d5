"""Here is what the commands share: their common options, the base they ask, and how they write."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kb.errors import KbError

if TYPE_CHECKING:
    from kb.render import Screen
    from kb.search import KnowledgeBase

__all__ = ["MAX_STDIN", "complain", "index_option", "json_option", "open_base", "plain", "print_json", "screen"]

MAX_STDIN = 100 << 20  # bytes of a pasted log or article that are read

index_option = click.option(
    "--index",
    type=click.Path(path_type=Path),
    help="Folder of the index. Default: $KB_INDEX, else the index/ or articles/ at or above this folder, else the base "
    "that travels with kb.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def open_base(index: Path | None) -> KnowledgeBase:
    from kb.search import KnowledgeBase

    return KnowledgeBase.open(index)


def screen() -> Screen:
    from kb.render import Screen

    return Screen(colour=sys.stdout.isatty() and os.environ.get("TERM") != "dumb")


def print_json(value: Any, indent: int | None = 1) -> None:
    from kb.render import CONTROL

    text = json.dumps(value, ensure_ascii=False, indent=indent)
    # JSON has an escape for what a terminal would obey, and for bytes of an argument that are no UTF-8.
    sys.stdout.write(CONTROL.sub(lambda m: f"\\u{ord(m[0]):04x}", text) + "\n")
    sys.stdout.flush()  # who reads the answers of a batch may be waiting for this one


def plain(text: str) -> str:
    from kb.render import visible

    return visible(text)


def complain(error: KbError) -> None:
    """What happened, and below it what to do next, on stderr."""
    click.echo(f"kb: {plain(str(error))}", err=True)
    if error.hint:
        click.echo(f"    {plain(error.hint)}", err=True)
