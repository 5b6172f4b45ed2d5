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
    base_option,
    complain,
    index_option,
    json_option,
    known_at,
    lang_option,
    min_confidence_option,
    note_miss,
    note_silent,
    only_option,
    open_base,
    pager_option,
    print_json,
    screen,
    told_error,
)
from kb.cli.complete import complete_project
from kb.cli.question import question_of
from kb.cli.words import language, say
from kb.errors import QueryError

if TYPE_CHECKING:
    from kb.bases import AnyBase
    from kb.records import Lang, SearchResult

__all__ = ["search"]

_EXIT_UNKNOWN = 1


@click.command()
@click.argument("text", nargs=-1)
@click.option("-k", type=click.IntRange(1, 100), default=5, show_default=True, help="How many issues to list at most.")
@click.option("--full", is_flag=True, help="Print the whole answer, not only what to try first.")
@lang_option
@only_option
@click.option(
    "--project", shell_complete=complete_project, help="Search this project (`kb projects` lists them) or tag only."
)
@min_confidence_option
@click.option(
    "--batch",
    type=click.File("r", encoding="utf-8-sig", errors="replace"),
    help='File of {"id": ..., "query": ...} lines; "-" for stdin.',
)
@click.option("--why", is_flag=True, help="Also show what speaks for each issue and against it.")
@click.option("--no-feedback", is_flag=True, help="Answer as if nobody had voted (kb feedback).")
@pager_option
@json_option
@base_option
@index_option
def search(
    text: tuple[str, ...],
    k: int,
    full: bool,
    lang: Lang | None,
    only: Lang | None,
    project: str | None,
    min_confidence: float | None,
    batch: TextIO | None,
    why: bool,
    no_feedback: bool,
    no_pager: bool,
    as_json: bool,
    bases: tuple[str, ...],
    index: str | Path | None,
) -> None:
    """Find the known issue for TEXT: an error line, a whole log, or a description. "-" (or a pipe) reads stdin,
    the name of a file reads that file.

    \b
      kb search "pop from an empty deque"
      kb search train.log
      kb search --json -k 3 "loss 变成 nan" | jq .answered
      kb search --why "CUDA out of memory"
      kb search --batch questions.jsonl > answers.jsonl

    The verdict is one of three. Known: the first issue is the answer; kb exits with 0. Likely: it may be one of up to
    three issues, and kb says what tells them apart. Unknown: the base has no article about this; the nearest issues,
    which may be about something else, are listed. After these two kb exits with 1.
    """
    if batch is not None and text:
        raise click.UsageError("give TEXT or --batch, not both")
    question = "" if batch is not None else question_of(text)
    params: dict[str, Any] = {"k": k, "lang": lang, "only": only, "project": project}
    params["min_confidence"] = known_at(min_confidence)
    with open_base(index, bases, votes=not no_feedback) as base:
        if batch is not None:
            sys.exit(_search_batch(base, batch, params, why=why))
        if not as_json:  # what programs read does not depend on who started them
            params["lang"] = language()
        result = base.search(question, **params)
    note_silent(result.silent)
    if as_json:
        print_json({"id": None, **_form(result, why=why)})
    else:
        output = screen()
        with output.paged(use=not no_pager):
            output.result(
                result,
                size=base.size,
                where=base.where,
                bundled=base.bundled,
                lang=params["lang"],
                full=full,
                why=why,
            )
    if not no_feedback:
        note_miss(result)
    sys.exit(0 if result.answered else _EXIT_UNKNOWN)


def _form(result: SearchResult, *, why: bool) -> dict[str, Any]:
    if not why:
        return result.as_dict()
    from kb.why import answer_with_why

    return answer_with_why(result)


def _lines_of(file: TextIO) -> Iterator[str]:
    """Raises QueryError for a file that cannot be read to its end."""
    try:
        yield from file
    except OSError as error:
        raise QueryError(f"cannot be read ({error.strerror or error})", path=file.name) from None


def _search_batch(base: AnyBase, file: TextIO, params: dict[str, Any], *, why: bool) -> int:
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
            answer = _form(base.search(item["query"], **params), why=why)
        except (QueryError, ValueError, RecursionError) as error:
            said = told_error(error) if isinstance(error, QueryError) else str(error)
            message = f"line {number}: {error}"
            answer = {"query": None, "answered": False, "verdict": "unknown", "likely": [], "results": []}
            answer["error"] = message
            complain(say("line {n}: {error}", n=number, error=said))
            exit_code = QueryError.exit_code
        print_json({"id": identity, **answer}, indent=None)
    return exit_code
