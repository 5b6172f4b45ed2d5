"""`kb run`: runs a command, and explains its failure.

`kb.run` runs it and keeps the end of its output, `kb.search.explain` finds the issue, `kb.components` says whether the
issue has anything to do with the command; this module prints and reports.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kb.cli.common import (
    base_option,
    complain,
    echo,
    index_option,
    lang_option,
    note_miss,
    open_base,
    plain,
    takes_colour,
)
from kb.cli.words import language, say, told
from kb.errors import IndexWriteFailed, KbError

if TYPE_CHECKING:
    from kb.bases import AnyBase
    from kb.records import Hit, IssueRecord, Lang, Verdict
    from kb.run import Outcome

__all__ = ["explained", "run"]

_RESEMBLES = 0.8
"""confidence from which kb names an issue whose software nothing has named; one of 700 failures of other software
reaches it"""


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("command", metavar="COMMAND [ARGS]...", nargs=-1, required=True, type=click.UNPROCESSED)
@lang_option
@click.option(
    "--report", type=click.Path(path_type=Path, dir_okay=False), help="Write the explanation to this file, as JSON."
)
@base_option
@index_option
def run(
    command: tuple[str, ...], lang: Lang | None, report: Path | None, bases: tuple[str, ...], index: str | Path | None
) -> None:
    """Run COMMAND as if kb were not there. When it fails, say which known issue it was, its cause and its fix; or, when
    that is not certain, which issues are likely and what tells them apart.

    \b
      kb run -- torchrun --nproc_per_node 8 train.py
      kb run --report why.json -- make test 2>&1 | tee log

    Output, input, signals and exit code are the command's own. kb's explanation comes last, on stderr. Of an issue
    whose software the command and its output never name, kb says at most that a line is like one of it; after Ctrl-C it
    says nothing at all.
    """
    from kb.run import leave
    from kb.run import run as run_command

    outcome = run_command(command)
    with contextlib.suppress(KeyboardInterrupt):
        if outcome.message:
            echo(f"kb: {plain(told(outcome.message))}", err=True)
        elif outcome.code and not outcome.interrupted and not outcome.lost:
            _explain(outcome, command, lang, report, bases, index)
        if outcome.lost:  # the command cannot know: it wrote into our pipe
            lost = say("the output of the command could not be written ({reason})", reason=outcome.lost)
            complain(lost)
            outcome = replace(outcome, code=outcome.code or IndexWriteFailed.exit_code)
    leave(outcome)


@dataclass(frozen=True)
class _Answer:
    verdict: Verdict
    record: IssueRecord | None
    """the issue, or the most likely one; when unknown, the nearest one; None when the output has no words"""
    confidence: float
    """of `record`, in [0, 1]"""
    base: str
    """where `record` comes from, as in `Hit.base`"""
    likely: tuple[Hit, ...] = ()
    resembles: bool = False
    """unknown: the output has lines of `record`, but nothing shows that its software took part"""


def _explain(
    outcome: Outcome,
    command: tuple[str, ...],
    lang: Lang | None,
    report: Path | None,
    bases: tuple[str, ...],
    index: str | Path | None,
) -> None:
    """Prints and reports the explanation. The exit code stays the command's: an error here is a line on stderr."""
    from kb.run.nested import without_explanations

    try:
        output, told = without_explanations(outcome.output)
        if told and report is None:
            return
        with open_base(index, bases) as base:
            lang = language()
            answer = _ask(base, output, command, lang)
        if report is not None:
            _write_report(report, command, outcome, answer)
        if not told:
            _print(outcome, answer, "" if answer.base == "bundled" else answer.base)
    except KbError as error:
        complain(error)
    except BrokenPipeError:
        pass
    except Exception as error:
        if os.environ.get("KB_DEBUG"):
            raise
        complain(say("no explanation: {error}", error=f"{type(error).__name__}: {plain(str(error))}"))


