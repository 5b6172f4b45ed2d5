"""`kb eval`: measures how well a base answers questions with known answers."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kb.cli.common import (
    Progress,
    echo,
    index_option,
    is_terminal,
    json_option,
    known_at,
    min_confidence_option,
    only_option,
    open_one,
    plain,
    print_json,
    takes_colour,
)
from kb.errors import IndexWriteFailed, QueryError

if TYPE_CHECKING:
    from kb.evaluate import Evaluation, Judged, Question, Summary
    from kb.evaluate.leave_out import LeftOut
    from kb.records import Lang

__all__ = ["evaluate"]

_EXIT_BELOW = 1
_LIST = 20  # how many questions without an issue in this base are listed
_MISS_CHARS = 100

_KNOWN = {
    "recall_at_1": "recall@1",
    "recall_at_3": "@3",
    "recall_at_10": "@10",
    "mrr_at_10": "MRR@10",
    "ndcg_at_10": "nDCG@10",
    "answered": "answered",
    "answered_right": "and right",
}


def _limits(context: click.Context, option: click.Parameter, given: Sequence[str]) -> dict[str, float]:
    if not given:
        return {}
    from kb.evaluate import METRICS

    limits = {}
    for one in given:
        name, _, value = one.lower().partition("=")
        with suppress(ValueError):
            limits[name] = float(value)
        if name not in METRICS or not 0 <= limits.get(name, -1) <= 1:
            names = ", ".join(METRICS)
            raise click.BadParameter(f"{plain(repr(one))} is not like recall@1=0.9. Metrics: {names}.")
    return limits


def _drawable(context: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    if path is not None and path.suffix.lower() not in (".svg", ".png"):
        raise click.BadParameter(f"{plain(repr(path.name))} ends in neither .svg nor .png.")
    if path is not None and find_spec("matplotlib") is None:
        raise click.BadParameter('drawing needs matplotlib: pip install "kb-issues[plot]"')
    return path


@click.command("eval")
@click.argument(
    "files",
    metavar="[FILE]...",
    nargs=-1,
    type=click.Path(path_type=Path, allow_dash=True, exists=True, dir_okay=False),
)
@only_option
@min_confidence_option
@click.option(
    "--misses", is_flag=True, help="List each wrong answer: the question, the right issue, the issue that was found."
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    callback=_drawable,
    help="Draw confidence against the share of right answers, and recall by kind; .svg or .png, needs kb-issues[plot].",
)
@click.option(
    "--leave-out",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="ARTICLES",
    help="Also ask each question of a base without its article, built from this folder: then every answer is wrong.",
)
@click.option(
    "--fail-under",
    multiple=True,
    metavar="METRIC=P",
    callback=_limits,
    help="Exit with 1 when METRIC over all questions is below P, like recall@1=0.9. May be repeated.",
)
@json_option
@index_option
def evaluate(
    files: tuple[Path, ...],
    only: Lang | None,
    min_confidence: float | None,
    misses: bool,
    plot: Path | None,
    leave_out: Path | None,
    fail_under: dict[str, float],
    as_json: bool,
    index: str | Path | None,
) -> None:
    """Measure how well the base answers the questions of FILE ("-" for stdin), whose right answers are known. Without
    FILE, questions that are made from its own records: how far can its confidence be trusted on these articles?

    \b
      kb eval
      kb eval questions.jsonl
      kb eval questions.jsonl --misses --plot figures.svg
      kb eval questions.jsonl --leave-out articles
      kb eval questions.jsonl --json | jq '.all.known."recall@1"'
      kb eval questions.jsonl --fail-under recall@1=0.9 --fail-under abstention_rate=0.8

    FILE has one question a line, with the issue that answers it, or null when no issue in the base does:
    每行一个问题，issue 是正确答案的编号；库里不该有答案的写 null：

    \b
      {"id": "q1", "issue": "ms-swift-ovis2-grpo#2", "kind": "line", "lang": "en", "query": "pop from an empty deque"}
      {"id": "q2", "issue": "ms-swift-ovis2-grpo#2", "kind": "description", "lang": "zh", "query": "从空队列里取元素"}
      {"id": "q3", "issue": null, "kind": "far", "lang": "en", "query": "how do I fix a flat tyre"}

    `issue` may be a whole article (no #n), "also": [...] names other right issues, and `kind` is any word: there are
    figures for each kind. A question whose issue is not in this base is listed and not counted.

    What the figures mean:

    \b
      recall@k         share of questions with a right issue among the first k hits
      mrr@10           mean of 1/rank of the first right issue (0 beyond rank 10)
      ndcg@10          quality of the order of all right issues, 1 is perfect
      answered         share of questions with a known issue that get an answer
      answered_right   the same, and the answer is right
      abstention_rate  share of questions without a known issue that get no answer
      calibration      mean gap between confidence and share of right answers

    The calibration error is better when lower. All others are better when higher, and --fail-under takes them.
    """
    gc.enable()
    if not files:
        _ask_own(index, known_at(min_confidence), as_json=as_json)
        return
    from kb.evaluate import evaluate as measured
    from kb.evaluate import read_questions

    questions: list[Question] = []
    for file in files:
        questions += read_questions(*_read(file))
    if not questions:
        raise QueryError(
            "there is no question", path=_name(files[0]), hint="`kb eval --help` shows what a line looks like"
        )
    with open_one(index) as base, Progress(is_terminal(sys.stderr)) as progress:
        found = measured(base, questions, only=only, min_confidence=min_confidence, progress=progress)
    out = None if leave_out is None else _left_out(leave_out, questions, min_confidence)
    if plot is not None:
        _draw(found, plot)
    if as_json:
        print_json(found.as_dict() | ({} if out is None else {"left_out": out.as_dict()}))
    else:
        _show(found, misses=misses)
        if out is not None:
            _show_left_out(out, misses=misses)
    sys.exit(_EXIT_BELOW if _below(found.all, fail_under) else 0)


def _ask_own(index: str | Path | None, known_at: float, *, as_json: bool) -> None:
    from kb.evaluate.own import ask_own

    with open_one(index) as base, Progress(is_terminal(sys.stderr)) as progress:
        rows = [one.as_dict(known_at) for one in ask_own(base.searcher, progress)]
    if as_json:
        print_json({"known_at": known_at, "own": rows})
        return
    if not rows:
        raise QueryError("this base has no record to ask about", hint="kb build")
    echo("Questions made from the base's own records, as shares; the last column should be near 0:")
    echo(f"{'':10}{'questions':>10}{'first':>8}{'known':>8}{'wrong':>8}{'known without its issue':>26}")
    for row in rows:
        shares = f"{row['first']:8.2f}{row['known_right']:8.2f}{row['known_wrong']:8.2f}{row['left_out_known']:26.2f}"
        echo(f"{row['kind']:10}{row['questions']:10}{shares}")
    echo(f"An issue counts as known from confidence {known_at:g} on (--min-confidence, or known-at in kb.toml).")


def _read(file: Path) -> tuple[bytes, str]:
    try:
        if str(file) == "-":
            return sys.stdin.buffer.read() if sys.stdin else b"", _name(file)
        return file.read_bytes(), _name(file)
    except OSError as error:
        raise QueryError(f"cannot be read ({error.strerror or error})", path=_name(file)) from None


def _name(file: Path) -> str:
    return "stdin" if str(file) == "-" else str(file)


def _draw(found: Evaluation, path: Path) -> None:
    from kb.evaluate.plot import draw

    try:
        draw(found, path)
    except OSError as error:
        raise IndexWriteFailed(f"the picture cannot be written ({error.strerror or error})", path=path) from None


def _left_out(articles: Path, questions: Sequence[Question], min_confidence: float | None) -> LeftOut:
    from kb.evaluate.leave_out import measure_left_out

    with Progress(is_terminal(sys.stderr)) as progress:
        return measure_left_out(articles, questions, min_confidence=min_confidence, progress=progress)


def _show_left_out(out: LeftOut, *, misses: bool) -> None:
    echo("\nQuestions asked without the article that answers them")
    if not out.n:
        echo("none: the articles of these questions are not in that folder")
        return
    share = out.known / out.n
    echo(f"{out.n} questions: {out.known} answered ({share:.1%}; all wrong), {out.likely} with a list of likely issues")
    if misses:
        for question, issue, confidence in out.wrong:
            text = " ".join(question.query.split())[:_MISS_CHARS]
            echo(plain(f"  {question.id}  answered: {issue} {confidence:.2f}: {text}"))


def _below(summary: Summary, limits: dict[str, float]) -> bool:
    values = summary.metrics()
    low = [(name, limit, values[name]) for name, limit in limits.items()]
    low = [(name, limit, value) for name, limit, value in low if value is None or value < limit]
    for name, limit, value in low:
        shown = "not measured by any question" if value is None else f"{value:.3f}"
        echo(f"kb: {name} is {shown}, wanted {limit:g}", err=True)
    return bool(low)


def _show(found: Evaluation, *, misses: bool) -> None:
    groups = [("all", found.all), *found.by_kind.items(), *found.by_lang.items()]
    known = [(name, one, one.known) for name, one in groups if one.known]
    unknown = [(name, one, one.unknown) for name, one in groups if one.unknown]
    if known:
        echo("Questions with a known issue")
        rows = [(name, f"{k.n}", *(f"{getattr(k, key):.3f}" for key in _KNOWN)) for name, _, k in known]
        _table(("", "n", *_KNOWN.values()), rows)
        low, high = found.recall_at_1_interval or (0.0, 0.0)
        echo(f"recall@1 is {low:.3f} to {high:.3f} with 95 % confidence")
    if unknown:
        echo(f"{chr(10) * bool(known)}Questions without a known issue")
        _table(("", "n", "abstention rate"), [(name, f"{u.n}", f"{u.abstention_rate:.3f}") for name, _, u in unknown])
    _show_confidence(found.all)
    _show_end(found)
    if misses:
        echo(f"\n{len(found.misses)} went wrong")
        for one in found.misses:
            echo(_miss(one))


def _show_confidence(summary: Summary) -> None:
    found = summary.calibration
    if found is None:
        return
    echo("\nConfidence of the first hit, and how often it is right")
    rows = [
        (f"{one.low:.1f} to {one.high:.1f}", f"{one.n}", f"{one.confidence:.3f}", f"{one.right:.3f}")
        for one in found.bins
        if one.n
    ]
    _table(("confidence", "n", "mean", "right"), rows)
    balanced = (
        "" if found.balanced_error is None else f"; {found.balanced_error:.3f} with the same weight for right and wrong"
    )
    echo(f"calibration error {found.error:.3f}{balanced}")


def _show_end(found: Evaluation) -> None:
    echo()
    if time := found.all.latency_ms:
        slow = f"95 % within {time.p95:.1f}, 99 % within {time.p99:.1f}, all within {time.max:.1f}"
        echo(f"{time.p50:.1f} ms a question (median); {slow}")
    echo(f"{len(found.judged)} questions, {found.issues} issues, snapshot {found.snapshot}")
    if found.absent:
        names = [f"{one.id} ({', '.join(one.wanted)})" for one in found.absent[:_LIST]]
        more = ", ..." * (len(found.absent) > _LIST)
        echo(f"not in this base, and not counted: {len(found.absent)}: {plain(', '.join(names))}{more}")


def _miss(one: Judged) -> str:
    text = " ".join(one.question.query.split())
    text = text if len(text) <= _MISS_CHARS else text[: _MISS_CHARS - 3] + "..."
    wanted = " or ".join(one.question.wanted) or "nothing"
    first = f"{one.found[0]} {one.confidence:.2f}" if one.found else "nothing"
    return plain(f"  {one.question.id}  {one.wrong}: wants {wanted}, finds {first}: {text}")


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
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
