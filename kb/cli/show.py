"""`kb show`: prints one issue, or all issues of an article, as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kb.cli.common import (
    base_option,
    index_option,
    json_option,
    lang_option,
    only_option,
    open_base,
    pager_option,
    print_json,
    screen,
)
from kb.cli.words import language
from kb.errors import IndexMissing

if TYPE_CHECKING:
    from kb.records import IssueRecord, Lang

__all__ = ["show"]


@click.command()
@click.argument("issue")
@lang_option
@only_option
@pager_option
@json_option
@base_option
@index_option
def show(
    issue: str,
    lang: Lang | None,
    only: Lang | None,
    no_pager: bool,
    as_json: bool,
    bases: tuple[str, ...],
    index: Path | None,
) -> None:
    """Show the whole of ISSUE: `slug#n`, `slug#n/zh` for one language, or a slug for all issues of an article."""
    with open_base(index, bases) as base:
        records = [record for record in base.show(issue) if only in (None, record.lang)]
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
