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
    from kb.base import KnowledgeBase
    from kb.cli.render import Screen

__all__ = [
    "MAX_STDIN",
    "Progress",
    "complain",
    "counted",
    "echo",
    "index_option",
    "json_option",
    "lang_option",
    "min_confidence_option",
    "open_base",
    "plain",
    "print_json",
    "screen",
    "warn_on_stderr",
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
lang_option: Option = click.option("--lang", type=click.Choice(["en", "zh"]), help="Show the issues in this language.")
json_option: Option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def open_base(index: Path | None) -> KnowledgeBase:
    """The base that is meant. One that was found above the current folder answers only when the user trusts it: at a
    terminal they are asked, once."""
    from kb.base import KnowledgeBase

    warn_on_stderr()
    if index is None and not os.environ.get("KB_INDEX"):
        _ask_for_trust()
    return KnowledgeBase.open(index)


def _ask_for_trust() -> None:
    if not (_is_terminal(sys.stdin) and _is_terminal(sys.stderr)):
        return
    from kb.index.locate import undecided
    from kb.index.trust import remember

    found = undecided()
    if found is None:
        return
    echo(f"{found} has a knowledge base of its own. Its fixes are commands by whoever wrote that folder.", err=True)
    echo("此目录自带知识库，其中的解决办法（命令）出自该目录的作者。", err=True)
    trusted = click.confirm("Trust it and use it from now on? 信任并从此使用它？", default=False, err=True)
    try:
        remember(found, trusted)
    except KbError as error:
        complain(error)
    if not trusted:
        echo("kb: answering from kb's own base; `kb trust` changes that", err=True)


def _is_terminal(stream: Any) -> bool:
    return stream is not None and stream.isatty()


def screen() -> Screen:
    from kb.cli.render import Screen

    return Screen(colour=sys.stdout.isatty() and os.environ.get("TERM") != "dumb")


def print_json(value: Any, indent: int | None = 1) -> None:
    from kb.text import CONTROL

    text = json.dumps(value, ensure_ascii=False, indent=indent)
    # JSON has an escape for what a terminal would obey, and for bytes of an argument that are no UTF-8.
    sys.stdout.write(CONTROL.sub(lambda m: f"\\u{ord(m[0]):04x}", text) + "\n")
    sys.stdout.flush()  # who reads the answers of a batch may be waiting for this one


def plain(text: str) -> str:
    from kb.text import visible

    return visible(text)


def echo(text: str = "", *, err: bool = False) -> None:
    """The line, with control characters shown as symbols: file names, articles and arguments are anybody's."""
    click.echo(plain(text), err=err)


def counted(number: int, noun: str) -> str:
    """`1 article`, `2 articles`."""
    return f"{number} {noun}{'s' * (number != 1)}"


def complain(error: KbError) -> None:
    """What happened, and below it what to do next, on stderr."""
    echo(f"kb: {error}", err=True)
    if error.hint:
        echo(f"    {error.hint}", err=True)


def warn_on_stderr() -> None:
    """What the rooms below log as a warning is shown like every other message."""
    import logging

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            echo(f"kb: {record.getMessage()}", err=True)

    logger = logging.getLogger("kb")
    if not logger.handlers:
        logger.addHandler(Handler(logging.WARNING))


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
