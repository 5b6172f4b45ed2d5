"""`kb run`: runs a command, and explains its failure.

`kb.run` runs it and keeps the end of its output, `kb.scan.explain` finds the issue; this module prints and reports.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kb.cli.common import complain, echo, index_option, is_terminal, lang_option, open_base, plain
from kb.errors import IndexWriteFailed, KbError

if TYPE_CHECKING:
    from kb.records import Lang
    from kb.run import Outcome
    from kb.scan.explain import Explanation

__all__ = ["run"]


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("command", metavar="COMMAND [ARGS]...", nargs=-1, required=True, type=click.UNPROCESSED)
@lang_option
@click.option(
    "--report", type=click.Path(path_type=Path, dir_okay=False), help="Write the explanation to this file, as JSON."
)
@index_option
def run(command: tuple[str, ...], lang: Lang | None, report: Path | None, index: Path | None) -> None:
    """Run COMMAND as if kb were not there. When it fails, say which known issue it was, its cause and its fix.

    \b
      kb run -- torchrun --nproc_per_node 8 train.py
      kb run --report why.json -- make test 2>&1 | tee log

    Output, input, signals and exit code are the command's own. kb's explanation comes last, on stderr.
    """
    from kb.run import leave
    from kb.run import run as run_command

    outcome = run_command(command)
    with contextlib.suppress(KeyboardInterrupt):
        if outcome.message:
            echo(f"kb: {plain(outcome.message)}", err=True)
        elif outcome.code and not outcome.interrupted:
            _explain(outcome, command, lang, report, index)
    leave(outcome)


def _explain(
    outcome: Outcome, command: tuple[str, ...], lang: Lang | None, report: Path | None, index: Path | None
) -> None:
    """Prints and reports the explanation. The exit code stays the command's: an error here is a line on stderr."""
    from kb.run.nested import without_explanations
    from kb.scan.explain import explain

    try:
        output, explained = without_explanations(outcome.output)
        if explained and report is None:
            return
        with open_base(index) as base:
            found = explain(base.searcher, output, lang=lang)
            where = "" if base.bundled else base.where
        if report is not None:
            _write_report(report, command, outcome, found)
        if not explained:
            _print(outcome, found, where)
    except KbError as error:
        complain(error)
    except BrokenPipeError:
        pass
    except Exception as error:
        if os.environ.get("KB_DEBUG"):
            raise
        echo(f"kb: no explanation: {type(error).__name__}: {plain(str(error))}", err=True)


def _how_it_ended(outcome: Outcome) -> str:
    if outcome.code >= 0:
        return f"exit code {outcome.code}"
    import signal

    with contextlib.suppress(ValueError):
        return f"ended by {signal.Signals(-outcome.code).name}"
    return f"ended by signal {-outcome.code}"


def _print(outcome: Outcome, found: Explanation, where: str) -> None:
    """`where`: the folder of the base; empty for the one that is part of kb."""
    from kb.cli.render import WORTH_A_LINE, Screen
    from kb.run.nested import first_line, unknown_line

    if sys.stderr is None:
        return
    output = Screen(colour=is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb", err=True)
    if is_terminal(sys.stderr) and not outcome.ends_a_line:
        output.say("")
    how, record = _how_it_ended(outcome), found.record
    if found.answered and record:
        output.say(first_line(how), "bold yellow")
        output.remedy(record, found.confidence, base=where)
    elif record and found.confidence >= WORTH_A_LINE:
        output.say(unknown_line(how, f"{record.issue} ({found.confidence:.0%}), {record.title}"), "dim")
    else:
        output.say(unknown_line(how), "dim")


def _write_report(path: Path, command: tuple[str, ...], outcome: Outcome, found: Explanation) -> None:
    form = {
        "command": list(command),
        "code": outcome.code if outcome.code >= 0 else None,
        "signal": -outcome.code if outcome.code < 0 else None,
        "answered": found.answered,
        "base": found.base,
        "confidence": round(found.confidence, 4),
        "record": found.record.as_dict() if found.record else None,
    }
    try:
        path.write_text(json.dumps(form, ensure_ascii=False, indent=1) + "\n", "utf-8", errors="backslashreplace")
    except OSError as error:
        raise IndexWriteFailed(f"the report cannot be written ({error.strerror or error})", path=path) from None
