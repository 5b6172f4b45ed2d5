"""What the commands share: common options, opening the base, reading stdin, and writing to stdout and stderr."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kb.cli.words import chinese, language, say, speak, told
from kb.errors import IndexWriteFailed, KbError, QueryError

if TYPE_CHECKING:
    from kb.base import KnowledgeBase
    from kb.bases import AnyBase
    from kb.cli.render import Screen
    from kb.records import SearchResult, Silence

__all__ = [
    "MAX_STDIN",
    "Progress",
    "ask_for_trust",
    "base_option",
    "complain",
    "counted",
    "echo",
    "ends_of",
    "folder_option",
    "forbid_network",
    "index_option",
    "is_terminal",
    "json_option",
    "known_at",
    "lang_option",
    "min_confidence_option",
    "note_miss",
    "note_silent",
    "only_option",
    "open_base",
    "open_one",
    "pager_option",
    "plain",
    "print_json",
    "read_stdin",
    "root_option",
    "screen",
    "table",
    "takes_colour",
    "told_error",
    "warn_on_stderr",
]

Option = Callable[[Callable[..., Any]], Callable[..., Any]]

MAX_STDIN = 100 << 20  # bytes of a log or an article on stdin; more would not fit into a small machine


def _folder_or_address(context: click.Context, option: click.Parameter, value: str | None) -> str | Path | None:
    from kb.index.locate import is_address

    return value if value is None or is_address(value) else Path(value)


index_option: Option = click.option(
    "--index",
    "--store",
    "index",
    metavar="FOLDER|ADDRESS",
    callback=_folder_or_address,
    help="Ask the index in this folder, or the one in Milvus at this address (milvus://host:19530/base), and no other "
    "base. Default: $KB_STORE, else $KB_INDEX, else what --base says.",
)
folder_option: Option = click.option(
    "--index",
    type=click.Path(path_type=Path),
    help="The index in this folder. Default: $KB_INDEX, else the one beside the articles.",
)
root_option: Option = click.option(
    "--root",
    "roots",
    multiple=True,
    metavar="FOLDER",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Agents may name logs in this folder by their path (explain_log). May be repeated.",
)
base_option: Option = click.option(
    "--base",
    "bases",
    multiple=True,
    metavar="BASE",
    help="Ask this base: a name from kb.toml, `bundled`, `here`, a folder, or the address of a kb serve. May be "
    "repeated. Default: $KB_BASES (with commas), else those of kb.toml, else the one at or above this folder and the "
    "one that is part of kb.",
)
min_confidence_option: Option = click.option(
    "--min-confidence",
    type=click.FloatRange(0, 1),
    metavar="P",
    help="The confidence from which an issue counts as known. Default: 0.5. With a higher one kb answers less often "
    "and is wrong less often.",
)


def _speak(context: click.Context, option: click.Parameter, value: Any) -> Any:
    speak(value)
    return value


lang_option: Option = click.option(
    "--lang",
    type=click.Choice(["en", "zh"]),
    callback=_speak,
    help="Show everything in this language. Default: $KB_LANG, else kb.toml, else a Chinese locale, else the language "
    "of the question.",
)
only_option: Option = click.option(
    "--only", type=click.Choice(["en", "zh"]), help="Search and show articles in this language only."
)
pager_option: Option = click.option(
    "--no-pager", is_flag=True, help="Print long output at a terminal without a pager ($KB_PAGER, $PAGER, less)."
)
json_option: Option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def open_base(
    index: str | Path | None, bases: Sequence[str] = (), progress: Progress | None = None, *, votes: bool = True
) -> AnyBase:
    """Opens the index that `--index` names, or the bases that `--base`, the environment, kb.toml or the current folder
    name; `progress` is told of an index that must be made. A base that was only found in a folder is used where the
    user trusts it; at a terminal kb asks once. `votes`: those of the user's own file, if there is one, change the
    answers."""
    from kb.bases import open_bases

    warn_on_stderr()
    forbid_network()
    ask_for_trust(index, bases)
    base = open_bases(bases, index=index, progress=progress)
    if votes:
        from kb.feedback import place

        base.votes = place.votes()
    return base


def open_one(index: str | Path | None) -> KnowledgeBase:
    """The same for what needs one base: the index that is named, else the nearest base."""
    from kb.base import KnowledgeBase

    warn_on_stderr()
    forbid_network()
    from kb.index.locate import named_by_environment

    if index is None and not named_by_environment():
        _ask_for_trust()
    return KnowledgeBase.open(index)


def note_silent(silent: Sequence[Silence]) -> None:
    """Names the bases that did not answer."""
    for base, why in silent:
        complain(say("{base} does not answer: {why}", base=base, why=why))


def note_miss(result: SearchResult) -> None:
    """Counts what was asked and not known, where the user's kb.toml wants it. Never an error: the answer is printed."""
    from kb.config import settings
    from kb.feedback import place

    path = place.feedback_file()
    if result.verdict != "unknown" or not settings().misses or path is None:
        return
    from kb.feedback.told import note, this_user

    try:
        note(place.opened(path), result, this_user())
    except KbError as error:
        complain(error)


def known_at(given: float | None) -> float:
    """The confidence from which an issue counts as known: `--min-confidence`, else kb.toml's, else the usual one."""
    from kb.config import settings
    from kb.search.verdict import KNOWN_AT

    return next((one for one in (given, settings().known_at) if one is not None), KNOWN_AT)


