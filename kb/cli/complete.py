"""What TAB offers: the ids of issues and the names of projects, of the bases on this machine that would be asked.

Quick and silent: no numpy, no base is opened, nothing is made or asked over HTTP, and what goes wrong offers
nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

__all__ = ["complete_issue", "complete_project"]

_MOST = 200  # more than that is no help
_TITLE_CHARS = 70
_SPECIAL = re.compile(r"([^\w@%+=:,./#-])")


def complete_issue(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Ids that begin with what is typed, or the only one that holds it."""
    from click.shell_completion import CompletionItem

    from kb.text import visible_line

    titles: dict[str, str] = {}
    with suppress(Exception):
        from kb.index.names import issues_of

        for index in _indexes(context):
            for one in issues_of(index):
                if one.issue not in titles or one.lang == "en":
                    titles[one.issue] = visible_line(one.title)[:_TITLE_CHARS]
    return [CompletionItem(_for_shell(issue), help=titles[issue]) for issue in _fitting(titles, typed)]


def complete_project(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    names: dict[str, None] = {}
    with suppress(Exception):
        from kb.index.names import projects_of

        for index in _indexes(context):
            names |= dict.fromkeys(projects_of(index))
    return [CompletionItem(_for_shell(name)) for name in _fitting(names, typed)]


def _fitting(names: dict[str, str] | dict[str, None], typed: str) -> list[str]:
    from kb.text import visible

    safe = [name for name in names if name == visible(name) and name.isprintable()]
    wanted = typed.casefold()
    found = [name for name in safe if name.casefold().startswith(wanted)]
    if not found:
        holding = [name for name in safe if wanted in name.casefold()]
        found = holding if len(holding) == 1 else []
    return sorted(found)[:_MOST]


def _for_shell(name: str) -> str:
    """bash puts an answer on the line as it is; zsh and fish quote it."""
    return _SPECIAL.sub(r"\\\1", name) if os.environ.get("_KB_COMPLETE", "").startswith("bash") else name


def _indexes(context: click.Context) -> Iterator[Path]:
    import logging

    from kb.index.locate import Location
    from kb.index.snapshot import MANIFEST
    from kb.places import places

    logging.getLogger("kb").addHandler(logging.NullHandler())
    logging.getLogger("kb").propagate = False  # a word among the answers would be one of them
    given = context.params
    for place in places(given.get("bases") or (), index=given.get("index")):
        if isinstance(place, Location) and (place.index / MANIFEST).is_file():
            yield place.index
