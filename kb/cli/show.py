"""`kb show`: prints one issue, or all issues of an article, as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kb.cli.common import base_option, echo, index_option, json_option, open_base, print_json, screen
from kb.errors import IndexMissing

if TYPE_CHECKING:
    from kb.records import Lang

__all__ = ["show"]


@click.command()
@click.argument("issue")
@click.option("--lang", type=click.Choice(["en", "zh"]), help="Only this translation.")
@json_option
@base_option
@index_option
def show(issue: str, lang: Lang | None, as_json: bool, bases: tuple[str, ...], index: Path | None) -> None:
    """Show the whole of ISSUE: `slug#n`, `slug#n/zh` for one language, or a slug for all issues of an article."""
    with open_base(index, bases) as base:
        records = [record for record in base.show(issue) if lang in (None, record.lang)]
    if not records:
        raise IndexMissing(f"{issue} has no translation in {lang}")
    if as_json:
        print_json([record.as_dict() for record in records])
        return
    output = screen()
    for number, record in enumerate(records):
        if number:
            echo()
        output.record(record)
