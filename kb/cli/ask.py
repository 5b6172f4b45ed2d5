"""Here is a question; `search`, `show` and `projects` answer it from a base."""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from kb.cli.common import (
    MAX_STDIN,
    echo,
    index_option,
    json_option,
    min_confidence_option,
    open_base,
    plain,
    print_json,
    screen,
)
from kb.errors import IndexMissing, QueryError

if TYPE_CHECKING:
    from kb.base import KnowledgeBase
    from kb.records import Lang

__all__ = ["projects", "search", "show"]

_EXIT_UNKNOWN = 1


@click.command()
@click.argument("text", nargs=-1)
@click.option("-k", type=click.IntRange(1, 100), default=5, show_default=True, help="How many issues to list.")
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

    Exits with 0 when a known issue answers, with 1 when none does: then the nearest are listed, and may be wrong.
    """
    if batch is not None and text:
        raise click.UsageError("give TEXT or --batch, not both")
    question = "" if batch is not None else _question(text)
    asked: dict[str, Any] = {"k": k, "lang": lang, "project": project}
    if min_confidence is not None:
        asked["min_confidence"] = min_confidence
    with open_base(index) as base:
        if batch is not None:
            sys.exit(_search_batch(base, batch, asked))
        result = base.search(question, **asked)
    if as_json:
        print_json({"id": None, **result.as_dict()})
    else:
        screen().result(result, size=base.size, where=base.where, bundled=base.bundled)
    sys.exit(0 if result.answered else _EXIT_UNKNOWN)


def _question(text: tuple[str, ...]) -> str:
    if text and text != ("-",):
        return " ".join(text)
    if sys.stdin is None or (not text and sys.stdin.isatty()):
        raise click.UsageError('what is the question? kb search "the error message", or pipe a log into it')
    from kb.text.decode import decode

    return decode(_read_stdin())


def _read_stdin() -> bytes:
    """At most the first and the last 50 MB of stdin."""
    data = sys.stdin.buffer.read(MAX_STDIN // 2)
    tail = b""
    while chunk := sys.stdin.buffer.read(1 << 20):
        tail = (tail + chunk)[-MAX_STDIN // 2 :] if len(tail) > MAX_STDIN // 2 else tail + chunk
    return data + tail


def _search_batch(base: KnowledgeBase, lines: TextIO, asked: dict[str, Any]) -> int:
    """One answer a question, in order; a line that is no question gets an answer that says so, and 64 in the end."""
    gc.enable()
    exit_code = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        name: Any = None
        try:
            item = json.loads(line)
            name = item.get("id") if isinstance(item, dict) else None
            if not isinstance(item, dict) or not isinstance(item.get("query"), str):
                raise QueryError('each line is an object with "id" and "query"')
            answer = base.search(item["query"], **asked).as_dict()
        except (QueryError, ValueError, RecursionError) as error:
            message = f"line {number}: {error}"
            answer = {"query": None, "answered": False, "results": [], "error": message}
            echo(f"kb: {message}", err=True)
            exit_code = QueryError.exit_code
        print_json({"id": name, **answer}, indent=None)
    return exit_code


@click.command()
@click.argument("issue")
@click.option("--lang", type=click.Choice(["en", "zh"]), help="Only this telling.")
@json_option
@index_option
def show(issue: str, lang: Lang | None, as_json: bool, index: Path | None) -> None:
    """Show the whole of ISSUE: `slug#n`, `slug#n/zh` for one telling, or a slug for all issues of an article."""
    with open_base(index) as base:
        records = [record for record in base.show(issue) if lang in (None, record.lang)]
    if not records:
        raise IndexMissing(f"{issue} is not told in {lang}")
    if as_json:
        print_json([record.as_dict() for record in records])
        return
    output = screen()
    for number, record in enumerate(records):
        if number:
            echo()
        output.record(record)


@click.command()
@json_option
@index_option
def projects(as_json: bool, index: Path | None) -> None:
    """List the projects that the base knows issues of, and how many."""
    with open_base(index) as base:
        found = base.projects()
    if as_json:
        print_json([{"project": project, "issues": count} for project, count in found])
    else:
        for project, count in found:
            echo(f"{count:5d}  {plain(project)}")
