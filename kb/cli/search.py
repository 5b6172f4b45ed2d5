"""`kb search`: finds the known issue for an error line, a log or a description; one question, or a file of them."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from kb.cli.common import (
    echo,
    index_option,
    is_terminal,
    json_option,
    min_confidence_option,
    open_base,
    print_json,
    read_stdin,
    screen,
)
from kb.errors import QueryError

if TYPE_CHECKING:
    from kb.base import KnowledgeBase
    from kb.records import Lang

__all__ = ["search"]

_EXIT_UNKNOWN = 1


@click.command()
@click.argument("text", nargs=-1)
@click.option("-k", type=click.IntRange(1, 100), default=5, show_default=True, help="How many issues to list at most.")
@click.option("--lang", type=click.Choice(["en", "zh"]), help="Search and show articles in this language only.")
@click.option("--project", help="Search this project (`kb projects` lists them) or tag only.")
@min_confidence_option
@click.option(
    "--batch",
    type=click.File("r", encoding="utf-8-sig", errors="replace"),
    help='File of {"id": ..., "query": ...} lines; "-" for stdin.',
)
@json_option
@index_option
def search(
    text: tuple[str, ...],
    k: int,
    lang: Lang | None,
    project: str | None,
    min_confidence: float | None,
    batch: TextIO | None,
    as_json: bool,
    index: Path | None,
) -> None:
    """Find the known issue for TEXT: an error line, a whole log, or a description. "-" (or a pipe) reads stdin.

    \b
      kb search "pop from an empty deque"
      kb search - < train.log
      kb search --json -k 3 "loss 变成 nan" | jq .answered
      kb search --batch questions.jsonl > answers.jsonl

    Exits with 0 when a known issue answers the question. Exits with 1 when none does; then kb lists the nearest issues,
    which may be about something else.
    """
    if batch is not None and text:
        raise click.UsageError("give TEXT or --batch, not both")
    question = "" if batch is not None else _question(text)
    params: dict[str, Any] = {"k": k, "lang": lang, "project": project}
    if min_confidence is not None:
        params["min_confidence"] = min_confidence
    with open_base(index) as base:
        if batch is not None:
            sys.exit(_search_batch(base, batch, params))
        result = base.search(question, **params)
    if as_json:
        print_json({"id": None, **result.as_dict()})
    else:
        screen().result(result, size=base.size, where=base.where, bundled=base.bundled)
    sys.exit(0 if result.answered else _EXIT_UNKNOWN)


def _question(text: tuple[str, ...]) -> str:
    if text and text != ("-",):
        return " ".join(text)
    if sys.stdin is None or (not text and is_terminal(sys.stdin)):
        raise click.UsageError('what is the question? kb search "the error message", or pipe a log into it')
    from kb.text.decode import decode

    return decode(read_stdin())


def _lines_of(file: TextIO) -> Iterator[str]:
    """Raises QueryError for a file that cannot be read to its end."""
    try:
        yield from file
    except OSError as error:
        raise QueryError(f"cannot be read ({error.strerror or error})", path=file.name) from None


def _search_batch(base: KnowledgeBase, file: TextIO, params: dict[str, Any]) -> int:
    """Prints one answer for each question, in the same order, and returns the exit code.

    A line that is not a question gets an answer with an `error`, and the exit code becomes 64.
    """
    gc.enable()
    exit_code = 0
    for number, line in enumerate(_lines_of(file), 1):
        if not line.strip():
            continue
        identity: Any = None
        try:
            item = json.loads(line)
            identity = item.get("id") if isinstance(item, dict) else None
            if not isinstance(item, dict) or not isinstance(item.get("query"), str):
                raise QueryError('each line is an object with "id" and "query"')
            answer = base.search(item["query"], **params).as_dict()
        except (QueryError, ValueError, RecursionError) as error:
            message = f"line {number}: {error}"
            answer = {"query": None, "answered": False, "results": [], "error": message}
            echo(f"kb: {message}", err=True)
            exit_code = QueryError.exit_code
        print_json({"id": identity, **answer}, indent=None)
    return exit_code
