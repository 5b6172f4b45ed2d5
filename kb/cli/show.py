"""`kb show`: prints one issue, or all issues of an article, as a whole."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kb.cli.common import (
    base_option,
    complain,
    echo,
    index_option,
    json_option,
    lang_option,
    only_option,
    open_base,
    pager_option,
    print_json,
    screen,
)
from kb.cli.complete import complete_issue
from kb.cli.words import language, say
from kb.errors import IndexMissing

if TYPE_CHECKING:
    from kb.bases import AnyBase
    from kb.records import IssueRecord, Lang

__all__ = ["show"]

_LISTED = 30
_EXIT_SEVERAL = 1


@click.command()
@click.argument("words", metavar="ISSUE", nargs=-1, required=True, shell_complete=complete_issue)
@lang_option
@only_option
@pager_option
@json_option
@base_option
@index_option
def show(
    words: tuple[str, ...],
    lang: Lang | None,
    only: Lang | None,
    no_pager: bool,
    as_json: bool,
    bases: tuple[str, ...],
    index: str | Path | None,
) -> None:
    """Show the whole of ISSUE: `slug#n`, `slug#n/zh` for one language, or a slug for all issues of an article. Of a
    part of an id or title, the one issue that has it, or a list of them.

    \b
      kb show fsdp
      kb show pytorch-cuda-out-of-memory#1
    """
    issue = " ".join(words)
    with open_base(index, bases) as base:
        records = [record for record in _found(base, issue, as_json=as_json) if only in (None, record.lang)]
    if not records:
        raise IndexMissing(f"{issue} has no translation in {only}")
    if not as_json or lang is not None:  # what programs read does not depend on who started them
        records = _told_in(language(), records)
    if as_json:
        print_json([record.as_dict() for record in records])
        return
    output = screen()
    with output.paged(use=not no_pager):
        for number, record in enumerate(records):
            if number:
                output.say("")
            output.record(record)


def _told_in(lang: Lang | None, records: list[IssueRecord]) -> list[IssueRecord]:
    """Each issue in this language where it has an article in it."""
    there = {record.issue for record in records if record.lang == lang}
    return [record for record in records if record.lang == lang or record.issue not in there]


def _found(base: AnyBase, issue: str, *, as_json: bool) -> list[IssueRecord]:
    """The records of the issue that is named, or of the only one that has `issue` in its id or title. Several are
    listed, and kb exits with 1. Raises IndexMissing."""
    try:
        return base.show(issue)
    except IndexMissing as error:
        from kb.lookup import issues_with, near_words, title_in

        found = issues_with(base.catalogue(), issue)
        if not found:
            near = near_words(base.catalogue(), issue)
            hint = f"did you mean {' or '.join(near)}?" if near else error.hint
            raise IndexMissing(error.message, hint=hint) from None
    if len(found) == 1:
        return [*found[0]]
    ids = [records[0].issue for records in found]
    if as_json:
        raise IndexMissing(f"{len(ids)} issues have {issue!r} in their id or title", hint=", ".join(ids[:_LISTED]))
    for records in found[:_LISTED]:
        echo(f"{records[0].issue}  [{records[0].project or '-'}] {title_in(language(), records)}")
    complain(say("{n} issues have {part} in their id or title; `kb show ID` shows one", n=len(ids), part=repr(issue)))
    if len(ids) > _LISTED:
        complain(say("the first {n} are listed", n=_LISTED))
    sys.exit(_EXIT_SEVERAL)
