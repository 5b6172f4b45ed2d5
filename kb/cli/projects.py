"""`kb projects`: lists the projects that a base has issues of."""

from __future__ import annotations

from pathlib import Path

import click

from kb.cli.common import base_option, echo, index_option, json_option, open_base, plain, print_json

__all__ = ["projects"]


@click.command()
@json_option
@base_option
@index_option
def projects(as_json: bool, bases: tuple[str, ...], index: str | Path | None) -> None:
    """List the projects that the base has issues of, with the number of issues."""
    with open_base(index, bases) as base:
        found = base.projects()
    if as_json:
        print_json([{"project": project, "issues": count} for project, count in found])
    else:
        for project, count in found:
            echo(f"{count:5d}  {plain(project)}")