def forbid_network() -> None:
    """For every command that asks: whatever encoder an index names, nothing is looked up. In somebody else's program
    this would be theirs to say."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")


def ask_for_trust(index: str | Path | None, bases: Sequence[str]) -> None:
    """At a terminal, whether a base that was only found may answer; where none is named."""
    from kb.index.locate import named_by_environment

    if index is None and not (bases or named_by_environment() or os.environ.get("KB_BASES")):
        _ask_for_trust()


def _ask_for_trust() -> None:
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return
    from kb.index.locate import undecided
    from kb.index.trust import remember
    from kb.text import visible_line

    found = undecided()
    if found is None:
        return
    echo(say("{folder} has a knowledge base of its own.", folder=visible_line(str(found))), err=True)
    echo(say("Its answers contain shell commands written by the author of that folder."), err=True)
    trusted = click.confirm(say("Trust it and use it from now on?"), default=False, err=True)
    try:
        remember(found, trusted)
    except KbError as error:
        complain(error)
    if not trusted:
        complain(say("using the base that comes with kb; to use the folder's base later, run `kb trust`"))


def is_terminal(stream: Any) -> bool:
    """False also for a stream that is closed, which is None."""
    return stream is not None and stream.isatty()


def screen() -> Screen:
    from kb.cli.render import Screen

    _require_stdout()
    return Screen(colour=takes_colour(sys.stdout))


def takes_colour(stream: Any) -> bool:
    """Is it a terminal that may get colours and bold type? https://no-color.org"""
    return is_terminal(stream) and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")


def _require_stdout() -> None:
    if sys.stdout is None:  # closed by the caller: `kb search ... >&-`
        raise IndexWriteFailed("stdout: the answer could not be written (it is closed)")


def read_stdin() -> bytes:
    """All of stdin; of more than `MAX_STDIN` bytes, the first and the last half of that. Raises QueryError."""
    if sys.stdin is None:
        raise QueryError("stdin: cannot be read (it is closed)")
    stdin = sys.stdin.buffer
    try:
        return ends_of(iter(lambda: stdin.read(1 << 20), b""))
    except OSError as error:
        raise QueryError(f"stdin: cannot be read ({error.strerror or error})") from None


def ends_of(chunks: Iterable[bytes]) -> bytes:
    """All of them; of more than `MAX_STDIN` bytes, the first and the last half of that."""
    half = MAX_STDIN // 2
    head, tail, size = bytearray(), deque[bytes](), 0
    for chunk in chunks:
        room = half - len(head)
        head += chunk[:room]
        if len(chunk) > room:
            tail.append(chunk[room:])
            size += len(tail[-1])
        while tail and size - len(tail[0]) >= half:
            size -= len(tail.popleft())
    return bytes(head) + b"".join(tail)[-half:]


def _escaped(char: str) -> str:
    """As JSON writes it; beyond 16 bits as two halves."""
    digits = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{digits[at : at + 4]}" for at in range(0, len(digits), 4))


def print_json(value: Any, indent: int | None = 1) -> None:
    from kb.text import CONTROL

    _require_stdout()
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    # JSON can escape control characters, and bytes of an argument that are not UTF-8.
    sys.stdout.write(CONTROL.sub(lambda m: _escaped(m[0]), text) + "\n")
    sys.stdout.flush()  # the reader of a batch may be waiting for this answer


def plain(text: str) -> str:
    """The text with control characters shown as symbols."""
    from kb.text import visible

    return visible(text)


def echo(text: str = "", *, err: bool = False) -> None:
    """Prints a line with control characters shown as symbols: file names, articles and arguments are untrusted."""
    if not err:
        _require_stdout()
    click.echo(plain(text), err=err)


def counted(number: int, noun: str) -> str:
    """`1 article`, `2,000 articles`, `2,000 篇文章`."""
    if language() == "zh" and (one := f"{{n}} {noun}") in chinese()["said"]:
        return say(one, n=f"{number:,}")
    return f"{number:,} {noun}{'s' * (number != 1)}"


def complain(problem: KbError | str) -> None:
    """Prints what happened, and below it what to do next, on stderr; where that cannot be written, the exit code tells
    it alone."""
    with contextlib.suppress(OSError):
        if isinstance(problem, str):
            echo(f"kb: {problem}", err=True)
            return
        echo(f"kb: {told_error(problem)}", err=True)
        if problem.hint:
            echo(f"    {told(problem.hint)}", err=True)


def told_error(error: KbError) -> str:
    """Where and what, in the reader's language."""
    return str(error).removesuffix(error.message) + told(error.message)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Prints a table: names to the left, numbers to the right; with colours at a terminal, as plain text in a pipe."""
    shown = [[plain(cell).replace("\n", " ") for cell in row] for row in rows]
    if takes_colour(sys.stdout):
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold cyan")
        for number, head in enumerate(heads):
            table.add_column(head, justify="right" if number else "left", no_wrap=True)
        for row in shown:
            table.add_row(*map(Text, row))
        Console(highlight=False).print(table)
        return
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(heads, *shown, strict=True)]
    for row in (list(heads), *shown):
        first, *others = ((cell, " " * (width - cell_len(cell))) for cell, width in zip(row, widths, strict=True))
        echo("  ".join(["".join(first), *(gap + cell for cell, gap in others)]))


def warn_on_stderr() -> None:
    """Shows warnings that kb logs like every other message of a command."""
    import logging

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            echo(f"kb: {told(record.getMessage())}", err=True)

    logger = logging.getLogger("kb")
    if not logger.handlers:
        logger.addHandler(Handler(logging.WARNING))


class Progress:
    """A progress bar on stderr, when `shown` and when there are at least 200 steps."""

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
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
                TimeRemainingColumn(),
            )
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
            self._bar.start()
        if stage not in self._task:
            self._task[stage] = self._bar.add_task(stage, total=total, rate="")
        task = self._task[stage]
        speed = self._bar.tasks[task].speed
        self._bar.update(task, completed=done, rate=f"{speed:.0f}/s" if speed else "")

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
