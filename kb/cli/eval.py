"""`kb eval`: measures how well a base answers questions with known answers."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
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
    table,
)
from kb.cli.words import say, told
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
    echo(say("Questions made from the base's own records, as shares; the last column should be near 0:"))
    shares = ("first", "known_right", "known_wrong", "left_out_known")
    table(
        ("", say("questions"), say("first"), say("known"), say("wrong"), say("known without its issue")),
        [(row["kind"], str(row["questions"]), *(f"{row[share]:.2f}" for share in shares)) for row in rows],
    )
    echo(
        say(
            "An issue counts as known from confidence {known_at:g} on (--min-confidence, or known-at in kb.toml).",
            known_at=known_at,
        )
    )


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
    echo("\n" + say("Questions asked without the article that answers them"))
    if not out.n:
        echo(say("none: the articles of these questions are not in that folder"))
        return
    shares = say(
        "{n} questions: {known} answered ({share:.1%}; all wrong), {likely} with a list of likely issues",
        n=out.n,
        known=out.known,
        share=out.known / out.n,
        likely=out.likely,
    )
    echo(shares)
    if misses:
        for question, issue, confidence in out.wrong:
            text = " ".join(question.query.split())[:_MISS_CHARS]
            line = say("answered: {issue} {confidence:.2f}: {text}", issue=issue, confidence=confidence, text=text)
            echo(plain(f"  {question.id}  {line}"))


def _below(summary: Summary, limits: dict[str, float]) -> bool:
    values = summary.metrics()
    low = [(name, limit, values[name]) for name, limit in limits.items()]
    low = [(name, limit, value) for name, limit, value in low if value is None or value < limit]
    for name, limit, value in low:
        shown = say("not measured by any question") if value is None else f"{value:.3f}"
        echo(f"kb: {say('{name} is {value}, wanted {limit:g}', name=name, value=shown, limit=limit)}", err=True)
    return bool(low)


def _show(found: Evaluation, *, misses: bool) -> None:
    groups = [(say("all"), found.all), *found.by_kind.items(), *found.by_lang.items()]
    known = [(name, one, one.known) for name, one in groups if one.known]
    unknown = [(name, one, one.unknown) for name, one in groups if one.unknown]
    if known:
        echo(say("Questions with a known issue"))
        keys = (*_KNOWN, "answered", "answered_right")
        rows = [(name, f"{k.n}", *(f"{getattr(k, key):.3f}" for key in keys)) for name, _, k in known]
        table(("", "n", *_KNOWN.values(), say("answered"), say("and right")), rows)
        low, high = found.recall_at_1_interval or (0.0, 0.0)
        echo(say("recall@1 is {low:.3f} to {high:.3f} with 95 % confidence", low=low, high=high))
    if unknown:
        echo("\n" * bool(known) + say("Questions without a known issue"))
        table(
            ("", "n", say("abstention rate")), [(name, f"{u.n}", f"{u.abstention_rate:.3f}") for name, _, u in unknown]
        )
    _show_confidence(found.all)
    _show_end(found)
    if misses:
        echo("\n" + say("{n} went wrong", n=len(found.misses)))
        for one in found.misses:
            echo(_miss(one))


def _show_confidence(summary: Summary) -> None:
    found = summary.calibration
    if found is None:
        return
    echo("\n" + say("Confidence of the first hit, and how often it is right"))
    rows = [
        (
            say("{low:.1f} to {high:.1f}", low=one.low, high=one.high),
            f"{one.n}",
            f"{one.confidence:.3f}",
            f"{one.right:.3f}",
        )
        for one in found.bins
        if one.n
    ]
    table((say("confidence"), "n", say("mean"), say("right")), rows)
    if found.balanced_error is None:
        echo(say("calibration error {error:.3f}", error=found.error))
        return
    both = say(
        "calibration error {error:.3f}; {balanced:.3f} with the same weight for right and wrong",
        error=found.error,
        balanced=found.balanced_error,
    )
    echo(both)


def _show_end(found: Evaluation) -> None:
    echo()
    if time := found.all.latency_ms:
        times = say(
            "{p50:.1f} ms a question (median); 95 % within {p95:.1f}, 99 % within {p99:.1f}, all within {most:.1f}",
            p50=time.p50,
            p95=time.p95,
            p99=time.p99,
            most=time.max,
        )
        echo(times)
    asked, snapshot = len(found.judged), found.snapshot
    echo(say("{n} questions, {issues} issues, snapshot {snapshot}", n=asked, issues=found.issues, snapshot=snapshot))
    if found.absent:
        names = [f"{one.id} ({', '.join(one.wanted)})" for one in found.absent[:_LIST]]
        listed = plain(", ".join(names)) + ", ..." * (len(found.absent) > _LIST)
        echo(say("not in this base, and not counted: {n}: {listed}", n=len(found.absent), listed=listed))


def _miss(one: Judged) -> str:
    text = " ".join(one.question.query.split())
    text = text if len(text) <= _MISS_CHARS else text[: _MISS_CHARS - 3] + "..."
    wanted = " / ".join(one.question.wanted) or say("nothing")
    first = f"{one.found[0]} {one.confidence:.2f}" if one.found else say("nothing")
    wrong = told(one.wrong or "")
    line = say("{wrong}: wants {wanted}, finds {first}: {text}", wrong=wrong, wanted=wanted, first=first, text=text)
    return plain(f"  {one.question.id}  {line}")