def explained(outcome: Outcome, command: tuple[str, ...], bases: tuple[str, ...], index: str | Path | None) -> Verdict:
    """Prints the explanation on stdout, for somebody who asked. Raises KbError."""
    from kb.run.nested import without_explanations

    with open_base(index, bases) as base:
        answer = _ask(base, without_explanations(outcome.output)[0], command, language())
    _print(outcome, answer, "" if answer.base == "bundled" else answer.base, err=False)
    return answer.verdict


def _ask(base: AnyBase, output: bytes, command: tuple[str, ...], lang: Lang | None) -> _Answer:
    """Only issues count that are about something which the command or its output names."""
    from kb.brief import likely_hits
    from kb.components import is_present
    from kb.search.explain import explain
    from kb.text.decode import decode_lines

    text = decode_lines(output)
    found = explain(base, output, lang=lang)
    if found.verdict == "known" and found.record and is_present(found.record, text, command=command):
        return _Answer("known", found.record, found.confidence, found.base)
    named = likely_hits(found.result) if found.result else []
    likely = tuple(hit for hit in named if is_present(hit.record, text, command=command))
    if likely:
        return _Answer("likely", likely[0].record, likely[0].confidence, likely[0].base, likely)
    if found.result:
        note_miss(found.result)
    return _Answer(
        "unknown",
        found.record,
        found.confidence,
        found.base,
        resembles=found.verdict == "known" and found.confidence >= _RESEMBLES,
    )


def _how_it_ended(outcome: Outcome) -> str:
    if outcome.code >= 0:
        return f"exit code {outcome.code}"
    import signal

    with contextlib.suppress(ValueError):
        return f"ended by {signal.Signals(-outcome.code).name}"
    return f"ended by signal {-outcome.code}"


def _print(outcome: Outcome, answer: _Answer, where: str, *, err: bool = True) -> None:
    """`where`: the base that the answer comes from; empty for the one that is part of kb."""
    from kb.cli.render import Screen
    from kb.run.nested import first_line, unknown_line

    stream = sys.stderr if err else sys.stdout
    if stream is None:
        return
    output = Screen(colour=takes_colour(stream), err=err)
    if not outcome.ends_a_line:  # on a pipe, too: `2>&1 | tee`
        output.say("")
    how = _how_it_ended(outcome)
    if answer.verdict == "known" and answer.record:
        output.say(first_line(how), "bold yellow")
        output.remedy(answer.record, answer.confidence, base=where, above=2)
    elif answer.verdict == "likely" and answer.record:
        output.say(first_line(how, certain=False), "bold yellow")
        output.likely(answer.likely, answer.record.lang, base=where, above=2)
    else:
        output.say(unknown_line(how, _why_unknown(answer)), "dim")


def _why_unknown(answer: _Answer) -> str:
    from kb.brief import show_command

    record = answer.record
    if not answer.resembles or record is None:
        return say("not known to kb")
    if record.project:
        return say(
            "a line is like one of a known issue of {project}, but nothing shows that {project} took part; "
            "if it did: {command}",
            project=plain(record.project),
            command=show_command(record),
        )
    return say(
        "a line is like one of a known issue, but nothing shows that its software took part; if it did: {command}",
        command=show_command(record),
    )


def _reported(answer: _Answer) -> dict[str, Any] | None:
    """The record; of what is not known only which issue is nearest, without a remedy that nobody should try."""
    if answer.record is None:
        return None
    whole = answer.record.as_dict()
    return whole if answer.verdict != "unknown" else {name: whole[name] for name in ("id", "issue", "lang", "title")}


def _write_report(path: Path, command: tuple[str, ...], outcome: Outcome, answer: _Answer) -> None:
    form = {
        "command": list(command),
        "code": outcome.code if outcome.code >= 0 else None,
        "signal": -outcome.code if outcome.code < 0 else None,
        "answered": answer.verdict == "known",
        "verdict": answer.verdict,
        "likely": [hit.issue for hit in answer.likely],
        "base": answer.base,
        "confidence": round(answer.confidence, 4),
        "record": _reported(answer),
    }
    try:
        path.write_text(json.dumps(form, ensure_ascii=False, indent=1) + "\n", "utf-8", errors="backslashreplace")
    except OSError as error:
        raise IndexWriteFailed(f"the report cannot be written ({error.strerror or error})", path=path) from None
