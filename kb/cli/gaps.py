"""`kb gaps`: what was asked and not known, by how many asked it; opens a draft for one."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kb.cli.common import base_option, counted, echo, index_option, json_option, open_base, plain, print_json
from kb.cli.feedback import file_option, opened_file
from kb.cli.words import say
from kb.errors import IndexMissing

if TYPE_CHECKING:
    from kb.feedback.gaps import Gap

__all__ = ["gaps"]

_EXAMPLES = 3
_SHOWN_CHARS = 160


@click.command()
@click.option("-n", "most", type=click.IntRange(1, 1000), default=10, show_default=True, help="How many to show.")
@click.option("--all", "everything", is_flag=True, help="Also those that are known now, and those that were dismissed.")
@click.option("--draft", metavar="GAP", help="Open the draft of an article for this gap: a number or name of the list.")
@click.option("--slug", help="The name of that article. Default: made from its error line.")
@click.option("--project", help="The project that owns the issue, for the draft.")
@click.option(
    "--articles",
    type=click.Path(path_type=Path),
    help="Folder for the draft. Default: articles/ at or above this folder, else a new one here.",
)
@click.option("--dismiss", metavar="GAP", help="This is no gap: do not show it again.")
@click.option("--restore", metavar="GAP", help="Take that back.")
@file_option
@json_option
@base_option
@index_option
def gaps(
    most: int,
    everything: bool,
    draft: str | None,
    slug: str | None,
    project: str | None,
    articles: Path | None,
    dismiss: str | None,
    restore: str | None,
    file: Path | None,
    as_json: bool,
    bases: tuple[str, ...],
    index: str | Path | None,
) -> None:
    """Show what people asked and the base does not know, by how many asked it.

    \b
      kb gaps
      kb gaps --draft 1 --slug nccl-socket-timeout --project NCCL
      kb gaps --dismiss 3

    Questions are kept only where that is switched on: `[feedback] misses = true` in your kb.toml, or `kb serve
    --feedback FILE`. Of each only the masked error lines are kept, how often it was asked, and by how many. The base is
    asked again each time: what an article answers since is no gap any more.
    """
    gc.enable()
    from kb.feedback.gaps import gaps as found_in

    found = opened_file(file)
    with open_base(index, bases, votes=False) as base:
        every = found_in(found.misses(), base)
    if draft is not None:
        _draft(_named(every, draft), slug, project, articles)
    elif dismiss is not None or restore is not None:
        gap = _named(every, dismiss or restore or "")
        found.dismiss([miss.family for miss in gap.misses], dismissed=dismiss is not None)
        said = say("gap {name} is not shown any more", name=gap.name)
        echo(said if dismiss is not None else say("gap {name} is shown again", name=gap.name))
    elif as_json:
        print_json([gap.as_dict() for gap in every if everything or gap.is_open])
    else:
        _show(every, most, everything=everything)


def _show(every: list[Gap], most: int, *, everything: bool) -> None:
    is_open = [gap for gap in every if gap.is_open]
    shown = every if everything else is_open
    for number, gap in enumerate(shown[:most], 1):
        asked = say("asked {times} by {people}", times=counted(gap.count, "time"), people=counted(gap.askers, "asker"))
        echo(f"{number:3}  {gap.name}  {asked}{_state(gap)}")
        for line in list(dict.fromkeys(miss.lines[0] for miss in gap.misses))[:_EXAMPLES]:
            echo(f"       {line if len(line) <= _SHOWN_CHARS else line[:_SHOWN_CHARS] + '…'}")
    closed = sum(gap.verdict == "known" for gap in every)
    echo(say("{open} open, {closed} known by now", open=counted(len(is_open), "gap"), closed=closed), err=True)
    if not every:
        echo(say("nothing is kept unless you switch it on: `kb gaps --help` says how"), err=True)


def _state(gap: Gap) -> str:
    if gap.dismissed:
        return "  " + say("(dismissed)")
    if gap.verdict == "known":
        return "  " + say("(known by now: {issue})", issue=gap.issue)
    return "  " + say("(now likely: {issue})", issue=gap.issue) if gap.verdict == "likely" else ""


def _named(every: list[Gap], name: str) -> Gap:
    """By its name, or by its number among those that are open. Raises IndexMissing."""
    is_open = [gap for gap in every if gap.is_open]
    if name.isdecimal() and len(name) < 4 and 0 < int(name) <= len(is_open):
        return is_open[int(name) - 1]
    found = [gap for gap in every if len(name) >= 4 and any(m.family.startswith(name.casefold()) for m in gap.misses)]
    if len(found) != 1:
        raise IndexMissing(f"there is no gap {name!r}", hint="kb gaps --all lists them")
    return found[0]


def _draft(gap: Gap, slug: str | None, project: str | None, articles: Path | None) -> None:
    from kb.articles.scaffold import is_slug, scaffold
    from kb.feedback.gist import unmarked
    from kb.importers.form import slug_from
    from kb.index.locate import own_articles
    from kb.logs.classify import is_error_line

    lines = tuple(dict.fromkeys(miss.lines[0] for miss in gap.misses))
    slug = slug or slug_from(unmarked(lines[0]), most=60) or f"gap-{gap.name}"
    if not is_slug(slug):
        raise click.BadParameter(f"{plain(repr(slug))} cannot name an article", param_hint="--slug")
    errors = [line for line in lines if is_error_line(line)]
    asked = [line for line in lines if line not in errors]
    folder = articles or own_articles() or Path("articles")
    for path in scaffold(folder, slug, project=project, errors=errors, asked=asked):
        echo(plain(str(path)))
