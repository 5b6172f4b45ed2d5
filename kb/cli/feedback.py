"""`kb feedback`: says of an issue that it helped or did not fit, shows what was said, and takes it back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kb.cli.common import base_option, counted, echo, index_option, json_option, open_base, print_json, read_stdin
from kb.cli.words import say
from kb.errors import QueryError

if TYPE_CHECKING:
    from kb.feedback.store import Feedback
    from kb.feedback.told import Said

__all__ = ["feedback", "file_option", "opened_file"]

Option = Callable[[Callable[..., Any]], Callable[..., Any]]

file_option: Option = click.option(
    "--file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file of votes and misses. Default: $KB_FEEDBACK, else kb.toml's, else one in your data folder.",
)
_question_option: Option = click.option(
    "--question", metavar="TEXT", help='What you asked; "-" reads stdin. Its masked error lines are kept with the vote.'
)


def opened_file(path: Path | None) -> Feedback:
    """Raises QueryError where feedback is switched off."""
    from kb.feedback import place

    path = path or place.feedback_file()
    if path is None:
        raise QueryError("feedback is switched off here", hint="KB_FEEDBACK=off does that; --file names a file")
    return place.opened(path)


@click.group()
def feedback() -> None:
    """Say whether an answer helped. Many voices move its place and its confidence a little; one voice does not.

    \b
      kb feedback helped vllm-oom#1 --question "CUDA out of memory ..."
      python train.py 2>&1 | kb feedback wrong vllm-oom#1 --question -
      kb feedback list
      kb feedback forget 12

    Votes are kept in one file on this machine, with the masked error lines of the question and a salted hash in place
    of your name: no keys, paths, names of machines, or numbers, and never the whole log. Delete the file, and nothing
    was ever said. kb.toml can switch off what votes do (`[feedback] votes = false`), `kb search --no-feedback` once.
    """


@feedback.command()
@click.argument("issue")
@_question_option
@file_option
@base_option
@index_option
def helped(
    issue: str, question: str | None, file: Path | None, bases: tuple[str, ...], index: str | Path | None
) -> None:
    """Say that ISSUE (slug#n) was the answer."""
    _vote(issue, "helped", question, file, bases, index)


@feedback.command()
@click.argument("issue")
@_question_option
@file_option
@base_option
@index_option
def wrong(
    issue: str, question: str | None, file: Path | None, bases: tuple[str, ...], index: str | Path | None
) -> None:
    """Say that ISSUE (slug#n) did not fit what you asked."""
    _vote(issue, "did_not_fit", question, file, bases, index)


@feedback.command("list")
@file_option
@json_option
def show(file: Path | None, as_json: bool) -> None:
    """List the votes, the newest first."""
    from datetime import datetime

    found = opened_file(file)
    votes = found.votes()
    if as_json:
        print_json(
            [
                {
                    "id": vote.id,
                    "issue": vote.issue,
                    "base": vote.base,
                    "verdict": "helped" if vote.helped else "did_not_fit",
                    "at": vote.at,
                    "person": vote.person,
                    "lines": list(vote.lines),
                }
                for vote in votes
            ]
        )
        return
    for vote in votes:
        said = say("helped") if vote.helped else say("did not fit")
        day = datetime.fromtimestamp(vote.at).strftime("%Y-%m-%d")
        echo(f"{vote.id:6}  {day}  {vote.person[:6]}  {said}  {vote.issue}  {vote.lines[0] if vote.lines else ''}")
    echo(say("{votes} in {file}", votes=counted(len(votes), "vote"), file=found.path), err=True)


@feedback.command()
@click.argument("votes", nargs=-1, type=click.IntRange(1, (1 << 63) - 1))
@click.option("--all", "everything", is_flag=True, help="All votes and all misses.")
@click.option("--misses", is_flag=True, help="All that was asked and not known.")
@file_option
def forget(votes: tuple[int, ...], everything: bool, misses: bool, file: Path | None) -> None:
    """Remove VOTES, by the numbers that `kb feedback list` shows."""
    if not (votes or everything or misses):
        raise click.UsageError("name votes by their numbers, or give --all or --misses")
    found = opened_file(file)
    if not found.path.exists():
        sys.exit(0)
    removed = found.forget(None if everything else votes)
    gone = found.forget_misses() if everything or misses else 0
    echo(
        say(
            "{votes} and {misses} forgotten",
            votes=counted(removed, "vote"),
            misses=counted(gone, "unanswered question"),
        ),
        err=True,
    )


def _vote(
    issue: str, said: Said, question: str | None, file: Path | None, bases: tuple[str, ...], index: str | Path | None
) -> None:
    from kb.feedback.told import cast, this_user
    from kb.text.decode import decode

    if question == "-":
        question = decode(read_stdin())
    found = opened_file(file)
    with open_base(index, bases, votes=False) as base:
        named, for_it, against = cast(found, base, issue, said, this_user(), question)
    echo(
        say(
            "{issue}: {helped:g} say it helped, {wrong:g} that it did not fit",
            issue=named,
            helped=for_it,
            wrong=against,
        )
    )
