"""`kb trust`: remembers that the user trusts the base of a folder, or no longer does."""

from __future__ import annotations

import os
from pathlib import Path

import click

from kb.cli.common import echo
from kb.cli.words import say
from kb.errors import IndexMissing

__all__ = ["trust"]


@click.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option("--revoke", is_flag=True, help="Stop trusting it: the base is not used until you trust it again.")
def trust(folder: Path | None, revoke: bool) -> None:
    """Use the base in FOLDER whenever you work in FOLDER or below. Default: the nearest one at or above this folder.

    \b
      kb trust                   the articles/, index/ or kb.toml at or above this folder
      kb trust ~/work/runbooks
      kb trust --revoke

    A knowledge base holds commands. kb uses a base that came with a folder (a cloned repository, a shared disk) only if
    you trust it here, built it yourself, or name it with --index.
    """
    from kb.index.locate import nearest_base
    from kb.index.trust import remember, why_not_ours

    if revoke and folder is not None:  # it may be gone
        remember(folder, None)
        echo(say("{folder} is no longer trusted", folder=folder))
        return
    found = nearest_base(folder)
    if found is None or (folder is not None and str(found) != os.path.realpath(folder)):
        missing = "there is no articles/, no index/ and no kb.toml here"
        raise IndexMissing(missing, path=folder or Path.cwd(), hint="kb trust DIR")
    if not revoke and (theirs := why_not_ours(found)):
        raise IndexMissing(f"it belongs to somebody else ({theirs})", path=found, hint="kb search --index DIR uses it")
    remember(found, None if revoke else True)
    echo(say("{folder} is no longer trusted" if revoke else "{folder} is trusted", folder=found))
