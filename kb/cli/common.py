"""Here is what the commands share: their common options, the base they ask, and how they write."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kb.errors import KbError

if TYPE_CHECKING:
    from kb.render import Screen
    from kb.search import KnowledgeBase

__all__ = [
    "MAX_STDIN",
    "Progress",
    "complain",
    "index_option",
    "json_option",
    "min_confidence_option",
    "open_base",
    "plain",
    "print_json",
    "screen",
]

Option = Callable[[Callable[..., Any]], Callable[..., Any]]

MAX_STDIN = 100 << 20  # bytes of a pasted log or article that are read

index_option: Option = click.option(
    "--index",
    type=click.Path(path_type=Path),
    help="Folder of the index. Default: $KB_INDEX, else the index/ or articles/ at or above this folder, else the base "
    "that travels with kb.",
)
min_confidence_option: Option = click.option(
    "--min-confidence",
    type=click.FloatRange(0, 1),
    metavar="P",
    help="Answer from this confidence on. Default: 0.4; nearer to 1 it says more often that it does not know.",
)
json_option: Option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


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


class Progress:
    """A bar on stderr when somebody is watching and the work is long enough to wonder."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown
        self._bar: Any = None
        self._task: dict[str, Any] = {}

    def __enter__(self) -> Progress:
        return self

    def __call__(self, stage: str, done: int, total: int) -> None:
        if not self._shown or total < 200:
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import Progress as Bar

            self._bar = Bar(console=Console(stderr=True), transient=True)
            self._bar.start()
        if stage not in self._task:
            self._task[stage] = self._bar.add_task(stage, total=total)
        self._bar.update(self._task[stage], completed=done)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
